//! Damaged, foreign, missing, too small or used volumes of a table: each is refused with a message of its
//! own, and the rest continues to work.

use std::path::Path;
use std::sync::Arc;

use nandex::bufferhash::{Config, Policy};
use nandex::device::{Access, Create, FileDevice, FileOptions, MemoryDevice};
use nandex::raw::device::{PAGE_BYTES, PageId};
use nandex::raw::store::page::{PAGE_HEADER_BYTES, PageKind, PageLabel, StructureId, seal};
use nandex::{AnyTable, BufferHash, Table, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_trial::Contract;

use super::support::{DURABILITIES, SLICES, Setup};
use crate::bad_input::refusal;
use crate::processes::again;

const KEYS: u64 = 5000;

fn setup() -> Setup {
    Setup::new(Policy::Fifo, DURABILITIES[1])
}

/// Returns the setup as a SliceHash, with space for all keys.
fn sliced() -> Setup {
    Setup { super_tables: 8, ..setup() }.sliced(SLICES[0])
}

/// Returns the bytes of a volume with a table of [`KEYS`] keys, closed.
fn image() -> Vec<u8> {
    image_of(setup())
}

fn image_of(setup: Setup) -> Vec<u8> {
    let device = MemoryDevice::new();
    let table = setup.create_on(Arc::new(device.clone())).unwrap();
    for key in 0..KEYS {
        table.insert_u64(key, key).unwrap();
    }
    table.close().unwrap();
    device.image()
}

fn open(image: Vec<u8>) -> nandex::Result<AnyTable> {
    let device = Arc::new(MemoryDevice::from_image(image));
    AnyTable::open(&Volume::open(device, setup().open_options())?, "t")
}

/// Returns the pages of this kind, according to their headers.
fn pages_of(image: &[u8], kind: PageKind) -> Vec<usize> {
    let is_kind = |page: &[u8]| page[4..8] == *b"ndx1" && page[8] == kind as u8;
    let pages = image.chunks(PAGE_BYTES).enumerate();
    pages.filter(|(_, page)| is_kind(page)).map(|(index, _)| index).collect()
}

fn flip(image: &mut [u8], page: usize) {
    image[page * PAGE_BYTES + 1000] ^= 4;
}

/// Returns the image in a format of the future.
fn newer(mut image: Vec<u8>) -> Vec<u8> {
    for place in 0..2 {
        let page = &mut image[place * PAGE_BYTES..(place + 1) * PAGE_BYTES];
        page[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + 2].copy_from_slice(&7u16.to_le_bytes());
        let generation = u64::from_le_bytes(page[16..24].try_into().unwrap());
        let (kind, structure) = (PageKind::Superblock, StructureId::VOLUME);
        seal(page, PageLabel { kind, structure, generation, page: PageId(place as u64) });
    }
    image
}

#[test]
fn what_is_no_whole_volume_of_this_version_is_refused_and_named() {
    let whole = image();
    let pages = whole.len() / PAGE_BYTES;
    let end = |pages: usize| whole[..pages * PAGE_BYTES].to_vec();
    let needs = format!("needs {pages} pages of 4096 bytes, the device has {}", pages - 3);
    let mut spoiled = whole.clone();
    pages_of(&whole, PageKind::Checkpoint).into_iter().for_each(|page| flip(&mut spoiled, page));
    for (image, words) in [
        (end(pages - 3), &needs[..]),
        (end(pages - 3), "truncated"),
        (end(1), "not a nandex volume: it has 1 page"),
        (b"GIF89a".repeat(4000), "not a nandex volume: it begins with"),
        (vec![0; 10 * PAGE_BYTES], "its first pages are all zeros"),
        (Vec::new(), "it is empty, or shorter than a page"),
        (spoiled, "is damaged: expected checksum"),
        (newer(image()), "format version 7, and this nandex reads version 1"),
    ] {
        let error = refusal(open(image));
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn one_flipped_superblock_loses_nothing_and_two_are_told() {
    let whole = image();
    // A close leaves the same in both.
    for page in [0, 1] {
        let mut one = whole.clone();
        flip(&mut one, page);
        let table = open(one).unwrap();
        assert!((0..KEYS).all(|key| table.get_u64(key).unwrap() == Some(key)));
    }
    let mut two = whole;
    flip(&mut two, 0);
    flip(&mut two, 1);
    let error = refusal(open(two));
    assert!(error.contains("at page 0 is damaged: expected checksum"), "{error}");
}

#[test]
fn a_flipped_page_of_entries_spoils_its_own_keys_and_no_others() {
    spoil_page(setup(), PageKind::Data, 100..400);
    spoil_page(sliced(), PageKind::Slice, 10..150);
}

fn spoil_page(setup: Setup, kind: PageKind, spoils: std::ops::Range<usize>) {
    let mut image = image_of(setup);
    let pages = pages_of(&image, kind);
    let spoiled = pages[pages.len() / 2];
    flip(&mut image, spoiled);
    let table = open(image).unwrap();
    let found: Vec<_> = (0..KEYS).map(|key| table.get_u64(key)).collect();
    let failed: Vec<_> = found.iter().filter_map(|found| found.as_ref().err()).collect();
    assert!(spoils.contains(&failed.len()), "{}", failed.len());
    for error in failed {
        let text = error.to_string();
        assert!(
            text.contains(&format!("at page {spoiled} is damaged: expected checksum")),
            "{text}"
        );
    }
    for (key, found) in (0..KEYS).zip(&found) {
        assert!(found.as_ref().map_or(true, |found| *found == Some(key)), "key {key}: {found:?}");
    }
    assert!(table.iter().any(|pair| pair.is_err()), "an iteration does not pass over damage");
    table.insert_u64(KEYS, 1).unwrap();
    table.close().unwrap();
}

#[test]
fn a_flipped_filter_page_is_told_by_lookups_that_need_it() {
    let mut image = image();
    let spoiled = pages_of(&image, PageKind::Filter)[0];
    flip(&mut image, spoiled);
    let table = open(image).unwrap();
    let results: Vec<_> = (0..KEYS).map(|key| table.get_u64(key)).collect();
    let texts: Vec<_> =
        results.iter().filter_map(|r| Some(r.as_ref().err()?.to_string())).collect();
    assert!(!texts.is_empty());
    let named = format!("at page {spoiled} is damaged");
    assert!(
        texts.iter().all(|text| text.contains(&named) || text.contains("refuses")),
        "{texts:?}"
    );
    let fine = results.iter().filter(|result| result.is_ok()).count() as u64;
    assert!(fine > KEYS / 2, "the other super tables go on: {fine}");
}

#[test]
fn a_device_too_small_for_a_volume_says_so() {
    let device = MemoryDevice::with_limit(20);
    let error = Volume::create(Arc::new(device), VolumeOptions::tiny()).unwrap_err().to_string();
    assert!(error.contains("no space for"), "{error}");
}

#[test]
fn a_real_file_system_that_is_full_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mount = |args: &[&str]| {
        let status = std::process::Command::new(args[0]).args(&args[1..]).arg(dir.path()).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs"]) {
        println!("left out: this process may not mount");
        return;
    }
    let result = std::panic::catch_unwind(|| {
        let options = FileOptions { create: Create::New, ..FileOptions::default() };
        let device = Arc::new(FileDevice::open(dir.path().join("volume"), &options).unwrap());
        let volume = Volume::create(device, VolumeOptions::tiny()).unwrap();
        refusal(BufferHash::create(&volume, "t", Config::tiny()))
    });
    // A child that another test has just started has the file open until it is a program of its own.
    let pause = std::time::Duration::from_millis(50);
    let gone = (0..200).any(|_| {
        mount(&["umount"]) || {
            std::thread::sleep(pause);
            false
        }
    });
    assert!(gone, "the file system is still in use after ten seconds");
    let error = result.unwrap();
    assert!(error.contains("no space for"), "{error}");
}

#[test]
fn keys_and_values_of_another_width_are_refused() {
    let table = setup().create_on(Arc::new(MemoryDevice::new())).unwrap();
    let text = "a key of 3 bytes: this table was created with keys of 8 bytes";
    assert_eq!(refusal(table.insert(b"abc", &[0; 8])), text);
    assert_eq!(refusal(table.get(b"abc")), text);
    assert_eq!(refusal(table.remove(b"abc")), text);
    assert_eq!(refusal(table.contains(b"abc")), text);
    assert_eq!(refusal(table.get_many(&[&[0; 8], b"abc"])), text);
    let text = "a value of 9 bytes: this table was created with values of 8 bytes";
    assert_eq!(refusal(table.insert(&[0; 8], &[0; 9])), text);
    assert_eq!(refusal(table.insert_many(&[(&[1; 8], &[0; 8]), (&[0; 8], &[0; 9])])), text);
    assert_eq!(table.get(&[1; 8]).unwrap(), None, "a refused batch puts nothing");
    let narrow = Setup { widths: (8, 0), ..setup() };
    let table = narrow.create_on(Arc::new(MemoryDevice::new())).unwrap();
    assert!(refusal(table.get_u64(1)).contains("values of 0 bytes"));
}

#[test]
fn a_volume_is_not_made_over_another() {
    let device = MemoryDevice::from_image(image());
    let error = Volume::create(Arc::new(device), VolumeOptions::tiny()).unwrap_err().to_string();
    assert!(error.contains("there is a nandex volume already"), "{error}");
}

const SECOND: &str = "NANDEX_SECOND_OPENER";

fn refused_opening(path: &Path) -> String {
    FileDevice::open(path, &FileOptions::default()).unwrap_err().to_string()
}

/// The child's part: tries to open the volume and prints the result.
#[test]
fn child_of_the_second_opener_test() {
    let Ok(path) = std::env::var(SECOND) else { return };
    println!("{}", refused_opening(Path::new(&path)));
}

#[test]
fn a_second_opener_is_refused_in_this_process_and_in_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    let create = FileOptions { create: Create::New, ..FileOptions::default() };
    let table = setup().create_on(Arc::new(FileDevice::open(&path, &create).unwrap())).unwrap();
    let here = refused_opening(&path);
    assert!(here.contains("is in use by another handle of this process"), "{here}");
    let text = format!("is in use by process {}", std::process::id());
    let test = "tables::bad_input::child_of_the_second_opener_test";
    let output = again(test, SECOND, path.to_str().unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&text), "{said}");
    table.close().unwrap();
    setup().open_on(Arc::new(FileDevice::open(&path, &FileOptions::default()).unwrap())).unwrap();
}

#[test]
fn a_read_only_device_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    std::fs::write(&path, image()).unwrap();
    let options = FileOptions { access: Access::ReadOnly, ..FileOptions::default() };
    let device = Arc::new(FileDevice::open(&path, &options).unwrap());
    let error = Volume::open(device, VolumeOpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("was opened read-only; open it read-write"), "{error}");
}
