//! What a rewrite costs, and what is left where it fails half way.

use nandex_store::IoChunks;
use std::sync::Arc;

use nandex_device::{Counted, Counts, Device, MemoryDevice, PAGE_BYTES};
use nandex_sim::preset::Preset;
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, Fill, SimDevice};
use nandex_store::page::PageKind;
use nandex_store::shadow::{Published, RewriteCosts, Rewriter};
use nandex_store::{Error, Lsn};

use crate::room::{Room, SHAPE};

fn fault(device: &SimDevice, on: FaultOn) {
    let (at, kind, span) = (device.seen(on) + 1, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at, kind, span });
}

#[test]
fn a_rewrite_reads_and_writes_each_page_once_in_strokes_and_syncs_once() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let room = Room::create(Arc::clone(&device) as Arc<dyn Device>, None).unwrap();
    for (reads, pages_read) in [(0, 0), (3, 5)] {
        let before = device.snapshot();
        let draft = room.begin(2).unwrap();
        let (version, costs) = room.write(&draft).unwrap();
        assert_eq!(costs, RewriteCosts { pages_read, pages_written: 5 });
        room.publish(vec![(draft, version)]).unwrap();
        let expected = Counts {
            reads,
            pages_read,
            writes: 3,
            pages_written: 5,
            syncs: 1,
            completions: reads + 3,
            ..Counts::default()
        };
        assert_eq!(device.snapshot() - before, expected);
    }
    let drafts = [0, 1].map(|logical| room.begin(logical).unwrap());
    let before = device.snapshot();
    let written = drafts.map(|draft| (room.write(&draft).unwrap().0, draft));
    room.publish(written.map(|(version, draft)| (draft, version)).into()).unwrap();
    assert_eq!((device.snapshot() - before).syncs, 1, "drafts share a sync");
}

#[test]
fn a_rewriter_holds_no_more_memory_than_its_strokes() {
    let room = Room::create(Arc::new(MemoryDevice::new()), None).unwrap();
    let strokes = IoChunks { chunk_pages: 2, chunks: 3 };
    let volume = room.volume();
    let mut rewriter =
        Rewriter::new(&**volume.device(), Arc::clone(volume.poison()), strokes).unwrap();
    for logical in 0..3 {
        let draft = room.begin(logical).unwrap();
        let mut pages = Vec::new();
        let mut change = |page: u64, body: &mut [u8]| {
            assert!(body.iter().all(|&byte| byte == 0), "an absent version is zeros");
            body.fill(0xa7);
            pages.push(page);
            Ok(())
        };
        rewriter.rewrite(room.shadow(), None, &draft, PageKind::Slice, &mut change).unwrap();
        assert_eq!(pages, [0, 1, 2, 3, 4], "pages come in ascending order");
        assert!((1..=3 * 2 * PAGE_BYTES).contains(&rewriter.ram_bytes()));
    }
}

#[test]
fn a_damaged_old_page_stops_a_rewrite_and_nothing_changes() {
    let device = MemoryDevice::new();
    let room = Room::create(Arc::new(device.clone()), None).unwrap();
    room.rewrite(1).unwrap();
    let block = room.shadow().block(1).unwrap();
    let page = room.shadow().page(block, 3);
    let mut buf = device.read(page, nandex_device::PageBuf::zeroed(1)).unwrap();
    buf[2000] ^= 4;
    device.write(page, buf).unwrap();
    let free = room.shadow().free_blocks();
    for _ in 0..3 {
        let error = room.rewrite(1).unwrap_err();
        assert!(matches!(error, Error::Corrupt { page: found, .. } if found == page), "{error}");
    }
    assert_eq!((room.shadow().block(1), room.shadow().free_blocks()), (Some(block), free));
    assert!(room.volume().poison().check().is_ok(), "damage is no failed write");
    room.rewrite(0).unwrap();
    assert_eq!(room.version(0), 1);
}

#[test]
fn a_failed_write_or_sync_poisons_the_volume_and_flips_nothing() {
    for on in [FaultOn::Write, FaultOn::Sync] {
        let device = SimDevice::instant();
        let room = Room::create(Arc::new(device.clone()), None).unwrap();
        room.rewrite(1).unwrap();
        let block = room.shadow().block(1);
        fault(&device, on);
        room.rewrite(1).unwrap_err();
        assert_eq!(room.shadow().block(1), block);
        assert_eq!(room.version(1), 1);
        assert!(matches!(room.rewrite(0), Err(Error::Poisoned { .. })));
        assert_eq!(room.shadow().free_blocks(), 5, "drafts were given back");
    }
}

#[test]
fn a_failed_read_flips_nothing_and_can_be_tried_again() {
    let device = SimDevice::instant();
    let room = Room::create(Arc::new(device.clone()), None).unwrap();
    room.rewrite(1).unwrap();
    fault(&device, FaultOn::Read);
    assert!(matches!(room.rewrite(1), Err(Error::Device(_))));
    assert_eq!(room.version(1), 1);
    room.rewrite(1).unwrap();
    assert_eq!(room.version(1), 2);
}

/// Else its writes in flight would land in the next draft of that block.
#[test]
fn nothing_of_a_rewrite_that_failed_lands_in_a_later_one() {
    // A drive whose writes take their time.
    let preset = Preset::named("crucial-m4-paper").unwrap();
    let device = SimDevice::with_model(preset.build(Fill::Empty).unwrap());
    let room = Room::create(Arc::new(device.clone()), None).unwrap();
    let volume = room.volume();
    let strokes = IoChunks { chunk_pages: 1, chunks: 4 };
    let new = || Rewriter::new(&device, Arc::clone(volume.poison()), strokes).unwrap();
    let mut failing = new();
    let physical = room.shadow().begin(0, Lsn(0)).unwrap().block().physical;
    // Blocks are given out in turns; this many drafts bring the same one again.
    let begin = || {
        let all = (0..SHAPE.physical()).map(|_| room.shadow().begin(0, Lsn(0)).unwrap());
        all.into_iter().find(|draft| draft.block().physical == physical).unwrap()
    };
    let draft = begin();
    let mut change = |page: u64, body: &mut [u8]| {
        body.fill(1);
        if page == 3 { Err(Error::config("page", "no more")) } else { Ok(()) }
    };
    let kind = PageKind::Slice;
    failing.rewrite(room.shadow(), None, &draft, kind, &mut change).unwrap_err();
    drop(draft);
    let draft = begin();
    let (version, _) = room.write(&draft).unwrap();
    room.publish(vec![(draft, version)]).unwrap();
    drop(failing);
    assert_eq!(room.version(0), 1);
}

#[test]
fn a_reader_of_a_block_that_was_written_over_learns_that_it_is_not_current() {
    let room = Room::create(Arc::new(MemoryDevice::new()), None).unwrap();
    room.rewrite(0).unwrap();
    let old = room.shadow().block(0).unwrap();
    assert!(room.page(old, 0).is_ok() && room.shadow().is_current(0, old));
    while room.page(old, 0).is_ok() {
        room.rewrite(0).unwrap();
        room.volume().checkpoint().unwrap();
        assert!(!room.shadow().is_current(0, old));
    }
}

#[test]
fn where_the_log_is_full_a_checkpoint_makes_flips_durable() {
    let device = SimDevice::instant();
    let room = Room::create(Arc::new(device.clone()), None).unwrap();
    assert_eq!(room.rewrite(0).unwrap(), Published::Logged);
    while room.fill_log(10).is_ok() {}
    assert_eq!(room.rewrite(0).unwrap(), Published::AwaitsCheckpoint);
    assert_eq!(room.version(0), 2);
    room.volume().log().sync().unwrap();
    assert!(room.shadow().make_space(room.volume().log()).unwrap());
    assert_eq!(room.shadow().waiting_blocks(), 1, "its map update is nowhere yet");
    room.volume().checkpoint().unwrap();
    assert_eq!(room.shadow().waiting_blocks(), 0);
    let survivor = SimDevice::instant().with_image(device.survivors(0));
    assert_eq!(Room::open(Arc::new(survivor), None).unwrap().version(0), 2);
}
