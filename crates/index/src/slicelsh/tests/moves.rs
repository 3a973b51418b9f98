//! Recovery of a move after a crash, at the moment at which one of its steps matters.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nandex_sim::SimDevice;

use super::super::*;
use super::{inline, insert_own, own_keys};
use crate::write::Layout;
use crate::write::pool::Job;
use crate::write::telling::{Asked, Tell, telling};
use crate::{Durability, Threads, Volume, VolumeOpenOptions, VolumeOptions, WhenFull};

/// Nothing is durable before it is synced, so that a test controls what a crash finds.
const DURABILITY: Durability = Durability::Every(Duration::from_secs(3600));

/// The longest wait of one thread for the other.
const PATIENCE: Duration = Duration::from_secs(20);

/// One slice for each table, full with 253 documents.
fn config() -> Config {
    Config {
        partitions: 1,
        slices: 1,
        policy: WhenFull::Refuse,
        entries_max: 3 * 253,
        ..Config::tiny()
    }
}

/// Merges the buffer explicitly, whether or not it is full.
fn merge(index: &SliceLsh) {
    let inner = &index.core;
    let mut state = inner.partitions[0].write();
    assert!(inner.try_freeze(0, &mut state, 0).unwrap());
    drop(state);
    let frozen = inner.partitions[0].read().frozen.front().cloned().unwrap();
    let mut scratch = SlicetableGroups::new_scratch(inner).unwrap();
    SlicetableGroups::flush(inner, 0, frozen, &mut scratch).unwrap();
    while let Some(job) = inner.work.next_now() {
        inner.work.done(matches!(job, Job::Own(_)));
    }
}

/// A thread that is started in the middle of another's write.
#[derive(Default)]
struct Other(Mutex<Option<JoinHandle<()>>>);

impl Other {
    fn start(&self, act: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some(std::thread::spawn(act));
    }

    fn join(&self) {
        self.0.lock().unwrap().take().expect("it was started").join().unwrap();
    }
}

/// Signals another thread, and waits for its signal.
struct Meeting(Mutex<(Sender<()>, Receiver<()>)>);

impl Meeting {
    /// Returns the two ends.
    fn pair() -> [Arc<Self>; 2] {
        let ((left, to_right), (right, to_left)) = (channel(), channel());
        [(left, to_left), (right, to_right)].map(|ends| Arc::new(Self(Mutex::new(ends))))
    }

    fn tell(&self) {
        self.0.lock().unwrap().0.send(()).unwrap();
    }

    fn wait(&self) {
        self.0.lock().unwrap().1.recv_timeout(PATIENCE).expect("the other thread says so");
    }
}

/// A snapshot that was begun before the buffer was full ends during its merge, and takes the place of an older one that
/// no checkpoint refers to. The merge refuses some documents, so the move names the snapshot for them.
#[test]
fn a_snapshot_that_ends_during_a_merge_is_durable_before_the_move_names_it() {
    let device = telling();
    let volume_options = VolumeOptions {
        log_bytes: 1 << 20,
        durability: DURABILITY,
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(Arc::new(device.clone()), volume_options).unwrap();
    let index = Arc::new(SliceLsh::create_with(&volume, "n", config(), inline()).unwrap());
    let inner = &index.core;
    insert_own(&index, 0..240);
    index.flush().unwrap();
    let save = || {
        inner.snapshot_all();
        inner.write_snapshots().unwrap();
    };
    insert_own(&index, 240..250);
    save();
    insert_own(&index, 250..256);
    index.sync().unwrap();
    let ([saving, merging], other) = (Meeting::pair(), Arc::new(Other::default()));
    let on_sync: Arc<Tell> = {
        let (device, merging) = (device.clone(), Arc::clone(&merging));
        Arc::new(move |asked| {
            if asked == Asked::Sync {
                // The new slicetables are durable.
                device.observer().set(None);
                merging.tell();
                merging.wait();
            }
        })
    };
    let on_write: Arc<Tell> = {
        let (device, index, saving) = (device.clone(), Arc::clone(&index), Arc::clone(&saving));
        let other = Arc::clone(&other);
        Arc::new(move |_| {
            // The second snapshot is copied and not written yet.
            device.observer().set(Some(Arc::clone(&on_sync)));
            let index = Arc::clone(&index);
            other.start(move || merge(&index));
            saving.wait();
        })
    };
    device.observer().set(Some(on_write));
    save();
    saving.tell();
    other.join();
    assert!(inner.partitions[0].read().snapshot.is_some(), "for what was refused");
    assert!(inner.partitions[0].read().level.refused > 0);
    // The log's block with the move is written, and the power is cut in the middle of its sync.
    device.inner().cut_after(device.inner().operations() + 1);
    index.sync().unwrap_err();
    for seed in 0..64 {
        let image = device.inner().survivors(seed);
        let options =
            VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
        let device = SimDevice::instant().with_image(image);
        let volume = Volume::open(Arc::new(device), options).unwrap();
        let found = SliceLsh::open_with(&volume, "n", inline()).unwrap();
        for document in 0..256 {
            let candidates = found.candidates(&own_keys(document, 3)).unwrap();
            assert_eq!(candidates, [document], "survivors {seed}");
        }
    }
}
