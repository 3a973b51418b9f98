//! A structure on a device that records the requests of each operation.

use nandex::Table;

use crate::Result;
use crate::tape::{Act, Tape, TapedDevice};

/// The counts of lookups and of found keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Lookups.
    pub lookups: u64,
    /// Lookups that found their key.
    pub found: u64,
}

impl Counts {
    /// Returns the lookup success rate, 0 to 1; the papers' LSR.
    #[must_use]
    pub fn success_rate(self) -> f64 {
        self.found as f64 / self.lookups.max(1) as f64
    }

    /// Returns the counts since `earlier`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { lookups: self.lookups - before.lookups, found: self.found - before.found }
    }
}

/// A structure, such as a table of keys and values of 8 bytes, and the tape of its operations.
#[derive(Debug)]
pub struct Taped<T> {
    /// The structure.
    pub table: T,
    device: TapedDevice,
    tape: Tape,
    counts: Counts,
}

impl<T: Table> Taped<T> {
    /// Looks a key up, and returns whether it was present.
    ///
    /// # Errors
    /// Fails as [`Table::get`] does.
    pub fn lookup(&mut self, key: u64) -> Result<bool> {
        let key = key.to_le_bytes();
        let found = self.operate(Act::Lookup, |table| Ok(table.get(&key)?.is_some()))?;
        self.counts.lookups += 1;
        self.counts.found += u64::from(found);
        Ok(found)
    }

    /// Inserts a key.
    ///
    /// # Errors
    /// Fails as [`Table::insert`] does.
    pub fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        let (key, value) = (key.to_le_bytes(), value.to_le_bytes());
        self.operate(Act::Insert, |table| Ok(table.insert(&key, &value)?))
    }
}

impl<T> Taped<T> {
    /// Tapes a structure that is on a device, from now on.
    #[must_use]
    pub fn new(table: T, device: TapedDevice) -> Self {
        device.forget();
        Self { table, device, tape: Tape::default(), counts: Counts::default() }
    }

    /// Performs an operation of any structure, and puts its requests on the tape.
    ///
    /// # Errors
    /// Returns the error of the operation, which then is not on the tape.
    pub fn operate<R>(&mut self, act: Act, operation: impl FnOnce(&T) -> Result<R>) -> Result<R> {
        let done = operation(&self.table).inspect_err(|_| self.device.forget())?;
        self.device.take(act, &mut self.tape);
        Ok(done)
    }

    /// Keeps requests of the structure itself since the last operation off the tape.
    pub fn forget(&self) {
        self.device.forget();
    }

    /// Returns the tape.
    #[must_use]
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    /// Returns the tape so far, and begins a new one.
    #[must_use]
    pub fn take_tape(&mut self) -> Tape {
        std::mem::take(&mut self.tape)
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
