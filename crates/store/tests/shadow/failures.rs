//! The cost of a rewrite, and the state after one that fails half way.

use nandex_store::IoChunks;
use std::sync::Arc;

use nandex_device::{Counted, Counts, Device, MemoryDevice, PAGE_BYTES};
use nandex_sim::preset::Preset;
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, Fill, SimDevice};
use nandex_store::page::PageKind;
use nandex_store::shadow::{Published, RewriteCosts, Rewriter};
use nandex_store::{Error, Lsn};

use crate::subject::{SHAPE, Subject};

fn fault(device: &SimDevice, on: FaultOn) {
    let (at, kind, span) = (device.seen(on) + 1, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at, kind, span });
}

#[test]
fn a_rewrite_reads_and_writes_each_page_once_in_chunks_and_syncs_once() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let subject = Subject::create(Arc::clone(&device) as Arc<dyn Device>, None).unwrap();
    for (reads, pages_read) in [(0, 0), (3, 5)] {
        let before = device.snapshot();
        let draft = subject.begin(2).unwrap();
        let (version, costs) = subject.write(&draft).unwrap();
        assert_eq!(costs, RewriteCosts { pages_read, pages_written: 5 });
        subject.publish(vec![(draft, version)]).unwrap();
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
    let drafts = [0, 1].map(|logical| subject.begin(logical).unwrap());
    let before = device.snapshot();
    let written = drafts.map(|draft| (subject.write(&draft).unwrap().0, draft));
    subject.publish(written.map(|(version, draft)| (draft, version)).into()).unwrap();
    assert_eq!((device.snapshot() - before).syncs, 1, "drafts share a sync");
}

#[test]
fn a_rewriter_holds_no_more_memory_than_its_chunks() {
    let subject = Subject::create(Arc::new(MemoryDevice::new()), None).unwrap();
    let chunks = IoChunks { chunk_pages: 2, chunks: 3 };
    let volume = subject.volume();
    let mut rewriter =
        Rewriter::new(&**volume.device(), Arc::clone(volume.poison()), chunks).unwrap();
    for logical in 0..3 {
        let draft = subject.begin(logical).unwrap();
        let mut pages = Vec::new();
        let mut change = |page: u64, body: &mut [u8]| {
            assert!(body.iter().all(|&byte| byte == 0), "an absent version is zeros");
            body.fill(0xa7);
            pages.push(page);
            Ok(())
        };
        rewriter.rewrite(subject.shadow(), None, &draft, PageKind::Slice, &mut change).unwrap();
        assert_eq!(pages, [0, 1, 2, 3, 4], "pages come in ascending order");
        assert!((1..=3 * 2 * PAGE_BYTES).contains(&rewriter.ram_bytes()));
    }
}

#[test]
fn a_damaged_old_page_stops_a_rewrite_and_nothing_changes() {
    let device = MemoryDevice::new();
    let subject = Subject::create(Arc::new(device.clone()), None).unwrap();
    subject.rewrite(1).unwrap();
    let block = subject.shadow().block(1).unwrap();
    let page = subject.shadow().page(block, 3);
    let mut buf = device.read(page, nandex_device::PageBuf::zeroed(1)).unwrap();
    buf[2000] ^= 4;
    device.write(page, buf).unwrap();
    let free = subject.shadow().free_blocks();
    for _ in 0..3 {
        let error = subject.rewrite(1).unwrap_err();
        assert!(matches!(error, Error::Corrupt { page: found, .. } if found == page), "{error}");
    }
    assert_eq!((subject.shadow().block(1), subject.shadow().free_blocks()), (Some(block), free));
    assert!(subject.volume().poison().check().is_ok(), "damage is no failed write");
    subject.rewrite(0).unwrap();
    assert_eq!(subject.version(0), 1);
}

#[test]
fn a_failed_write_or_sync_poisons_the_volume_and_flips_nothing() {
    for on in [FaultOn::Write, FaultOn::Sync] {
        let device = SimDevice::instant();
        let subject = Subject::create(Arc::new(device.clone()), None).unwrap();
        subject.rewrite(1).unwrap();
        let block = subject.shadow().block(1);
        fault(&device, on);
        subject.rewrite(1).unwrap_err();
        assert_eq!(subject.shadow().block(1), block);
        assert_eq!(subject.version(1), 1);
        assert!(matches!(subject.rewrite(0), Err(Error::Poisoned { .. })));
        assert_eq!(subject.shadow().free_blocks(), 5, "drafts were given back");
    }
}

#[test]
fn a_failed_read_flips_nothing_and_can_be_tried_again() {
    let device = SimDevice::instant();
    let subject = Subject::create(Arc::new(device.clone()), None).unwrap();
    subject.rewrite(1).unwrap();
    fault(&device, FaultOn::Read);
    assert!(matches!(subject.rewrite(1), Err(Error::Device(_))));
    assert_eq!(subject.version(1), 1);
    subject.rewrite(1).unwrap();
    assert_eq!(subject.version(1), 2);
}

/// Otherwise its writes in flight would go to the next draft of that block.
#[test]
fn nothing_of_a_rewrite_that_failed_lands_in_a_later_one() {
    // A drive whose writes take time.
    let preset = Preset::named("crucial-m4-paper").unwrap();
    let device = SimDevice::with_model(preset.build(Fill::Empty).unwrap());
    let subject = Subject::create(Arc::new(device.clone()), None).unwrap();
    let volume = subject.volume();
    let chunks = IoChunks { chunk_pages: 1, chunks: 4 };
    let new = || Rewriter::new(&device, Arc::clone(volume.poison()), chunks).unwrap();
    let mut failing = new();
    let physical = subject.shadow().begin(0, Lsn(0)).unwrap().block().physical;
    // Blocks are issued in turn; this number of drafts returns to the same one.
    let begin = || {
        let all = (0..SHAPE.physical()).map(|_| subject.shadow().begin(0, Lsn(0)).unwrap());
        all.into_iter().find(|draft| draft.block().physical == physical).unwrap()
    };
    let draft = begin();
    let mut change = |page: u64, body: &mut [u8]| {
        body.fill(1);
        if page == 3 { Err(Error::config("page", "no more")) } else { Ok(()) }
    };
    let kind = PageKind::Slice;
    failing.rewrite(subject.shadow(), None, &draft, kind, &mut change).unwrap_err();
    drop(draft);
    let draft = begin();
    let (version, _) = subject.write(&draft).unwrap();
    subject.publish(vec![(draft, version)]).unwrap();
    drop(failing);
    assert_eq!(subject.version(0), 1);
}

#[test]
fn a_reader_of_a_block_that_was_written_over_learns_that_it_is_not_current() {
    let subject = Subject::create(Arc::new(MemoryDevice::new()), None).unwrap();
    subject.rewrite(0).unwrap();
    let old = subject.shadow().block(0).unwrap();
    assert!(subject.page(old, 0).is_ok() && subject.shadow().is_current(0, old));
    while subject.page(old, 0).is_ok() {
        subject.rewrite(0).unwrap();
        subject.volume().checkpoint().unwrap();
        assert!(!subject.shadow().is_current(0, old));
    }
}

#[test]
fn where_the_log_is_full_a_checkpoint_makes_flips_durable() {
    let device = SimDevice::instant();
    let subject = Subject::create(Arc::new(device.clone()), None).unwrap();
    assert_eq!(subject.rewrite(0).unwrap(), Published::Logged);
    while subject.fill_log(10).is_ok() {}
    assert_eq!(subject.rewrite(0).unwrap(), Published::AwaitsCheckpoint);
    assert_eq!(subject.version(0), 2);
    subject.volume().log().sync().unwrap();
    assert!(subject.shadow().make_space(subject.volume().log()).unwrap());
    assert_eq!(subject.shadow().waiting_blocks(), 1, "its map update is nowhere yet");
    subject.volume().checkpoint().unwrap();
    assert_eq!(subject.shadow().waiting_blocks(), 0);
    let survivor = SimDevice::instant().with_image(device.survivors(0));
    assert_eq!(Subject::open(Arc::new(survivor), None).unwrap().version(0), 2);
}
