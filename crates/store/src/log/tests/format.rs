//! The encoding of a block: written blocks are read back, and anything else is rejected.

use nandex_device::PAGE_BYTES;
use proptest::prelude::*;

use super::VOLUME;
use crate::StructureId;
use crate::log::Lsn;
use crate::log::format::*;

const LABEL: BlockLabel =
    BlockLabel { volume_id: VOLUME, lsn: Lsn(8 * 4096), block_bytes_max: 2 * PAGE_BYTES };

const HEADER: BlockHeader = BlockHeader {
    payload_bytes: 8 + 34,
    lsn: LABEL.lsn,
    epoch: 7,
    volume_id: VOLUME,
    prev_crc: 0xdead_beef,
    superblock: 9,
    synced: Lsn(4096),
};

/// Returns a block of two entries of 17 bytes.
fn sealed() -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES];
    put_group(&mut bytes, BLOCK_HEADER_BYTES, StructureId(5), 17, 2);
    bytes[72..72 + 34].fill(9);
    seal(&mut bytes, &HEADER);
    bytes
}

#[test]
fn a_sealed_block_says_what_was_sealed() {
    let bytes = sealed();
    let block = RawBlock::new(&bytes).check(LABEL).unwrap();
    assert_eq!(block.header(), HEADER);
    assert_eq!(block.block_bytes(), PAGE_BYTES);
    let groups: Vec<_> = block.groups().collect();
    let group = Group { structure: StructureId(5), entry_bytes: 17, entries: &[9; 34] };
    assert_eq!(groups, [Ok(group)]);
}

#[test]
fn the_log_writes_for_an_entry_what_is_said_of_it() {
    let region = super::region(&super::Probe::default(), 48, 2);
    for entry_bytes in [1, 17, 100, 3000] {
        let log = super::start(&region, crate::log::Durability::Never);
        let per_block = ((8192 - 72) / entry_bytes) as u64;
        for number in 0..3 * per_block {
            log.append(StructureId(1), &[&super::numbered(number, entry_bytes)]).unwrap();
        }
        log.sync().unwrap();
        let expected = 3.0 * per_block as f64 * written_bytes(entry_bytes, 8192);
        assert!((log.stats().bytes_written as f64 - expected).abs() < 0.5, "{entry_bytes}");
    }
}

#[test]
fn the_bytes_on_flash_never_change() {
    let bytes = sealed();
    let head = "6e64786c001000002a000000008000000000000007000000000000007766554433221100efcdab8967\
                452301efbeadde090000000010000000000000";
    let hex: String = bytes[4..64].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, head);
    assert_eq!(bytes[64..72], [5, 0, 17, 0, 2, 0, 0, 0]);
    assert_eq!(bytes[..4], crc32c::crc32c(&bytes[4..]).to_le_bytes());
}

#[test]
fn every_flipped_bit_of_a_block_is_found() {
    let mut bytes = sealed();
    for bit in 0..PAGE_BYTES * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(RawBlock::new(&bytes).check(LABEL).is_err(), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_block_of_another_place_or_volume_or_too_large_is_refused() {
    let bytes = sealed();
    let check = |label| RawBlock::new(&bytes).check(label).unwrap_err();
    assert_eq!(check(BlockLabel { volume_id: 1, ..LABEL }), Flaw::Volume);
    assert_eq!(check(BlockLabel { lsn: Lsn(0), ..LABEL }), Flaw::Place { found: 8 * 4096 });
    let size = Flaw::Size { block_bytes: 4096, payload_bytes: 42 };
    assert_eq!(check(BlockLabel { block_bytes_max: 4095, ..LABEL }), size);
    assert_eq!(RawBlock::new(&bytes[..4095]).check(LABEL).unwrap_err(), size);
}

#[test]
fn groups_that_do_not_add_up_are_refused() {
    fn read(bytes: &[u8]) -> Result<Vec<Group<'_>>, Flaw> {
        Groups::new(bytes).collect()
    }
    assert_eq!(read(&[]).unwrap(), []);
    assert_eq!(read(&[1, 0, 2, 0, 1, 0, 0, 0, 7]), Err(Flaw::Group), "an entry is cut off");
    assert_eq!(read(&[1, 0, 0, 0, 9, 0, 0, 0]), Err(Flaw::Group), "entries of no bytes");
    assert_eq!(read(&[1, 0, 2, 0, 0, 0, 0, 0]), Err(Flaw::Group), "no entries");
    assert_eq!(read(&[1, 0, 2]), Err(Flaw::Group), "half a header");
}

proptest! {
    #[test]
    fn decoders_take_any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        let _ = Groups::new(&bytes).count();
        prop_assert!(RawBlock::new(&bytes).check(LABEL).is_err());
        // The same bytes behind a header that leads as far in as possible.
        if bytes.len() >= 4096 {
            let head = sealed();
            bytes[4..8].copy_from_slice(&head[4..8]);
            bytes[16..48].copy_from_slice(&head[16..48]);
            let _ = RawBlock::new(&bytes).check(LABEL);
            bytes.truncate(4096);
            seal(&mut bytes, &BlockHeader { payload_bytes: 4096 - 64, ..HEADER });
            let block = RawBlock::new(&bytes).check(LABEL).unwrap();
            let _ = block.groups().count();
        }
    }

    #[test]
    fn groups_cover_no_more_than_the_payload(bytes in prop::collection::vec(0..4_u8, 0..200)) {
        let read: usize = Groups::new(&bytes)
            .filter_map(Result::ok)
            .map(|group| GROUP_HEADER_BYTES + group.entries.len())
            .sum();
        prop_assert!(read <= bytes.len());
    }
}
