//! RAM that a table may take and does not take yet: lent to a cache, which gives it back when the table grows.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, Weak};

/// Something that uses lent RAM.
pub(crate) trait Borrower: Send + Sync + std::fmt::Debug {
    /// Takes at most that many bytes from now on, and gives back the rest before it returns.
    fn keep_at_most(&self, bytes: u64);
}

/// What is lent where no limit was stated.
const UNLIMITED_BYTES: u64 = 64 << 20;

/// What a table that grows leaves of its RAM.
#[derive(Default, Debug)]
pub struct SpareRam {
    bytes: AtomicU64,
    borrower: Mutex<Option<Weak<dyn Borrower>>>,
}

impl SpareRam {
    /// Bytes that are not taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Notes what `taken` leaves of the limit from now on. What was lent beyond it is back when this returns.
    pub(crate) fn leave(&self, ram_bytes_max: Option<u64>, taken: u64) {
        let left = ram_bytes_max.map_or(UNLIMITED_BYTES, |most| most.saturating_sub(taken));
        let bytes = left.min(nandex_device::ram_bytes());
        let borrower = self.borrower.lock().expect("no holder of the borrower's lock panics");
        self.bytes.store(bytes, Relaxed);
        if let Some(borrower) = borrower.as_ref().and_then(Weak::upgrade) {
            borrower.keep_at_most(bytes);
        }
    }

    /// Lends all of it, now and later.
    pub(crate) fn lend_to(&self, borrower: &Arc<impl Borrower + 'static>) {
        let mut lent = self.borrower.lock().expect("no holder of the borrower's lock panics");
        borrower.keep_at_most(self.bytes());
        let borrower: Arc<dyn Borrower> = Arc::clone(borrower) as Arc<dyn Borrower>;
        *lent = Some(Arc::downgrade(&borrower));
    }
}
