//! The mapping of the log-block layer against a plain map, and its merges against their expected cost.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::spec::{Flash, FtlKind, Host, Level, Mapping, Timing, Victim};
use crate::ssd::Fill;

const LOGS: u32 = 2;

fn spec(flash: Flash, log_blocks: u32, chunk_bytes: u32) -> Spec {
    let spare = log_blocks + 1;
    let plain = Spec::plain();
    Spec {
        name: "log-block".into(),
        host: Host { depth: 1, buffer_is_safe: true, ..plain.host },
        flash,
        timing: Timing {
            read_ns: 1,
            program_ns: 1,
            erase_ns: 1,
            transfer_ps_per_byte: 0,
            ..plain.timing
        },
        ftl: crate::spec::Ftl {
            kind: FtlKind::LogBlock { log_blocks },
            mapping: Mapping::Lba,
            domain: Level::Channel,
            chunk_bytes,
            spare_permille: (spare * 1000).div_ceil(flash.blocks),
            clean_at_permille: 1,
            victim: Victim::Greedy,
            copy_back: true,
            background: false,
        },
        erases_max: 1000,
        ..plain
    }
}

/// Creates one plane of eight blocks with `pages` pages of 4 KiB, at most five of the blocks the host's.
fn small(pages: u32) -> Spec {
    let (channels, packages, dies, planes, blocks) = (1, 1, 1, 1, 8);
    spec(Flash { channels, packages, dies, planes, blocks, pages, page_bytes: 4096 }, LOGS, 4096)
}

fn layer(spec: &Spec, fill: Fill) -> LogBlockFtl {
    spec.check().unwrap();
    let FtlKind::LogBlock { log_blocks } = spec.ftl.kind else { panic!("made above") };
    LogBlockFtl::new(spec, log_blocks, fill == Fill::Sequential)
}

fn write(ftl: &mut LogBlockFtl, units: impl IntoIterator<Item = u32>) -> Vec<Clean> {
    let mut work = Vec::new();
    for unit in units {
        ftl.write(unit, &mut work);
        ftl.pad(unit, &mut work);
    }
    let clean = |work: Work| match work.kind {
        WorkKind::Clean(clean) => Some(clean),
        WorkKind::Program { .. } | WorkKind::Erase => None,
    };
    work.into_iter().filter_map(clean).collect()
}

/// Checks all stored pages: no place twice, none in a block that is free or not programmed that far, data at
/// their own offsets, and no block lost or used twice.
fn check(ftl: &LogBlockFtl, stored: &HashSet<u32>) {
    let Layout { block_units, blocks, .. } = ftl.layout;
    let mut places = HashSet::new();
    for unit in 0..ftl.layout.units as u32 {
        let place = ftl.find(unit);
        assert_eq!(place.is_some(), stored.contains(&unit), "unit {unit}");
        let Some(place) = place else { continue };
        assert!(places.insert(place), "place {place} holds two pages");
        let (block, offset, home) = (place / block_units, place % block_units, ftl.home(unit));
        assert!(offset < ftl.filled[block as usize]);
        let plane = &ftl.planes[home.plane as usize];
        let is_data = plane.data[home.of as usize] == block && home.offset == offset;
        assert!(is_data || plane.logs.iter().any(|log| (log.block, log.of) == (block, home.of)));
    }
    for (index, plane) in ftl.planes.iter().enumerate() {
        assert!(plane.logs.len() <= ftl.log_blocks);
        let data = plane.data.iter().copied().filter(|&block| block != NONE);
        let held = data.chain(plane.logs.iter().map(|log| log.block)).chain(plane.free.clone());
        let mut held: Vec<_> = held.collect();
        held.sort_unstable();
        let first = ftl.layout.block(index as u32, 0);
        assert!(held.into_iter().eq(first..first + blocks), "each block of a plane is held once");
        assert!(plane.free.iter().all(|&block| ftl.filled[block as usize] == 0));
    }
    let erases = ftl.erases.iter().map(|&erases| u64::from(erases)).sum::<u64>();
    assert_eq!(erases, ftl.counts.erases);
}

/// The last page of each block that the host's writes programmed since its last erase.
#[derive(Default)]
struct Programmed {
    last: BTreeMap<u32, u32>,
    erases: Vec<u32>,
}

impl Programmed {
    /// Checks the rules of a flash chip for the work of one call: pages of a block are programmed upwards,
    /// and never twice between two erases. Blocks that the call itself erased are checked by the next one.
    fn check(&mut self, ftl: &LogBlockFtl, work: &[Work]) {
        let erases = ftl.erases.clone();
        let before = std::mem::replace(&mut self.erases, erases);
        let is_erased = |block: u32| {
            before.get(block as usize).is_none_or(|&count| count != ftl.erases[block as usize])
        };
        for work in work {
            let WorkKind::Program { flash_page, units } = work.kind else { continue };
            assert!((1..=ftl.layout.page_units).contains(&units));
            let pages = ftl.layout.block_units / ftl.layout.page_units;
            let (block, page) = (flash_page as u32 / pages, flash_page as u32 % pages);
            assert_eq!(block / ftl.layout.blocks, work.plane);
            let last = self.last.insert(block, page);
            assert!(is_erased(block) || last.is_none_or(|last| last < page));
        }
        self.last.retain(|&block, _| !is_erased(block));
    }
}

#[test]
fn writing_in_order_over_a_full_device_costs_one_switch_for_each_block() {
    let spec = small(16);
    let mut ftl = layer(&spec, Fill::Sequential);
    let blocks = spec.page_count() as u32 / 16;
    let merges = write(&mut ftl, (0..3).flat_map(|_| 0..blocks * 16));
    assert_eq!(merges, vec![Clean { erases: 1, ..Clean::default() }; 3 * blocks as usize]);
    let counts = ftl.counts();
    assert_eq!(counts.switch_merges, 3 * u64::from(blocks));
    assert_eq!((counts.partial_merges, counts.full_merges, counts.moved), (0, 0, 0));
    assert_eq!(counts.programs, 3 * spec.page_count());
}

#[test]
fn a_first_write_in_order_goes_to_data_blocks_and_merges_nothing() {
    let spec = small(16);
    let mut ftl = layer(&spec, Fill::Empty);
    assert_eq!(write(&mut ftl, 0..spec.page_count() as u32), []);
    assert_eq!((ftl.counts().erases, ftl.counts().programs), (0, spec.page_count()));
}

#[test]
fn small_writes_here_and_there_cost_a_full_merge_each_once_the_log_blocks_are_out() {
    let spec = small(16);
    let mut ftl = layer(&spec, Fill::Sequential);
    let blocks = spec.page_count() as u32 / 16;
    assert!(blocks > LOGS);
    // Each write goes to another logical block than the previous ones, to an offset other than 0.
    let count = 10 * blocks;
    let merges = write(&mut ftl, (0..count).map(|n| n % blocks * 16 + 1 + n % 15));
    let full = Clean { reads: 16, programs: 16, units: 16, erases: 2, for_wear: false };
    assert_eq!(merges, vec![full; (count - LOGS) as usize]);
    let merges = u64::from(count - LOGS);
    let counts = ftl.counts();
    assert_eq!((counts.full_merges, counts.cleans, counts.erases), (merges, merges, 2 * merges));
    assert_eq!(counts.programs, u64::from(count) + 16 * merges);
}

#[test]
fn a_log_block_that_begins_in_order_is_filled_up() {
    let mut ftl = layer(&small(16), Fill::Sequential);
    // Five pages in order, then two other logical blocks want the two log blocks.
    let merges = write(&mut ftl, (0..5).chain([17, 33]));
    assert_eq!(merges, [Clean { reads: 11, programs: 11, units: 11, erases: 1, for_wear: false }]);
    assert_eq!(ftl.counts().partial_merges, 1);
}

#[test]
fn a_page_that_is_written_again_and_again_costs_a_merge_for_each_full_log_block() {
    let mut ftl = layer(&small(16), Fill::Sequential);
    let merges = write(&mut ftl, (0..16 * 5 + 1).map(|_| 3));
    let full = Clean { reads: 16, programs: 16, units: 16, erases: 2, for_wear: false };
    assert_eq!(merges, [full; 5]);
}

#[test]
fn discarded_pages_are_not_copied() {
    let mut ftl = layer(&small(16), Fill::Sequential);
    for unit in 4..16 {
        ftl.discard(unit, &mut Vec::new());
    }
    let merges = write(&mut ftl, [2, 17, 33]);
    assert_eq!(merges, [Clean { reads: 4, programs: 4, units: 4, erases: 2, for_wear: false }]);
    // The places after the copied pages of the new data block can be written at once.
    assert_eq!(write(&mut ftl, 4..16), []);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write { unit: u32, pages: u32, is_padded: bool },
    Discard { unit: u32, pages: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (any::<u32>(), 1..40_u32, any::<bool>())
            .prop_map(|(unit, pages, is_padded)| Step::Write { unit, pages, is_padded }),
        8 => (any::<u32>(), any::<bool>())
            .prop_map(|(unit, is_padded)| Step::Write { unit, pages: 1, is_padded }),
        1 => (any::<u32>(), 1..40_u32).prop_map(|(unit, pages)| Step::Discard { unit, pages }),
    ];
    proptest::collection::vec(step, 1..150)
}

fn geometries() -> impl Strategy<Value = Spec> {
    let tree = (1..3_u32, 1..3_u32, 1..3_u32);
    (tree, 1..4_u32, 1..6_u32, 1..9_u32, 1..3_u32, 0..3_u32, 0..3_usize).prop_map(
        |((channels, dies, planes), log_blocks, host, pages, page_units, chunk, domain)| {
            let blocks = host + log_blocks + 2;
            let page_bytes = page_units * 4096;
            let flash = Flash { channels, packages: 1, dies, planes, blocks, pages, page_bytes };
            let mut spec = spec(flash, log_blocks, 4096 << chunk);
            spec.ftl.domain = [Level::Channel, Level::Die, Level::Plane][domain];
            spec
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_page_is_where_it_was_written_last(
        spec in geometries(),
        full in any::<bool>(),
        steps in steps(),
    ) {
        prop_assume!(spec.check().is_ok());
        let mut ftl = layer(&spec, if full { Fill::Sequential } else { Fill::Empty });
        let units = ftl.layout.units as u32;
        let mut stored: HashSet<_> = if full { (0..units).collect() } else { HashSet::new() };
        let (mut programmed, mut programs, mut moved) = (Programmed::default(), 0, 0);
        programmed.check(&ftl, &[]);
        for step in steps {
            let mut work = Vec::new();
            match step {
                Step::Write { unit, pages, is_padded } => {
                    for unit in (0..pages).map(|index| unit.wrapping_add(index) % units) {
                        let others = ftl.find((unit + 1) % units);
                        let cleans = ftl.counts.cleans;
                        let from = work.len();
                        ftl.write(unit, &mut work);
                        stored.insert(unit);
                        // Only a merge moves pages that are not written.
                        let stays = cleans < ftl.counts.cleans || units == 1;
                        assert!(stays || ftl.find((unit + 1) % units) == others);
                        programmed.check(&ftl, &work[from..]);
                    }
                    if is_padded {
                        let from = work.len();
                        ftl.pad(unit % units, &mut work);
                        programmed.check(&ftl, &work[from..]);
                        assert!(ftl.planes.iter().all(|plane| plane.begun == (NONE, 0)));
                    }
                }
                Step::Discard { unit, pages } => {
                    for unit in (0..pages).map(|index| unit.wrapping_add(index) % units) {
                        ftl.discard(unit, &mut work);
                        stored.remove(&unit);
                    }
                }
            }
            for work in work {
                match work.kind {
                    WorkKind::Program { .. } => programs += 1,
                    WorkKind::Clean(clean) => {
                        programs += u64::from(clean.programs);
                        moved += u64::from(clean.units);
                        assert!((1..=2).contains(&clean.erases));
                        assert!(clean.units <= ftl.layout.block_units);
                    }
                    WorkKind::Erase => panic!("nobody asked for one"),
                }
            }
            check(&ftl, &stored);
        }
        let counts = ftl.counts();
        assert_eq!((counts.programs, counts.moved), (programs, moved));
        let merges = counts.switch_merges + counts.partial_merges + counts.full_merges;
        assert_eq!(merges, counts.cleans);
        assert_eq!(counts.erases, merges + counts.full_merges);
    }
}
