//! Tests that each design does what the paper states, counted operation by operation.

use std::collections::BTreeSet;

use nandex_sim::workload::SplitMix64;

use super::design::{Design, Keeps, Kind, query};
use super::lab::{Lab, TableSetup};
use super::ram::{RamBuffer, Staged};
use super::record::{OpCounts, Places};
use super::shape::{BLOCK_PAGES, Change, DataSet, Shape};
use crate::Scale;

fn scale() -> Scale {
    Scale::new(Scale::MOST, 1).unwrap()
}

fn shape() -> Shape {
    DataSet::WIKI.at(scale())
}

/// A full RAM buffer of random keys.
fn staged(percent: u64, seed: u64) -> Staged {
    let mut buffer = RamBuffer::new(shape(), percent);
    let mut rng = SplitMix64::new(seed);
    while !buffer.is_full() {
        buffer.insert(rng.next_u64().clamp(1, u64::MAX - 1));
    }
    buffer.take()
}

fn table(kind: Kind) -> Box<dyn Design> {
    kind.table(shape(), Keeps::Keys)
}

#[test]
fn mb_reads_and_writes_every_block_for_each_merge_and_no_page() {
    let mut mb = table(Kind::Mb);
    for merges in 1..=13 {
        mb.stage(&staged(10, merges));
        let cleans = merges * 205;
        let expected = OpCounts { blocks: 2 * cleans, cleans, merges, pages: 0, stages: 0 };
        assert_eq!(mb.record().counts, expected);
    }
    mb.finish();
    // As in Table 2 for 13 merges.
    assert_eq!(mb.record().counts.blocks, 5330);
}

#[test]
fn mb_leaves_a_block_without_changes_alone() {
    let mut mb = table(Kind::Mb);
    let mut ends = vec![0; 7];
    ends.resize(205, 2);
    let of_slot_7 = (7 * (u64::MAX / 205)) + (u64::MAX / 410);
    mb.stage(&Staged { keys: vec![of_slot_7, of_slot_7 + 1], ends });
    assert_eq!(mb.record().counts.blocks, 2);
}

#[test]
fn mdb_appends_pages_of_its_change_blocks_and_merges_each_that_is_full_with_its_data_blocks() {
    for change in Change::ALL {
        let (shape, kind) = (shape(), Kind::Mdb(change));
        let mut mdb = table(kind);
        let (block_entries, page_entries) = (shape.block_entries(), shape.page_entries);
        let mut entries = vec![0; change.blocks(&shape) as usize];
        let mut expected = OpCounts::default();
        for seed in 0..30 {
            let staged = staged(2, seed);
            mdb.stage(&staged);
            expected.stages += 1;
            let mut pages = BTreeSet::new();
            for key in &staged.keys {
                let block = shape.block(*key) / change.data_blocks;
                let entry: &mut u64 = &mut entries[block as usize];
                pages.insert((
                    block,
                    *entry / block_entries,
                    *entry % block_entries / page_entries,
                ));
                *entry += 1;
            }
            expected.pages += pages.len() as u64;
        }
        for (block, entries) in entries.into_iter().enumerate() {
            let merges = entries / block_entries;
            let first = block as u64 * change.data_blocks;
            let data_blocks = change.data_blocks.min(shape.blocks - first);
            expected.merges += merges;
            expected.blocks += merges * (1 + 2 * data_blocks);
            expected.cleans += merges * (1 + data_blocks);
        }
        assert!(expected.merges > 0, "{change:?}");
        assert_eq!(mdb.record().counts, expected, "{change:?}");
        mdb.finish();
        let end = mdb.record().counts;
        mdb.finish();
        assert_eq!(end, mdb.record().counts);
        assert!(
            end.merges > expected.merges && end.merges <= expected.merges + change.blocks(&shape)
        );
    }
}

/// Returns the writes of a log's pages, and the reads of them by each slot: by entries, one by one.
fn pages_of_log(all: &[Staged], page_entries: u64) -> u64 {
    let (mut at, mut pages) = (0, 0);
    for staged in all {
        let (mut written, mut read) = (BTreeSet::new(), BTreeSet::new());
        for key in &staged.keys {
            written.insert(at / page_entries);
            read.insert((shape().block(*key), at / page_entries));
            at += 1;
        }
        pages += (written.len() + read.len()) as u64;
    }
    pages
}

#[test]
fn mdb_l_reads_each_page_for_each_slot_that_has_entries_in_it() {
    let change = Change::SMALL;
    let all: Vec<Staged> = (0..2).map(|seed| staged(5, seed)).collect();
    let mut log = table(Kind::MdbL(change));
    all.iter().for_each(|staged| log.stage(staged));
    // Two buffers of 5 % do not fill a log of 12.5 %.
    assert_eq!((log.record().counts.merges, log.record().counts.blocks), (0, 0));
    log.finish();
    let entries: u64 = all.iter().map(|staged| staged.keys.len() as u64).sum();
    let log_blocks = entries.div_ceil(shape().block_entries());
    let expected = OpCounts {
        blocks: 2 * 205,
        pages: pages_of_log(&all, shape().page_entries),
        merges: 1,
        stages: 2,
        cleans: 205 + log_blocks,
    };
    assert_eq!(log.record().counts, expected);
}

#[test]
fn a_full_log_is_merged_and_begins_from_its_top() {
    let mut log = table(Kind::MdbL(Change::SMALL));
    (0..3).for_each(|seed| log.stage(&staged(5, seed)));
    let counts = log.record().counts;
    assert_eq!((counts.merges, counts.blocks), (1, 410));
    let mut reads = super::record::Record::default();
    log.read_change(204, &mut reads);
    assert!((1..BLOCK_PAGES).contains(&reads.counts.pages), "{:?}", reads.counts);
}

#[test]
fn a_query_reads_the_change_block_or_the_slots_pages_and_then_the_data_segment() {
    let staged = staged(5, 1);
    let key = staged.keys[0];
    let slot = shape().block(key) as usize;
    let page_entries = shape().page_entries as usize;
    let start = slot.checked_sub(1).map_or(0, |before| staged.ends[before]);
    let slot_pages = (staged.ends[slot] - 1) / page_entries - start / page_entries + 1;
    for (kind, blocks, pages) in [
        (Kind::Mb, 0, 0),
        (Kind::Mdb(Change::SMALL), 1, 0),
        (Kind::MdbL(Change::SMALL), 0, slot_pages as u64),
    ] {
        let mut table = table(kind);
        let places = Places::new(&shape(), kind.change());
        let ask = |table: &dyn Design| query(table, &shape(), places, key);
        let (reads, found) = ask(&*table);
        assert_eq!((reads.counts.blocks, reads.counts.pages, found), (0, 1, false), "{kind:?}");
        table.stage(&staged);
        let (reads, found) = ask(&*table);
        assert_eq!(found, kind == Kind::Mb);
        // The first key of a table that is nearly empty is in the page of its slot.
        assert_eq!((reads.counts.blocks, reads.counts.pages), (blocks, pages + 1), "{kind:?}");
        table.finish();
        let (reads, found) = ask(&*table);
        assert_eq!((reads.counts.blocks, reads.counts.pages, found), (0, 1, true), "{kind:?}");
    }
}

#[test]
fn each_design_has_every_key_in_its_data_segment_after_the_last_merge() {
    for kind in Kind::ALL {
        let mut table = table(kind);
        let all: Vec<Staged> = (0..12).map(|seed| staged(2, seed)).collect();
        all.iter().for_each(|staged| table.stage(staged));
        table.finish();
        let mut keys = all.iter().flat_map(|staged| &staged.keys);
        assert!(keys.all(|key| table.data().search(*key).found), "{kind:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_operations_and_another_one_others() {
    let setups = TableSetup::all(&Kind::SMALL, &[10]);
    let pages = |seed| {
        let lab = Lab::new(DataSet::WIKI, Scale::new(Scale::MOST, seed).unwrap());
        let all = lab.fill(&setups);
        all.iter().map(|filled| filled.counts()).collect::<Vec<_>>()
    };
    assert_eq!(pages(1), pages(1));
    assert_ne!(pages(1), pages(2));
}
