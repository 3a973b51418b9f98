//! The text of each term, once, so that terms can be listed.

use nandex::{AnyTable, LargeTable};

use super::CorpusConfig;
use super::batch::Batch;
use crate::tokenise::TermKey;
use crate::{Error, Result};

/// Texts that are looked up or put at a time.
const CHUNK: usize = 4096;

/// Texts of terms under their keys, and what is kept next to them.
#[derive(Debug)]
pub(super) struct Texts {
    table: LargeTable<AnyTable>,
    known: Known,
    /// What the index was said to have space for; for errors.
    bytes_max: u64,
}

impl Texts {
    pub(super) fn new(table: LargeTable<AnyTable>, config: &CorpusConfig, bytes_max: u64) -> Self {
        let known_bytes = usize::try_from(config.share()).unwrap_or(usize::MAX / 2);
        Self { table, known: Known::new(known_bytes), bytes_max }
    }

    pub(super) fn into_table(self) -> LargeTable<AnyTable> {
        self.table
    }

    /// Bytes of RAM.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.table.stats().ram_bytes + self.known.ram_bytes()
    }

    /// Keeps the text of each of these terms of a batch.
    pub(super) fn keep_all(&mut self, keys: &[TermKey], batch: &Batch) -> Result<()> {
        for keys in keys.chunks(CHUNK) {
            let unknown = keys.iter().filter(|key| !self.known.has(key));
            let pairs: Vec<(TermKey, &[u8])> = unknown.map(|key| (*key, batch.text(key))).collect();
            self.keep(&pairs)?;
        }
        Ok(())
    }

    /// Keeps the texts that are not there yet. One that is there under the same key must be the same.
    pub(super) fn keep(&mut self, pairs: &[(TermKey, &[u8])]) -> Result<()> {
        let keys: Vec<&[u8]> = pairs.iter().map(|(key, _)| &key.0[..]).collect();
        let found = self.table.get_many(&keys)?;
        let mut absent: Vec<(&[u8], &[u8])> = Vec::new();
        for ((key, text), found) in pairs.iter().zip(&found) {
            match found {
                Some(found) if found != text => return Err(same_key(found, text)),
                Some(_) => {}
                None => absent.push((&key.0, text)),
            }
        }
        self.table.put_many(&absent).map_err(|error| self.explain(error))?;
        pairs.iter().for_each(|(key, _)| self.known.note(*key));
        Ok(())
    }

    /// Keeps what is under a key that no term has, and makes all texts durable.
    pub(super) fn put_durably(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.table.put(key, value).map_err(|error| self.explain(error))?;
        self.table.sync().map_err(|error| self.explain(error))
    }

    fn explain(&self, error: nandex::Error) -> Error {
        match error {
            nandex::Error::ValuesFull { .. } => Error::TextsFull { bytes_max: self.bytes_max },
            error => error.into(),
        }
    }

    /// The texts of terms that are in the index, in their order.
    pub(super) fn get_many(&self, keys: &[TermKey]) -> Result<Vec<Vec<u8>>> {
        let mut texts = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(CHUNK) {
            let keys: Vec<&[u8]> = chunk.iter().map(|key| &key.0[..]).collect();
            for found in self.table.get_many(&keys)? {
                texts.push(found.ok_or_else(|| Error::Contradiction {
                    reason: "a term is counted and its text is not there".into(),
                })?);
            }
        }
        Ok(texts)
    }
}

fn same_key(found: &[u8], text: &[u8]) -> Error {
    let (found, text) = (String::from_utf8_lossy(found), String::from_utf8_lossy(text));
    Error::Contradiction { reason: format!("the terms {found:?} and {text:?} have the same hash") }
}

/// Keys whose texts are kept for sure: those noted last, one in each place.
#[derive(Debug)]
struct Known {
    places: Vec<TermKey>,
}

/// What no place holds a key of.
const NONE: TermKey = TermKey([0; 16]);

impl Known {
    fn new(bytes: usize) -> Self {
        let places = (bytes / size_of::<TermKey>()).max(2).next_power_of_two() / 2;
        Self { places: vec![NONE; places] }
    }

    fn place(&self, key: &TermKey) -> usize {
        // The number of places is a power of two, and no more than memory has.
        (key.half() & (self.places.len() as u64 - 1)) as usize
    }

    fn has(&self, key: &TermKey) -> bool {
        *key != NONE && self.places[self.place(key)] == *key
    }

    fn note(&mut self, key: TermKey) {
        let place = self.place(&key);
        self.places[place] = key;
    }

    fn ram_bytes(&self) -> u64 {
        (self.places.len() * size_of::<TermKey>()) as u64
    }
}
