//! Every pass on the oracles of all kinds.

use super::*;
use crate::documents::{DocumentSettings, Documents};
use crate::keys::{KeySpace, VALUE_BYTES};
use crate::percentiles::Latency;
use crate::structures::{buckets, map_table, multiset};
use crate::workload::Kind;

fn pass(kind: Kind, threads: usize, batch: usize) -> Pass {
    let keys = KeySpace::new(3);
    let (latency, asks) = (Latency::On, Asks::Values);
    Pass { kind, keys, seed: 3, number: 1, threads, batch, latency, asks, version: 0 }
}

fn oracle(kind: Kind) -> Box<dyn Subject> {
    match kind {
        Kind::Table => Box::new(map_table(VALUE_BYTES)),
        Kind::Filter => Box::new(multiset()),
        Kind::Neighbors => {
            Box::new(buckets(Documents::new(KeySpace::new(3), DocumentSettings::default())))
        }
    }
}

fn fill(entries: u64) -> Fill {
    Fill { entries, time_max: None, points: 4 }
}

fn loaded(pass: Pass, entries: u64) -> Box<dyn Subject> {
    let subject = oracle(pass.kind);
    let counters = load(&*subject, pass, fill(entries)).unwrap();
    assert_eq!(counters.changes, entries);
    let last = counters.curve.last().unwrap();
    assert!(counters.curve.len() >= 4 && last.operations == entries, "{:?}", counters.curve);
    subject
}

fn entries(subject: &dyn Subject) -> u64 {
    subject.status().entries.unwrap()
}

#[test]
fn every_operation_falls_to_exactly_one_thread() {
    for (operations, threads) in [(10, 3), (2, 5), (9, 3)] {
        let pass = pass(Kind::Table, threads, 1);
        let sum: u64 = (0..threads as u64).map(|thread| pass.share(operations, thread)).sum();
        assert_eq!(sum, operations);
    }
}

#[test]
fn a_load_puts_in_each_entry_once_whatever_threads_and_batch() {
    for kind in Kind::ALL {
        for (threads, batch) in [(1, 1), (3, 1), (2, 7), (1, 512)] {
            let pass = pass(kind, threads, batch);
            let subject = loaded(pass, 4096);
            assert_eq!(entries(&*subject), 4096);
            let picker = Picker::new(4096, None);
            let hits = lookups(&*subject, pass, 500, Sought::Here(&picker)).unwrap();
            assert_eq!((hits.lookups, hits.hits), (500, 500));
            let misses = lookups(&*subject, pass, 500, Sought::Absent).unwrap();
            assert_eq!((misses.lookups, misses.hits), (500, 0));
            for (sought, found) in [(Sought::Here(&picker), 500), (Sought::Absent, 0)] {
                let streamed = lookup_stream(&*subject, pass, 500, sought).unwrap();
                assert_eq!((streamed.lookups, streamed.hits), (500, found));
            }
        }
    }
}

#[test]
fn a_load_out_of_time_stops_after_whole_claims() {
    let subject = oracle(Kind::Table);
    let late = Fill { entries: 1 << 40, time_max: Some(Duration::from_millis(5)), points: 4 };
    let counters = load(&*subject, pass(Kind::Table, 1, 1), late).unwrap();
    assert_eq!(counters.changes % CLAIM, 0);
    assert_eq!(entries(&*subject), counters.changes);
}

#[test]
fn single_calls_are_timed_each_and_batches_each() {
    for (batch, calls) in [(1, 100), (10, 10)] {
        let subject = oracle(Kind::Table);
        let counters = load(&*subject, pass(Kind::Table, 1, batch), fill(100)).unwrap();
        // A claim of 64 ends with a batch of 4.
        let ends = u64::from(batch > 1);
        assert_eq!(counters.change_ns.summary().unwrap().count, calls + ends);
    }
}

#[test]
fn a_mixed_stream_inserts_new_keys_and_finds_loaded_ones() {
    for kind in Kind::ALL {
        for batch in [1, 16] {
            let subject = loaded(pass(kind, 1, 64), 1024);
            let next = AtomicU64::new(1024);
            let mix = Mix { lookup_fraction: 0.5, success: 1.0 };
            let picker = Picker::new(1024, None);
            let counters =
                mixed(&*subject, pass(kind, 2, batch), 2000, &picker, mix, &next).unwrap();
            assert_eq!((counters.operations(), counters.hits), (2000, counters.lookups));
            assert_eq!(next.into_inner(), 1024 + counters.changes);
            assert_eq!(entries(&*subject), 1024 + counters.changes);
        }
    }
}

#[test]
fn new_documents_are_asked_for_and_inserted_once_each() {
    let subject = loaded(pass(Kind::Neighbors, 1, 64), 1000);
    let next = AtomicU64::new(1000);
    let counters = insert_and_query(&*subject, pass(Kind::Neighbors, 2, 16), 3001, &next).unwrap();
    let Counters { changes, lookups, .. } = counters;
    assert_eq!((counters.operations(), changes, lookups), (3001, 3001, 3001));
    assert_eq!((entries(&*subject), next.into_inner()), (4001, 4001));
    // A tenth of them is near others, and 97 % of these are present and share a bucket: six standard
    // deviations are 99.
    assert!((192..390).contains(&counters.hits), "{}", counters.hits);
}

#[test]
fn updates_change_values_and_add_no_keys() {
    let subject = loaded(pass(Kind::Table, 1, 64), 256);
    let picker = Picker::new(256, None);
    let updates = Pass { version: 1, ..pass(Kind::Table, 2, 1) };
    overwrite_picked(&*subject, updates, 1000, &picker).unwrap();
    assert_eq!(entries(&*subject), 256);
    assert_eq!(lookups(&*subject, updates, 1000, Sought::Here(&picker)).unwrap().hits, 1000);
    let error =
        lookups(&*subject, pass(Kind::Table, 1, 1), 1000, Sought::Here(&picker)).unwrap_err();
    assert!(error.to_string().contains("wrong value under key"), "{error}");
}

#[test]
fn churn_keeps_the_newest_keys_with_their_values_and_no_others() {
    for kind in Kind::ALL {
        for (threads, batch, operations) in [(1, 1, 100), (3, 1, 1000), (2, 16, 700), (2, 512, 256)]
        {
            let pass = pass(kind, threads, batch);
            let subject = loaded(Pass { batch: 16, ..pass }, 256);
            let mut window = Window { first: 0, entries: 256 };
            let counters = churn(&*subject, pass, operations, &mut window).unwrap();
            assert_eq!((counters.changes, window.first), (operations, operations));
            assert_eq!((counters.operations(), entries(&*subject)), (operations, 256));
            let key = |index| pass.keys.key(index);
            let live: Vec<_> = (operations..operations + 256).map(key).collect();
            let mut client = subject.client().unwrap();
            let mut found = Vec::new();
            client.get_many(&live, &mut found).unwrap();
            assert!(found.iter().all(Option::is_some), "{kind:?}");
            if kind == Kind::Neighbors {
                continue;
            }
            found.clear();
            client.get_many(&(0..operations).map(key).collect::<Vec<_>>(), &mut found).unwrap();
            assert!(found.iter().all(Option::is_none), "{kind:?}");
        }
    }
}

#[test]
fn a_value_for_an_absent_key_ends_the_run_of_a_table_and_a_miss_does_not() {
    let pass = pass(Kind::Table, 1, 1);
    assert!(check(pass, pass.keys.absent(1), Expect::Absent, Some(1)).is_err());
    assert_eq!(check(pass, pass.keys.key(1), Expect::Here, None).unwrap(), 0);
    // The first key that a stream of misses requests is present.
    let (subject, mut rng) = (oracle(Kind::Table), Rng::new(pass.seed, pass.number, 0));
    subject.client().unwrap().insert(Sought::Absent.key(pass, &mut rng), 1).unwrap();
    let error = lookup_stream(&*subject, pass, 10, Sought::Absent).unwrap_err().to_string();
    assert!(error.contains("was never inserted, but the value"), "{error}");
}

#[test]
fn a_false_negative_ends_the_run_of_a_filter_and_a_false_positive_does_not() {
    let pass = pass(Kind::Filter, 2, 8);
    let subject = loaded(pass, 256);
    assert_eq!(delete(&*subject, pass, 0, 256).unwrap().changes, 256);
    let error = lookups(&*subject, pass, 10, Sought::Here(&Picker::new(256, None))).unwrap_err();
    assert!(error.to_string().contains("false negative"), "{error}");
    assert_eq!(check(pass, pass.keys.absent(1), Expect::Absent, Some(0)).unwrap(), 1);
}

#[test]
fn counts_of_a_load_are_one_each_in_single_calls_in_batches_and_in_a_stream() {
    let pass = pass(Kind::Filter, 2, 16);
    let subject = loaded(pass, 256);
    let picker = Picker::new(256, None);
    for (asks, batch) in [(Asks::Counts, 1), (Asks::ExactCounts, 1), (Asks::ExactCounts, 16)] {
        let pass = Pass { asks, batch, ..pass };
        let hits = lookups(&*subject, pass, 500, Sought::Here(&picker)).unwrap();
        let streamed = lookup_stream(&*subject, pass, 500, Sought::Here(&picker)).unwrap();
        let misses = lookups(&*subject, pass, 500, Sought::Absent).unwrap();
        assert_eq!([hits.hits, streamed.hits, misses.hits], [500, 500, 0]);
    }
    add_picked(&*subject, pass, 1000, &picker).unwrap();
    let exact = Pass { asks: Asks::ExactCounts, ..pass };
    let error = lookups(&*subject, exact, 500, Sought::Here(&picker)).unwrap_err().to_string();
    assert!(error.contains("was added once, but its count is"), "{error}");
    let error = check(exact, 7, Expect::Absent, Some(1)).unwrap_err().to_string();
    assert!(error.contains("was never added"), "{error}");
    assert_eq!(
        lookups(&*subject, Pass { asks: Asks::Counts, ..pass }, 9, Sought::Here(&picker))
            .unwrap()
            .hits,
        9
    );
}

#[test]
fn all_inserts_are_made_at_their_rate_and_lookups_last_as_long() {
    for batch in [1, 8] {
        let pass = pass(Kind::Table, 2, batch);
        let subject = loaded(pass, 1024);
        let next = AtomicU64::new(1024);
        let flow = Flow { inserts: 500, inserts_per_s: 10_000 };
        let picker = Picker::new(1024, None);
        let counters = lookups_during_inserts(&*subject, pass, &picker, flow, &next).unwrap();
        assert_eq!((counters.changes, next.into_inner()), (500, 1524));
        assert!(counters.lookups > 0 && counters.hits == counters.lookups);
        assert!(counters.seconds > 0.0);
        assert_eq!(counters.change_ns.summary().unwrap().count, 500);
        let all = lookups(&*subject, pass, 500, Sought::Here(&Picker::new(1524, None))).unwrap();
        assert_eq!(all.hits, 500);
    }
}
