//! What the readable filter and the fast one have in common, so that either can stand behind a lock.

use nandex_store::run::{Entry, Source};

use super::{Batches, QuotientFilter, Shape};
use crate::Result;

/// A quotient filter at the level of fingerprints. All implementations give the same answers, refuse the same
/// updates with the same errors, and have the same entries in the same number of slots.
pub trait Slots: Send + Sync + Sized {
    /// See [`QuotientFilter::new`].
    fn new(shape: Shape) -> Self;
    /// See [`QuotientFilter::from_source`].
    ///
    /// # Errors
    /// As there.
    fn from_source(shape: Shape, source: &mut dyn Source) -> Result<Self>;
    /// See [`QuotientFilter::shape`].
    fn shape(&self) -> Shape;
    /// See [`QuotientFilter::add`].
    ///
    /// # Errors
    /// As there.
    fn add(&mut self, fingerprint: u64, count: i64) -> Result<()>;
    /// See [`QuotientFilter::count`].
    fn count(&self, fingerprint: u64) -> i64;
    /// See [`QuotientFilter::contains_fingerprint`].
    fn contains_fingerprint(&self, fingerprint: u64) -> bool {
        self.count(fingerprint) > 0
    }
    /// See [`QuotientFilter::entries`].
    fn entries(&self) -> u64;
    /// See [`QuotientFilter::is_full`].
    fn is_full(&self) -> bool;
    /// See [`QuotientFilter::clear`].
    fn clear(&mut self);
    /// See [`QuotientFilter::ram_bytes`].
    fn ram_bytes(&self) -> usize;
    /// See [`QuotientFilter::iter`].
    fn iter(&self) -> impl Iterator<Item = Entry> + Send + '_;
    /// See [`QuotientFilter::source`].
    fn source(&self) -> impl Source + '_ {
        Batches(self.iter())
    }
    /// See [`QuotientFilter::resized`].
    ///
    /// # Errors
    /// As there.
    fn resized(&self, quotients: u64) -> Result<Self> {
        Self::from_source(self.shape().resized(quotients)?, &mut self.source())
    }
}

impl Slots for QuotientFilter {
    fn new(shape: Shape) -> Self {
        Self::new(shape)
    }

    fn from_source(shape: Shape, source: &mut dyn Source) -> Result<Self> {
        Self::from_source(shape, source)
    }

    fn shape(&self) -> Shape {
        self.shape()
    }

    fn add(&mut self, fingerprint: u64, count: i64) -> Result<()> {
        self.add(fingerprint, count)
    }

    fn count(&self, fingerprint: u64) -> i64 {
        self.count(fingerprint)
    }

    fn contains_fingerprint(&self, fingerprint: u64) -> bool {
        self.contains_fingerprint(fingerprint)
    }

    fn entries(&self) -> u64 {
        self.entries()
    }

    fn is_full(&self) -> bool {
        self.is_full()
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn ram_bytes(&self) -> usize {
        self.ram_bytes()
    }

    fn iter(&self) -> impl Iterator<Item = Entry> + Send + '_ {
        self.iter()
    }
}
