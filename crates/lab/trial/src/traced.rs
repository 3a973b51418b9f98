//! A device that hashes all operations, so that two runs can be compared.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nandex::raw::device::{Call, Ended, Error, Observer, OpKind, Result, Watched};

use crate::contract::fold;

/// A device with a trace, which all devices of a trial share.
pub type Traced<D> = Watched<D, Trace>;

/// The hash; it repeats if one thread uses the devices.
#[derive(Debug, Default)]
pub struct Trace {
    hash: AtomicU64,
}

impl Trace {
    /// Returns a hash of all operations so far: the calls, their bytes, and the results.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash.load(Relaxed)
    }

    fn note(&self, numbers: &[u64]) {
        let hash = numbers.iter().fold(self.hash(), |hash, number| fold(hash, *number));
        self.hash.store(hash, Relaxed);
    }

    fn note_bytes(&self, bytes: &[u8]) {
        let words = bytes.chunks_exact(8).map(|word| word.iter().rev());
        let words = words.map(|word| word.fold(0, |number, byte| number << 8 | u64::from(*byte)));
        self.hash.store(words.fold(self.hash(), fold), Relaxed);
    }
}

impl Observer for Trace {
    fn before(&self, call: Call<'_>) -> Result<()> {
        match call {
            Call::Start { kind, page, pages, bytes } => {
                self.note(&[1 + u64::from(kind == OpKind::Write), page.0, pages]);
                self.note_bytes(bytes);
            }
            Call::Grow { to, .. } => self.note(&[5, to]),
            Call::Sync => self.note(&[6]),
            Call::Discard { page, pages } => self.note(&[7, page.0, pages]),
            Call::Wait { .. } => {}
        }
        Ok(())
    }

    fn after(&self, _call: Call<'_>, result: std::result::Result<(), &Error>) {
        self.note(&[u64::from(result.is_ok())]);
    }

    fn ended(&self, Ended { token, bytes, .. }: Ended<'_>) {
        self.note(&[3 + u64::from(bytes.is_ok()), token]);
        bytes.into_iter().for_each(|bytes| self.note_bytes(bytes));
    }

    fn now(&self, device_ns: u64) -> u64 {
        self.note(&[8, device_ns]);
        device_ns
    }
}
