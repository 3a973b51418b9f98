//! Filters and counters with damaged pages.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::testing::TestFilter;
use nandex::{AnyFilter, Cascade, Counting, Result, SliceBloom, Threads, Volume, VolumeOptions};
use nandex_baseline::registry::{self, FilterRow};

use super::answers::Answers;
use super::subject::{NAME, Subject};

/// The number of keys at the beginning.
const KEYS: u64 = 1400;

/// The key that the last logged update adds.
const LAST: u64 = 5000;

/// The first key of another filter that this one absorbs.
const ABSORBED: u64 = 6000;

/// A filter.
pub struct DamagedFilter {
    row: &'static FilterRow,
    made: TestFilter,
}

/// Returns one in `one_in` of the variants of each row in which no two keys share a fingerprint: then an
/// update of one key does not affect another.
pub fn all(one_in: u64) -> impl Iterator<Item = DamagedFilter> {
    registry::filters().flat_map(move |(_, row)| {
        let variants = (0..row.testing.variants).map(|variant| (row.testing.config)(variant, 0));
        let exact = variants.filter(|made| made.universe > 1 << 40);
        exact.step_by(one_in as usize).map(move |made| DamagedFilter { row, made })
    })
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// Creates an empty filter of the same configuration in a volume of its own, with the same hash.
fn other(made: &TestFilter) -> Result<AnyFilter> {
    let options = VolumeOptions { threads: Threads::Inline, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options)?;
    AnyFilter::create_with(&volume, "other", &made.config, &made.options)
}

/// Adds the content of `from`.
fn absorb(into: &AnyFilter, from: &AnyFilter) -> Result<()> {
    if let (Some(into), Some(from)) = (into.of::<Cascade>(), from.of::<Cascade>()) {
        return into.absorb(from);
    }
    if let (Some(into), Some(from)) = (into.of::<Counting>(), from.of::<Counting>()) {
        return into.absorb(from);
    }
    Ok(())
}

/// Returns everything that a filter can list.
fn listed(filter: &AnyFilter) -> Result<Vec<(Vec<u8>, i64)>> {
    if let Some(filter) = filter.of::<Cascade>() {
        let pair =
            |it: nandex::raw::cascade::Entry| (it.fingerprint.to_le_bytes().to_vec(), it.count);
        return filter.iter().map(|entry| entry.map(pair)).collect();
    }
    filter.of::<Counting>().map_or(Ok(Vec::new()), |table| table.iter().collect())
}

fn streamed(filter: &AnyFilter, keys: &[&[u8]]) -> Result<Vec<(u64, i64)>> {
    let mut found = Vec::new();
    let tokens = || (0..).zip(keys);
    if let Some(filter) = filter.of::<SliceBloom>() {
        let mut stream = filter.stream();
        tokens().try_for_each(|(token, key)| stream.push(key, token))?;
        while let Some((token, is_there)) = stream.pull()? {
            found.push((token, i64::from(is_there)));
        }
    }
    if let Some(table) = filter.of::<Counting>() {
        let mut stream = table.stream();
        tokens().try_for_each(|(token, key)| stream.push(key, token))?;
        while let Some(answer) = stream.pull()? {
            found.push(answer);
        }
    }
    found.sort_unstable();
    Ok(found)
}

impl DamagedFilter {
    /// Returns the keys whose answers depend on an update of these: in a window all, since each update may
    /// evict others.
    fn touched(&self, keys: &[u64]) -> Vec<u64> {
        match self.made.window {
            Some(_) => (0..KEYS).chain(keys.iter().copied()).chain([LAST, LAST + 1]).collect(),
            None => keys.to_vec(),
        }
    }
}

impl Subject for DamagedFilter {
    type Open = AnyFilter;

    fn label(&self) -> String {
        self.made.label.clone()
    }

    fn create(&self, volume: &Volume) -> Result<AnyFilter> {
        AnyFilter::create_with(volume, NAME, &self.made.config, &self.made.options)
    }

    fn open(&self, volume: &Volume) -> Result<AnyFilter> {
        AnyFilter::open(volume, NAME, &self.made.options)
    }

    fn fill(&self, filter: &AnyFilter) {
        (0..KEYS).chain((0..KEYS).step_by(7)).for_each(|it| filter.insert(&key(it)).unwrap());
        filter.flush().unwrap();
    }

    fn log(&self, filter: &AnyFilter) {
        (0..KEYS).step_by(31).for_each(|it| filter.insert(&key(it)).unwrap());
        if self.row.deletes {
            (1..KEYS).step_by(31).for_each(|it| filter.delete(&key(it)).unwrap());
        }
    }

    fn log_last(&self, filter: &AnyFilter) {
        filter.insert(&key(LAST)).unwrap();
    }

    fn ask(&self, filter: &AnyFilter, answers: &mut Answers) {
        let stats = filter.stats();
        answers.entries(stats.entries, &stats.lost_pages);
        let numbers: Vec<u64> = (0..KEYS).step_by(9).chain([LAST, LAST + 1]).collect();
        let keys: Vec<_> = numbers.iter().map(|it| key(*it)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        for (number, key) in numbers.iter().zip(&keys) {
            answers.ask_of("contains", *number, filter.contains(key));
        }
        answers.ask("contains_many", filter.contains_many(&keys));
        if let Some(counter) = filter.counter() {
            for (number, key) in numbers.iter().zip(&keys) {
                answers.ask_of("count", *number, counter.count(key));
            }
            answers.ask("count_many", counter.count_many(&keys));
        }
        answers.ask("iter", listed(filter));
        answers.ask("stream", streamed(filter, &keys));
        if let Some(filter) = filter.of::<Cascade>() {
            answers.ask("sweep", filter.sweep(&keys));
            for (number, key) in numbers.iter().zip(&keys).step_by(9) {
                answers.ask_of("sweep", *number, filter.sweep(&[key]));
            }
        }
        if let Some(table) = filter.of::<Counting>() {
            answers.ask("top", table.top(20));
            answers.ask("sum_many", table.sum_many(&keys));
            answers.ask_of("sum", 7, table.sum(&key(7)));
        }
    }

    fn lend(&self, filter: &AnyFilter, answers: &mut Answers) {
        let absorbed = other(&self.made).and_then(|into| {
            absorb(&into, filter)?;
            listed(&into)
        });
        answers.ask("absorb as source", absorbed);
    }

    fn update(&self, filter: &mut AnyFilter, answers: &mut Answers) {
        for it in [KEYS, 20, 21] {
            answers.update("insert", &self.touched(&[it]), filter.insert(&key(it)));
        }
        for it in [KEYS + 1, 22] {
            let added = filter.insert_if_absent(&key(it));
            answers.update("insert_if_absent", &self.touched(&[it]), added);
        }
        let several: Vec<u64> = (KEYS + 10..KEYS + 40).chain(40..60).collect();
        let keys: Vec<_> = several.iter().map(|it| key(*it)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        answers.update("insert_many", &self.touched(&several), filter.insert_many(&keys));
        let several: Vec<u64> = (KEYS + 50..KEYS + 80).chain(70..90).collect();
        let keys: Vec<_> = several.iter().map(|it| key(*it)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        answers.update(
            "insert_if_absent_many",
            &self.touched(&several),
            filter.insert_if_absent_many(&keys),
        );
        if self.row.deletes {
            answers.update("delete", &self.touched(&[25]), filter.delete(&key(25)));
            answers.update(
                "delete_many",
                &self.touched(&[26, 27]),
                filter.delete_many(&[&key(26), &key(27)]),
            );
        }
        if let Some(counter) = filter.counter() {
            answers.update("add", &self.touched(&[30]), counter.add(&key(30), 5));
            let added = counter.add_many(&[(&key(31), 5), (&key(KEYS + 5), 7)]);
            answers.update("add_many", &self.touched(&[31, KEYS + 5]), added);
        }
        if let Some(table) = filter.of::<Counting>() {
            answers.update("remove", &self.touched(&[35]), table.remove(&key(35)));
            answers.update(
                "remove_many",
                &self.touched(&[36, 28]),
                table.remove_many(&[&key(36), &key(28)]),
            );
        }
        let numbers: Vec<u64> = (ABSORBED..ABSORBED + 100).chain(100..150).collect();
        let from = other(&self.made).unwrap();
        numbers.iter().for_each(|it| from.insert(&key(*it)).unwrap());
        answers.update("absorb as target", &self.touched(&numbers), absorb(filter, &from));
        answers.ask("sync", filter.sync());
        answers.ask("flush", filter.flush());
        if let Some(filter) = filter.of::<Cascade>() {
            answers.ask("compact", filter.compact());
        }
        if let Some(table) = filter.of::<Counting>() {
            answers.ask("compact", table.compact());
        }
    }

    fn close(&self, filter: AnyFilter) -> Result<()> {
        filter.close()
    }
}
