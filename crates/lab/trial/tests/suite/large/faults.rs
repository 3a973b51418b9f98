//! The state of values after a full table and after a period without a sync.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nandex::{Durability, Error, Threads, WhenFull};
use nandex_sim::SimDevice;
use nandex_trial::Contract;

use super::support::{Setup, key, value};

#[test]
fn a_full_table_refuses_further_puts_and_loses_none_that_it_took() {
    for durability in [Durability::Always, Durability::Never] {
        let setup = Setup::new(durability, WhenFull::Refuse).roomy();
        // References find space in a few segments.
        let setup = Setup { table_segments: 8, ..setup };
        let table = setup.create_on(Arc::new(SimDevice::instant())).unwrap();
        let mut taken = 0;
        let error = loop {
            match table.put(&key(taken + 1), &value(taken, 700)) {
                Ok(()) => taken += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert!(matches!(table.sync().unwrap_err(), Error::Full { .. }));
        assert!(matches!(table.put(b"more", b"").unwrap_err(), Error::Full { .. }));
        assert!(taken >= 30);
        for number in 0..taken {
            let found = table.get(&key(number + 1)).unwrap();
            assert_eq!(found, Some(value(number, 700)), "{durability:?} {number}");
        }
    }
}

#[test]
fn what_is_durable_once_in_a_period_becomes_so_without_a_call() {
    let period = Durability::Every(Duration::from_millis(5));
    for threads in [Threads::Background, Threads::Inline] {
        let setup = Setup { threads, ..Setup::new(period, WhenFull::Refuse).roomy() };
        let device = SimDevice::instant();
        let table = setup.create_on(Arc::new(device.clone())).unwrap();
        table.put(b"key", b"value").unwrap();
        let start = Instant::now();
        loop {
            let image = device.survivors(0);
            let found = setup.open_on(Arc::new(SimDevice::instant().with_image(image))).unwrap();
            if found.get(b"key").unwrap().is_some() {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{threads:?}");
            if threads == Threads::Inline {
                // The next acknowledgement after the period syncs, by the device's clock.
                table.put(b"another", b"").unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}
