//! The probe finds the geometry of simulated devices, whose geometry is known.
//!
//! `NANDEX_GEOMETRIES` is the number of random devices that are probed with and without noise, and
//! `NANDEX_GEOMETRIES_FROM` the first seed; `make probe` takes a thousand of each.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cache;
mod devices;
mod noise;

use cache::Cached;
use devices::{Truth, geometry, plain};
use nandex_device::probe::{Findings, Mapping, Probe, ProbeOptions, REGION_PAGES_MIN, Writes};
use nandex_device::{Device, Error, PageBuf, PageId};
use nandex_sim::preset::Preset;
use nandex_sim::spec::{self, Flash, Level};
use nandex_sim::{Fill, SimDevice, Spec, Ssd};
use noise::noisy;

/// The pages of 128 MiB, half of the command's default.
const REGION_PAGES: u64 = 32768;

/// Returns the seeds of the random devices.
fn geometries() -> std::ops::Range<u64> {
    let number = |name, otherwise| {
        std::env::var(name).map_or(otherwise, |count: String| count.parse::<u64>().unwrap())
    };
    let first = number("NANDEX_GEOMETRIES_FROM", 0);
    first..first + number("NANDEX_GEOMETRIES", 16)
}

fn probe(device: &dyn Device, seed: u64) -> Findings {
    let options = ProbeOptions { writes: Writes::Allowed, seed, ..ProbeOptions::default() };
    Probe::new(options).run(device, PageId(0)..PageId(REGION_PAGES)).unwrap()
}

fn simulated(spec: &Spec, fill: Fill) -> SimDevice {
    let device = SimDevice::with_model(Box::new(Ssd::new(spec.clone(), fill).unwrap()));
    device.grow(REGION_PAGES).unwrap();
    device
}

/// Returns the errors in the findings; none if all are right.
fn mistake(found: &Findings, truth: &Truth) -> Option<String> {
    let answers = (found.chunk_bytes.value, found.channels.value, found.mapping.value);
    let right = (Some(truth.chunk_bytes), Some(truth.channels), Some(truth.mapping));
    (answers != right).then(|| {
        let confidence =
            [found.chunk_bytes.confidence, found.channels.confidence, found.mapping.confidence];
        format!(
            "found {answers:?} {confidence:.3?}, groups {:?}, not {right:?}, on {:?} {:?} {:?}",
            found.groups, truth.spec.flash, truth.spec.timing, truth.spec.parallel
        )
    })
}

#[test]
fn random_geometries_are_found_exactly() {
    let fills = [Fill::Empty, Fill::Sequential];
    let mut drawn = 0;
    let mistakes: Vec<String> = geometries()
        .filter_map(|seed| {
            let truth = geometry(seed);
            drawn += truth.drawn;
            let device = simulated(&truth.spec, fills[seed as usize % 2]);
            mistake(&probe(&device, seed), &truth).map(|why| format!("seed {seed}: {why}"))
        })
        .collect();
    eprintln!("{} of {drawn} drawn devices show their channels", geometries().count());
    assert!(mistakes.is_empty(), "{} wrong:\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn with_ten_percent_of_noise_at_most_one_in_a_hundred_is_not_found() {
    let mistakes: Vec<String> = geometries()
        .filter_map(|seed| {
            let truth = geometry(seed);
            let device = noisy(simulated(&truth.spec, Fill::Empty), seed);
            mistake(&probe(&device, seed), &truth).map(|why| format!("seed {seed}: {why}"))
        })
        .collect();
    let allowed = geometries().count().div_ceil(100);
    eprintln!("{} of {} wrong:\n{}", mistakes.len(), geometries().count(), mistakes.join("\n"));
    assert!(mistakes.len() <= allowed, "{} wrong:\n{}", mistakes.len(), mistakes.join("\n"));
}

/// Returns eight buses with two packages of two planes each, as drives of 2011 had; planes are the domains.
fn eight_buses_of_four_planes() -> Spec {
    let mut spec = plain(Flash {
        channels: 8,
        packages: 2,
        dies: 1,
        planes: 2,
        blocks: 128,
        pages: 64,
        page_bytes: 8192,
    });
    spec.timing.transfer_ps_per_byte = 5_000;
    spec.parallel.unit = Level::Plane;
    spec.ftl.domain = Level::Plane;
    spec.ftl.chunk_bytes = 8192;
    spec
}

#[test]
fn planes_behind_a_shared_bus_count_as_channels_and_the_buses_as_a_group() {
    let found = probe(&simulated(&eight_buses_of_four_planes(), Fill::Empty), 1);
    assert_eq!(found.geometry().channels, Some(32));
    assert_eq!(found.geometry().chunk_bytes, Some(8192));
    assert_eq!(found.groups, [8]);
    assert_eq!(found.geometry().buses, Some(8));
    assert_eq!(found.mapping.value, Some(Mapping::WriteOrder));
    assert!(found.advice().contains("8 buses"), "{}", found.advice());
}

#[test]
fn dies_that_take_turns_inside_a_domain_lengthen_the_period_and_the_domains_are_a_group() {
    // Two dies of two planes on each of ten channels: a channel's pages go 0 0 1 1 over its dies.
    let mut spec = plain(Flash {
        channels: 10,
        packages: 2,
        dies: 1,
        planes: 2,
        blocks: 128,
        pages: 64,
        page_bytes: 4096,
    });
    spec.parallel.unit = Level::Die;
    spec.ftl.domain = Level::Channel;
    spec.ftl.chunk_bytes = 4096;
    let found = probe(&simulated(&spec, Fill::Empty), 1);
    assert_eq!(found.channels.value, Some(40));
    assert!(found.groups.contains(&10), "{:?}", found.groups);
    assert_eq!(found.chunk_bytes.value, Some(4096));
}

#[test]
fn a_single_channel_is_said_not_to_be_seen_and_why() {
    let mut spec = eight_buses_of_four_planes();
    (spec.flash.channels, spec.flash.packages, spec.flash.planes) = (1, 1, 1);
    (spec.flash.blocks, spec.parallel.unit) = (1024, Level::Channel);
    let found = probe(&simulated(&spec, Fill::Empty), 1);
    assert_eq!((found.chunk_bytes.value, found.channels.value), (None, None));
    assert_eq!(found.mapping.value, None);
    assert!(found.channels.reason.contains("single channel"), "{}", found.channels.reason);
    assert_eq!(found.geometry(), nandex_device::Geometry::opaque());
}

#[test]
fn a_device_without_flash_in_it_gives_no_geometry() {
    for seed in 0..8 {
        let device = SimDevice::instant();
        device.grow(REGION_PAGES).unwrap();
        let found = probe(&noisy(device, seed), seed);
        let answers = (found.chunk_bytes.value, found.channels.value, found.mapping.value);
        assert_eq!(answers, (None, None, None), "seed {seed}");
    }
}

#[test]
fn without_leave_to_write_nothing_is_written_and_the_mapping_stays_open() {
    let device = simulated(&eight_buses_of_four_planes(), Fill::Sequential);
    let mut page = PageBuf::zeroed(1);
    page.fill(7);
    device.write(PageId(REGION_PAGES / 2), page).unwrap();
    let operations = device.operations();
    let options = ProbeOptions::default();
    let found = Probe::new(options).run(&device, PageId(0)..PageId(REGION_PAGES)).unwrap();
    assert_eq!((device.operations(), found.writes), (operations, 0));
    assert_eq!(found.chunk_bytes.value, Some(8192));
    assert_eq!(found.channels.value, Some(32));
    assert_eq!(found.mapping.value, None);
    assert!(found.mapping.reason.contains("without writing"), "{}", found.mapping.reason);
    let page = device.read(PageId(REGION_PAGES / 2), PageBuf::zeroed(1)).unwrap();
    assert!(page.iter().all(|byte| *byte == 7));
}

#[test]
fn caches_of_pages_read_and_written_do_not_hide_the_flash() {
    for mapping in [spec::Mapping::Lba, spec::Mapping::WriteOrder] {
        let mut spec = eight_buses_of_four_planes();
        spec.ftl.mapping = mapping;
        spec.host.buffer_bytes = 4 << 20;
        spec.host.buffer_is_safe = true;
        let model = Cached::new(Ssd::new(spec, Fill::Empty).unwrap(), 512);
        let device = SimDevice::with_model(Box::new(model));
        device.grow(REGION_PAGES).unwrap();
        let found = probe(&device, 1);
        assert_eq!(found.chunk_bytes.value, Some(8192));
        assert_eq!(found.channels.value, Some(32));
        let expected = match mapping {
            spec::Mapping::Lba => Mapping::Lba,
            spec::Mapping::WriteOrder => Mapping::WriteOrder,
        };
        assert_eq!(found.mapping.value, Some(expected));
    }
}

#[test]
fn a_region_may_begin_anywhere() {
    let device = simulated(&eight_buses_of_four_planes(), Fill::Sequential);
    let region = PageId(1001)..PageId(REGION_PAGES);
    let found = Probe::default().run(&device, region).unwrap();
    assert_eq!(found.channels.value, Some(32));
    // Page 1001 is the second of its chunk, so the first whole one begins a page later.
    assert_eq!((found.chunk_bytes.value, found.phase_bytes), (Some(8192), 4096));
    // Counted from the start of the device, chunks begin with it.
    assert_eq!(found.geometry().phase_bytes, 0);
}

#[test]
fn the_same_probe_of_the_same_device_finds_the_same_in_every_number() {
    let run = || probe(&simulated(&eight_buses_of_four_planes(), Fill::Empty), 5);
    assert_eq!(run(), run());
}

#[test]
fn a_region_that_is_too_small_or_not_there_is_refused() {
    let device = simulated(&eight_buses_of_four_planes(), Fill::Sequential);
    let small = PageId(0)..PageId(REGION_PAGES_MIN - 1);
    let error = Probe::default().run(&device, small).unwrap_err();
    assert!(matches!(error, Error::Region { pages: 1023, pages_min: 1024 }), "{error}");
    let beyond = PageId(1)..PageId(REGION_PAGES + 1);
    let error = Probe::default().run(&device, beyond).unwrap_err();
    assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
}

#[test]
fn presets_with_channels_are_found_exactly() {
    // Dies on one bus show as a group if the bus is slower than the link and the controller.
    let groups: [(&str, &[u32]); 12] = [
        ("intel-x18m", &[]),
        ("intel-x18m-paper", &[10]),
        ("crucial-m4", &[]),
        ("crucial-m4-paper", &[8]),
        ("mlc-1", &[]),
        ("mlc-1-paper", &[]),
        ("mlc-2", &[]),
        ("mlc-2-paper", &[]),
        ("slc", &[]),
        ("slc-paper", &[]),
        ("pm983", &[8]),
        ("nvme-970pro", &[8]),
    ];
    let mut wrong = Vec::new();
    for (name, groups) in groups {
        let preset = Preset::named(name).unwrap();
        let device = SimDevice::with_model(preset.build(Fill::Empty).unwrap());
        device.grow(REGION_PAGES).unwrap();
        let found = probe(&device, 1);
        let told = preset.geometry();
        let is_right = found.chunk_bytes.value == told.chunk_bytes
            && found.channels.value == told.channels
            && found.groups == groups
            && found.mapping.value == Some(Mapping::WriteOrder)
            && found.geometry().mapping == told.mapping
            && found.geometry().buses.is_none_or(|buses| told.buses == Some(buses));
        if !is_right {
            wrong.push(format!("{name}: {told:?}, found {:?} {:?}", found.channels, found.groups));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn presets_that_take_one_request_at_a_time_are_said_not_to_be_seen() {
    for name in ["transcend-ts32", "transcend-ts32-paper"] {
        let device = Preset::named(name).unwrap().build(Fill::Empty).unwrap();
        let device = SimDevice::with_model(device);
        device.grow(REGION_PAGES).unwrap();
        let found = probe(&device, 1);
        assert_eq!((found.chunk_bytes.value, found.channels.value), (None, None), "{name}");
        assert!(found.channels.reason.contains("single channel"), "{}", found.channels.reason);
    }
}
