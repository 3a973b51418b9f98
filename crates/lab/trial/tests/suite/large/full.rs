//! Full value logs: the oldest record is overwritten, or puts are refused until something is removed.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::{Durability, Error, WhenFull};
use nandex_trial::Contract;

use super::support::{DURABILITIES, Setup, key, value};

#[test]
fn a_log_that_overwrites_keeps_the_newest_and_counts_what_it_dropped() {
    for durability in DURABILITIES {
        let setup = Setup::new(durability, WhenFull::EvictOldest);
        let device = MemoryDevice::new();
        let table = setup.create_on(Arc::new(device.clone())).unwrap();
        for number in 1..300 {
            table.put(&key(number), &value(number, 1500)).unwrap();
            // Eight segments, three of them free or being written, of six pages each: at least a page a record.
            for recent in number.saturating_sub(15).max(1)..=number {
                let expected = Some(value(recent, 1500));
                assert_eq!(table.get(&key(recent)).unwrap(), expected, "{durability:?} {number}");
            }
        }
        for number in 1..100 {
            assert_eq!(table.get(&key(number)).unwrap(), None, "an old record is gone");
        }
        let stats = table.stats();
        assert!(stats.overwritten >= 99, "{stats:?}");
        assert!(stats.values.overwritten_segments > 10, "{stats:?}");
        // No key was put twice, so all records had references.
        let gone = stats.values.overwritten_records_life;
        assert_eq!(gone + stats.values.live_records, 299, "{stats:?}");
        assert_eq!(stats.values.overwritten_records, gone);
        table.close().unwrap();
        let table = setup.open_on(Arc::new(device)).unwrap();
        let later = table.stats().values;
        assert_eq!((later.overwritten_segments, later.overwritten_records), (0, 0));
        assert!(later.overwritten_segments_life >= stats.values.overwritten_segments, "{later:?}");
        assert_eq!(later.overwritten_records_life + later.live_records, 299, "{later:?}");
        for number in 1..300 {
            let found = table.get(&key(number)).unwrap();
            assert!(found.is_none_or(|found| found == value(number, 1500)));
        }
        assert_eq!(table.get(&key(299)).unwrap(), Some(value(299, 1500)));
    }
}

#[test]
fn a_log_that_keeps_refuses_when_full_and_takes_more_after_removals() {
    for durability in DURABILITIES {
        let setup = Setup::new(durability, WhenFull::Refuse);
        let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
        let mut count = 0;
        let error = loop {
            match table.put(&key(count + 1), &value(count + 1, 1200)) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::ValuesFull { .. }), "{error}");
        assert!(count >= 20, "{durability:?}: {count}");
        for number in 1..=count {
            assert_eq!(table.get(&key(number)).unwrap(), Some(value(number, 1200)));
        }
        for number in 1..=count / 2 {
            table.remove(&key(number)).unwrap();
        }
        for number in 1..=count / 4 {
            table.put(&key(number), &value(number + 1000, 1200)).unwrap();
        }
        for number in 1..=count {
            let expected = match number {
                _ if number <= count / 4 => Some(value(number + 1000, 1200)),
                _ if number <= count / 2 => None,
                _ => Some(value(number, 1200)),
            };
            assert_eq!(table.get(&key(number)).unwrap(), expected, "{durability:?} {number}");
        }
        assert!(table.stats().values.cleaned_segments > 0);
    }
}

/// Loses garbage counts in a crash: garbage since the last checkpoint is forgotten; a full log counts again
/// before it refuses.
#[test]
fn after_a_crash_garbage_is_found_again_before_a_put_is_refused() {
    let setup = Setup::new(Durability::Always, WhenFull::Refuse);
    let device = nandex_sim::SimDevice::instant();
    let table = setup.create_on(Arc::new(device.clone())).unwrap();
    let mut count = 0;
    while table.put(&key(count + 1), &value(count + 1, 1200)).is_ok() {
        count += 1;
    }
    for number in 1..=count / 2 {
        table.remove(&key(number)).unwrap();
    }
    let device = nandex_sim::SimDevice::instant().with_image(device.survivors(1));
    let again = setup.open_on(Arc::new(device)).unwrap();
    for number in 1..=count / 4 {
        again.put(&key(number), &value(number + 1000, 1200)).unwrap();
    }
    for number in count / 2 + 1..=count {
        assert_eq!(again.get(&key(number)).unwrap(), Some(value(number, 1200)));
    }
}
