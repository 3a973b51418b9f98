//! The index against the slow way: names in a list, and a comparison with every document.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::{Durability, Error, Threads, VolumeOpenOptions, VolumeOptions};

use super::*;
use crate::numbers::Numbers;

const TABLES: u32 = 3;

pub(super) fn options() -> LshOptions {
    LshOptions { ram_bytes: 64 << 20, documents: 100, tables: TABLES, about: "a test".into() }
}

fn volume_options(threads: Threads) -> VolumeOptions {
    VolumeOptions { log_bytes: 16 << 20, threads, hash_key: Some(42), ..VolumeOptions::default() }
}

fn in_memory() -> LshIndex {
    let options =
        VolumeOptions { durability: Durability::Never, ..volume_options(Threads::Inline) };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    LshIndex::create_in(&volume, self::options()).unwrap()
}

/// The slow way.
#[derive(Clone, Default, Debug)]
pub(super) struct Slow {
    /// Names and bucket keys, in the order of their arrival.
    pub(super) documents: Vec<(Vec<u8>, Vec<u64>)>,
}

impl Slow {
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.documents.iter().any(|(other, _)| other == name)
    }

    pub(super) fn insert(&mut self, name: &[u8], keys: &[u64]) {
        self.documents.push((name.to_vec(), keys.to_vec()));
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let is_there = self.has(name);
        self.documents.retain(|(other, _)| other != name);
        is_there
    }

    pub(super) fn query(&self, row: &[u64]) -> Vec<Vec<u8>> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        for (name, keys) in &self.documents {
            let is_near = keys.iter().zip(row).any(|(left, right)| left == right);
            if is_near && !found.contains(name) {
                found.push(name.clone());
            }
        }
        found
    }

    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        let mut names: Vec<_> = self.documents.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}

pub(super) fn queried(index: &LshIndex, rows: &[u64]) -> Vec<Vec<Vec<u8>>> {
    let found = index.query_many(rows).unwrap();
    (0..found.rows()).map(|row| found.row(row).map(<[u8]>::to_vec).collect()).collect()
}

/// Returns all documents of an index, in order.
pub(super) fn scanned(index: &LshIndex) -> Vec<Record> {
    let (mut from, mut all) = (0, Vec::new());
    loop {
        let (next, records) = index.scan(from).unwrap();
        if records.is_empty() {
            return all;
        }
        from = next;
        all.extend(records);
    }
}

/// Creates a row of keys, some of which other rows have too.
pub(super) fn row(numbers: &mut Numbers) -> Vec<u64> {
    (0..TABLES).map(|_| numbers.below(150)).collect()
}

#[track_caller]
fn check(index: &LshIndex, slow: &Slow, numbers: &mut Numbers) {
    let rows: Vec<u64> = (0..40).flat_map(|_| row(numbers)).collect();
    let expected: Vec<_> = rows.chunks(TABLES as usize).map(|row| slow.query(row)).collect();
    assert_eq!(queried(index, &rows), expected);
    let row = &rows[..TABLES as usize];
    assert_eq!(queried(index, row), expected[..1]);
    assert_eq!(index.documents() as usize, slow.names().len());
    let names: Vec<Vec<u8>> = (0..30).map(|_| name(numbers)).collect();
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let expected: Vec<bool> = names.iter().map(|name| slow.has(name)).collect();
    assert_eq!(index.contains_many(&names).unwrap(), expected);
}

/// Checks the content of the tables.
#[track_caller]
fn check_tables(index: &LshIndex, slow: &Slow) {
    let all = scanned(index).into_iter().map(|it| (it.name, it.keys)).collect::<Vec<_>>();
    assert_eq!(all, slow.documents);
    let key = slow.documents[0].1[1];
    let in_bucket = slow.documents.iter().filter(|(_, keys)| keys[1] == key);
    let names: Vec<_> = in_bucket.map(|(name, _)| name.clone()).collect();
    assert_eq!(index.bucket(1, key).unwrap(), names);
    let latest = slow.documents.last().unwrap();
    let found = index.get_many(&[&latest.0, b"absent"]).unwrap();
    assert_eq!(found[0].as_ref().map(|it| &it.keys), Some(&latest.1));
    assert_eq!(found[1], None);
}

fn name(numbers: &mut Numbers) -> Vec<u8> {
    numbers.below(3000).to_string().into_bytes()
}

/// Takes one of the possible steps of an index, also the slow way.
fn step(index: &LshIndex, slow: &mut Slow, numbers: &mut Numbers) {
    let count = match numbers.below(10) {
        0..5 => 1,
        5 => numbers.below(60),
        6 => 64 + numbers.below(200),
        7 => return index.sync().unwrap(),
        8 => {
            // Some occur twice.
            let names: Vec<Vec<u8>> = (0..numbers.below(200)).map(|_| name(numbers)).collect();
            let expected: Vec<bool> = names.iter().map(|name| slow.remove(name)).collect();
            let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            assert_eq!(index.remove_many(&names).unwrap(), expected);
            return;
        }
        _ => {
            let name = name(numbers);
            assert_eq!(index.remove(&name).unwrap(), slow.remove(&name));
            return;
        }
    };
    let repeats = if numbers.below(4) == 0 { Repeats::Add } else { Repeats::Refuse };
    let names: Vec<Vec<u8>> = (0..count).map(|_| name(numbers)).collect();
    let keys: Vec<u64> = names.iter().flat_map(|_| row(numbers)).collect();
    let mut expected = Inserted::All;
    for (place, (name, keys)) in names.iter().zip(keys.chunks(TABLES as usize)).enumerate() {
        if repeats == Repeats::Refuse && slow.has(name) {
            expected = Inserted::Before(place);
            break;
        }
        slow.insert(name, keys);
    }
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    assert_eq!(index.insert_many(&names, &keys, repeats).unwrap(), expected);
}

#[test]
fn an_index_answers_as_the_slow_way_does_whatever_is_done() {
    for seed in 0..4 {
        let (index, mut slow, mut numbers) = (in_memory(), Slow::default(), Numbers(seed));
        for turn in 0..250 {
            step(&index, &mut slow, &mut numbers);
            if turn % 10 == 0 {
                check(&index, &slow, &mut numbers);
            }
        }
        check_tables(&index, &slow);
        check(&index, &slow, &mut numbers);
        assert!(index.stats().generations > 1, "{:?}", index.stats());
        index.close().unwrap();
    }
}

#[test]
fn an_index_is_the_same_after_an_opening_closed_or_not() {
    let device = Arc::new(MemoryDevice::new());
    let (mut slow, mut numbers) = (Slow::default(), Numbers(5));
    for opening in 0..6 {
        let volume = if opening == 0 {
            let options = volume_options(Threads::Background);
            Volume::create(Arc::clone(&device) as Arc<dyn Device>, options).unwrap()
        } else {
            Volume::open(Arc::clone(&device) as Arc<dyn Device>, VolumeOpenOptions::default())
                .unwrap()
        };
        let index = if opening == 0 {
            LshIndex::create_in(&volume, options()).unwrap()
        } else {
            LshIndex::open_in(&volume, options()).unwrap()
        };
        (0..60).for_each(|_| step(&index, &mut slow, &mut numbers));
        check(&index, &slow, &mut numbers);
        if opening % 2 == 0 {
            index.close().unwrap();
        } else {
            drop(index);
        }
    }
    let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
    let other = LshOptions { about: "another".into(), ..options() };
    let error = LshIndex::open_in(&volume, other).unwrap_err().to_string();
    assert!(error.contains("made with a test and is opened with another"), "{error}");
    let index = LshIndex::open_in(&volume, options()).unwrap();
    check(&index, &slow, &mut numbers);
    check_tables(&index, &slow);
}

#[test]
fn documents_that_wait_are_saved_by_themselves() {
    let volume =
        Volume::create(Arc::new(MemoryDevice::new()), volume_options(Threads::Background)).unwrap();
    let index = LshIndex::create_in(&volume, options()).unwrap();
    index.insert_many(&[b"a"], &[1, 2, 3], Repeats::Refuse).unwrap();
    for _ in 0..1000 {
        if index.core.waiting().is_empty() {
            assert_eq!(queried(&index, &[1, 0, 0]), [[b"a"]]);
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("a document waits for ten seconds");
}

#[test]
fn an_insert_is_durable_at_once_where_all_are() {
    let device = Arc::new(MemoryDevice::new());
    let always =
        VolumeOptions { durability: Durability::Always, ..volume_options(Threads::Inline) };
    let volume = Volume::create(Arc::clone(&device) as Arc<dyn Device>, always).unwrap();
    let index = LshIndex::create_in(&volume, options()).unwrap();
    index.insert_many(&[b"a", b"b"], &[1, 2, 3, 4, 5, 6], Repeats::Refuse).unwrap();
    assert!(index.core.waiting().is_empty());
}

#[test]
fn names_of_any_length_are_kept_and_longer_ones_refused() {
    let index = in_memory();
    let long = vec![b'x'; NAME_BYTES_MAX];
    let mut names: Vec<Vec<u8>> = (0..20_u8).map(|it| [&long[1..], &[it]].concat()).collect();
    names.push(Vec::new());
    for (number, name) in (0..).zip(&names) {
        index.insert_many(&[name], &[number, 7, number], Repeats::Refuse).unwrap();
    }
    assert!(queried(&index, &[99, 7, 99]) == [names.clone()], "waiting");
    index.sync().unwrap();
    assert!(queried(&index, &[99, 7, 99]) == [names], "in the tables");
    let error = index.insert_many(&[&[&long[..], b"x"].concat()], &[1, 2, 3], Repeats::Refuse);
    assert!(error.unwrap_err().to_string().contains("use a hash of it"));
}

#[test]
fn keys_that_are_no_rows_and_files_of_others_are_refused() {
    let index = LshIndex::create_or_open(None, options()).unwrap();
    let error = index.insert_many(&[b"a"], &[1, 2], Repeats::Refuse).unwrap_err().to_string();
    assert!(error.contains("2 for 1 documents; give 3 for each"), "{error}");
    assert!(index.query_many(&[1, 2, 3, 4]).is_err() && index.bucket(3, 1).is_err());
    let little = LshOptions { ram_bytes: 1 << 20, ..options() };
    let error = LshIndex::create_or_open(None, little).unwrap_err();
    assert!(matches!(error, Error::TooLittleRam { .. }), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let little = LshOptions { ram_bytes: 1 << 20, ..options() };
    LshIndex::create_or_open(Some(&path), little).unwrap_err();
    assert!(!path.exists(), "what cannot be made leaves no file");
    let path = folder.path().join("text");
    std::fs::write(&path, "no index ".repeat(9999)).unwrap();
    LshIndex::create_or_open(Some(&path), options()).unwrap_err();
    let path = folder.path().join("index");
    LshIndex::create_or_open(Some(&path), options()).unwrap().close().unwrap();
    assert_eq!(LshIndex::create_or_open(Some(&path), options()).unwrap().documents(), 0);
}

#[test]
fn threads_insert_and_query_together() {
    let index = in_memory();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let index = &index;
            scope.spawn(move || {
                for number in (thread..2400).step_by(4) {
                    let (name, keys) = (number.to_string(), [number, number + 1, number + 2]);
                    index.insert_many(&[name.as_bytes()], &keys, Repeats::Refuse).unwrap();
                    let found = queried(index, &keys);
                    assert!(found[0].contains(&name.into_bytes()), "{number}");
                }
            });
        }
    });
    assert_eq!(index.documents(), 2400);
}

/// Returns the number of pages that an index has read: of its records, and of their places.
fn reads(index: &LshIndex) -> (u64, u64) {
    let stats = index.core.records.stats();
    (stats.values.reads, stats.table.hit_reads + stats.table.miss_reads)
}

#[test]
fn a_known_document_costs_one_read_and_new_ones_next_to_none() {
    let device = Arc::new(MemoryDevice::new());
    let options = || LshOptions { ram_bytes: 16 << 20, documents: 20_000, ..options() };
    let volume = Volume::create(device, volume_options(Threads::Inline)).unwrap();
    let index = LshIndex::create_in(&volume, options()).unwrap();
    let mut numbers = Numbers(8);
    let keys: Vec<u64> = (0..60_000).map(|_| numbers.below(1 << 31)).collect();
    let names: Vec<Vec<u8>> = (0..20_000).map(|it: u32| it.to_string().into_bytes()).collect();
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    index.insert_many(&names, &keys, Repeats::Refuse).unwrap();
    assert!(reads(&index).0 < 40, "{:?} for 20,000 inserts", reads(&index));
    index.close().unwrap();
    let index = LshIndex::open_in(&volume, options()).unwrap();
    let before = reads(&index);
    for document in (0..20_000).step_by(640) {
        let found = queried(&index, &keys[3 * document..][..3]);
        assert_eq!(found, [vec![names[document].to_vec()]]);
    }
    let after = reads(&index);
    // A fingerprint of another bucket leads to another block, too, once in 400 queries.
    assert!((32..36).contains(&(after.0 - before.0)), "{} for 32 documents", after.0 - before.0);
    assert_eq!(after.1, before.1);
    // All at once are more blocks than are in RAM at a time.
    let all = queried(&index, &keys);
    assert!(all.iter().zip(&names).all(|(found, name)| found == &[name.to_vec()]));
    assert!(index.contains_many(&names).unwrap().iter().all(|it| *it));
    let after = reads(&index);
    let new: Vec<u64> = (0..6000).map(|_| (1 << 40) + numbers.below(1 << 31)).collect();
    assert!(queried(&index, &new).iter().all(Vec::is_empty));
    assert!(reads(&index).0 - after.0 < 20, "{:?} for 2,000 new ones", reads(&index));
    assert!(index.contains_many(&[names[1000]]).unwrap()[0]);
}

#[test]
fn an_index_whose_ram_is_spent_says_so_and_keeps_what_it_has() {
    let device = Arc::new(MemoryDevice::new());
    let options = || LshOptions { ram_bytes: 3 << 20, ..options() };
    let volume = Volume::create(device, volume_options(Threads::Inline)).unwrap();
    let index = LshIndex::create_in(&volume, options()).unwrap();
    let batch = |first: u64| {
        let names: Vec<Vec<u8>> =
            (first..first + 500).map(|it| it.to_string().into_bytes()).collect();
        let keys: Vec<u64> = (3 * first..3 * first + 1500).map(|it| it << 20).collect();
        (names, keys)
    };
    let insert = |first| {
        let (names, keys) = batch(first);
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        index.insert_many(&names, &keys, Repeats::Refuse)
    };
    let (mut documents, mut error) = (0, None);
    while error.is_none() {
        match insert(documents) {
            Ok(_) => documents += 500,
            Err(found) => error = Some(found.to_string()),
        }
    }
    let error = error.unwrap();
    assert!(
        error.contains("give the index more with `ram`") && documents > 20_000,
        "{documents}: {error}"
    );
    assert_eq!((index.documents(), index.stats().dropped), (documents, 0));
    assert!(index.stats().ram_bytes < 4 << 20, "{:?}", index.stats());
    index.close().unwrap();
    let index = LshIndex::open_in(&volume, options()).unwrap();
    assert_eq!(index.documents(), documents);
    let (names, keys) = batch(documents - 500);
    assert_eq!(queried(&index, &keys[..3]), [vec![names[0].clone()]]);
}

#[test]
fn an_opening_knows_the_scheme_of_the_signatures() {
    let device = MemoryDevice::new();
    let volume =
        Volume::create(Arc::new(device.clone()), volume_options(Threads::Background)).unwrap();
    let index = LshIndex::create_in(&volume, options()).unwrap();
    assert_eq!(index.scheme(), None);
    index.set_scheme("affine32").unwrap();
    // It is immediately durable.
    let crashed = MemoryDevice::from_image(device.image());
    index.insert_many(&[b"a"], &[1, 2, 3], Repeats::Refuse).unwrap();
    index.close().unwrap();
    drop(volume);
    for device in [device, crashed] {
        let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
        let index = LshIndex::open_in(&volume, options()).unwrap();
        assert_eq!(index.scheme().as_deref(), Some("affine32"));
    }
}

#[test]
fn a_bucket_finds_its_oldest_documents() {
    let index = in_memory();
    let names: Vec<Vec<u8>> = (0..400).map(|it: u32| it.to_string().into_bytes()).collect();
    let all: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    index.insert_many(&all, &[7, 8, 9].repeat(400), Repeats::Refuse).unwrap();
    assert_eq!(queried(&index, &[0, 8, 0]), [names[..253].to_vec()]);
    assert_eq!(index.bucket(1, 8).unwrap(), names[..253]);
    (0..100).for_each(|place| assert!(index.remove(&names[place]).unwrap()));
    assert_eq!(queried(&index, &[0, 8, 0]), [names[100..353].to_vec()]);
    assert_eq!((index.documents(), index.stats().dropped), (300, 0));
}

#[test]
fn removals_of_many_write_each_block_once() {
    let (many, singly) = (in_memory(), in_memory());
    let names: Vec<Vec<u8>> = (0..400).map(|it: u32| it.to_string().into_bytes()).collect();
    let all: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let mut numbers = Numbers(3);
    let keys: Vec<u64> = all.iter().flat_map(|_| row(&mut numbers)).collect();
    let appended = |index: &LshIndex, remove: &dyn Fn()| {
        index.insert_many(&all, &keys, Repeats::Refuse).unwrap();
        let before = index.core.records.stats().values.appended_bytes;
        remove();
        index.core.records.stats().values.appended_bytes - before
    };
    let together =
        appended(&many, &|| assert_eq!(many.remove_many(&all[..200]).unwrap(), [true; 200]));
    let each = || all[..200].iter().for_each(|name| assert!(singly.remove(name).unwrap()));
    let apart = appended(&singly, &each);
    assert!(together * 20 < apart, "{together} bytes, {apart} one by one");
    assert_eq!(scanned(&many), scanned(&singly));
    assert_eq!(many.remove_many(&all[..200]).unwrap(), [false; 200]);
    assert_eq!(many.remove_many(&[]).unwrap(), [false; 0]);
    assert_eq!(many.documents(), 200);
}
