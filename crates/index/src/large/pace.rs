//! Pacing of puts while a pass over the table determines what cleaning may free.
//!
//! Nothing is freed before the pass has ended. Puts at full speed would use up the free space long before that, and the
//! next one would wait for the rest of the pass: seconds, if the table has millions of keys. So the free space is
//! shared out over the pass, and each put waits a little.
//!
//! ```text
//!   bytes put   |      ___________________     without: the next one waits until the end
//!        free --|-----/- - - - - - - - -_/
//!               |    /             __--
//!               |   /       ___--
//!               |  / __--                      with it: as much of the bytes as of the pass
//!               +--+--+--+--+--+--+--+--+--> parts of the pass
//! ```

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The time that a put waits before it checks again, and the number of checks: a pass that hangs does not stop puts for
/// good.
const WAIT: Duration = Duration::from_millis(1);
const WAITS_MAX: u32 = 100;

/// The limit while no pass is running.
const NO_LIMIT: u64 = u64::MAX;

/// The bytes that may be put, and those that were, since a pass began.
#[derive(Debug)]
pub(super) struct Pace {
    limit_bytes: AtomicU64,
    put_bytes: AtomicU64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { limit_bytes: AtomicU64::new(NO_LIMIT), put_bytes: AtomicU64::new(0) }
    }
}

impl Pace {
    /// Limits puts to a share of the free bytes for each completed part of a pass, until the result is dropped.
    pub(super) fn limit(&self, free_bytes: u64, parts: u64) -> Limited<'_> {
        let limited = Limited { pace: self, free_bytes, parts: parts.max(1), done: 0 };
        self.put_bytes.store(0, Relaxed);
        limited.tell();
        limited
    }

    /// Notes that a record of this many bytes was put.
    #[inline]
    pub(super) fn note(&self, bytes: u64) {
        if self.limit_bytes.load(Relaxed) != NO_LIMIT {
            self.put_bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// Waits until the pass has come as far as puts have, for at most a tenth of a second. The caller holds no lock.
    #[inline]
    pub(super) fn wait(&self) {
        let mut waits = 0;
        while self.is_ahead() && waits < WAITS_MAX {
            std::thread::sleep(WAIT);
            waits += 1;
        }
    }

    /// Returns whether more was put than is allowed.
    #[inline]
    fn is_ahead(&self) -> bool {
        self.put_bytes.load(Relaxed) > self.limit_bytes.load(Relaxed)
    }
}

/// A running pass, which limits puts meanwhile.
#[derive(Debug)]
pub(super) struct Limited<'p> {
    pace: &'p Pace,
    free_bytes: u64,
    parts: u64,
    done: u64,
}

impl Limited<'_> {
    /// Notes that another part is done.
    pub(super) fn advance(&mut self) {
        self.done += 1;
        self.tell();
    }

    /// Allows puts the share of the running part, too.
    fn tell(&self) {
        let part = (self.done + 1).min(self.parts);
        let limit_bytes = u128::from(self.free_bytes) * u128::from(part) / u128::from(self.parts);
        self.pace.limit_bytes.store(limit_bytes as u64, Relaxed);
    }
}

impl Drop for Limited<'_> {
    fn drop(&mut self) {
        self.pace.limit_bytes.store(NO_LIMIT, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_have_as_much_of_the_free_bytes_as_the_pass_of_its_parts() {
        let pace = Pace::default();
        pace.note(1 << 40);
        assert!(!pace.is_ahead(), "no pass goes on");
        let mut limited = pace.limit(1000, 4);
        let mut put = 0;
        for part in 1..=4 {
            while !pace.is_ahead() {
                pace.note(10);
                put += 10;
            }
            assert_eq!(put, 250 * part + 10);
            limited.advance();
        }
        drop(limited);
        assert!(!pace.is_ahead(), "it has ended");
        let limited = pace.limit(u64::MAX, 0);
        assert!(!pace.is_ahead(), "what was put before does not count");
        drop(limited);
    }
}
