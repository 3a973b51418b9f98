//! What a failed write, a full table and a period without a sync leave of values.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nandex::api::{LookupStream, Table, TableStats, Value};
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, WhenFull};
use nandex::oracle::MapTable;
use nandex::{Durability, Error, LargeTable, Result, Threads, Volume, VolumeOptions};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};

use super::support::{Setup, key, value};

#[test]
fn after_a_failed_write_updates_are_refused_and_what_waits_is_still_found() {
    let setup = Setup::new(Durability::Never, WhenFull::Keep).roomy();
    let device = SimDevice::instant();
    let table = setup.create(Arc::new(device.clone())).unwrap();
    table.put(b"key", b"value").unwrap();
    let (on, kind) = (FaultOn::Write, FaultKind::Io);
    device.arm(Fault { on, at: device.seen(on) + 1, kind, span: FaultSpan::Once });
    table.sync().unwrap_err();
    for refused in [table.put(b"other", b""), table.remove(b"key"), table.sync()] {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("an earlier one failed"), "{text}");
    }
    assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// A map that takes that many entries.
#[derive(Debug)]
struct Limited(MapTable, u64);

impl Table for Limited {
    fn key_bytes(&self) -> usize {
        self.0.key_bytes()
    }

    fn value_bytes(&self) -> usize {
        self.0.value_bytes()
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.0.contains(key)? && self.0.stats().entries >= self.1 {
            return Err(Error::Full { entries: self.1, flash_bytes: 0 });
        }
        self.0.insert(key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.0.remove(key)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.0.get(key)
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        pairs.iter().try_for_each(|(key, value)| self.insert(key, value))
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.0.get_many(keys)
    }

    fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        self.0.stream()
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> TableStats {
        self.0.stats()
    }
}

#[test]
fn a_full_table_refuses_further_puts_and_loses_none_that_it_took() {
    for durability in [Durability::Always, Durability::Never] {
        let options =
            VolumeOptions { durability, threads: Threads::Inline, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::new(SimDevice::instant()), options).unwrap();
        let limited = Limited(MapTable::new(TABLE_KEY_BYTES, TABLE_VALUE_BYTES), 30);
        let setup = Setup::new(durability, WhenFull::Keep).roomy();
        let table = LargeTable::create(&volume, "v", limited, setup.values).unwrap();
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
        let setup = Setup { threads, ..Setup::new(period, WhenFull::Keep).roomy() };
        let device = SimDevice::instant();
        let table = setup.create(Arc::new(device.clone())).unwrap();
        table.put(b"key", b"value").unwrap();
        let start = Instant::now();
        loop {
            let image = device.survivors(0);
            let found = setup.open(Arc::new(SimDevice::instant().with_image(image))).unwrap();
            if found.get(b"key").unwrap().is_some() {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{threads:?}");
            if threads == Threads::Inline {
                // The next acknowledgement after the period does it, by the device's clock.
                table.put(b"another", b"").unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}
