//! Merges against a map that adds up counts.

use proptest::prelude::*;

use super::*;

fn sums(lists: &[Vec<Entry>]) -> BTreeMap<u64, i64> {
    let mut sums = BTreeMap::new();
    for entry in lists.iter().flatten() {
        *sums.entry(entry.fingerprint).or_insert(0) += entry.count;
    }
    sums.retain(|_, count| *count != 0);
    sums
}

fn merge<'a>(sources: Vec<Box<dyn Source + 'a>>, options: MergeOptions) -> (Vec<Entry>, u64) {
    let mut merge = Merge::new(sources, options);
    let all = collect(&mut merge).unwrap();
    assert!(!merge.next_batch(&mut Vec::new()).unwrap(), "the end stays the end");
    (all, merge.unmatched())
}

fn sorted(lists: &[Vec<Entry>]) -> Vec<Box<dyn Source>> {
    lists.iter().map(|list| Box::new(Sorted::new(list.clone())) as Box<dyn Source>).collect()
}

fn lists() -> impl Strategy<Value = Vec<Vec<Entry>>> {
    let list = (2..30_000_u64, 0..9000_u64, any::<u64>()).prop_map(|(size, count, seed)| {
        let mut rng = Rng(seed);
        let mut list = spread(universe(size), count, seed);
        for entry in &mut list {
            entry.count = [1, 1, -1, 2, -2][rng.below(5) as usize];
        }
        list
    });
    prop::collection::vec(list, 0..7)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_merge_adds_up_and_leaves_out_what_comes_to_nothing(lists in lists()) {
        let sums = sums(&lists);
        let (all, unmatched) = merge(sorted(&lists), MergeOptions::default());
        prop_assert!(all.is_sorted_by(|a, b| a.fingerprint < b.fingerprint));
        prop_assert_eq!(&oracle(&all), &sums);
        prop_assert_eq!(unmatched, 0);
        let (positive, unmatched) = merge(sorted(&lists), MergeOptions { drop_negative: true });
        let negative = sums.values().filter(|count| **count < 0).count();
        prop_assert_eq!(unmatched, negative as u64);
        let expected: Vec<_> = all.into_iter().filter(|entry| entry.count > 0).collect();
        prop_assert_eq!(positive, expected);
    }
}

#[test]
fn two_runs_are_merged_into_a_third_on_the_same_device() {
    let (device, universe) = (MemoryDevice::new(), universe(30_000_000));
    let first = spread(universe, 50_000, 1);
    let mut second = spread(universe, 50_000, 2);
    second.extend(first.iter().step_by(3).map(|entry| Entry { count: -1, ..*entry }));
    second.sort_unstable();
    second.dedup_by_key(|entry| entry.fingerprint);
    let lists = [first, second];
    let runs = lists.each_ref().map(|list| written(&device, universe, list));
    let sources = runs
        .iter()
        .map(|run| Box::new(RunReader::new(&device, run, CHUNKS).unwrap()) as Box<dyn Source>);
    let (all, _) = merge(sources.collect(), MergeOptions::default());
    assert_eq!(oracle(&all), sums(&lists));
    let run = written(&device, universe, &all);
    assert_eq!(read(&device, &run).unwrap(), all);
    assert!(run.tombstones() < 10 && run.entries() > 80_000, "{run:?}");
}

#[test]
fn a_count_that_leaves_its_range_stays_at_its_end() {
    let of = |count| vec![Entry { fingerprint: 3, count }];
    for (counts, sum) in [([i64::MAX, 5], i64::MAX), ([i64::MIN, -5], i64::MIN)] {
        let (all, _) = merge(sorted(&counts.map(of)), MergeOptions::default());
        assert_eq!(all, of(sum));
    }
}

/// Returns one entry, and then fails.
struct Failing(bool);

impl Source for Failing {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> Result<bool> {
        if self.0 {
            return Err(Error::config("source", "no more"));
        }
        out.push(Entry { fingerprint: 1, count: 1 });
        self.0 = true;
        Ok(true)
    }
}

#[test]
fn a_source_that_fails_is_no_end() {
    let mut sources = sorted(&[spread(universe(100), 50, 1)]);
    sources.push(Box::new(Failing(false)));
    let mut merge = Merge::new(sources, MergeOptions::default());
    assert!(collect(&mut merge).is_err());
}
