//! The multi-level hash index, whose model tells its requests.

use nandex_kvssd::{Access, MULTILEVEL_FIRST_PAGES, Multilevel, MultilevelStats};
use nandex_sim::RequestKind;

use super::lab::{KvIndex, Requests};
use crate::Result;
use crate::tape::Step;

/// The model, and its place on a drive.
pub struct MultilevelIndex(Multilevel);

impl MultilevelIndex {
    /// An empty one with that much DRAM, whose first level is as many times smaller as all else.
    pub fn new(dram_bytes: u64, times: u64) -> Self {
        Self(Multilevel::with_first_level(dram_bytes, MULTILEVEL_FIRST_PAGES / times.max(1)))
    }

    /// Its levels and pages.
    pub fn stats(&self) -> MultilevelStats {
        self.0.stats()
    }
}

impl KvIndex for MultilevelIndex {
    fn access(&mut self, key: u64, access: Access) -> Result<Requests> {
        let touched = self.0.access(key, access);
        // A level is read when the one before did not have the key, so each is a wave of its own.
        let step = |kind| move |(wave, page)| Step { kind, page, pages: 1, wave };
        let reads = (0..).zip(touched.reads).map(step(RequestKind::Read)).collect();
        let write = |page| Step { kind: RequestKind::Write, page, pages: 1, wave: 0 };
        Ok(Requests { reads, update: touched.writes.into_iter().map(write).collect() })
    }
}
