//! Batches of lookups and inserts on a simulated device, timed in virtual time.
//!
//! A batch keeps the drive's queue full and refills it as requests end, so its course depends on the drive:
//! it cannot be taped. The structure is on a [`SimDevice`] instead and advances its time itself. CPU time is
//! not part of that; if it can overlap with the drive's time, as with as many threads as requests in flight,
//! the slower of the two decides.

use nandex::Table;
use nandex::device::Device;
use nandex_sim::SimDevice;

use crate::Result;

/// The result of a run of batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batched {
    /// Lookups and inserts.
    pub operations: u64,
    /// Virtual time of the drive, in nanoseconds.
    pub device_ns: u64,
}

/// The CPU cost of an operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Processor {
    /// The CPU time of a core for each operation, in nanoseconds.
    pub operation_ns: u64,
    /// Cores that share the operations.
    pub cores: u32,
}

impl Batched {
    /// Returns the operations in a second, if processor and drive work at the same time and the slower
    /// decides.
    #[must_use]
    pub fn operations_per_s(self, processor: Processor) -> f64 {
        let cpu_ns = self.operations * processor.operation_ns / u64::from(processor.cores.max(1));
        self.operations as f64 * 1e9 / self.device_ns.max(cpu_ns).max(1) as f64
    }
}

/// Looks all keys up, `batch` in each call. The number of reads in flight is the table's own option.
///
/// # Errors
/// Fails as [`Table::get_many`] does.
///
/// # Panics
/// Panics if `batch` is zero.
pub fn lookups(
    table: &dyn Table,
    device: &SimDevice,
    keys: &[u64],
    batch: usize,
) -> Result<Batched> {
    in_batches(device, keys, batch, |keys| Ok(table.get_many(keys).map(drop)?))
}

/// Inserts all keys, each with itself as the value, `batch` in each call.
///
/// # Errors
/// Fails as [`Table::insert_many`] does.
///
/// # Panics
/// Panics if `batch` is zero.
pub fn inserts(
    table: &dyn Table,
    device: &SimDevice,
    keys: &[u64],
    batch: usize,
) -> Result<Batched> {
    in_batches(device, keys, batch, |keys| {
        let pairs: Vec<_> = keys.iter().map(|&key| (key, key)).collect();
        Ok(table.insert_many(&pairs)?)
    })
}

/// Makes calls with `batch` keys at a time, and returns the device's time for all of them.
fn in_batches(
    device: &SimDevice,
    keys: &[u64],
    batch: usize,
    call: impl Fn(&[&[u8]]) -> Result<()>,
) -> Result<Batched> {
    let start_ns = device.now();
    for keys in keys.chunks(batch) {
        let bytes: Vec<_> = keys.iter().map(|key| key.to_le_bytes()).collect();
        call(&bytes.iter().map(|key| &key[..]).collect::<Vec<_>>())?;
    }
    Ok(Batched { operations: keys.len() as u64, device_ns: device.now() - start_ns })
}

/// Looks a batch of keys up and then inserts them, batch after batch: the 50/50 mix.
///
/// # Errors
/// Fails as [`lookups`] and [`inserts`] do.
///
/// # Panics
/// Panics if `batch` is zero.
pub fn mixed(table: &dyn Table, device: &SimDevice, keys: &[u64], batch: usize) -> Result<Batched> {
    let mut sum = Batched { operations: 0, device_ns: 0 };
    for keys in keys.chunks(batch) {
        for part in [lookups(table, device, keys, batch)?, inserts(table, device, keys, batch)?] {
            sum.operations += part.operations;
            sum.device_ns += part.device_ns;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_of_processor_and_drive_decides() {
        let batched = Batched { operations: 1000, device_ns: 10_000_000 };
        let rate =
            |operation_ns, cores| batched.operations_per_s(Processor { operation_ns, cores });
        assert_eq!(rate(0, 1), 100_000.0);
        assert_eq!(rate(20_000, 1), 50_000.0);
        assert_eq!(rate(20_000, 2), 100_000.0);
        assert_eq!(rate(20_000, 8), 100_000.0);
    }
}
