//! Documents from a thread that reads, so that reading and counting overlap and an interrupt is noticed while stdin has
//! nothing.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use nandex_corpus::{DocumentResult, Error};

use crate::console::{Console, Meter};
use crate::interrupt::Interrupt;

use super::input::Inputs;

/// The most documents of a batch.
const BATCH_DOCUMENTS: usize = 128;
/// The number of bytes of text from which on a batch is full.
const BATCH_BYTES: usize = 256 << 10;
/// The number of batches that wait.
const BATCHES: usize = 2;
/// The interval at which an interrupt is checked while no documents arrive.
const LOOK: Duration = Duration::from_millis(50);

/// The effect of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnInterrupt {
    /// The documents end, and those that were read count.
    End,
    /// It is an error, so that no partial result is left.
    Fail,
}

/// The documents of all inputs.
pub struct Stream<'a> {
    receiver: Receiver<Vec<DocumentResult>>,
    interrupt: &'a Interrupt,
    on_interrupt: OnInterrupt,
    meter: Meter,
    batch: std::vec::IntoIter<DocumentResult>,
    bytes: u64,
    /// The number of documents so far.
    pub documents: u64,
}

impl<'a> Stream<'a> {
    /// Begins to read.
    ///
    /// # Errors
    /// The thread cannot start.
    pub fn start(
        inputs: Inputs,
        (what, on_interrupt): (&'static str, OnInterrupt),
        (console, interrupt): (&Console, &'a Interrupt),
    ) -> Result<Self> {
        let (sender, receiver) = sync_channel(BATCHES);
        let meter = console.meter(what, inputs.bytes);
        thread::Builder::new().name("nandex-texts".into()).spawn(move || read(inputs, &sender))?;
        let batch = Vec::new().into_iter();
        Ok(Self { receiver, interrupt, on_interrupt, meter, batch, bytes: 0, documents: 0 })
    }

    /// Returns the next batch; `None` at the end.
    fn receive(&mut self) -> Option<Vec<DocumentResult>> {
        loop {
            if self.interrupt.is_set() {
                return self.stop();
            }
            match self.receiver.recv_timeout(LOOK) {
                Ok(batch) => return Some(batch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn stop(&self) -> Option<Vec<DocumentResult>> {
        let stopped = Error::Scratch { action: "go on", source: io::ErrorKind::Interrupted.into() };
        (self.on_interrupt == OnInterrupt::Fail).then(|| vec![Err(stopped)])
    }

    /// Ends the progress.
    pub fn finish(self) -> u64 {
        self.meter.finish();
        self.documents
    }
}

impl Iterator for Stream<'_> {
    type Item = DocumentResult;

    fn next(&mut self) -> Option<DocumentResult> {
        if self.batch.as_slice().is_empty() || self.interrupt.is_set() {
            self.meter.at(self.bytes);
            self.batch = self.receive()?.into_iter();
        }
        let next = self.batch.next();
        if let Some(Ok(document)) = &next {
            self.documents += 1;
            self.bytes += document.text.len() as u64 + 1;
        }
        next
    }
}

/// Sends all documents, until the first error or until the receiver is dropped.
fn read(inputs: Inputs, sender: &SyncSender<Vec<DocumentResult>>) {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for document in inputs.documents() {
        bytes += document.as_ref().map_or(0, |document| document.text.len());
        let is_last = document.is_err();
        batch.push(document);
        if is_last || batch.len() >= BATCH_DOCUMENTS || bytes >= BATCH_BYTES {
            bytes = 0;
            if sender.send(std::mem::take(&mut batch)).is_err() || is_last {
                return;
            }
        }
    }
    if !batch.is_empty() {
        // If this fails, the receiver was dropped.
        let _ = sender.send(batch);
    }
}
