//! A stream of lookups: keys go in and answers come out, and the device's queue stays full between.

use std::collections::VecDeque;

use super::read::{Answers, Reader};
use super::{Intake, Room};
use crate::Result;
use crate::api::{LookupStream, Value};

/// A key of a stream, which must outlive the call that brought it.
#[derive(Clone, Copy)]
struct Key {
    bytes: [u8; 32],
    len: u8,
}

impl Key {
    fn new(key: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes[..key.len()].copy_from_slice(key);
        Self { bytes, len: u8::try_from(key.len()).expect("keys have at most 32 bytes") }
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Answers that nobody has taken yet.
#[derive(Default)]
struct Ready(VecDeque<(u64, Option<Value>)>);

impl Answers for Ready {
    fn answer(&mut self, token: u64, value: Option<Value>) {
        self.0.push_back((token, value));
    }
}

/// The stream of one table.
struct Stream<'i, R: Room> {
    inner: &'i Intake<R>,
    reader: Reader<'i, R, Key>,
    ready: Ready,
}

impl<R: Room> Intake<R> {
    pub(crate) fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        Ok(Box::new(Stream { inner: self, reader: Reader::new(self), ready: Ready::default() }))
    }
}

impl<R: Room> LookupStream for Stream<'_, R> {
    fn push(&mut self, key: &[u8], token: u64) -> Result<()> {
        self.inner.check_key(key)?;
        let (hash, aim) = self.inner.bring_near(key);
        self.reader.start(Key::new(key), token, hash, &aim, &mut self.ready)
    }

    fn poll(&mut self) -> Result<Option<(u64, Option<Value>)>> {
        if self.ready.0.is_empty() {
            self.reader.poll(&mut self.ready)?;
        }
        Ok(self.ready.0.pop_front())
    }

    fn pull(&mut self) -> Result<Option<(u64, Option<Value>)>> {
        while self.ready.0.is_empty() && self.reader.pending() > 0 {
            self.reader.wait(&mut self.ready)?;
        }
        if self.reader.pending() == 0 && self.ready.0.is_empty() {
            self.reader.rest();
        }
        Ok(self.ready.0.pop_front())
    }

    fn pending(&self) -> usize {
        self.ready.0.len() + self.reader.pending()
    }
}

impl<R: Room> Drop for Stream<'_, R> {
    fn drop(&mut self) {
        if self.reader.pending() == 0 {
            self.reader.rest();
        }
    }
}
