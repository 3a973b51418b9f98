//! A log block from any bytes is refused or returns groups that are inside it, entry by entry.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex::raw::bufferhash::format::decode_log_entry;
use nandex_device::PAGE_BYTES;
use nandex_store::Lsn;
use nandex_store::entries::EntryLayout;
use nandex_store::log::format::{BLOCK_HEADER_BYTES, BlockHeader, BlockLabel, RawBlock, seal};

const PAGES: usize = 2;

fuzz_target!(|data: (Option<u32>, u64, u64, u8, u8, &[u8])| {
    let (payload_bytes, lsn, epoch, key_bytes, value_bytes, bytes) = data;
    let mut block = [0; PAGES * PAGE_BYTES];
    let space = &mut block[BLOCK_HEADER_BYTES..];
    let length = bytes.len().min(space.len());
    space[..length].copy_from_slice(&bytes[..length]);
    let (lsn, volume_id) = (Lsn(lsn), 7);
    match payload_bytes {
        // A right checksum and a possible size, so that the groups are reached.
        Some(payload) => {
            let payload_bytes = payload % (space.len() as u32 + 1);
            let (prev_crc, synced) = (0, Lsn(0));
            let header = BlockHeader {
                payload_bytes,
                lsn,
                epoch,
                volume_id,
                prev_crc,
                superblock: 0,
                synced,
            };
            seal(&mut block, &header);
        }
        None => block[..length.min(BLOCK_HEADER_BYTES)]
            .copy_from_slice(&bytes[..length.min(BLOCK_HEADER_BYTES)]),
    }
    let label = BlockLabel { volume_id, lsn, block_bytes_max: block.len() };
    let checked = RawBlock::new(&block).check(label);
    assert!(payload_bytes.is_none() || checked.is_ok(), "what was sealed is proven");
    let Ok(block) = checked else { return };
    let layout = EntryLayout::new(key_bytes.into(), value_bytes.into()).ok();
    for group in block.groups().flatten() {
        assert_ne!(group.entries.len(), 0);
        assert_eq!(group.entries.len() % group.entry_bytes, 0);
        for (entry, layout) in
            group.entries.chunks(group.entry_bytes).zip(layout.into_iter().cycle())
        {
            let decoded = decode_log_entry(entry, layout);
            assert!(decoded.is_none_or(|it| it.key.len() == layout.key_bytes()));
        }
    }
});
