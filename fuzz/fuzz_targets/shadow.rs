//! A map of shadow blocks, and map updates replayed on it, from any bytes are refused or make a map that reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::shadow::{MAP_UPDATE_BYTES, MapUpdate, ShadowMap, ShadowRecovery, ShadowShape};
use nandex_store::space::Extent;
use nandex_store::{Lsn, StructureId};

const PLACE: PageId = PageId(7);

fuzz_target!(|data: (u8, u8, bool, &[u8], &[u8])| {
    let (logical, spares, is_blank, state, log) = data;
    let (logical, spares) = (u32::from(logical) + 1, u32::from(spares) + 1);
    let shape = ShadowShape { block_pages: 2, logical, spares, align_pages: 4, devices: 3 };
    let mut reader = Reader::new(state, "state", PLACE);
    if let Ok(map) = ShadowMap::decode(&mut reader, shape) {
        assert_eq!(map.encode(), state[..state.len() - reader.left()]);
    }
    let extent = Extent { start: PLACE, pages: shape.pages() };
    let mut reader = Reader::new(state, "state", PLACE);
    let mut recovery = match is_blank {
        true => ShadowRecovery::blank(StructureId(1), extent, shape, 9),
        false => match ShadowRecovery::start(StructureId(1), extent, shape, 9, &mut reader) {
            Ok(recovery) => recovery,
            Err(_) => return,
        },
    };
    for bytes in log.chunks(MAP_UPDATE_BYTES) {
        match recovery.replay(&mut Reader::new(bytes, "map update", PLACE)) {
            Ok(update) => assert_eq!(update.encode(), bytes),
            Err(_) => break,
        }
        let update = MapUpdate::decode(&mut Reader::new(bytes, "map update", PLACE), shape);
        assert!(update.is_ok());
    }
    let shadow = recovery.finish();
    let current = (0..logical).filter(|&logical| shadow.block(logical).is_some()).count();
    assert_eq!((current + shadow.free_blocks()) as u64, shape.physical());
    let bytes = shadow.capture(Lsn(0)).bytes;
    let map = ShadowMap::decode(&mut Reader::new(&bytes, "state", PLACE), shape);
    assert_eq!(map.expect("a map that was recovered reads back").encode(), bytes);
});
