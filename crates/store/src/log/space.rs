//! Space in the log: which callers may append, and which wait until the tail moves.
//!
//! Every update begins here, before it changes anything. So this module also rejects the updates of a poisoned volume.

use std::fmt;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::shared::{LOCKED, Shared};
use super::staging::Staging;
use super::{Durability, Log, Lsn};
use crate::Result;

/// The interval at which a waiting caller checks whether the volume was poisoned.
const POISON_POLL: Duration = Duration::from_millis(50);

/// The share of the log that is reserved for callers that were admitted without a reservation while it was far from
/// full. They may append much later: one may have waited for a buffer meanwhile.
const KEPT_SHARE: u64 = 8;

/// The time that a caller that takes checkpoints itself waits for others to release space.
const PAUSE: Duration = Duration::from_millis(1);

impl Log {
    /// Waits until `bytes` more bytes of entries fit, with two blocks to spare for the wrap. Each block is
    /// assumed half full, which holds for entries of 16 bytes and more; with [`Durability::Always`] one more
    /// block is assumed, since each commit may close its own. An eighth of the log is left to callers that were
    /// admitted without a reservation and have not appended yet. Call it before taking any lock that the caller
    /// of [`release`](Self::release) needs, and append before the reservation is dropped. While the log is
    /// far from full there is no reservation, and no lock is taken.
    ///
    /// # Errors
    /// [`Error::LogFull`](crate::Error::LogFull) when they would not fit an empty log;
    /// [`Error::Poisoned`](crate::Error::Poisoned).
    pub fn wait_for_space(&self, bytes: u64) -> Result<Option<Reservation<'_>>> {
        // The log is less than half full and the request is small: otherwise every insert would take the
        // lock. A slightly old copy makes no difference so far from the end.
        let shared = &*self.shared;
        let used = shared.next.load(Relaxed).saturating_sub(shared.tail.load(Relaxed));
        let capacity = shared.capacity();
        if used < capacity / 2 && bytes < capacity / 64 {
            return shared.poison.check().map(|()| None);
        }
        self.reserve(bytes).map(Some)
    }

    /// Like [`wait_for_space`](Self::wait_for_space), but always reserves the space: for batches, several of which
    /// could otherwise be admitted where one fits.
    ///
    /// # Errors
    /// As [`wait_for_space`](Self::wait_for_space).
    pub fn reserve(&self, bytes: u64) -> Result<Reservation<'_>> {
        let mut staging = self.shared.staging();
        let mut waiting = None;
        loop {
            self.shared.poison.check()?;
            // The log may grow meanwhile.
            let used_max = self.used_max(bytes)?;
            if let Some(reservation) = self.reserve_below(used_max, bytes, &mut staging) {
                return Ok(reservation);
            }
            waiting.get_or_insert_with(|| Waiting::new(&self.shared));
            let freed = &self.shared.space_freed;
            staging = freed.wait_timeout(staging, POISON_POLL).expect(LOCKED).0;
        }
    }

    /// Like [`reserve`](Self::reserve), for a log without a background thread that takes checkpoints: `maintain` takes
    /// them before each attempt, and its argument says whether an attempt has failed.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve), and what `maintain` returns.
    pub(crate) fn reserve_with(
        &self,
        bytes: u64,
        maintain: &mut dyn FnMut(bool) -> Result<()>,
    ) -> Result<Reservation<'_>> {
        let mut waiting = None;
        loop {
            maintain(waiting.is_some())?;
            if let Some(reservation) = self.try_reserve(bytes)? {
                return Ok(reservation);
            }
            if waiting.is_some() {
                // Other threads hold reservations, or pin the tail: let them continue.
                drop(self.shared.space_freed.wait_timeout(self.shared.staging(), PAUSE));
            }
            waiting.get_or_insert_with(|| Waiting::new(&self.shared));
        }
    }

    /// Like [`reserve`](Self::reserve), but returns `None` instead of waiting.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn try_reserve(&self, bytes: u64) -> Result<Option<Reservation<'_>>> {
        let used_max = self.used_max(bytes)?;
        self.shared.poison.check()?;
        Ok(self.reserve_below(used_max, bytes, &mut self.shared.staging()))
    }

    fn reserve_below(
        &self,
        used_max: u64,
        bytes: u64,
        staging: &mut MutexGuard<'_, Staging>,
    ) -> Option<Reservation<'_>> {
        // A request that nearly fills the log cannot wait until the log is empty.
        let kept = (self.shared.capacity() / KEPT_SHARE).min(used_max / 2);
        let used_max = used_max - kept;
        (staging.used_bytes() + staging.reserved <= used_max)
            .then(|| Reservation::new(&self.shared, self.log_bytes(bytes), staging))
    }

    /// Like [`try_reserve`](Self::try_reserve), for entries that are appended together, so that they fill their blocks:
    /// reserves no more than they need and one spare block. For updates that cannot wait; they may use half of the
    /// space that waiting callers leave free, but none that a reservation holds.
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::Error::Poisoned).
    pub fn try_reserve_closely(&self, bytes: u64) -> Result<Option<Reservation<'_>>> {
        self.shared.poison.check()?;
        let (capacity, needed) =
            (self.shared.capacity(), bytes.saturating_add(self.shared.block()));
        let mut staging = self.shared.staging();
        let taken = staging.used_bytes() + staging.reserved;
        let fits = taken.saturating_add(needed) <= capacity - capacity / KEPT_SHARE / 2;
        Ok(fits.then(|| Reservation::new(&self.shared, needed, &mut staging)))
    }

    /// Returns whether space is reserved that its holder may still use.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.shared.staging().reserved > 0
    }

    /// The number of callers that wait for space.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.shared.waiting.load(Relaxed)
    }

    /// Allows the bytes before `tail` to be overwritten. A `tail` before the current one changes nothing.
    ///
    /// # Panics
    /// If `tail` is past [`next_lsn`](Self::next_lsn).
    pub fn release(&self, tail: Lsn) {
        let mut staging = self.shared.staging();
        assert!(tail.0 <= staging.start, "the tail stays behind the open block");
        staging.tail = staging.tail.max(tail.0);
        self.shared.tail.store(staging.tail, Relaxed);
        self.shared.space_freed.notify_all();
    }

    /// Returns the bytes of the log that `bytes` bytes of entries may take: blocks are assumed half full, and if every
    /// commit syncs, each one may close a block of its own.
    fn log_bytes(&self, bytes: u64) -> u64 {
        let always = self.shared.durability == Durability::Always;
        let closed = if always { self.shared.block() } else { 0 };
        bytes.saturating_mul(2).saturating_add(closed)
    }

    /// Returns the size of an empty log that holds `bytes` bytes of entries at once.
    pub(crate) fn needed_bytes(&self, bytes: u64) -> u64 {
        self.log_bytes(bytes).saturating_add(2 * self.shared.block())
    }

    /// Returns whether a caller with `bytes` bytes of entries would have to wait for the tail.
    pub(crate) fn is_short_for(&self, bytes: u64) -> bool {
        let (capacity, staging) = (self.shared.capacity(), self.shared.staging());
        let taken = staging.used_bytes() + staging.reserved;
        // Without a reservation less would be left for callers that were admitted before.
        taken + capacity / KEPT_SHARE + self.needed_bytes(bytes) > capacity
    }

    /// Returns the most bytes of the log that may be in use for `bytes` bytes of entries to fit.
    fn used_max(&self, bytes: u64) -> Result<u64> {
        self.shared.capacity().checked_sub(self.needed_bytes(bytes)).ok_or_else(|| {
            self.shared.full(&format!(
                "{bytes} bytes of entries at once are too many for it; give it more pages, or \
                 append less at a time"
            ))
        })
    }
}

/// Space in the log that no other caller gets; see [`Log::reserve`].
#[must_use = "the space is released when this is dropped"]
pub struct Reservation<'l> {
    shared: &'l Shared,
    log_bytes: u64,
}

impl<'l> Reservation<'l> {
    fn new(shared: &'l Shared, log_bytes: u64, staging: &mut Staging) -> Self {
        staging.reserved += log_bytes;
        Self { shared, log_bytes }
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("log_bytes", &self.log_bytes).finish_non_exhaustive()
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.shared.staging().reserved -= self.log_bytes;
        self.shared.space_freed.notify_all();
    }
}

/// Counts a waiting caller for its lifetime.
struct Waiting<'s>(&'s Shared);

impl<'s> Waiting<'s> {
    fn new(shared: &'s Shared) -> Self {
        shared.waiting.fetch_add(1, Relaxed);
        Self(shared)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}
