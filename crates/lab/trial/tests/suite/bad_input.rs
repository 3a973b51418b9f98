//! Invalid names and devices without space, for structures of every kind: each is refused with a message of
//! its own, and the rest continues to work.

use std::sync::Arc;

use nandex::cascade::Cascade;
use nandex::device::MemoryDevice;
use nandex::testing::TableRequest;
use nandex::{
    AnyFilter, AnyNeighbors, AnyTable, BufferHash, OpenOptions, SliceHash, Volume, VolumeOptions,
    bufferhash, cascade, slicehash,
};

use crate::structure::{Made, Structure};

/// Returns the message of a refused call.
pub fn refusal<T>(result: nandex::Result<T>) -> String {
    result.err().expect("this is refused").to_string()
}

fn volume_on(device: MemoryDevice) -> Volume {
    Volume::create(Arc::new(device), VolumeOptions::tiny()).unwrap()
}

#[test]
fn names_that_are_missing_taken_bad_or_open_are_refused() {
    for made in Made::each_kind() {
        let (volume, kind) = (volume_on(MemoryDevice::new()), made.config.kind());
        let refused = |result: nandex::Result<_>, words: &str| {
            let error = refusal(result.map(drop::<Structure>));
            assert!(error.contains(words), "{kind}: {error}");
        };
        refused(made.open(&volume, "a"), "no structure named \"a\"; it holds none");
        let open = made.create(&volume, "a").unwrap();
        refused(made.create(&volume, "a"), "holds a structure named \"a\" already");
        refused(made.open(&volume, "a"), "\"a\" is open already");
        assert!(volume.drop_structure("a").unwrap_err().to_string().contains("open already"));
        refused(made.create(&volume, "a/b"), "is not 1 to 64 letters");
        open.insert(7).unwrap();
        open.close().unwrap();
        let error = volume.open_structure("a", "sieve").unwrap_err().to_string();
        assert_eq!(error, format!("the structure \"a\" is a {kind}, not a sieve"));
        assert_eq!(made.open(&volume, "a").unwrap().count(7).unwrap(), 1, "{kind}");
        volume.drop_structure("a").unwrap();
        refused(made.open(&volume, "a"), "it holds none");
    }
}

#[test]
fn a_structure_of_another_kind_is_refused_and_taken_for_what_it_is() {
    let volume = volume_on(MemoryDevice::new());
    let kinds: Vec<_> = Made::each_kind().map(|made| made.config.kind()).collect();
    for made in Made::each_kind() {
        made.create(&volume, made.config.kind()).unwrap().close().unwrap();
    }
    for kind in kinds {
        let typed = [
            ("bufferhash", BufferHash::open(&volume, kind).map(drop)),
            ("slicehash", SliceHash::open(&volume, kind).map(drop)),
            ("cascade", Cascade::open(&volume, kind).map(drop)),
        ];
        for (other, result) in typed {
            let told = result.map_err(|error| error.to_string());
            let wrong = format!("the structure \"{kind}\" is a {kind}, not a {other}");
            assert_eq!(told, if kind == other { Ok(()) } else { Err(wrong) });
        }
        let options = OpenOptions::default();
        if let Ok(index) = AnyNeighbors::open(&volume, kind, &options) {
            assert_eq!(index.config().kind(), kind);
            drop(index);
            for error in [
                refusal(AnyTable::open(&volume, kind)),
                refusal(AnyFilter::open(&volume, kind, &options)),
            ] {
                assert!(error.contains(kind), "{error}");
            }
            continue;
        }
        let filter = AnyFilter::open(&volume, kind, &options);
        match (AnyTable::open(&volume, kind), filter) {
            (Ok(table), Err(error)) => {
                assert!(table.kind() == kind && error.to_string().contains(kind), "{error}");
            }
            (Err(error), Ok(filter)) => {
                let error = error.to_string();
                assert!(filter.config().kind() == kind && error.contains(kind), "{error}");
            }
            both => panic!("{kind}: {both:?}"),
        }
    }
    let error = refusal(AnyTable::open(&volume, "c"));
    assert!(error.contains("no structure named \"c\"; it holds \"bufferhash\", \""), "{error}");
    volume.create_structure("c", "sieve", Vec::new(), 1).unwrap();
    let error = refusal(AnyTable::open(&volume, "c"));
    assert!(error.contains("\"c\" is of the kind \"sieve\""), "{error}");
}

#[test]
fn a_table_that_finds_no_space_is_refused_and_keeps_no_pages() {
    let request = TableRequest { keys: Some(200_000), ..TableRequest::default() };
    for kind in ["bufferhash", "slicehash"] {
        let made = Made::of_table(kind, &request);
        let volume = volume_on(MemoryDevice::with_limit(150));
        let config = bufferhash::Config { segments: 8, ..bufferhash::Config::tiny() };
        let small = Made::from((config.into(), OpenOptions::default()));
        let small = small.create(&volume, "small").unwrap();
        small.insert(1).unwrap();
        let free = volume.stats().free_pages;
        let error = refusal(made.create(&volume, "big"));
        let words = ["no space for", "limited to 150 pages"];
        assert!(words.iter().all(|words| error.contains(words)), "{kind}: {error}");
        assert_eq!((volume.stats().free_pages, volume.structures().len()), (free, 1));
        let error = refusal(made.open(&volume, "big"));
        assert!(error.contains("no structure named \"big\"; it holds \"small\""), "{error}");
        small.insert(3).unwrap();
        small.flush().unwrap();
        assert_eq!([1, 2, 3].map(|number| small.count(number).unwrap()), [1, 0, 1]);
    }
}

#[test]
fn a_log_too_small_for_the_buffers_is_refused_with_the_size_that_would_do() {
    let log = VolumeOptions { log_bytes: 1 << 16, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), log).unwrap();
    let slices = slicehash::Config { buffer_pages: 5, slices: 20, ..slicehash::Config::tiny() };
    let error = refusal(SliceHash::create(&volume, "large", slices));
    assert!(error.contains("log of 64.0 KiB is too small"), "{error}");
    let tiny = cascade::Config::tiny();
    let config = cascade::Config { buffer_entries: 1_000_000, keys: 1 << 30, ..tiny };
    let error = refusal(Cascade::create(&volume, "large", config));
    assert!(error.starts_with("log_bytes: ") && error.contains("bytes"), "{error}");
    Cascade::create(&volume, "large", tiny).unwrap();
}
