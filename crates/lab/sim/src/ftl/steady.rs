//! The distribution of valid pages over blocks after endless random writes.
//!
//! Overwrites hit all pages alike, so a block's valid pages depend on its age, the policy and the spare
//! blocks, and not on the number of planes or blocks. A small plane with the same shares is run until it is
//! steady, and its blocks' valid counts, by age, are copied to the planes of the device. That costs the same
//! for any device, and the rest is one number per block.

use super::initial::{Initial, Steady};
use super::{Layout, PageFtl};
use crate::ftl::Ftl as _;
use crate::spec::{Flash, Level, Spec};
use crate::workload::SplitMix64;

/// The maximum blocks of the small plane.
const BLOCKS_MAX: u32 = 512;
/// The number of times that the small plane is overwritten before it counts as steady.
const OVERWRITES: u64 = 4;

/// Returns the content of a device with this description after endless random writes.
pub(super) fn steady(spec: &Spec, layout: &Layout, seed: u64) -> Initial {
    let ages = valid_by_age(spec);
    // Cleaning in the background stops at twice the free blocks at which it must begin, limited by the spare
    // ones.
    let least = Initial::slots(layout).div_ceil(layout.block_units);
    let free = spec.clean_at_blocks() * if spec.ftl.background { 2 } else { 1 } + 1;
    let sealed = (spec.flash.blocks - free).max(least) as usize;
    let share = |block: usize| ages[block * ages.len() / sealed];
    let mut valid: Vec<u32> = (0..sealed).map(share).collect();
    settle(&mut valid, Initial::slots(layout), layout.block_units);
    Initial::Steady(Steady::new(layout, spec.ftl.mapping, &valid, seed))
}

/// Returns the valid pages of the sealed blocks of a steady plane, oldest block first.
fn valid_by_age(spec: &Spec) -> Vec<u32> {
    let flash = Flash {
        channels: 1,
        packages: 1,
        dies: 1,
        planes: 1,
        blocks: spec.flash.blocks.min(BLOCKS_MAX),
        ..spec.flash
    };
    let ftl = crate::spec::Ftl { domain: Level::Plane, background: false, ..spec.ftl };
    let mut small = Spec { flash, ftl, ..spec.clone() };
    if small.check().is_err() {
        // A share of the spare blocks rounds to too few.
        small.flash.blocks = spec.flash.blocks;
    }
    let mut plane = PageFtl::full(&small);
    let pages = small.page_count();
    let (mut rng, mut work) = (SplitMix64::new(1), Vec::new());
    for _ in 0..OVERWRITES * pages {
        plane.write(rng.below(pages) as u32, &mut work);
        work.clear();
    }
    plane.valid_by_age(0)
}

/// Changes counts minimally until their sum is `sum`.
fn settle(valid: &mut [u32], sum: u32, block_units: u32) {
    let mut present: u32 = valid.iter().sum();
    while present != sum {
        for count in valid.iter_mut() {
            if present < sum && *count < block_units {
                (*count, present) = (*count + 1, present + 1);
            } else if present > sum && *count > 0 {
                (*count, present) = (*count - 1, present - 1);
            }
        }
    }
}
