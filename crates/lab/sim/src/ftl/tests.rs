//! Tests of the page-mapped layer against the properties of any layer.

use std::collections::HashMap;

use super::{Ftl as _, PageFtl, Place, WorkKind};
use crate::spec::{Flash, Ftl, Host, Level, Mapping, Parallel, Spec, Timing, Victim};
use crate::workload::SplitMix64;

fn random_spec(rng: &mut SplitMix64) -> Spec {
    let mut pick = |all: &[u32]| all[rng.below(all.len() as u64) as usize];
    let levels = [Level::Channel, Level::Package, Level::Die, Level::Plane];
    let plain = Spec::plain();
    Spec {
        name: "random".into(),
        host: Host { depth: 1, duplex: true, ..plain.host },
        flash: Flash {
            channels: pick(&[1, 2, 5]),
            packages: pick(&[1, 2]),
            dies: pick(&[1, 3]),
            planes: pick(&[1, 2]),
            blocks: pick(&[16, 33]),
            pages: pick(&[2, 8, 17]),
            page_bytes: pick(&[4096, 8192, 16_384]),
        },
        timing: Timing {
            read_ns: 1,
            program_ns: 1,
            erase_ns: 1,
            transfer_ps_per_byte: 0,
            ..plain.timing
        },
        parallel: Parallel { unit: Level::Plane, ..plain.parallel },
        ftl: Ftl {
            mapping: [Mapping::WriteOrder, Mapping::Lba][pick(&[0, 1]) as usize],
            domain: levels[pick(&[0, 1, 2, 3]) as usize],
            chunk_bytes: pick(&[4096, 8192, 32_768]),
            spare_permille: 300,
            clean_at_permille: pick(&[0, 70]),
            victim: [Victim::Greedy, Victim::Fifo, Victim::WearAware][pick(&[0, 1, 2]) as usize],
            ..plain.ftl
        },
        erases_max: pick(&[20, 10_000]),
        ..plain
    }
}

fn layers(spec: &Spec) -> [PageFtl; 3] {
    [PageFtl::empty(spec), PageFtl::full(spec), PageFtl::steady(spec, 7)]
}

/// Checks, over the whole device, that each page has one place and that the place has this page.
fn assert_one_to_one(ftl: &PageFtl, spec: &Spec, is_written: impl Fn(u32) -> bool) {
    let mut on_page: HashMap<Place, u32> = HashMap::new();
    for unit in 0..spec.page_count() as u32 {
        let place = ftl.place(unit);
        assert_eq!(place.is_some(), is_written(unit), "page {unit}");
        if let Some(place) = place {
            *on_page.entry(place).or_default() += 1;
            assert_eq!(ftl.owner_of(unit), Some(unit), "the place of page {unit} holds it");
        }
    }
    assert!(on_page.values().all(|&count| count <= spec.flash.page_units()));
    let mut valid = vec![0; (spec.flash.plane_count() * spec.flash.blocks) as usize];
    for (place, count) in on_page {
        valid[(place.flash_page / u64::from(spec.flash.pages)) as usize] += count;
    }
    for (block, &count) in (0..).zip(&valid) {
        assert_eq!(ftl.valid(block), count, "valid pages of block {block}");
    }
}

#[test]
fn every_page_has_one_place_and_every_place_one_page_whatever_happens() {
    let mut rng = SplitMix64::new(1);
    for _ in 0..40 {
        let spec = random_spec(&mut rng);
        if spec.check().is_err() {
            continue;
        }
        let pages = spec.page_count() as u32;
        for (which, mut ftl) in layers(&spec).into_iter().enumerate() {
            let mut written = vec![which > 0; pages as usize];
            assert_one_to_one(&ftl, &spec, |unit| written[unit as usize]);
            let mut work = Vec::new();
            for _ in 0..3 * pages {
                let unit = rng.below(u64::from(pages)) as u32;
                if rng.below(10) == 0 {
                    ftl.discard(unit, &mut work);
                } else {
                    ftl.write(unit, &mut work);
                }
                written[unit as usize] = ftl.place(unit).is_some();
                if rng.below(50) == 0 {
                    ftl.pad_all(&mut work);
                }
            }
            assert_one_to_one(&ftl, &spec, |unit| written[unit as usize]);
        }
    }
}

/// Flash can only be programmed page by page from a block's first to its last, once per erase.
#[test]
fn pages_of_a_block_are_programmed_in_order_and_once_per_erase() {
    let mut rng = SplitMix64::new(2);
    for _ in 0..40 {
        let spec = random_spec(&mut rng);
        if spec.check().is_err() {
            continue;
        }
        let pages = spec.page_count();
        for mut ftl in layers(&spec) {
            let mut last: HashMap<u64, (u32, u64)> = HashMap::new();
            let mut work = Vec::new();
            for _ in 0..2 * pages {
                ftl.write(rng.below(pages) as u32, &mut work);
                if rng.below(30) == 0 {
                    ftl.pad_all(&mut work);
                }
                for work in work.drain(..) {
                    let WorkKind::Program { flash_page, .. } = work.kind else { continue };
                    let block = flash_page / u64::from(spec.flash.pages);
                    let erases = ftl.erases()[block as usize];
                    if let Some((then, before)) = last.insert(block, (erases, flash_page)) {
                        assert!(erases > then || flash_page > before, "page {flash_page}");
                    }
                }
            }
        }
    }
}

#[test]
fn written_in_order_chunks_take_the_domains_in_turn() {
    let mut rng = SplitMix64::new(3);
    let mut spec = random_spec(&mut rng);
    (spec.flash.channels, spec.flash.dies, spec.ftl.domain) = (5, 3, Level::Plane);
    (spec.flash.page_bytes, spec.ftl.chunk_bytes) = (8192, 8192);
    spec.ftl.mapping = Mapping::WriteOrder;
    let planes = spec.flash.plane_count();
    let per_channel = planes / 5;
    let (mut ftl, mut work) = (PageFtl::empty(&spec), Vec::new());
    let mut units: Vec<u32> = (0..4 * planes).collect();
    units.sort_by_cached_key(|_| rng.next_u64());
    for (count, pair) in (0..).zip(units.chunks(2)) {
        pair.iter().for_each(|&unit| ftl.write(unit, &mut work));
        for &unit in pair {
            let plane = ftl.place(unit).map(|place| place.plane);
            assert_eq!(plane.map(|plane| plane / per_channel), Some(count % 5), "chunk {count}");
        }
    }
}
