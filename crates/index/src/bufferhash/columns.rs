//! The columns of filters, counted over all super tables, for tables whose RAM does not suffice for the maximum of
//! each.
//!
//! A super table that is cleaned has few incarnations after it was rewritten, and the most just before the next time.
//! They are rewritten one after another, so RAM for all columns of all of them would stay unused. While a growing table
//! takes over from older generations, the RAM that these still have limits the columns.
//!
//! ```text
//!   columns of one    48 | /|  /|  /|  /       of all: as many as super tables have on average
//!                     40 |/ | / | / | /
//!                        +--------------> time, rewritten at each |
//! ```

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use super::Inner;
use super::filter::Slices;
use super::table::{Level, State};

/// The columns of the filters of all super tables.
#[derive(Debug)]
pub(crate) struct FilterColumns {
    /// The existing columns, including those that buffers on their way to flash need.
    taken: AtomicU64,
    /// The maximum number of columns that flushes may create.
    most: AtomicU64,
    /// The value of `most` once no older generation takes RAM.
    most_alone: AtomicU64,
}

impl Default for FilterColumns {
    /// Returns columns without a limit.
    fn default() -> Self {
        let [most, most_alone] = [(); 2].map(|()| AtomicU64::new(u64::MAX));
        Self { taken: AtomicU64::new(0), most, most_alone }
    }
}

impl FilterColumns {
    /// Limits them, and sets the value to which the limit rises while older generations release their RAM.
    pub(super) fn limit(&self, most: u64, most_alone: u64) {
        self.most_alone.store(most_alone, SeqCst);
        self.most.store(most.min(most_alone), SeqCst);
    }

    /// Raises the limit by what older generations have released.
    pub(super) fn allow(&self, more: u64) {
        let most_alone = self.most_alone.load(SeqCst);
        let raised = |most: u64| Some(most.saturating_add(more).min(most_alone));
        // The closure always returns a value, so the update cannot fail.
        let _ = self.most.fetch_update(SeqCst, SeqCst, raised);
    }

    /// Takes more columns. Returns whether the limit allows it.
    pub(super) fn try_take(&self, more: u64) -> bool {
        if more == 0 {
            return true;
        }
        let most = self.most.load(SeqCst);
        let taken = |taken: u64| Some(taken + more).filter(|taken| *taken <= most);
        self.taken.fetch_update(SeqCst, SeqCst, taken).is_ok()
    }

    /// Returns the number that is taken, and the limit.
    #[cfg(test)]
    pub(super) fn now(&self) -> (u64, u64) {
        (self.taken.load(SeqCst), self.most.load(SeqCst))
    }

    /// Takes more columns, whatever the limit is.
    pub(super) fn take(&self, more: u64) {
        self.taken.fetch_add(more, SeqCst);
    }

    /// Releases columns.
    pub(super) fn give_back(&self, fewer: u64) {
        self.taken.fetch_sub(fewer, SeqCst);
    }
}

impl Level {
    /// Returns the columns that its filters take once `buffers` more buffers are on flash.
    pub(super) fn columns_with(&self, buffers: usize) -> u64 {
        match self.window.len() + buffers {
            0 => 0,
            columns => Slices::width_of(columns).max(self.slices.columns()) as u64,
        }
    }
}

impl Inner {
    /// Returns the columns that another buffer of a super table takes, in addition to those for its waiting buffers.
    pub(super) fn columns_more(state: &State) -> u64 {
        let waiting = state.frozen.len();
        state.level.columns_with(waiting + 1) - state.level.columns_with(waiting)
    }

    /// Returns the RAM of the existing filters, in bytes.
    pub(super) fn filter_bytes(&self) -> u64 {
        let of = |level: &Level| match level.released {
            Some(_) => 0,
            None => level.slices.ram_bytes(),
        };
        self.partitions.iter().map(|table| of(&table.read().level) as u64).sum()
    }
}
