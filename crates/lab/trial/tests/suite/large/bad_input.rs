//! Keys and values that are too long, tables of other widths, and damage.

use std::sync::Arc;

use nandex::device::{Device, MemoryDevice};
use nandex::large::{KEY_BYTES_MAX, LargeTable, ValuesConfig};
use nandex::raw::device::{PAGE_BYTES, PageBuf, PageId};
use nandex::raw::oracle::MapTable;
use nandex::raw::store::page::PAGE_MAGIC;
use nandex::{Durability, Error, Volume, VolumeOptions, WhenFull};
use nandex_trial::Contract;

use super::support::{Setup, key, value};

#[test]
fn keys_and_values_are_taken_up_to_their_limits_and_refused_beyond() {
    let setup = Setup::new(Durability::Never, WhenFull::Refuse).roomy();
    let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
    let long = vec![1; KEY_BYTES_MAX];
    table.put(&long, b"").unwrap();
    assert_eq!(table.get(&long).unwrap(), Some(Vec::new()));
    for refused in [
        table.put(&[1; KEY_BYTES_MAX + 1], b"").unwrap_err(),
        table.remove(&[1; KEY_BYTES_MAX + 1]).unwrap_err(),
        table.get(&[1; KEY_BYTES_MAX + 1]).unwrap_err(),
        table.get_many(&[&[1; KEY_BYTES_MAX + 1]]).unwrap_err(),
    ] {
        let text = refused.to_string();
        assert!(text.contains("a key of 65537 bytes") && text.contains("65536"), "{text}");
    }
    let limit = table.value_bytes_max(3);
    table.put(b"key", &vec![5; limit]).unwrap();
    assert_eq!(table.get(b"key").unwrap(), Some(vec![5; limit]));
    let error = table.put(b"key", &vec![5; limit + 1]).unwrap_err();
    assert!(matches!(error, Error::TooLong { what: "value", .. }), "{error}");
    assert_eq!(table.get(b"key").unwrap(), Some(vec![5; limit]), "the old value stays");
}

#[test]
fn a_value_of_16_mebibytes_comes_back_whole() {
    let mut setup = Setup::new(Durability::Always, WhenFull::Refuse);
    setup.values = ValuesConfig { segment_pages: 5000, io_chunk_pages: 256, ..setup.values };
    let device = MemoryDevice::new();
    let table = setup.create_on(Arc::new(device.clone())).unwrap();
    let large = value(1, 16 << 20);
    table.put(b"large", &large).unwrap();
    assert_eq!(table.get(b"large").unwrap().as_ref(), Some(&large));
    table.put(b"more", &vec![0; (16 << 20) + 1]).unwrap_err();
    table.close().unwrap();
    let table = setup.open_on(Arc::new(device)).unwrap();
    assert_eq!(table.get(b"large").unwrap(), Some(large));
}

#[test]
fn a_table_of_other_widths_is_refused_by_what_it_must_have() {
    let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny()).unwrap();
    for (widths, field) in [((8, 16), "key_bytes"), ((16, 8), "value_bytes")] {
        let table = MapTable::new(widths.0, widths.1);
        let error = LargeTable::create(&volume, "v", table, ValuesConfig::tiny()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(field) && text.contains("must have 16"), "{text}");
    }
    let config = ValuesConfig { io_chunk_pages: 100, ..ValuesConfig::tiny() };
    let error = LargeTable::create(&volume, "v", MapTable::new(16, 16), config).unwrap_err();
    assert!(error.to_string().contains("io_chunk_pages: 100"), "{error}");
}

/// Returns the written pages of the value log.
fn value_pages(device: &MemoryDevice) -> Vec<PageId> {
    let image = device.image();
    let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
    let pages = (0..image.len() / PAGE_BYTES).filter(|page| {
        let at = page * PAGE_BYTES;
        word(at + 4) == PAGE_MAGIC && word(at + 8) & 0xffff == 7
    });
    pages.map(|page| PageId(page as u64)).collect()
}

#[test]
fn a_damaged_value_is_an_error_that_names_its_page_and_others_are_found() {
    let setup = Setup::new(Durability::Never, WhenFull::Refuse).roomy();
    let device = MemoryDevice::new();
    let table = setup.create_on(Arc::new(device.clone())).unwrap();
    for number in 1..20 {
        table.put(&key(number), &value(number, 4000)).unwrap();
    }
    table.close().unwrap();
    let damaged = value_pages(&device)[10];
    let mut buf = device.read(damaged, PageBuf::zeroed(1)).unwrap();
    buf.page_mut(0)[2000] ^= 4;
    device.write(damaged, buf).unwrap();
    let table = setup.open_on(Arc::new(device.clone())).unwrap();
    let mut errors = 0;
    for number in 1..20 {
        match table.get(&key(number)) {
            Ok(found) => assert_eq!(found, Some(value(number, 4000))),
            Err(error) => {
                errors += 1;
                assert!(error.to_string().contains(&damaged.to_string()), "{error}");
            }
        }
    }
    assert!((1..=3).contains(&errors), "{errors} values are on one page");
    drop(table);
    let report = nandex::check(Arc::new(device), None, &mut |_| {}).unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert_eq!(report.findings[0].page, damaged);
}
