//! Power cuts after every operation of an index's life, and the state that the next opening finds.

use std::sync::Arc;

use nandex::{VolumeOpenOptions, VolumeOptions};
use nandex_sim::{Cut, Image, SimDevice};

use super::tests::{Slow, options, queried, row, scanned};
use super::*;
use crate::numbers::Numbers;

/// One in this many recoveries is cut itself, at every operation of this many.
const DEEPER: usize = 8;
const STRIDE: usize = 4;

fn create(device: Arc<dyn Device>) -> LshIndex {
    let tiny = VolumeOptions { volume_id: Some(7), ..VolumeOptions::tiny() };
    let volume_options = VolumeOptions {
        threads: Threads::Inline,
        log_bytes: 4 << 20,
        log_block_bytes: 128 << 10,
        ..tiny
    };
    LshIndex::create_in(&Volume::create(device, volume_options).unwrap(), options()).unwrap()
}

fn open(device: Arc<dyn Device>) -> LshIndex {
    let inline = VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
    LshIndex::open_in(&Volume::open(device, inline).unwrap(), options()).unwrap()
}

/// A step in the life of an index.
#[derive(Clone, Debug)]
enum Step {
    /// Adds these documents, one by one.
    Add(std::ops::Range<usize>),
    /// Adds these as one batch.
    AddMany(std::ops::Range<usize>),
    Remove(std::ops::Range<usize>),
    /// Removes these as one batch.
    RemoveMany(std::ops::Range<usize>),
    Sync,
}

fn documents() -> Slow {
    let mut numbers = Numbers(3);
    let documents = (0..300).map(|it: u32| (it.to_string().into_bytes(), row(&mut numbers)));
    Slow { documents: documents.collect() }
}

impl Step {
    fn run(&self, index: &LshIndex, all: &Slow) {
        let insert = |names: &[&[u8]], keys: &[u64]| {
            // A repeated step finds some of its documents.
            let known = index.contains_many(names).unwrap();
            if known.iter().all(|it| !it) {
                index.insert_many(names, keys, Repeats::Refuse).unwrap();
            }
        };
        match self {
            Self::Add(range) => {
                let documents = &all.documents[range.clone()];
                documents.iter().for_each(|(name, keys)| insert(&[name], keys));
            }
            Self::AddMany(range) => {
                for documents in all.documents[range.clone()].chunks(1) {
                    let (name, _) = &documents[0];
                    if index.contains_many(&[name]).unwrap()[0] {
                        index.remove(name).unwrap();
                    }
                }
                let documents = &all.documents[range.clone()];
                let names: Vec<&[u8]> = documents.iter().map(|it| &it.0[..]).collect();
                let keys: Vec<u64> = documents.iter().flat_map(|it| it.1.clone()).collect();
                insert(&names, &keys);
            }
            Self::Remove(range) => {
                for (name, _) in &all.documents[range.clone()] {
                    index.remove(name).unwrap();
                }
            }
            Self::RemoveMany(range) => {
                let names = all.documents[range.clone()].iter().map(|(name, _)| &name[..]);
                index.remove_many(&names.collect::<Vec<_>>()).unwrap();
            }
            Self::Sync => index.sync().unwrap(),
        }
    }

    /// Returns the places of documents after the step, if those are present before it.
    fn after(&self, before: &[usize]) -> Vec<usize> {
        let mut after = before.to_vec();
        match self {
            Self::Add(range) | Self::AddMany(range) => after.extend(range.clone()),
            Self::Remove(range) | Self::RemoveMany(range) => {
                after.retain(|it| !range.contains(it));
            }
            Self::Sync => {}
        }
        after
    }
}

/// Returns which documents of these places an index has: each is complete, in all of its buckets, or absent.
#[track_caller]
fn found(index: &LshIndex, all: &Slow, story: &str) -> Vec<usize> {
    let mut there = Vec::new();
    for record in scanned(index) {
        let place: usize = std::str::from_utf8(&record.name).unwrap().parse().unwrap();
        assert_eq!(record.keys, all.documents[place].1, "{story}: {place}");
        there.push(place);
    }
    let mut own = Slow::default();
    there.iter().for_each(|it| own.insert(&all.documents[*it].0, &all.documents[*it].1));
    let rows: Vec<u64> = all.documents.iter().flat_map(|(_, keys)| keys.clone()).collect();
    let expected: Vec<_> = all.documents.iter().map(|(_, keys)| own.query(keys)).collect();
    assert!(queried(index, &rows) == expected, "{story}: other candidates");
    let names: Vec<&[u8]> = all.documents.iter().map(|it| &it.0[..]).collect();
    let expected: Vec<bool> = (0..names.len()).map(|place| there.contains(&place)).collect();
    assert!(index.contains_many(&names).unwrap() == expected, "{story}: other names");
    assert_eq!(index.documents() as usize, there.len(), "{story}");
    there.sort_unstable();
    there
}

/// Opens the image after a cut, checks it, and does the rest of the step. Returns the cuts during that.
fn survive(image: Image, step: &Step, (durable, all): (&[usize], &Slow), story: &str) -> Vec<Cut> {
    let device = SimDevice::instant().with_image(image);
    device.record_cuts();
    let index = open(Arc::new(device.clone()));
    let there = found(&index, all, story);
    let after = step.after(durable);
    let removes =
        |place| matches!(step, Step::Remove(it) | Step::RemoveMany(it) if it.contains(place));
    for place in durable {
        assert!(there.contains(place) || removes(place), "{story}: {place} has gone");
    }
    step.run(&index, all);
    index.close().unwrap();
    let cuts = device.take_cuts();
    let there = found(&open(Arc::new(device)), all, story);
    assert!(after.iter().all(|place| there.contains(place)), "{story}: {after:?}, not {there:?}");
    cuts
}

#[test]
fn after_a_power_cut_at_any_operation_documents_are_whole_and_what_was_synced_is_there() {
    let all = documents();
    let steps = [
        Step::Add(0..20),
        Step::Sync,
        Step::AddMany(20..120),
        Step::Sync,
        Step::Remove(5..25),
        Step::Sync,
        // More than the capacity of the first generation.
        Step::AddMany(120..240),
        Step::Sync,
        Step::Add(240..250),
        Step::Sync,
        Step::RemoveMany(30..60),
        Step::Add(250..260),
        Step::Sync,
        Step::Remove(190..210),
        Step::Sync,
        Step::AddMany(260..300),
        Step::Sync,
        // Over several blocks, some of them in each generation.
        Step::RemoveMany(100..250),
        Step::Sync,
    ];
    let device = SimDevice::instant();
    device.record_cuts();
    let index = create(Arc::new(device.clone()));
    // The remains of an index that is not created yet are of no use.
    let _ = device.take_cuts();
    let (mut now, mut durable, mut cuts) = (Vec::new(), Vec::new(), 0);
    for step in &steps {
        step.run(&index, &all);
        now = step.after(&now);
        // Documents whose removal is not durable yet may still exist.
        let certain: Vec<usize> = now.iter().copied().filter(|it| durable.contains(it)).collect();
        for cut in device.take_cuts() {
            for seed in [cuts as u64 % 2, 2 + cuts as u64] {
                let story = format!("{step:?} cut after {} operations, {seed}", cut.operation);
                let again = survive(cut.survivors(seed), step, (&certain, &all), &story);
                // Some recoveries are cut, too.
                let some = again.iter().filter(|_| cuts % DEEPER == 0).step_by(STRIDE);
                for second in some {
                    let story = format!("{story}, and again after {}", second.operation);
                    survive(second.survivors(seed), step, (&certain, &all), &story);
                }
            }
            cuts += 1;
        }
        if matches!(step, Step::Sync) {
            durable.clone_from(&now);
        }
    }
    assert!(cuts >= 40, "{cuts} cuts");
    let there = found(&index, &all, "no cut");
    assert_eq!(there, now);
}
