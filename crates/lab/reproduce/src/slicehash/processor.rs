//! The measured CPU times of operations: the program behind the constants of Table 4.

use std::fs::read_to_string;
use std::sync::Arc;

use nandex::Table;
use nandex::device::MemoryDevice;

use super::lab::Setup;
use crate::bufferhash::lab::Setup as BufferSetup;
use crate::{Error, Result, Scale};

/// The CPU nanoseconds of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The time of a lookup of a present key.
    pub lookup_ns: u64,
    /// The time of an insert, with its share of merges and flushes.
    pub insert_ns: u64,
}

/// The lookups of a run; [`RUNS`] runs give each time.
const LOOKUPS: u64 = 50_000;

/// The number of runs for each time; the fastest counts.
const RUNS: u64 = 5;

/// Measures the times of this processor for SliceHash and for BufferHash: those of one thread, on tables of
/// Figure 5 in RAM. They are meaningful on a quiet machine.
///
/// # Errors
/// Fails on a system that does not report times of threads.
///
/// # Panics
/// Panics if a table does not find an inserted key.
pub fn measure(scale: Scale) -> Result<[(&'static str, Times); 2]> {
    let setup = Setup::paper(scale);
    let table = setup.create(Arc::new(MemoryDevice::new()))?;
    let slice_hash = measure_table(&table, setup.keys(4), setup.keys(2))?;
    let setup = BufferSetup::paper(scale);
    let table = setup.open()?.table;
    let buffer_hash = measure_table(&table, setup.capacity(), setup.capacity() / 2)?;
    Ok([("SliceHash", slice_hash), ("BufferHash", buffer_hash)])
}

fn measure_table<T: Table>(table: &T, filled: u64, inserts: u64) -> Result<Times> {
    let insert = |key: u64| Ok(table.insert(&key.to_le_bytes(), &key.to_le_bytes())?);
    (1..=filled).try_for_each(insert)?;
    let lookup = |number: u64| {
        // Keys of the first half, none of which a full table has evicted yet.
        let key = 1 + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (filled / 2);
        assert!(table.get(&key.to_le_bytes())?.is_some(), "{key}");
        Ok(())
    };
    let lookup_ns = each_ns(LOOKUPS, lookup)?;
    let insert_ns = each_ns(inserts, |number| insert((1 << 40) + number))?;
    Ok(Times { lookup_ns, insert_ns })
}

/// Returns the least time of some runs, for each operation.
fn each_ns(count: u64, run: impl Fn(u64) -> Result<()>) -> Result<u64> {
    let mut least_ns = u64::MAX;
    for round in 0..RUNS {
        let start_ns = thread_ns()?;
        (0..count).try_for_each(|number| run(round * count + number))?;
        least_ns = least_ns.min((thread_ns()? - start_ns) / count);
    }
    Ok(least_ns)
}

/// Returns the time that this thread was on a processor, in nanoseconds.
fn thread_ns() -> Result<u64> {
    let text = read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    // A kernel that does not count it says 0.
    ns.filter(|ns| *ns > 0).ok_or(Error::ThreadTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_both_tables_take_time() {
        let smallest = Scale::new(Scale::MOST, 1).unwrap();
        let measured = match measure(smallest) {
            Err(Error::ThreadTime) => return println!("per-thread CPU time is unavailable"),
            measured => measured.unwrap(),
        };
        for (name, times) in measured {
            assert!(times.lookup_ns > 0 && times.insert_ns > 0, "{name}: {times:?}");
        }
    }
}
