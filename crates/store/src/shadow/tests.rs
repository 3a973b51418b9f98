//! Single rules of the shadow. Generated tests against a model are in `model`, power cuts in `tests/shadow.rs`.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::bytes::Reader;

pub(super) const SHAPE: ShadowShape =
    ShadowShape { block_pages: 3, logical: 4, spares: 2, align_pages: 8, devices: 2 };
pub(super) const EXTENT: Extent = Extent { start: PageId(101), pages: 25 };

const NOTHING: Lsn = Lsn(0);

fn shadow() -> Shadow {
    Shadow::create(StructureId(1), EXTENT, SHAPE, 5)
}

/// Rewrites a logical block without any log.
fn rewrite(shadow: &Shadow, logical: u32) -> MapUpdate {
    let draft = shadow.begin(logical, NOTHING).unwrap();
    shadow.update_map(draft, 10 + logical)
}

fn rewrite_each(shadow: &Shadow, blocks: impl IntoIterator<Item = u32>) {
    for logical in blocks {
        rewrite(shadow, logical);
    }
}

fn recovery(bytes: &[u8]) -> Result<ShadowRecovery> {
    let mut reader = Reader::new(bytes, "shadow", PageId(0));
    ShadowRecovery::start(StructureId(1), EXTENT, SHAPE, 6, &mut reader)
}

fn replay(recovery: &mut ShadowRecovery, bytes: &[u8]) -> Result<MapUpdate> {
    recovery.replay(&mut Reader::new(bytes, "map update", PageId(0)))
}

#[test]
fn blocks_are_in_a_row_from_the_first_aligned_page_on() {
    let shadow = shadow();
    assert_eq!(SHAPE.pages(), 25);
    let block = |physical| Block { physical, generation: 9, entries: 0 };
    assert_eq!(shadow.page(block(0), 0), PageId(104));
    assert_eq!(shadow.page(block(5), 2), PageId(104 + 17));
    let label = shadow.label(block(1), 1, PageKind::Slice);
    let (structure, page) = (StructureId(1), PageId(108));
    assert_eq!(label, PageLabel { kind: PageKind::Slice, structure, generation: 9, page });
}

#[test]
fn shapes_that_cannot_work_are_refused() {
    assert!(SHAPE.validate().is_ok());
    for shape in [
        ShadowShape { block_pages: 0, ..SHAPE },
        ShadowShape { logical: 0, ..SHAPE },
        ShadowShape { spares: 0, ..SHAPE },
        ShadowShape { align_pages: 0, ..SHAPE },
        ShadowShape { devices: 0, ..SHAPE },
        ShadowShape { logical: u32::MAX, ..SHAPE },
    ] {
        assert!(matches!(shape.validate(), Err(Error::Config { .. })), "{shape:?}");
    }
}

#[test]
fn a_rewrite_shows_when_it_is_flipped_and_not_before() {
    let shadow = shadow();
    assert_eq!(shadow.block(2), None);
    let draft = shadow.begin(2, NOTHING).unwrap();
    assert_eq!(shadow.block(2), None);
    let MapUpdate { logical, block } = shadow.update_map(draft, 7);
    assert_eq!((logical, shadow.block(2)), (2, Some(block)));
    assert_eq!(block.entries, 7);
    assert!(shadow.is_current(2, block));
    let newer = rewrite(&shadow, 2).block;
    assert!(!shadow.is_current(2, block) && shadow.is_current(2, newer));
    assert_ne!(block.generation, newer.generation);
}

#[test]
fn a_draft_that_is_dropped_gives_its_block_back() {
    let shadow = shadow();
    let drafts: Vec<_> = (0..4).map(|logical| shadow.begin(logical, NOTHING).unwrap()).collect();
    assert_eq!(shadow.free_blocks(), 2);
    let numbers: Vec<_> = drafts.iter().map(|draft| draft.block().generation).collect();
    drop(drafts);
    assert_eq!(shadow.free_blocks(), 6);
    let again = shadow.begin(0, NOTHING).unwrap();
    assert!(!numbers.contains(&again.block().generation), "no generation comes twice");
}

#[test]
#[should_panic(expected = "one draft at a time")]
fn a_logical_block_has_no_two_drafts() {
    let shadow = shadow();
    let _first = shadow.begin(1, NOTHING);
    let _second = shadow.begin(1, NOTHING);
}

#[test]
fn an_old_block_is_given_out_again_only_once_the_log_is_synced_behind_its_flip() {
    let shadow = shadow();
    rewrite_each(&shadow, 0..4);
    let updates = [rewrite(&shadow, 0), rewrite(&shadow, 1)];
    assert!(shadow.begin(2, Lsn(u64::MAX)).is_none(), "the map updates are not in the log");
    assert_eq!((shadow.free_blocks(), shadow.waiting_blocks()), (0, 2));
    shadow.logged(updates[0], Lsn(40));
    shadow.logged(updates[1], Lsn(50));
    assert!(shadow.begin(2, Lsn(40)).is_none(), "the log is synced up to the record");
    let draft = shadow.begin(2, Lsn(50)).unwrap();
    assert_eq!(draft.block().physical, 0, "what block 0 was in first");
    assert_eq!((shadow.free_blocks(), shadow.waiting_blocks()), (0, 1));
}

#[test]
fn a_checkpoint_gives_back_what_it_no_longer_names_and_nothing_else() {
    let shadow = shadow();
    rewrite_each(&shadow, 0..4);
    rewrite(&shadow, 0);
    let capture = shadow.capture(Lsn(7));
    assert_eq!(capture.tail, Lsn(7));
    rewrite(&shadow, 1);
    assert!(shadow.begin(2, NOTHING).is_none());
    shadow.committed(capture.mark);
    let draft = shadow.begin(2, NOTHING).unwrap();
    assert_eq!(draft.block().physical, 0);
    assert!(shadow.begin(3, NOTHING).is_none(), "the checkpoint names what block 1 was in");
}

#[test]
fn a_later_map_update_in_the_log_replaces_one_that_found_no_space_there() {
    let shadow = shadow();
    rewrite(&shadow, 0);
    let [_unlogged, logged] = [rewrite(&shadow, 0), rewrite(&shadow, 0)];
    shadow.logged(logged, Lsn(3));
    shadow.synced(Lsn(4));
    assert_eq!((shadow.free_blocks(), shadow.waiting_blocks()), (5, 0));
}

#[test]
fn a_logical_block_keeps_to_its_device_while_that_has_a_free_block() {
    let shadow = shadow();
    for logical in [1, 3] {
        assert_eq!(rewrite(&shadow, logical).block.physical % 2, 1, "{logical}");
    }
    assert_eq!(rewrite(&shadow, 1).block.physical, 5, "the last one of device 1");
    assert_eq!(rewrite(&shadow, 3).block.physical % 2, 0, "one of device 0 rather than none");
}

#[test]
fn a_checkpoint_knows_nothing_of_drafts_and_a_number_used_again_is_told_apart() {
    let shadow = shadow();
    let kept = rewrite(&shadow, 0).block;
    let lost = rewrite(&shadow, 1).block;
    // The log is cut off before the map update of block 1, and the draft of block 2 is in progress.
    let before = shadow.capture(NOTHING);
    let draft = shadow.begin(2, NOTHING).unwrap();
    let bytes = shadow.capture(NOTHING).bytes;
    assert_eq!(before.bytes[13..], bytes[13..]);
    let restored = recovery(&bytes).unwrap().finish();
    assert_eq!([0, 1, 2, 3].map(|at| restored.block(at)), [Some(kept), Some(lost), None, None]);
    assert_eq!(restored.free_blocks(), 4);
    let restored = recovery(&before.bytes).unwrap().finish();
    let next = restored.begin(2, NOTHING).unwrap();
    let number = |block: Block| generation::sequence(block.generation);
    assert_eq!(number(next.block()), number(draft.block()));
    assert_ne!(next.block().generation, draft.block().generation);
}

#[test]
fn replay_takes_flips_in_order_and_any_of_them_again() {
    let shadow = shadow();
    let empty = shadow.capture(NOTHING).bytes;
    let updates: Vec<_> = [0, 1, 0, 2, 0].map(|logical| rewrite(&shadow, logical)).to_vec();
    let newest = [updates[4].block, updates[1].block, updates[3].block];
    for bytes in [empty, shadow.capture(NOTHING).bytes] {
        let mut recovery = recovery(&bytes).unwrap();
        for update in updates.iter().chain(&updates) {
            assert_eq!(replay(&mut recovery, &update.encode()).unwrap(), *update);
        }
        let restored = recovery.finish();
        assert_eq!([0, 1, 2].map(|at| restored.block(at).unwrap()), newest);
        assert_eq!(restored.free_blocks(), 3);
        let next = restored.begin(3, NOTHING).unwrap().block().generation;
        assert_eq!(generation::sequence(next), 6, "numbers go on behind the log's");
    }
}

#[test]
fn an_older_flip_in_the_log_does_not_undo_one_that_only_the_checkpoint_has() {
    let shadow = shadow();
    let [logged, unlogged] = [rewrite(&shadow, 0), rewrite(&shadow, 0)];
    let mut recovery = recovery(&shadow.capture(NOTHING).bytes).unwrap();
    replay(&mut recovery, &logged.encode()).unwrap();
    assert_eq!(recovery.finish().block(0), Some(unlogged.block));
}

#[test]
fn flips_that_cannot_be_are_refused() {
    let shadow = shadow();
    let update = rewrite(&shadow, 0);
    let map = shadow.capture(NOTHING).bytes;
    let good = MapUpdate { logical: 1, block: Block { physical: 3, generation: 9, entries: 1 } };
    assert!(replay(&mut recovery(&map).unwrap(), &good.encode()).is_ok());
    for bad in [
        MapUpdate { logical: 4, ..good },
        MapUpdate { block: Block { physical: 6, ..good.block }, ..good },
        MapUpdate { block: Block { physical: update.block.physical, ..good.block }, ..good },
        MapUpdate { block: Block { generation: 1 << 48, ..good.block }, ..good },
        MapUpdate { block: Block { generation: generation::SEQUENCE_MAX, ..good.block }, ..good },
        MapUpdate { block: Block { physical: 0, generation: 0, entries: 0 }, ..good },
    ] {
        let refused = replay(&mut recovery(&map).unwrap(), &bad.encode());
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{bad:?}");
    }
    for length in 0..MAP_UPDATE_BYTES {
        assert!(replay(&mut recovery(&map).unwrap(), &good.encode()[..length]).is_err());
    }
}

#[test]
fn a_flip_and_a_map_have_the_bytes_of_the_format() {
    let block = Block { physical: 5, generation: 0x0003_0000_0000_0007, entries: 300 };
    let update = MapUpdate { logical: 2, block };
    let bytes = [2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 3, 0, 5, 0, 0, 0, 0x2c, 1, 0, 0];
    assert_eq!(update.encode(), bytes);
    let decoded = MapUpdate::decode(&mut Reader::new(&bytes, "map update", PageId(0)), SHAPE);
    assert_eq!(decoded.unwrap(), update);
    let mut map = vec![1, 8, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
    map.extend_from_slice(&[0; 32]);
    map.extend_from_slice(&bytes[4..]);
    map.extend_from_slice(&[0; 16]);
    let blocks = vec![None, None, Some(block), None];
    assert_eq!(ShadowMap { next: 8, blocks }.encode(), map);
}

#[test]
fn damaged_maps_are_refused() {
    let shadow = shadow();
    rewrite_each(&shadow, [0, 1, 3]);
    let good = shadow.capture(NOTHING).bytes;
    assert_eq!(good.len(), 13 + 4 * 16);
    assert!(recovery(&good).is_ok());
    (0..good.len()).for_each(|length| assert!(recovery(&good[..length]).is_err(), "{length}"));
    // The version, the next number, the count, a generation, a block out of range, and one named twice.
    let second = 13 + 16;
    let first_block = good[13 + 8];
    for (at, byte) in [(0, 2), (1, 0), (8, 0xff), (9, 3), (13, 0), (second, 4), (second + 8, 6)]
        .into_iter()
        .chain([(second + 8, first_block)])
    {
        let mut bad = good.clone();
        bad[at] = byte;
        assert!(matches!(recovery(&bad), Err(Error::Corrupt { .. })), "byte {at}");
    }
}

#[test]
fn a_caller_that_waits_for_space_is_woken_by_a_checkpoint() {
    let shadow = shadow();
    rewrite_each(&shadow, 0..4);
    rewrite_each(&shadow, 0..2);
    let capture = shadow.capture(NOTHING);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while shadow.free_blocks() == 0 {
                shadow.wait_for_space(Duration::from_secs(3600));
            }
        });
        shadow.committed(capture.mark);
    });
    shadow.wait_for_space(Duration::from_secs(3600));
    assert_eq!(shadow.free_blocks(), 2);
}

#[test]
fn a_lookup_during_rewrites_never_sees_parts_of_two_blocks() {
    // Each block belongs to one logical block alone, and counts as many entries as its number.
    let shadow = shadow();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut newest = 0;
                while !stop.load(Ordering::Relaxed) {
                    let Some(block) = shadow.block(0) else { continue };
                    let number = generation::sequence(block.generation);
                    assert!(number >= newest, "versions only get newer");
                    newest = number;
                    assert_eq!(u64::from(block.entries), number);
                }
            });
        }
        for number in 1..=50_000 {
            let draft = shadow.begin(0, NOTHING).unwrap();
            shadow.update_map(draft, number);
            shadow.committed(u64::from(number));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(shadow.block(0).unwrap().entries, 50_000);
}

#[test]
fn its_ram_is_two_words_a_logical_block_and_a_word_a_spare() {
    let shape = ShadowShape { logical: 10_000, spares: 64, align_pages: 1, devices: 1, ..SHAPE };
    let extent = Extent { start: PageId(0), pages: shape.pages() };
    let shadow = Shadow::create(StructureId(1), extent, shape, 1);
    rewrite_each(&shadow, 0..10_000);
    assert!((160_000..260_000).contains(&shadow.ram_bytes()), "{}", shadow.ram_bytes());
}
