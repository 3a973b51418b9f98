//! Recovery of moves after a crash: each test targets the moment at which one of their steps matters.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use nandex_device::{Device, PageId};
use nandex_sim::{Image, SimDevice};
use nandex_store::bytes::Reader;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::shadow::{MapUpdate, ShadowRecovery};
use nandex_store::space::Extent;
use nandex_store::{Lsn, StructureId};

use super::super::overflow::Overflow;
use super::super::recover::{Maps, Source};
use super::super::*;
use super::inline;
use crate::api::Table;
use crate::write::pool::Job;
use crate::write::telling::{Asked, telling};
use crate::write::{Layout, capture_holds};
use crate::{Durability, Threads, VolumeOpenOptions, VolumeOptions, WhenFull};

/// Nothing is durable before it is synced, so that a test controls what a crash finds.
const DURABILITY: Durability = Durability::Every(Duration::from_secs(3600));

fn create(device: Arc<dyn Device>, config: Config) -> SliceHash {
    let options = VolumeOptions {
        log_bytes: 1 << 20,
        durability: DURABILITY,
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(device, options).unwrap();
    SliceHash::create_with(&volume, "t", config, inline()).unwrap()
}

fn open(image: Image) -> (SimDevice, SliceHash) {
    let device = SimDevice::instant().with_image(image);
    let options = VolumeOpenOptions {
        durability: DURABILITY,
        threads: Threads::Inline,
        ..VolumeOpenOptions::default()
    };
    let volume = Volume::open(Arc::new(device.clone()), options).unwrap();
    let table = SliceHash::open_with(&volume, "t", inline()).unwrap();
    (device, table)
}

/// The first keys of a partition.
fn keys_of(table: &SliceHash, partition: usize, count: usize) -> Vec<u64> {
    let inner = &table.core;
    let is_of = |key: &u64| inner.partition_of(inner.hasher.hash(&key.to_le_bytes())) == partition;
    (0..).filter(is_of).take(count).collect()
}

fn put(table: &SliceHash, keys: &[u64], value: u64) {
    keys.iter().for_each(|key| table.insert_u64(*key, value).unwrap());
}

fn assert_holds(table: &SliceHash, keys: &[u64], value: u64, story: &str) {
    for key in keys {
        assert_eq!(table.get_u64(*key).unwrap(), Some(value), "{story}: key {key}");
    }
}

/// Freezes a partition's buffer, which is then waiting to be flushed.
fn freeze(table: &SliceHash, partition: usize) {
    let inner = &table.core;
    let mut state = inner.partitions[partition].write();
    assert!(inner.try_freeze(partition, &mut state, 0).unwrap());
}

/// Flushes a partition's oldest frozen buffer explicitly.
fn flush(table: &SliceHash, partition: usize) {
    let inner = &table.core;
    let frozen = inner.partitions[partition].read().frozen.front().cloned().unwrap();
    let mut scratch = Slicetables::new_scratch(inner).unwrap();
    Slicetables::flush(inner, partition, frozen, &mut scratch).unwrap();
}

/// Drops the waiting jobs, because the test does them explicitly or never.
fn forget_jobs(table: &SliceHash) {
    while let Some(job) = table.core.work.next_now() {
        table.core.work.done(matches!(job, Job::Own(_)));
    }
}

fn runs(table: &SliceHash, partition: usize) -> usize {
    table.core.partitions[partition].read().level.runs.len()
}

#[test]
fn what_has_moved_is_not_replayed() {
    let device = SimDevice::instant();
    let table = create(Arc::new(device.clone()), Config::tiny());
    let keys: Vec<u64> = (0..5000).collect();
    put(&table, &keys, 3);
    table.sync().unwrap();
    assert!(table.stats().flushes >= 8);
    let (_, found) = open(device.survivors(0));
    assert_eq!(found.stats().flushes, 0, "the log's tail fits the buffers");
    assert_holds(&found, &keys, 3, "after a crash");
}

#[test]
fn a_move_that_the_checkpoint_holds_leaves_the_image_that_came_after_it() {
    let device = SimDevice::instant();
    let table = create(Arc::new(device.clone()), Config::tiny());
    // These wait in partition 1 all the time, so the log keeps what follows them.
    let waiting = keys_of(&table, 1, 50);
    put(&table, &waiting, 1);
    table.sync().unwrap();
    freeze(&table, 1);
    let keys = keys_of(&table, 0, 400);
    put(&table, &keys[..300], 1);
    freeze(&table, 0);
    flush(&table, 0);
    table.sync().unwrap();
    put(&table, &keys[300..], 1);
    table.sync().unwrap();
    let inner = &table.core;
    inner.snapshot_all();
    inner.volume.checkpoint().unwrap();
    assert!(inner.partitions[0].read().snapshot.is_some(), "saved");
    assert!(inner.partitions[1].read().snapshot.is_none(), "waits");
    let (_, found) = open(device.survivors(0));
    assert_holds(&found, &waiting, 1, "in the log");
    assert_holds(&found, &keys, 1, "moved, and in the image");
}

#[test]
fn what_a_merge_during_recovery_leaves_behind_outlives_the_next_crash() {
    let device = SimDevice::instant();
    let table = create(Arc::new(device.clone()), Config::tiny());
    let keys = keys_of(&table, 0, 800);
    put(&table, &keys[..400], 1);
    freeze(&table, 0);
    put(&table, &keys[400..], 1);
    table.sync().unwrap();
    // The log has more than a buffer holds.
    let (again, found) = open(device.survivors(0));
    assert_eq!(found.stats().flushes, 1);
    let left = found.core.partitions[0].read().since.is_some();
    assert!(left, "what was left behind keeps its place in the log");
    found.sync().unwrap();
    let (_, found) = open(again.survivors(0));
    assert_holds(&found, &keys, 1, "after two crashes");
}

#[test]
fn runs_that_were_merged_after_the_checkpoint_do_not_come_back() {
    let device = SimDevice::instant();
    let config = Config { front_runs: 4, spare_buffers: 6, ..Config::tiny() };
    let table = create(Arc::new(device.clone()), config);
    let keys = keys_of(&table, 0, 200);
    put(&table, &keys, 1);
    freeze(&table, 0);
    // While flushes wait, they go to the front.
    flush(&table, 0);
    assert_eq!(runs(&table, 0), 1);
    table.core.volume.checkpoint().unwrap();
    forget_jobs(&table);
    put(&table, &keys, 2);
    freeze(&table, 0);
    forget_jobs(&table);
    flush(&table, 0);
    assert_eq!(runs(&table, 0), 0);
    table.sync().unwrap();
    let (_, found) = open(device.survivors(0));
    assert_eq!(runs(&found, 0), 0);
    assert_holds(&found, &keys, 2, "merged");
}

#[test]
fn a_run_that_was_merged_out_of_turn_does_not_come_back() {
    let device = SimDevice::instant();
    let config = Config { front_runs: 4, spare_buffers: 6, ..Config::tiny() };
    let table = create(Arc::new(device.clone()), config);
    let keys = [0, 1].map(|partition| keys_of(&table, partition, 200));
    for partition in [1, 0] {
        put(&table, &keys[partition], 1);
        freeze(&table, partition);
    }
    // While flushes wait, these two go to the front.
    flush(&table, 1);
    flush(&table, 0);
    assert_eq!((runs(&table, 1), runs(&table, 0)), (1, 1));
    put(&table, &keys[0], 2);
    freeze(&table, 0);
    forget_jobs(&table);
    flush(&table, 0);
    assert_eq!((runs(&table, 1), runs(&table, 0)), (1, 0));
    table.core.volume.checkpoint().unwrap();
    let (_, found) = open(device.survivors(1));
    assert_holds(&found, &keys[0], 2, "merged");
    assert_holds(&found, &keys[1], 1, "in a run");
}

#[test]
fn a_checkpoint_saves_each_buffer_once_though_two_request_it_and_it_changes_meanwhile() {
    // The log's request and that of a flush once made two images of one partition in one place: a move that was logged
    // between them named the first, which the second had overwritten.
    let device = telling();
    let table = Arc::new(create(Arc::new(device.clone()), Config::tiny()));
    let partitions = table.core.partitions.len();
    put(&table, &(0..400).collect::<Vec<_>>(), 1);
    table.sync().unwrap();
    let inner = &table.core;
    inner.snapshot_all();
    inner.snapshot_before(inner.volume.log().next_lsn());
    let written = Arc::new(Mutex::new(Vec::new()));
    let tell = {
        let (table, written) = (Arc::clone(&table), Arc::clone(&written));
        move |asked| {
            let Asked::Write(page) = asked else { return };
            written.lock().unwrap().push(page);
            (0..partitions).for_each(|index| put(&table, &keys_of(&table, index, 1), 2));
        }
    };
    device.observer().set(Some(Arc::new(tell)));
    inner.write_snapshots().unwrap();
    device.observer().set(None);
    let mut pages = written.lock().unwrap().clone();
    assert_eq!(pages.len(), partitions, "images in {pages:?}");
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(pages.len(), partitions, "images in {pages:?}");
}

#[test]
fn an_image_that_came_during_a_merge_is_durable_before_the_move_names_it() {
    let device = telling();
    let config = Config { front_runs: 4, spare_buffers: 6, ..Config::tiny() };
    let table = Arc::new(create(Arc::new(device.clone()), config));
    let keys = keys_of(&table, 0, 350);
    put(&table, &keys[..200], 1);
    freeze(&table, 0);
    flush(&table, 0);
    put(&table, &keys[200..], 1);
    table.sync().unwrap();
    assert_eq!(runs(&table, 0), 1);
    let inner = &table.core;
    let tell = {
        let (table, device) = (Arc::clone(&table), device.clone());
        move |asked| {
            if asked == Asked::Sync {
                // The new slicetable is durable; now a checkpoint prepares.
                device.observer().set(None);
                table.core.snapshot_all();
                table.core.write_snapshots().unwrap();
            }
        }
    };
    device.observer().set(Some(Arc::new(tell)));
    Slicetables::run(inner, SlicetableJob::Drain(0), &mut None).unwrap();
    assert!(inner.partitions[0].read().snapshot.is_some(), "saved meanwhile");
    assert_eq!(runs(&table, 0), 0);
    // The log's block with the move is written, and the power is cut in the middle of its sync.
    device.inner().cut_after(device.inner().operations() + 1);
    table.sync().unwrap_err();
    for seed in 0..64 {
        let (_, found) = open(device.inner().survivors(seed));
        assert_holds(&found, &keys, 1, &format!("survivors {seed}"));
    }
}

#[test]
fn while_a_checkpoint_captures_no_merge_changes_the_maps() {
    // Otherwise a merge between the captures of slicetables and runs would be in neither, if the log was too full for
    // its move: its runs would be gone, and the slicetable the old one.
    let table = create(Arc::new(SimDevice::instant()), Config::tiny());
    let core = &table.core;
    assert!(capture_holds(core, &core.layout.maps), "a merge could have changed them");
}

#[test]
fn a_move_after_the_checkpoint_takes_the_overflow_that_the_checkpoint_has() {
    let config = Config { policy: WhenFull::Refuse, front_runs: 0, ..Config::tiny() };
    let extent = Extent { start: PageId(16), pages: config.slicetable_pages() };
    let (id, epoch) = (StructureId(3), 1);
    let shadow = ShadowRecovery::blank(id, extent, config.shadow_shape(), epoch).finish();
    let mut known = shadow.capture(Lsn(0)).bytes;
    let entry = Entry { state: SlotState::Live, key: &[1; 8], value: &[2; 8] };
    let overflow = Overflow::new(std::iter::once(entry));
    Overflow::encode_all([(0, &overflow), (1, &overflow)].into_iter(), &mut known);
    let from = Source { id, place: extent.start, epoch, state: &known, takes_over: true };
    let mut reader = Reader::new(&known, "state", extent.start);
    let mut maps = Maps::restore(&from, config, &mut reader).unwrap();
    let block = shadow.begin(1, Lsn(0)).unwrap().block();
    let update = MapUpdate { logical: 1, block }.encode();
    assert!(maps.moved(1, &[&update[..], &[0; 8]].concat()).unwrap());
    let levels = maps.finish().unwrap().levels;
    assert_eq!(levels.iter().map(|it| it.overflow.len()).collect::<Vec<_>>()[..2], [1, 0]);
}
