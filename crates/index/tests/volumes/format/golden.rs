//! Pinned bytes: the bytes written now are those that version 1 has always written.

use nandex::raw::device::{PAGE_BYTES, PageId};
use nandex::raw::slicehash::format::{Moved, PageSnapshotRef, decode_config};
use nandex::raw::slicehash::slice::SliceLayout;
use nandex::raw::store::Lsn;
use nandex::raw::store::entries::{Entry, EntryLayout, SlotState};
use nandex::raw::store::hash::HashKind;
use nandex::raw::store::log::format::{BlockHeader, put_group, seal as seal_block};
use nandex::raw::store::page::{PAGE_HEADER_BYTES, PageKind, PageLabel, StructureId, seal};
use nandex::raw::store::space::Extent;
use nandex::raw::store::superblock::Superblock;

use super::{fixture, slice_configs};

/// Formats bytes up to the last that is not zero, in hexadecimal, 32 a line.
fn hex(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let lines = bytes[..end].chunks(32);
    let line = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    lines.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_superblock_is_these_bytes() {
    let superblock = Superblock {
        generation: 5,
        volume_id: 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100,
        hash: HashKind::Sip13,
        hash_key: 42,
        epoch: 3,
        page_count: 1000,
        checkpoint: Extent { start: PageId(70), pages: 4 },
        checkpoint_bytes: 9000,
        checkpoint_generation: 4,
        log: Extent { start: PageId(2), pages: 64 }.into(),
        log_apart: false,
        log_grows: false,
        log_block_bytes: 8192,
        log_tail: Lsn(4096),
        log_synced: Lsn(12_288),
        copy: Some(PageId(66)),
        geometry: None,
    };
    let mut page = vec![0xff; PAGE_BYTES];
    superblock.encode(&mut page);
    assert_eq!(hex(&page), include_str!("superblock.hex").trim());
}

#[test]
fn an_entry_page_is_these_bytes() {
    let layout = EntryLayout::new(32, 64).unwrap();
    let mut page = vec![0; PAGE_BYTES];
    let live = Entry { state: SlotState::Live, key: &[0xaa; 32], value: &[0xbb; 64] };
    let removed = Entry { state: SlotState::Tombstone, key: &[0xcc; 32], value: &[] };
    layout.put(&mut page, 1, live);
    layout.put(&mut page, 6, removed);
    let (kind, structure) = (PageKind::Data, StructureId(2));
    seal(&mut page, PageLabel { kind, structure, generation: 3 << 48 | 9, page: PageId(77) });
    assert_eq!(hex(&page), include_str!("entries.hex").trim());
}

#[test]
fn a_log_block_is_these_bytes() {
    let mut block = vec![0; PAGE_BYTES];
    put_group(&mut block, 64, StructureId(2), 5, 2);
    block[72..82].copy_from_slice(b"aaaaabbbbb");
    let header = BlockHeader {
        payload_bytes: 18,
        lsn: Lsn(8192),
        epoch: 3,
        volume_id: 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100,
        prev_crc: 0x1234_5678,
        superblock: 0x0102,
        synced: Lsn(4096),
    };
    seal_block(&mut block, &header);
    assert_eq!(hex(&block), include_str!("block.hex").trim());
}

#[test]
fn the_configurations_of_the_fixtures_are_these_bytes() {
    // Two tables of the volume with all policies: a threshold's number, and a Bloom filter's shape.
    let image = fixture("v1-policies");
    for config in include_str!("configs.hex").split("\n\n") {
        let bytes = bytes_of(config);
        assert_eq!(bytes.len(), 87);
        assert!(image.windows(87).any(|window| window == bytes), "{config}");
    }
}

/// Parses bytes of hexadecimal digits.
fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn a_slice_page_is_these_bytes() {
    let layout = SliceLayout::new(32, 64);
    let mut page = vec![0; PAGE_BYTES];
    for number in 1..5 {
        layout.push(&mut page[PAGE_HEADER_BYTES..], &[number; 32], &[0x10 * number; 64]);
    }
    layout.remove(&mut page[PAGE_HEADER_BYTES..], &[1]);
    layout.remove_oldest(&mut page[PAGE_HEADER_BYTES..], 1);
    let (kind, structure) = (PageKind::Slice, StructureId(2));
    seal(&mut page, PageLabel { kind, structure, generation: 3 << 48 | 9, page: PageId(77) });
    assert_eq!(hex(&page), include_str!("slice.hex").trim());
}

#[test]
fn a_move_is_these_bytes() {
    let snapshot = Some(PageSnapshotRef { slot: 1, generation: 0x0102_0304 });
    let moved = Moved { partition: 7, tail: Lsn(0x0020_3000), snapshot };
    let hex: String = moved.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "03070000000030200000000000020403020100000000");
    assert_eq!(Moved::decode(&moved.encode()), Some((moved, &[][..])));
    assert_eq!(Moved { snapshot: None, ..moved }.encode().len(), 22);
}

#[test]
fn the_configurations_of_the_slicehashes_are_these_bytes() {
    let image = fixture("v1-slicehash-closed");
    for (config, (name, expected)) in
        include_str!("slice_configs.hex").split("\n\n").zip(slice_configs())
    {
        let bytes = bytes_of(config);
        assert_eq!(decode_config(&bytes).unwrap(), expected, "{name}");
        assert!(image.windows(59).any(|window| window == bytes), "{name}");
    }
}
