//! Generated operations, in generated sizes of everything, against a map; failures shrink.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::large::{ValuesConfig, WhenFull};
use nandex::store::hash::HashKind;
use proptest::prelude::*;

use super::support::{DURABILITIES, Map, Setup, key, value};

#[derive(Clone, Debug)]
enum Act {
    Put(u64, usize),
    Remove(u64),
    Get(u64),
    Sync,
    Flush,
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    // Lengths around the ends of pages, and the headers before them.
    let bytes = prop_oneof![0..20usize, 3900..4200usize, 7900..8200usize, 0..12_000usize];
    prop_oneof![
        8 => (0..12u64, bytes).prop_map(|(key, bytes)| Act::Put(key, bytes)),
        2 => (0..12u64).prop_map(Act::Remove),
        3 => (0..12u64).prop_map(Act::Get),
        1 => Just(Act::Sync),
        1 => Just(Act::Flush),
        1 => Just(Act::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_operations_give_what_a_map_gives(
        acts in proptest::collection::vec(act(), 1..80),
        durability in 0..3usize,
        identity: bool,
        (segment_pages, io_chunk_pages) in (4..12u32).prop_flat_map(|pages| (Just(pages), 1..=pages)),
    ) {
        let mut setup = Setup::new(DURABILITIES[durability], WhenFull::Keep);
        setup.hash = if identity { HashKind::Identity } else { HashKind::Xxh3 };
        setup.values = ValuesConfig { segment_pages, io_chunk_pages, segments: 40, ..setup.values };
        let device = MemoryDevice::new();
        let mut map = Map::new();
        let mut table = setup.create(Arc::new(device.clone())).unwrap();
        for (number, act) in acts.into_iter().enumerate() {
            match act {
                Act::Put(at, bytes) => {
                    let value = value(number as u64, bytes.min(table.value_bytes_max(400)));
                    table.put(&key(at), &value).unwrap();
                    map.insert(key(at), value);
                }
                Act::Remove(at) => {
                    table.remove(&key(at)).unwrap();
                    map.remove(&key(at));
                }
                Act::Get(at) => prop_assert_eq!(&table.get(&key(at)).unwrap(), &map.get(&key(at)).cloned()),
                Act::Sync => table.sync().unwrap(),
                Act::Flush => table.flush().unwrap(),
                Act::Reopen => {
                    drop(table);
                    table = setup.open(Arc::new(device.clone())).unwrap();
                }
            }
        }
        for at in 0..12 {
            prop_assert_eq!(&table.get(&key(at)).unwrap(), &map.get(&key(at)).cloned());
        }
    }
}
