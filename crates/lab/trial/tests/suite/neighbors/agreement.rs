//! Every configuration of every index of neighbours against buckets in plain memory.

use std::sync::Arc;
use std::time::Duration;

use nandex::device::MemoryDevice;
use nandex::raw::oracle::BucketMap;
use nandex::testing::TestNeighbors;
use nandex::{AnyNeighbors, Durability, Neighbors, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_baseline::registry;
use nandex_sim::workload::SplitMix64;

/// An index, and its oracle.
struct Pair {
    made: TestNeighbors,
    device: Arc<MemoryDevice>,
    volume: Option<Volume>,
    index: Option<AnyNeighbors>,
    oracle: BucketMap,
}

impl Pair {
    fn new(made: TestNeighbors) -> Self {
        let device = Arc::new(MemoryDevice::new());
        let durability = Durability::Every(Duration::from_millis(5));
        let options = VolumeOptions { log_bytes: 256 << 10, durability, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
        let index = AnyNeighbors::create_with(&volume, "n", &made.config, &made.options).unwrap();
        let oracle = BucketMap::new(made.tables, made.bucket_ids_max as usize);
        Self { made, device, volume: Some(volume), index: Some(index), oracle }
    }

    fn index(&self) -> &AnyNeighbors {
        self.index.as_ref().unwrap()
    }

    /// Closes it, or leaves it as a killed process does, and reopens it.
    fn reopen(&mut self, kills: bool) {
        let volume = self.volume.take().unwrap();
        let index = self.index.take().unwrap();
        if kills {
            index.sync().unwrap();
            volume.poison().set(&"killed");
            drop(index);
        } else {
            index.close().unwrap();
        }
        drop(volume);
        let report = nandex::check(Arc::clone(&self.device) as _, None, &mut |_| {}).unwrap();
        assert!(report.ok(), "{}: {:?}", self.made.label, report.findings);
        let volume =
            Volume::open(Arc::clone(&self.device) as _, VolumeOpenOptions::default()).unwrap();
        self.index = Some(AnyNeighbors::open(&volume, "n", &self.made.options).unwrap());
        self.volume = Some(volume);
    }

    fn look_up(&self, rows: &[u64], story: &str) {
        let (found, expected) =
            (self.index().candidates_many(rows).unwrap(), self.oracle.candidates_many(rows));
        assert_eq!(found, expected.unwrap(), "{}, {story}", self.made.label);
        let tables = self.made.tables as usize;
        let first = self.index().candidates(&rows[..tables]).unwrap();
        assert_eq!(first, found[0], "{}, {story}", self.made.label);
        let mut stream = self.index().stream().unwrap();
        let mut streamed = Vec::new();
        for (number, row) in (0..).zip(rows.chunks(tables)) {
            stream.push(row, number).unwrap();
            streamed.extend(stream.poll().unwrap());
        }
        while let Some(answer) = stream.pull().unwrap() {
            streamed.push(answer);
        }
        assert_eq!(stream.pending(), 0, "{}, {story}", self.made.label);
        streamed.sort_unstable();
        let expected: Vec<_> = (0..).zip(found).collect();
        assert_eq!(streamed, expected, "{}, {story}", self.made.label);
    }

    fn candidates_then_insert(&self, documents: &[u64], rows: &[u64], story: &str) {
        let found = self.index().candidates_then_insert_many(documents, rows).unwrap();
        let expected = self.oracle.candidates_then_insert_many(documents, rows).unwrap();
        assert_eq!(found, expected, "{}, {story}", self.made.label);
    }

    fn insert(&self, documents: &[u64], rows: &[u64]) {
        self.index().insert_many(documents, rows).unwrap();
        self.oracle.insert_many(documents, rows).unwrap();
    }

    fn remove(&self, document: u64, row: &[u64]) {
        self.index().remove(document, row).unwrap();
        self.oracle.remove(document, row).unwrap();
    }
}

/// Every variant of every row, without and with a thread.
fn each(check: impl Fn(Pair)) {
    for (_, row) in registry::neighbors() {
        for variant in 0..row.testing.variants {
            for threads in [0, 1] {
                check(Pair::new((row.testing.config)(variant, threads)));
            }
        }
    }
}

/// Returns the rows of documents, at most `share` of which are in a bucket.
fn rows_of(documents: &[u64], tables: u32, share: u64) -> Vec<u64> {
    let row = |document: &u64| {
        let document = *document;
        (0..u64::from(tables)).map(move |table| ((document + table) / share) << 8 | table)
    };
    documents.iter().flat_map(row).collect()
}

#[test]
fn inserts_removals_and_lookups_agree_with_the_oracle_while_no_bucket_is_too_full() {
    each(|mut pair| {
        let (tables, documents) = (pair.made.tables, pair.made.documents);
        let share = u64::from(pair.made.bucket_ids_max).min(7);
        let mut rng = SplitMix64::new(3);
        for step in 0..400 {
            let first = rng.below(documents - 40);
            let some: Vec<u64> = (first..first + 1 + rng.below(40)).collect();
            let rows = rows_of(&some, tables, share);
            let story = format!("step {step}");
            match rng.below(16) {
                0..=3 => pair.insert(&some, &rows),
                4 | 5 => pair.candidates_then_insert(&some, &rows, &story),
                6..=8 => {
                    let each = some.iter().zip(rows.chunks(tables as usize));
                    each.take(12).for_each(|(document, row)| pair.remove(*document, row));
                }
                9 => pair.index().flush().unwrap(),
                10 if step % 3 == 0 => pair.reopen(step % 2 == 0),
                _ => pair.look_up(&rows, &story),
            }
        }
        let all: Vec<u64> = (0..documents).collect();
        pair.look_up(&rows_of(&all, tables, share), "in the end");
        let stats = pair.index().stats();
        assert!(stats.flushes > 0 && stats.tables == tables, "{stats:?}");
        assert_eq!((stats.dropped_life, stats.evicted_life), (0, 0), "{}", pair.made.label);
    });
}

#[test]
fn of_hot_buckets_the_oldest_ids_stay_as_in_the_oracle() {
    each(|mut pair| {
        let tables = pair.made.tables;
        let mut rng = SplitMix64::new(4);
        // Few enough entries for one slice of each table, if none is dropped.
        let documents: Vec<u64> = (0..240).map(|number| number * 7919 % 240).collect();
        for (round, some) in documents.chunks(15).enumerate() {
            let rows: Vec<u64> = some
                .iter()
                .flat_map(|_| (0..tables).map(u64::from).collect::<Vec<_>>())
                .map(|table| 100 * table + rng.below(2))
                .collect();
            let story = format!("round {round}");
            if round % 2 == 0 {
                pair.insert(some, &rows);
            } else {
                pair.candidates_then_insert(some, &rows, &story);
            }
            if round % 5 == 3 {
                pair.index().flush().unwrap();
            }
            if round % 7 == 6 {
                pair.reopen(round % 2 == 0);
            }
            pair.look_up(&rows, &story);
        }
        assert_eq!(pair.index().stats().evicted_life, 0, "{}", pair.made.label);
    });
}
