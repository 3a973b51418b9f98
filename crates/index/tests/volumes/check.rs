//! The offline check finds nothing in an undamaged volume, and each damage where it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandex::bufferhash::Config;
use nandex::device::{Access, Device, FileDevice, FileOptions, MemoryDevice};
use nandex::raw::bufferhash::filter::FilterShape;
use nandex::raw::device::{Counted, PAGE_BYTES, PageId};
use nandex::raw::store::page::{
    PAGE_HEADER_BYTES, PageKind, PageLabel, RawPage, StructureId, seal,
};
use nandex::raw::store::superblock::Superblock;
use nandex::{
    AnyConfig, AnyTable, Error, Finding, Report, Table, Volume, VolumeOpenOptions, VolumeOptions,
    rhik, slicehash,
};
use nandex_baseline::multilevel;

const KEYS: u64 = 4000;

fn options() -> VolumeOptions {
    VolumeOptions { log_bytes: 1 << 18, ..VolumeOptions::tiny() }
}

fn check(image: &[u8]) -> Report {
    let device = Arc::new(MemoryDevice::from_image(image.to_vec()));
    nandex::check(device, None, &mut |_| {}).unwrap()
}

/// Returns a volume with a table on flash, an image of each buffer, and a log tail after the images, as after a power
/// cut.
fn image(config: impl Into<AnyConfig>) -> Vec<u8> {
    nandex_baseline::register();
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    fill(AnyTable::create(&volume, "seen", &config.into()).unwrap());
    device.image()
}

/// Returns slices of one part and of three, and with a front.
fn slice_configs() -> [slicehash::Config; 3] {
    let tiny = slicehash::Config::tiny();
    let parts = slicehash::Config { slices: 5, slice_parts: 3, group_slices: 2, ..tiny };
    [tiny, parts, slicehash::Config { front_runs: 8, spare_buffers: 6, ..tiny }]
}

fn fill(table: AnyTable) {
    for key in 0..KEYS {
        table.insert_u64(key, key * 3).unwrap();
        if key == KEYS - 100 {
            table.flush().unwrap();
        }
        if key == KEYS - 50 {
            // The block after this one proves that this one was durable.
            table.sync().unwrap();
        }
    }
    table.sync().unwrap();
    // As after a power cut: nothing more is written.
    std::mem::forget(table);
}

fn flipped(image: &[u8], page: usize, byte: usize) -> Vec<u8> {
    let mut image = image.to_vec();
    image[page * PAGE_BYTES + byte] ^= 0x10;
    image
}

fn everything(image: Vec<u8>) -> Result<BTreeMap<u64, u64>, Error> {
    let volume =
        Volume::open(Arc::new(MemoryDevice::from_image(image)), VolumeOpenOptions::default())?;
    let table = AnyTable::open(&volume, "seen")?;
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    table.iter().map(|pair| pair.map(|(key, value)| (number(&key), number(&value)))).collect()
}

fn superblock(image: &[u8]) -> Superblock {
    let (first, rest) = image.split_at(PAGE_BYTES);
    Superblock::choose([first, &rest[..PAGE_BYTES]]).unwrap()
}

#[test]
fn a_whole_volume_has_no_findings_after_a_crash_and_after_a_close() {
    let bloom = FilterShape::bloom(470, 12.0, 1).unwrap();
    let rings = [Config::tiny(), Config { filter: bloom, ..Config::tiny() }];
    let slices = slice_configs().map(AnyConfig::from);
    let records = [rhik::Config::tiny().into(), multilevel::Config::tiny().into()];
    for config in rings.map(AnyConfig::from).into_iter().chain(slices).chain(records) {
        let crashed = image(config);
        let report = check(&crashed);
        assert!(report.ok(), "{:#?}", report.findings);
        assert!(report.log_entries >= 99, "{report:?}");
        assert_eq!(report.structures.len(), 1);
        assert!(report.structures[0].entries >= KEYS - 100, "{report:?}");
        let device = MemoryDevice::from_image(crashed);
        let volume = Volume::open(Arc::new(device.clone()), VolumeOpenOptions::default()).unwrap();
        let table = AnyTable::open(&volume, "seen").unwrap();
        (0..KEYS).for_each(|key| assert_eq!(table.get_u64(key).unwrap(), Some(key * 3)));
        table.close().unwrap();
        drop(volume);
        let report = check(&device.image());
        assert!(report.ok(), "{:#?}", report.findings);
        assert!(report.structures[0].entries >= KEYS, "{report:?}");
    }
}

/// Damages each page in turn; returns the kinds of those that are needed.
fn damage_each_page(image: &[u8]) -> Vec<String> {
    let all = everything(image.to_vec()).unwrap();
    assert_eq!(all.len() as u64, KEYS);
    let log = superblock(image).log;
    let mut kinds = BTreeMap::new();
    for page in 0..image.len() / PAGE_BYTES {
        let number = PageId(page as u64);
        let damaged = flipped(image, page, 1000);
        let findings = check(&damaged).findings;
        assert!(findings.len() <= 1, "page {page}: {findings:#?}");
        let Some(finding) = findings.first() else {
            // The page is not needed: everything is present nevertheless.
            let of_log = log.newest.pages;
            if number < of_log.start || number >= of_log.end() {
                assert_eq!(everything(damaged).unwrap(), all, "page {page}");
            }
            continue;
        };
        // A block of the log has up to two pages, and is named by its first.
        let is_of_log = finding.what == "log" && finding.page.plus(1) == number;
        assert!(finding.page == number || is_of_log, "{finding}");
        let (kind, of) = finding.what.split_once(" of ").unwrap_or((&finding.what, ""));
        assert_eq!(finding.structure.is_some(), !of.is_empty(), "{finding}");
        *kinds.entry(kind.to_owned()).or_insert(0) += 1;
    }
    assert_eq!(kinds["superblock"], 3, "two places and a third copy");
    kinds.into_keys().collect()
}

#[test]
fn a_damaged_page_of_each_kind_is_found_and_named_and_the_others_are_not_needed() {
    let rings = ["checkpoint", "entry page", "filter page", "log", "snapshot page", "superblock"];
    assert_eq!(damage_each_page(&image(Config::tiny())), rings);
    let slices = ["checkpoint", "log", "slice page", "snapshot page", "superblock"];
    assert_eq!(damage_each_page(&image(slice_configs()[1])), slices);
    let records = ["checkpoint", "log", "record table", "snapshot page", "superblock"];
    assert_eq!(damage_each_page(&image(rhik::Config::tiny())), records);
    let levels = ["checkpoint", "level page", "log", "snapshot page", "superblock"];
    assert_eq!(damage_each_page(&image(multilevel::Config::tiny())), levels);
}

/// Returns the pages of this kind.
fn pages_of(image: &[u8], kind: PageKind) -> impl Iterator<Item = usize> {
    let pages = image.chunks(PAGE_BYTES).enumerate();
    let is_kind = move |(number, bytes): &(usize, &[u8])| {
        let page = RawPage::new(bytes).check_sum(PageId(*number as u64));
        page.is_ok_and(|page| page.kind_number() == kind as u16)
    };
    pages.filter(is_kind).map(|(number, _)| number)
}

/// Returns the findings of a check if the contents of a page are wrong but its checksum is right.
fn resealed(image: &[u8], kind: PageKind, page: usize, change: impl Fn(&mut [u8])) -> Vec<Finding> {
    let mut image = image.to_vec();
    let bytes = &mut image[page * PAGE_BYTES..(page + 1) * PAGE_BYTES];
    let (structure, page) = (StructureId(1), PageId(page as u64));
    let generation = RawPage::new(bytes).check_sum(page).unwrap().generation();
    change(&mut bytes[PAGE_HEADER_BYTES..]);
    seal(bytes, PageLabel { kind, structure, generation, page });
    check(&image).findings
}

#[test]
fn an_entry_that_no_lookup_would_find_is_found_by_the_check() {
    let image = image(Config::tiny());
    // Its first slot is used.
    let is_taken = |page: &usize| image[page * PAGE_BYTES + PAGE_HEADER_BYTES] & 3 == 1;
    let page = pages_of(&image, PageKind::Data).find(is_taken).unwrap();
    let slots_at = PAGE_BYTES - PAGE_HEADER_BYTES - 62 * 4 * 16;
    let moved = resealed(&image, PageKind::Data, page, |body| body[slots_at] ^= 1);
    assert_eq!(moved.len(), 1, "{moved:#?}");
    assert!(moved[0].message.contains("its key belongs to"), "{}", moved[0]);
    assert_eq!(moved[0].page, PageId(page as u64));
    let lost = resealed(&image, PageKind::Data, page, |body| body[0] &= !3);
    assert!(lost[0].message.contains("entries, found"), "{}", lost[0]);
    let unknown = resealed(&image, PageKind::Data, page, |body| body[0] |= 3);
    assert!(unknown[0].message.contains("state is 3"), "{}", unknown[0]);
}

#[test]
fn a_filter_that_misses_its_entries_is_found() {
    let image = image(Config::tiny());
    let page = pages_of(&image, PageKind::Filter).next().unwrap();
    let findings = resealed(&image, PageKind::Filter, page, |body| body.fill(0));
    assert!(!findings.is_empty());
    assert!(findings.iter().all(|it| it.message.contains("the filter does not hold")));
}

#[test]
fn a_slice_with_foreign_double_or_missing_entries_is_found() {
    let image = image(slice_configs()[0]);
    let is_current = |page: &usize| !check(&flipped(&image, *page, 1000)).ok();
    let current: Vec<_> = pages_of(&image, PageKind::Slice).filter(is_current).collect();
    let told = |page: usize, change: &dyn Fn(&mut [u8])| {
        let findings = resealed(&image, PageKind::Slice, page, change);
        assert_eq!(findings[0].page, PageId(page as u64), "{}", findings[0]);
        (findings.len(), findings[0].message.clone())
    };
    let (page, next) = (current[3], current[4]);
    let foreign = image[next * PAGE_BYTES + PAGE_HEADER_BYTES + 8..][..8].to_vec();
    let (count, text) = told(page, &|body| body[8..16].copy_from_slice(&foreign));
    assert!(count == 1 && text.starts_with("entry 0: its key belongs to slice 4, not 3"), "{text}");
    let (count, text) = told(page, &|body| body.copy_within(8..16, 16));
    assert!(count == 1 && text == "entry 1: its key is there twice", "{text}");
    let (_, text) = told(page, &|body| body[1] = 255);
    assert!(text.contains("more than 253 entries"), "{text}");
    let (_, text) = told(current[0], &|body| body[0] -= 1);
    assert!(text.contains("entries, found"), "{text}");
}

#[test]
fn a_record_table_with_foreign_double_or_missing_entries_is_found() {
    let config = rhik::Config { partitions: 1, ..rhik::Config::tiny() };
    let image = image(config);
    let (layout, slots) = (config.record_layout(), config.record_layout().slots());
    let is_current = |page: &usize| !check(&flipped(&image, *page, 1000)).ok();
    let current: Vec<_> = pages_of(&image, PageKind::Records).filter(is_current).collect();
    let body = |page: usize| &image[page * PAGE_BYTES + PAGE_HEADER_BYTES..][..4064];
    let used = |page: usize| layout.used(body(page)).next().unwrap();
    let told = |change: &dyn Fn(&mut [u8])| {
        let findings = resealed(&image, PageKind::Records, current[0], change);
        assert_eq!(findings[0].page, PageId(current[0] as u64), "{}", findings[0]);
        findings[0].message.clone()
    };
    let (slot, key_at) = (used(current[0]), |slot: usize| 8 + slots + 8 * slot);
    let foreign = layout.key(body(current[1]), used(current[1])).to_vec();
    let text = told(&|body| body[key_at(slot)..key_at(slot + 1)].copy_from_slice(&foreign));
    assert_eq!(text, format!("slot {slot}: its key belongs to another table"));
    let text = told(&|body| body[8 + slot] ^= 3);
    assert!(text.contains("its signature is"), "{text}");
    let text = told(&|body| {
        let (from, to) = (slot, (slot + slots / 2) % slots);
        body.swap(8 + from, 8 + to);
        let key = body[key_at(from)..key_at(from + 1)].to_vec();
        body.copy_within(key_at(to)..key_at(to + 1), key_at(from));
        body[key_at(to)..key_at(to + 1)].copy_from_slice(&key);
    });
    assert!(text.contains("too far away"), "{text}");
    let text = told(&|body| body[0] ^= 1);
    assert!(text.contains("its head says"), "{text}");
    let text = told(&|body| body[8 + slot] = 0);
    assert!(text.contains("its head says"), "{text}");
}

#[test]
fn a_foreign_file_is_an_error_and_a_truncated_volume_a_finding() {
    let foreign = MemoryDevice::from_image(vec![7; 5 * PAGE_BYTES]);
    let error = nandex::check(Arc::new(foreign), None, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("not a nandex volume"), "{error}");
    let image = image(Config::tiny());
    let pages = image.len() / PAGE_BYTES;
    let report = check(&image[..(pages - 3) * PAGE_BYTES]);
    let finding = &report.findings[0];
    assert_eq!((&finding.what[..], finding.page), ("volume", PageId(pages as u64 - 3)));
    assert!(finding.message.contains("truncated"), "{finding}");
    let report = check(&image[..2 * PAGE_BYTES]);
    assert_eq!(report.findings[0].page, PageId(2), "{report:?}");
}

#[test]
fn a_closed_volume_is_read_once_however_many_structures_its_log_serves() {
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    for (name, config) in ["one", "two", "three"].into_iter().zip(slice_configs()) {
        AnyTable::create(&volume, name, &config.into()).unwrap().close().unwrap();
    }
    let report = check(&device.image());
    assert_eq!(report.structures.len(), 3);
    assert!(report.pages_read <= device.page_count(), "{report:?}");
}

#[test]
fn both_superblocks_gone_is_a_finding_for_each() {
    let image = image(Config::tiny());
    let report = check(&flipped(&flipped(&image, 0, 50), 1, 50));
    let pages: Vec<_> = report.findings.iter().map(|finding| finding.page).collect();
    assert_eq!(pages, [PageId(0), PageId(1)]);
    assert!(report.structures.is_empty());
}

#[test]
fn a_check_writes_nothing_and_serves_on_a_file_opened_for_reading() {
    let image = image(Config::tiny());
    let counted = Arc::new(Counted::new(MemoryDevice::from_image(image.clone())));
    let mut told = Vec::new();
    let report = nandex::check(Arc::clone(&counted) as Arc<dyn Device>, None, &mut |progress| {
        assert!(progress.pages_done <= progress.pages);
        told.push((progress.structure.to_owned(), progress.pages_done));
    });
    assert!(report.unwrap().ok());
    assert!(told.len() > 2 && told.is_sorted() && told[0].0 == "seen");
    let counts = counted.snapshot();
    assert_eq!((counts.writes, counts.syncs, counts.grows, counts.discards), (0, 0, 0, 0));
    assert_eq!(counts.pages_read, check(&image).pages_read);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    std::fs::write(&path, &image).unwrap();
    let options = FileOptions { access: Access::ReadOnly, ..FileOptions::default() };
    let device = FileDevice::open(&path, &options).unwrap();
    assert!(nandex::check(Arc::new(device), None, &mut |_| {}).unwrap().ok());
    assert_eq!(std::fs::read(&path).unwrap(), image);
}
