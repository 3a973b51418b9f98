//! The promises of a volume to its structures across crashes, closings and removals.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/part.rs"]
mod part;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nandex_device::{Device, MemoryDevice, PageBuf};
use nandex_sim::{Image, SimDevice};
use nandex_store::{
    Captured, Durability, Error, Lsn, Threads, Volume, VolumeOpenOptions, VolumeOptions,
};

use part::Part;

fn options() -> VolumeOptions {
    VolumeOptions { durability: Durability::Never, ..VolumeOptions::tiny() }
}

fn open(device: Arc<dyn Device>) -> Volume {
    let options =
        VolumeOpenOptions { durability: Durability::Never, ..VolumeOpenOptions::default() };
    Volume::open(device, options).unwrap()
}

#[test]
fn a_structure_that_a_crash_brings_back_has_kept_its_pages() {
    // A removed structure's pages once went to the very checkpoint that was to forget it: cut before
    // that was durable, the power left a structure whose pages held a checkpoint.
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    let structure = volume.create_structure("old", "kind", Vec::new(), 4).unwrap();
    // A checkpoint of three pages fits nowhere but at the volume's end, or where the old structure is.
    volume.create_structure("big", "kind", vec![1; 9000], 1).unwrap();
    let mut pages = PageBuf::zeroed(4);
    pages.fill(0xa7);
    device.write(structure.extent().unwrap().start, pages).unwrap();
    drop(volume);
    let mut brought_back = 0;
    for cut in 0..12 {
        let crash = SimDevice::instant().with_image(Image::from_bytes(&device.image()));
        let volume = open(Arc::new(crash.clone()));
        crash.cut_after(crash.operations() + cut);
        let removed = volume.drop_structure("old").is_ok();
        drop(volume);
        for seed in 0..8 {
            let survivors = SimDevice::instant().with_image(crash.survivors(seed));
            let volume = open(Arc::new(survivors.clone()));
            let Ok(found) = volume.open_structure("old", "kind") else { continue };
            assert!(!removed, "it was removed durably");
            let pages = survivors.read(found.extent().unwrap().start, PageBuf::zeroed(4)).unwrap();
            assert!(pages.iter().all(|&byte| byte == 0xa7), "cut {cut}, seed {seed}");
            brought_back += 1;
        }
    }
    assert!(brought_back > 8, "{brought_back}");
}

#[test]
fn damage_to_either_superblock_of_a_closed_volume_loses_nothing() {
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    for name in ["a", "b"] {
        volume.create_structure(name, "kind", Vec::new(), 1).unwrap();
    }
    drop(volume);
    for at in (0..2 * 4096).step_by(97) {
        let mut image = device.image();
        image[at] ^= 1;
        let volume = open(Arc::new(MemoryDevice::from_image(image)));
        let names: Vec<_> = volume.structures().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["a", "b"], "byte {at}");
    }
}

/// Returns a structure that keeps its volume open, as structures do, and whose `prepare` waits for a signal.
fn slow_structure(volume: &Volume) -> (Arc<Part>, Receiver<()>, Sender<()>) {
    let structure = volume.create_structure("slow", "kind", Vec::new(), 1).unwrap();
    let (prepares, prepared) = channel();
    let (let_go, go_on) = channel();
    let go_on = Mutex::new(go_on);
    let mut slow = Part::new(tail_of(volume));
    slow.prepare = Box::new(move || {
        // The test's ends are gone when it no longer waits.
        let _ = prepares.send(());
        let _ = go_on.lock().unwrap().recv();
    });
    (slow.register(volume, &structure), prepared, let_go)
}

/// Returns a capture that needs nothing of the log and keeps the volume open.
fn tail_of(volume: &Volume) -> impl Fn() -> Captured + use<> {
    let volume = volume.clone();
    move || Captured { state: vec![1], tail: volume.log().next_lsn(), extents: None }
}

#[test]
fn a_checkpoint_that_holds_the_last_handle_closes_the_volume() {
    // The checkpoint's thread held the structure, the structure held the volume, and the volume's end waited for the
    // checkpoint's thread: for itself.
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let volume = Volume::create(Arc::clone(&device), options()).unwrap();
    let (open, prepared, let_go) = slow_structure(&volume);
    volume.request_checkpoint();
    prepared.recv().unwrap();
    let poison = Arc::clone(volume.poison());
    drop((open, volume));
    let_go.send(()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while Arc::strong_count(&device) > 1 {
        assert!(Instant::now() < deadline, "the volume still holds its device");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!poison.is_set(), "{:?}", poison.check());
}

#[test]
fn after_unregistering_no_checkpoint_holds_a_structure() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let volume = Volume::create(Arc::clone(&device), options()).unwrap();
    let (open, prepared, let_go) = slow_structure(&volume);
    let id = volume.open_structure("slow", "kind").unwrap_err();
    assert!(id.to_string().contains("open already"), "{id}");
    volume.request_checkpoint();
    prepared.recv().unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            volume.deregister(nandex_store::StructureId(1), || nandex_store::Shutdown::NeedsReplay)
        });
        let_go.send(()).unwrap();
        waits.join().unwrap();
    });
    assert_eq!(Arc::strong_count(&open), 1);
    drop((open, volume));
    assert_eq!(Arc::strong_count(&device), 1, "closing waits until all is closed");
}

/// Returns a volume whose log is four fifths full of updates of "kept", which is not open.
fn pinned_log() -> MemoryDevice {
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    let structure = volume.create_structure("kept", "kind", Vec::new(), 1).unwrap();
    let tail = volume.log().next_lsn();
    let needs_all = move || Captured { state: vec![1], tail, extents: None };
    let _kept = Part::new(needs_all).register(&volume, &structure);
    let entry = [7; 1000];
    while volume.log().used_bytes() * 5 < volume.log().capacity_bytes() * 4 {
        volume.log().append(structure.id, &[&entry]).unwrap();
    }
    volume.log().sync().unwrap();
    device
}

#[test]
fn updates_of_a_structure_not_open_yet_are_a_fault_only_when_somebody_waits_for_their_space() {
    for threads in [Threads::Background, Threads::Inline] {
        let options = VolumeOpenOptions { threads, ..VolumeOpenOptions::default() };
        let volume = Volume::open(Arc::new(pinned_log()), options).unwrap();
        // Longer than the background thread waits before it checks the log, and finds it nearly full.
        std::thread::sleep(Duration::from_millis(60));
        volume.poison().check().unwrap();
        let other = volume.create_structure("other", "kind", Vec::new(), 1).unwrap();
        volume.log().append(other.id, &[&[1; 1000]]).unwrap();
        volume.checkpoint().unwrap();
        volume.poison().check().unwrap();
        let error = volume.wait_for_space(40_000).unwrap_err().to_string();
        assert!(error.contains("updates of \"kept\" are still in it"), "{error}");
    }
}

#[test]
fn a_structure_that_is_being_made_or_opened_does_not_keep_the_log() {
    // A thread that created the next part of a growing table never finished while others filled a small log.
    for threads in [Threads::Background, Threads::Inline] {
        let options = VolumeOptions { threads, ..options() };
        let device = MemoryDevice::new();
        let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
        let writer = volume.create_structure("writer", "kind", Vec::new(), 1).unwrap();
        let _writer = Part::new(tail_of(&volume)).register(&volume, &writer);
        let fill = |volume: &Volume| {
            for _ in 0..3 * volume.log().capacity_bytes() / 1000 {
                let _space = volume.reserve(1000).unwrap();
                volume.log().append(writer.id, &[&[7; 1000]]).unwrap();
            }
        };
        let made = volume.create_structure("made", "kind", Vec::new(), 1).unwrap();
        fill(&volume);
        let part = Part::new(tail_of(&volume)).register(&volume, &made);
        volume.checkpoint().unwrap();
        volume.deregister(made.id, || nandex_store::Shutdown::Clean);
        drop(part);
        let opened = volume.open_structure("made", "kind").unwrap();
        fill(&volume);
        volume.replay(&opened, &mut |_, _| panic!("it has no updates")).unwrap();
        // The log before the place that its owner saw at the opening is gone.
        let tail = opened.tail;
        let captured = move || Captured { state: vec![1], tail, extents: None };
        let _opened = Part::new(captured).register(&volume, &opened);
        volume.checkpoint().unwrap();
        volume.log().append(opened.id, &[b"update"]).unwrap();
        volume.log().sync().unwrap();
        let crashed = Volume::open(
            Arc::new(MemoryDevice::from_image(device.image())),
            VolumeOpenOptions::default(),
        )
        .unwrap();
        let found = crashed.open_structure("made", "kind").unwrap();
        let mut updates = Vec::new();
        let mut note = |_, bytes: &[u8]| {
            updates.push(bytes.to_vec());
            Ok(())
        };
        crashed.replay(&found, &mut note).unwrap();
        assert_eq!(updates, [b"update"]);
    }
}

#[test]
fn who_waits_for_much_space_in_a_log_that_is_half_empty_gets_it() {
    // The log was not full enough to request that a structure releases its tail, and did not grow any more, since the
    // only caller that appended was waiting: forever.
    for threads in [Threads::Background, Threads::Inline] {
        let options = VolumeOptions { threads, ..options() };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let structure = volume.create_structure("pinning", "kind", Vec::new(), 1).unwrap();
        // The structure needs its part of the log until it is asked to release it.
        let tail = Arc::new(AtomicU64::new(volume.log().next_lsn().0));
        let (needed, log_of) = (Arc::clone(&tail), volume.clone());
        let capture =
            move || Captured { state: vec![1], tail: Lsn(needed.load(Relaxed)), extents: None };
        let mut pinning = Part::new(capture);
        pinning.flush_before = Box::new(move || tail.store(log_of.log().next_lsn().0, Relaxed));
        let _pinning = pinning.register(&volume, &structure);
        let capacity = volume.log().capacity_bytes();
        while volume.log().used_bytes() * 5 < capacity * 2 {
            volume.log().append(structure.id, &[&[7; 1000]]).unwrap();
        }
        let (tell, told) = channel();
        std::thread::spawn({
            let volume = volume.clone();
            move || tell.send(volume.reserve(capacity / 8 * 3).map(drop))
        });
        let got = told.recv_timeout(Duration::from_secs(60));
        got.expect("the space comes, since its tail can be let go of").unwrap();
    }
}

#[test]
fn an_extent_is_used_again_once_a_durable_checkpoint_leaves_it_out() {
    let device = Arc::new(MemoryDevice::new());
    let volume = Volume::create(device.clone(), VolumeOptions::tiny()).unwrap();
    let structure = volume.create_structure("roams", "roamer", Vec::new(), 0).unwrap();
    assert!(structure.extents.is_empty() && structure.extent().is_err());
    let extents = Arc::new(Mutex::new(Vec::new()));
    let (held, of_log) = (Arc::clone(&extents), tail_of(&volume));
    let capture = move || Captured { extents: Some(held.lock().unwrap().clone()), ..of_log() };
    let roamer = Part::new(capture).register(&volume, &structure);
    let [first, second] = [7, 9].map(|pages| volume.allocate(pages).unwrap());
    *extents.lock().unwrap() = vec![first, second];
    volume.checkpoint().unwrap();
    *extents.lock().unwrap() = vec![second];
    let between = volume.allocate(7).unwrap();
    assert_ne!(between.start, first.start, "the durable checkpoint still has it");
    volume.give_back(between);
    volume.checkpoint().unwrap();
    assert_eq!(volume.allocate(7).unwrap(), first);
    drop((roamer, volume));
    // An extent that no capture has named is free again.
    let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
    let found = volume.open_structure("roams", "roamer").unwrap();
    assert_eq!(found.extents, [second]);
    assert_eq!(volume.allocate(7).unwrap(), first);
}

/// Returns the names of all structures, with the first byte of each configuration.
fn configs(volume: &Volume) -> Vec<(String, u8)> {
    let all = volume.structures().into_iter();
    let config = |name: &str| volume.config_of(name, "kind").unwrap()[0];
    let mut all: Vec<_> = all.map(|it| (it.name.clone(), config(&it.name))).collect();
    all.sort();
    all
}

fn named(all: &[(&str, u8)]) -> Vec<(String, u8)> {
    all.iter().map(|(name, config)| ((*name).to_owned(), *config)).collect()
}

#[test]
fn a_replacement_takes_its_place_at_once_and_nobody_opens_what_it_replaces() {
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    let create = |name: &str, config| volume.create_structure(name, "kind", vec![config], 1);
    let part = |owner: &str, part, config| {
        volume.create_part((owner, part), "kind", vec![config], 1).unwrap();
    };
    create("a", 1).unwrap();
    create("a-keys", 2).unwrap();
    create("ab", 3).unwrap();
    part("a", "p", 4);
    let before = configs(&volume);
    create("a/new", 0).unwrap_err();
    for finishes in [false, true] {
        let replacement = volume.replace(&["a", "a-keys"]).unwrap();
        assert!(matches!(volume.replace(&["a"]), Err(Error::Busy { .. })));
        for name in ["a", "a-keys", "a/p"] {
            let refused = volume.open_structure(name, "kind");
            assert!(matches!(refused, Err(Error::Busy { .. })), "{name}: {refused:?}");
        }
        volume.open_structure("ab", "kind").unwrap();
        create("ab/new", 0).unwrap_err();
        let name = replacement.name();
        create(&name, 5).unwrap();
        create(&format!("{name}-keys"), 6).unwrap();
        part(&name, "q", 7);
        volume.open_structure(&name, "kind").unwrap();
        if finishes {
            replacement.finish(&["a-keys"]).unwrap();
        } else {
            drop(replacement);
            assert_eq!(configs(&volume), before);
        }
        volume.open_structure("a", "kind").unwrap();
    }
    let after = named(&[("a", 5), ("a-keys", 2), ("a/q", 7), ("ab", 3)]);
    assert_eq!(configs(&volume), after);
    let pages = volume.stats().free_pages;
    let replacement = volume.replace(&["ab"]).unwrap();
    create("ab/new", 8).unwrap();
    // A crash does the same.
    std::mem::forget(replacement);
    let volume = open(Arc::new(MemoryDevice::from_image(device.image())));
    assert_eq!(configs(&volume).len(), 5);
    volume.drop_replacements().unwrap();
    assert_eq!(configs(&volume), after);
    assert!(volume.stats().free_pages >= pages - 2);
}
