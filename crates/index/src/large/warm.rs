//! Warms up the cache: reads all keys and records in long reads, once that costs less than single reads.
//!
//! The places of all records come from a pass over the table, and the records from one over the value log. If the
//! records do not fit, their places may: then a lookup reads only its record. The effects of updates meanwhile stay in
//! the [cache](super::cache), and what was read of their keys is not stored.

use std::sync::Mutex;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use nandex_device::PAGE_BYTES;
use nandex_store::values::format::LiveSegment;

use super::cache::RecordCache;
use super::format::FINGERPRINT_BYTES;
use super::{Inner, lock};
use crate::any::AnyTable;
use crate::api::Table;
use crate::{Error, Result};

/// The bytes of long reads that take as long as one read of a page.
const BYTES_FOR_READ: u64 = 64 << 10;

/// The least number of lookups that the cache could not answer before it is warmed up.
const UNKNOWN_MIN: u64 = 16;

/// The RAM of a key whose record's place is known, in bytes, including its part of the index.
const PLACE_BYTES: u64 = 56;

/// The RAM of a key in addition to its record, in bytes, including its part of the index.
const RECORD_BYTES: u64 = 40;

/// The state of warming up the cache.
#[derive(Debug)]
pub(super) struct WarmUp<T: Table> {
    run: fn(&Inner<T>) -> Result<()>,
    /// The number of lookups and updates of unknown keys until warming up pays off.
    left: AtomicU64,
    /// Whether the background is asked to do it.
    is_asked: AtomicBool,
    /// The error of the background; the next call reports it.
    fault: Mutex<Option<Error>>,
    has_failed: AtomicBool,
}

impl<T: Table> WarmUp<T> {
    /// Reports an error of the background once.
    fn report_fault(&self) -> Result<()> {
        if !self.has_failed.load(Relaxed) || !self.has_failed.swap(false, SeqCst) {
            return Ok(());
        }
        lock(&self.fault).take().map_or(Ok(()), Err)
    }
}

impl<T: Table> Inner<T> {
    /// Counts keys about which the cache knew too little.
    pub(super) fn count_unknown(&self, keys: usize) {
        if let Some(warm_up) = self.warm_up.get() {
            let left = warm_up.left.load(Relaxed);
            let now = left.saturating_sub(keys as u64).max(left.min(1));
            // Of two that count at a time, one may be lost.
            let _ = warm_up.left.compare_exchange(left, now, Relaxed, Relaxed);
        }
    }

    /// Warms up the cache, if that pays off with `keys` more keys: in the background if there is one. The caller holds
    /// no lock.
    ///
    /// # Errors
    /// A failed read or write, including one in the background before. It is not tried again. Damage is reported by the
    /// call that needs the damaged page.
    pub(super) fn warm_up_before(&self, keys: usize) -> Result<()> {
        let Some(warm_up) = self.warm_up.get() else { return Ok(()) };
        let left = warm_up.left.load(Relaxed);
        if left == 0
            || left > keys as u64
            || warm_up.left.compare_exchange(left, 0, Relaxed, Relaxed).is_err()
        {
            return warm_up.report_fault();
        }
        let Some(asker) = self.asker.get() else { return unless_damage((warm_up.run)(self)) };
        warm_up.is_asked.store(true, SeqCst);
        asker.ask();
        Ok(())
    }

    /// Warms up the cache in the background, if that is requested.
    pub(super) fn warm_up_if_asked(&self) {
        let Some(warm_up) = self.warm_up.get() else { return };
        if warm_up.is_asked.swap(false, SeqCst)
            && let Err(error) = unless_damage((warm_up.run)(self))
        {
            *lock(&warm_up.fault) = Some(error);
            warm_up.has_failed.store(true, SeqCst);
        }
    }
}

impl Inner<AnyTable> {
    /// Plans to warm up the cache when that pays off, if it has RAM for the places of all records.
    pub(super) fn plan_warm_up(&self) {
        let Some(cache) = self.cache.get().filter(|_| !self.is_empty()) else { return };
        let table = self.table.stats();
        if table.entries * PLACE_BYTES > cache.bytes_max() {
            return;
        }
        let pages = |segment: LiveSegment| u64::from(segment.pages);
        let of_values: u64 = self.values.live_segments().into_iter().map(pages).sum();
        let bytes = table.flash_bytes + of_values * PAGE_BYTES as u64;
        let left = AtomicU64::new((bytes / BYTES_FOR_READ).max(UNKNOWN_MIN));
        let (is_asked, has_failed, fault) = (false.into(), false.into(), None.into());
        let _ = self.warm_up.set(WarmUp { run: Self::warm_up, left, is_asked, fault, has_failed });
    }

    fn warm_up(&self) -> Result<()> {
        let Some(cache) = self.cache.get() else { return Ok(()) };
        cache.begin_gathering();
        // The table has what was noted before, and the cache what is noted from now on.
        self.publish_all()?;
        let stats = self.values_stats();
        let needed = stats.live_bytes + stats.live_records * RECORD_BYTES;
        let follow = needed <= cache.bytes_max();
        for entry in self.table.iter() {
            let (key, value) = entry?;
            let (print, reference) = self.decode_entry(&key, &value)?;
            let is_closing = self.is_closing.load(Relaxed);
            if is_closing || !cache.gather(&print, (reference, follow)) {
                return Ok(());
            }
        }
        cache.end_gathering();
        if follow { self.gather_records(cache) } else { Ok(()) }
    }

    /// Stores the records.
    fn gather_records(&self, cache: &RecordCache) -> Result<()> {
        for segment in self.values.live_segments() {
            if self.is_closing.load(Relaxed) {
                return Ok(());
            }
            // A record that was overwritten meanwhile, or is damaged, is skipped.
            let visited = self.values.visit(segment, &mut |reference, record| {
                if let Some(print) = record.first_chunk::<FINGERPRINT_BYTES>() {
                    cache.gather_record(print, reference, record);
                }
                Ok(())
            });
            unless_damage(visited.map_err(Error::from))?;
        }
        Ok(())
    }
}

/// Returns a failure, unless it is damage.
fn unless_damage(result: Result<()>) -> Result<()> {
    match result {
        Err(Error::Store(nandex_store::Error::Corrupt { .. })) => Ok(()),
        result => result,
    }
}
