//! Tables whose flushes lag behind their updates.

use std::sync::Arc;
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::device::MemoryDevice;
use nandex::raw::device::{Call, Observer, OpKind, Result, Watched};
use nandex::{Table, Volume, VolumeOpenOptions};
use nandex_trial::Contract;
use nandex_trial::table::TableContract;

use super::support::{DURABILITIES, Setup};

/// Delays each write of a whole buffer, while updates fill the next one.
#[derive(Debug)]
struct SlowSegments;

impl Observer for SlowSegments {
    fn before(&self, call: Call<'_>) -> Result<()> {
        if matches!(call, Call::Start { kind: OpKind::Write, pages: 3.., .. }) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Fills a table whose flushes lag. Each flush put its carry-over into an active buffer that was full
/// already, so that its stash grew with each buffer, until no snapshot had space for it. A table that refuses
/// then found no segment for it, and close and the next opening failed.
#[test]
fn a_full_table_whose_flushes_lag_closes_and_opens() {
    for super_tables in [1, 4] {
        let setup = Setup::new(Policy::Reject, DURABILITIES[1]);
        let setup = Setup { roomy: false, super_tables, ..setup };
        let memory = MemoryDevice::new();
        let device = Arc::new(Watched::with(memory.clone(), Arc::new(SlowSegments)));
        let volume = Volume::create(device, setup.volume_options()).unwrap();
        let table = setup.create(&volume, "t").unwrap();
        let insert = |number: &u64| {
            table.insert(&setup.key(*number), &setup.value(*number % 3000, 0)).is_ok()
        };
        let taken = (0..).take_while(insert).count() as u64;
        table.close().unwrap();
        drop(volume);
        for _ in 0..2 {
            let volume =
                Volume::open(Arc::new(memory.clone()), VolumeOpenOptions::default()).unwrap();
            let table = setup.open(&volume, "t").unwrap();
            for number in 0..taken {
                assert!(table.get(&setup.key(number)).unwrap().is_some(), "{number} of {taken}");
            }
            table.close().unwrap();
        }
        println!("{taken} entries");
    }
}
