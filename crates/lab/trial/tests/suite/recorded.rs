//! A power cut that fails under threads is saved, and fails again from its file without threads.

use std::collections::BTreeSet;
use std::path::PathBuf;

use nandex::{AnyTable, Error, Table, Volume, VolumeOptions};
use nandex_sim::workload::SplitMix64;
use nandex_trial::table::{Past, TableContract, TableSetup};
use nandex_trial::{Contract, Counters, DeviceKind, Recording, Session, Stop, Sweep, sweep};

/// A table with threads that does not open at one of its openings, counted by the volume.
#[derive(Clone, Debug)]
struct Refusing {
    table: TableSetup,
    epoch: u64,
}

impl Contract for Refusing {
    type Handle = AnyTable;
    type Past = Past;

    fn past(&self) -> Past {
        self.table.past()
    }

    fn volume_options(&self) -> VolumeOptions {
        self.table.volume_options()
    }

    fn create(&self, volume: &Volume, name: &str) -> nandex::Result<AnyTable> {
        self.table.create(volume, name)
    }

    fn open(&self, volume: &Volume, name: &str) -> nandex::Result<AnyTable> {
        if volume.epoch() == self.epoch {
            return Err(Error::Config { field: "epoch", reason: self.epoch.to_string() });
        }
        self.table.open(volume, name)
    }

    fn without_threads(&self) -> Self {
        Self { table: self.table.without_threads(), ..*self }
    }

    fn close(table: AnyTable) -> nandex::Result<()> {
        TableSetup::close(table)
    }

    fn call(session: &mut Session<Self>, rng: &mut SplitMix64) -> Result<(), Stop> {
        let Self { table, .. } = session.setup().clone();
        let keys = session.run(rng, 40);
        let mut result = Ok(());
        for key in &keys {
            let put = session.past.attempt(*key, false);
            let (key, value) = (table.key(*key), table.value(*key, put));
            result = result.and_then(|()| session.handle().insert(&key, &value));
        }
        session.updated(&keys, result)
    }

    fn look(_session: &mut Session<Self>) -> Result<(), Stop> {
        Ok(())
    }

    fn updates(_session: &mut Session<Self>) -> Vec<(&'static str, nandex::Result<()>)> {
        Vec::new()
    }
}

/// Sweeps until a cut fails; returns the failure, and its file.
fn saved(setup: &Refusing, seed: u64, folder: &'static str) -> (String, PathBuf) {
    let (device, failures) = (DeviceKind::Instant, Some(folder));
    let sweep_of = Sweep { seed, device, calls: 30, one_in: 1, failures };
    let what = sweep(setup.clone(), sweep_of, &mut Counters::default()).unwrap_err();
    let line = what.lines().last().unwrap();
    let path = line.strip_prefix("NANDEX_REPLAY=").unwrap().split(' ').next().unwrap();
    let path = path.into();
    (what, path)
}

/// Fails at one of the openings. The first opening is the creation's. The second one recovers from a cut; the
/// third one recovers from a cut during that, or opens the reused structure once more.
#[test]
fn a_cut_that_fails_under_threads_fails_again_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = Box::leak(folder.path().display().to_string().into_boxed_str());
    let mut places = BTreeSet::new();
    for (epoch, seed) in (0..40).map(|number| (2 + number % 2, number)) {
        let setup = Refusing { table: TableSetup::bufferhash(0).threaded(), epoch };
        let (what, path) = saved(&setup, seed, path);
        let recording = Recording::read(&path).unwrap();
        assert!(recording.is_of(&setup) && what.starts_with(&recording.what), "{what}");
        let told = recording.replay(&setup).unwrap_err();
        assert!(what.contains(&told), "{told}, {what}");
        // The fault was planted in the checker, so the bytes are right.
        recording.replay(&setup.table).unwrap();
        places.insert((what.contains("cut again after"), told.starts_with("once more")));
    }
    assert_eq!(
        places.len(),
        3,
        "a recovery, a cut during one, and what was used again: {places:?}"
    );
}
