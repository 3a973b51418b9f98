//! An element of any small shape under any order of reads, writes and discards.

use proptest::prelude::*;

use super::{Element, NONE, Step};
use crate::{Cleaning, Shape};
use nandex_sim::workload::SplitMix64;

#[derive(Clone, Copy, Debug)]
enum Op {
    Read(u32),
    Write(u32),
    /// Writes one of the first few pages, so that planes and wear become uneven.
    WriteHot(u32),
    Discard(u32),
}

fn shapes() -> impl Strategy<Value = Shape> {
    let cleaning = prop_oneof![Just(Cleaning::Greedy), Just(Cleaning::WearAware)];
    (1u32..5, 1u32..9, 2u32..10, 1u32..3, 2u32..5, 1u32..40, cleaning).prop_map(
        |(planes, host, pages, clean_at_blocks, more, erases_max, cleaning)| {
            let spare_blocks = clean_at_blocks + more;
            let blocks = host + spare_blocks;
            let one = Shape { elements: 1, planes, blocks, pages, ..Shape::SUITE };
            Shape { spare_blocks, clean_at_blocks, erases_max, cleaning, ..one }
        },
    )
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        1 => any::<u32>().prop_map(Op::Read),
        4 => any::<u32>().prop_map(Op::Write),
        4 => (0u32..4).prop_map(Op::WriteHot),
        1 => any::<u32>().prop_map(Op::Discard),
    ];
    prop::collection::vec(op, 1..1500)
}

/// Serves everything that waits, and returns the number of pages.
fn serve(element: &mut Element, now_ps: &mut u64) -> u64 {
    let mut served = 0;
    while let Some(ends_ps) = element.turn(*now_ps) {
        assert!(ends_ps > *now_ps);
        *now_ps = ends_ps;
        served += u64::from(element.ended().is_some());
    }
    served
}

fn after(shape: &Shape, ops: &[Op]) -> Element {
    shape.check().expect("made to be sound");
    let mut element = Element::new(shape, SplitMix64::new(7));
    let (mut now_ps, mut served, mut asked) = (0, 0, 0);
    let pages = shape.element_pages();
    for &op in ops {
        match op {
            Op::Read(page) => element.push(0, page % pages, true, now_ps),
            Op::Write(page) | Op::WriteHot(page) => {
                element.push(0, page % pages, false, now_ps);
            }
            Op::Discard(page) => {
                element.forget(page % pages);
                continue;
            }
        }
        asked += 1;
        served += serve(&mut element, &mut now_ps);
    }
    assert_eq!((served, element.counts.pages), (asked, asked), "what waits is served");
    assert_eq!(now_ps, element.counts.busy_ps + element.counts.clean_ps);
    element
}

/// Map and owners are each other's inverse, and blocks know how much of them is valid.
fn assert_bijection(element: &Element) {
    let shape = &element.shape;
    let mapped = element.map.iter().enumerate().filter(|(_, page)| **page != NONE);
    let mapped = mapped
        .inspect(|&(logical, &page)| {
            assert_eq!(element.owner[page as usize], logical as u32, "map and owners agree");
        })
        .count();
    assert_eq!(element.owner.iter().filter(|&&owner| owner != NONE).count(), mapped);
    for (block, owners) in element.owner.chunks(shape.pages as usize).enumerate() {
        let valid = owners.iter().filter(|&&owner| owner != NONE).count();
        assert_eq!(element.blocks.valid(block as u32), valid as u32, "block {block}");
        assert_eq!(owners.last(), Some(&NONE), "the summary's page holds nothing");
    }
}

/// Pages of a block are programmed one after the other, once between two erases.
fn assert_order(element: &Element) {
    let shape = &element.shape;
    let used = shape.planes * (shape.blocks - shape.spare_blocks);
    let mut next = vec![0; shape.element_blocks() as usize];
    next[..used as usize].fill(shape.data_pages());
    for &step in &element.steps {
        match step {
            Step::Program(page) => {
                let next = &mut next[(page / shape.pages) as usize];
                assert_eq!((page % shape.pages, *next < shape.data_pages()), (*next, true));
                *next += 1;
            }
            Step::Erase(block) => {
                assert_eq!(next[block as usize], shape.data_pages(), "only full blocks are erased");
                next[block as usize] = 0;
            }
            Step::TakeOver(block) => {
                assert_eq!(next[block as usize], 0, "only an erased block takes pages over");
                next[block as usize] = shape.data_pages();
            }
        }
    }
    for plane in 0..shape.planes {
        let blocks = (plane..shape.element_blocks()).step_by(shape.planes as usize);
        let erased = blocks.filter(|&block| next[block as usize] == 0).count() as u32;
        let begun = element.planes[plane as usize].active.is_multiple_of(shape.pages);
        assert_eq!(element.blocks.free_count(plane) + u32::from(begun), erased, "plane {plane}");
    }
}

fn assert_times(element: &Element) {
    let (counts, times) = (&element.counts, element.shape.times);
    let summary_ps = times.sector_ps + times.program_ps;
    let moves = counts.moved + counts.migrated;
    let moving_ps = moves * (times.read_ps + times.program_ps);
    let sealing_ps = counts.sealed_by_cleaning * summary_ps;
    assert_eq!(counts.clean_ps, counts.cleans * times.erase_ps + moving_ps + sealing_ps);
    let erases: u64 = (0..element.shape.planes)
        .flat_map(|plane| element.blocks.erases(plane))
        .map(u64::from)
        .sum();
    assert_eq!(erases, counts.cleans, "each block cleaned is erased once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_is_asked_map_order_and_times_stay_sound(shape in shapes(), ops in ops()) {
        let element = after(&shape, &ops);
        assert_bijection(&element);
        assert_order(&element);
        assert_times(&element);
    }
}

fn hot() -> Vec<Op> {
    (0..4000).map(|index| Op::WriteHot(index * 7 % 4)).collect()
}

const SMALL: Shape = Shape {
    elements: 1,
    planes: 2,
    blocks: 12,
    pages: 5,
    spare_blocks: 4,
    clean_at_blocks: 2,
    erases_max: 300,
    ..Shape::SUITE
};

/// DiskSim takes the last candidate whatever its wear, so the most worn block may be worn no less.
#[test]
fn wear_aware_cleaning_wears_blocks_that_greedy_cleaning_never_touches() {
    let untouched = |cleaning| {
        let element = after(&Shape { cleaning, ..SMALL }, &hot());
        let erases = (0..2).flat_map(|plane| element.blocks.erases(plane));
        (erases.filter(|&erases| erases == 0).count(), element.counts.migrations)
    };
    let (greedy, none) = untouched(Cleaning::Greedy);
    let (aware, migrations) = untouched(Cleaning::WearAware);
    assert!(none == 0 && migrations > 0);
    assert!(aware < greedy, "{aware} blocks for {greedy}");
}

#[test]
fn blocks_past_their_last_erase_are_used_when_there_are_no_others() {
    let element = after(&Shape { erases_max: 300, ..SMALL }, &hot());
    assert!((0..2).flat_map(|plane| element.blocks.erases(plane)).any(|erases| erases > 3));
}
