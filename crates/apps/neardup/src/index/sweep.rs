//! Power cuts after every operation of an index's life, and the state that the next opening finds.

use std::sync::Arc;

use nandex::device::Device;
use nandex::raw::slicelsh;
use nandex::{AnyNeighbors, OpenOptions, Threads, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_sim::{Cut, Image, SimDevice};

use super::tests::{CONFIG, Verdicts, made, options, update};
use super::*;
use crate::Document;

/// The documents of a batch, few enough that a step has several batches.
const BATCH: usize = 4;

/// One in this many recoveries is cut itself, at every operation of this many.
const DEEPER: u64 = 40;
const STRIDE: usize = 5;

fn inline() -> OpenOptions {
    OpenOptions::default().inline()
}

fn create(device: Arc<dyn Device>) -> Index {
    let (threads, log_bytes) = (Threads::Inline, 4 << 20);
    let volume_options = VolumeOptions { threads, log_bytes, ..VolumeOptions::tiny() };
    let volume_options = VolumeOptions { volume_id: Some(7), ..volume_options };
    let volume_options = VolumeOptions { log_block_bytes: 128 << 10, ..volume_options };
    let volume = Volume::create(device, volume_options).unwrap();
    let family = options().family().unwrap();
    let tiny = slicelsh::Config {
        tables: family.tables(),
        bucket_ids_max: 64,
        policy: nandex::WhenFull::Refuse,
        entries_max: 2 * 200 * family.tables(),
        buffer_entries: 120,
        family: family.encode(),
        ..slicelsh::Config::tiny()
    };
    let alike = AnyNeighbors::create_with(&volume, "neardup-alike", &tiny.into(), &inline());
    let tables =
        Tables::create_over(&volume, (&CONFIG, &Stated::default()), alike.unwrap()).unwrap();
    limited(Index::begin(&volume, (&options(), family), (CONFIG, tables)).unwrap())
}

fn open(device: Arc<dyn Device>) -> Index {
    let options = VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
    limited(Index::open_in(&Volume::open(device, options).unwrap(), CONFIG).unwrap())
}

fn limited(index: Index) -> Index {
    Index { batch_documents: BATCH, ..index }
}

/// A step in the life of an index.
#[derive(Clone, Debug)]
enum Step {
    Add(std::ops::Range<usize>),
    Remove(Vec<usize>),
}

/// The content before a step, and the decisions of the step.
#[derive(Clone, Debug)]
struct Life {
    documents: Vec<Document>,
    /// The places of the documents in the index.
    has: Vec<usize>,
    /// The decision on each.
    verdicts: Vec<(usize, Verdict)>,
}

impl Life {
    fn numbered(&self, found: Verdicts) -> Vec<(usize, Verdict)> {
        let place = |id: &str| self.documents.iter().position(|it| it.id == id).unwrap();
        found.into_iter().map(|(id, verdict)| (place(&id), verdict)).collect()
    }

    fn run(&self, step: &Step, index: &mut Index) -> Vec<(usize, Verdict)> {
        match step {
            Step::Add(range) => {
                let found = update(index, &self.documents[range.clone()], Repeats::Skip);
                self.numbered(found.unwrap())
            }
            Step::Remove(places) => {
                let ids: Vec<&str> = places.iter().map(|it| &self.documents[*it].id[..]).collect();
                index.remove(&ids).unwrap();
                Vec::new()
            }
        }
    }

    fn after(&self, step: &Step, decided: &[(usize, Verdict)]) -> Self {
        let mut next = self.clone();
        match step {
            Step::Add(range) => {
                next.has.extend(range.clone());
                next.verdicts.extend_from_slice(decided);
            }
            Step::Remove(places) => {
                next.has.retain(|it| !places.contains(it));
                next.verdicts.retain(|(it, _)| !places.contains(it));
            }
        }
        next
    }
}

/// Opens the image after a cut, checks it, and does the rest of the step. Returns the cuts during that.
fn survive(image: Image, step: &Step, (before, after): (&Life, &Life), story: &str) -> Vec<Cut> {
    let device = SimDevice::instant().with_image(image);
    device.record_cuts();
    let mut index = open(Arc::new(device.clone()));
    let count = index.documents() as usize;
    let (first, last) = (before.has.len(), after.has.len());
    let changed = (0..first.abs_diff(last)).step_by(BATCH).chain([first.abs_diff(last)]);
    let allowed: Vec<usize> = match step {
        Step::Add(_) => changed.map(|more| first + more).collect(),
        Step::Remove(_) => changed.map(|gone| first - gone).collect(),
    };
    assert!(allowed.contains(&count), "{story}: {count} documents, of {allowed:?}");
    let found = before.run(step, &mut index);
    check(&mut index, (after, &found), story);
    drop(index);
    let cuts = device.take_cuts();
    check(&mut open(Arc::new(device)), (after, &found), story);
    cuts
}

/// Checks that an index has exactly these documents, with these decisions, and finds each by its text.
#[track_caller]
fn check(index: &mut Index, (life, decided): (&Life, &[(usize, Verdict)]), story: &str) {
    assert_eq!(index.documents() as usize, life.has.len(), "{story}");
    for pair in decided {
        assert!(life.verdicts.contains(pair), "{story}: {pair:?}");
    }
    let documents: Vec<Document> = life.has.iter().map(|it| life.documents[*it].clone()).collect();
    let texts: Vec<&str> = documents.iter().map(|it| &it.text[..]).collect();
    let near = index.query(&texts).unwrap();
    for (document, near) in documents.iter().zip(near) {
        let is_exact = near.matches.first().is_some_and(|it| it.is_exact);
        let is_first = near.matches.first().is_some_and(|it| it.id == document.id);
        let verdict = life.verdicts.iter().find(|it| life.documents[it.0].id == document.id);
        let is_kept = verdict.is_some_and(|it| it.1 == Verdict::Kept);
        assert!(is_exact || !is_kept, "{story}: {} is not found", document.id);
        assert!(is_first || !is_kept, "{story}: {} for {}", near.matches[0].id, document.id);
    }
    // The same again changes nothing.
    let before = index.documents();
    let again = life.numbered(update(index, &documents, Repeats::Skip).unwrap());
    for (place, verdict) in again {
        let expected = life.verdicts.iter().find(|it| it.0 == place).unwrap();
        let is_for_gone = verdict == Verdict::RemovedForGone;
        assert!(is_for_gone || verdict == expected.1, "{story}: {verdict:?}, not {expected:?}");
    }
    assert_eq!(index.documents(), before, "{story}");
}

#[test]
fn after_a_power_cut_at_any_operation_whole_batches_count_and_the_rest_can_be_done() {
    let steps = [
        Step::Add(0..24),
        Step::Add(24..28),
        Step::Remove(vec![0, 3, 5, 25]),
        Step::Add(28..36),
        // Three batches, of which the last is short.
        Step::Remove(vec![35, 1, 2, 28, 8, 9, 26, 10, 31, 34]),
        Step::Add(3..4),
    ];
    let device = SimDevice::instant();
    device.record_cuts();
    let mut index = create(Arc::new(device.clone()));
    // The remains of an index that is not created yet are of no use.
    let _ = device.take_cuts();
    let mut life = Life { documents: made(36, 6), has: Vec::new(), verdicts: Vec::new() };
    let mut cuts = 0_u64;
    for step in &steps {
        let decided = life.run(step, &mut index);
        let after = life.after(step, &decided);
        for cut in device.take_cuts() {
            for seed in [0, 1, 2 + cuts] {
                let story = format!("{step:?} cut after {} operations, {seed}", cut.operation);
                let again = survive(cut.survivors(seed), step, (&life, &after), &story);
                // Some recoveries are cut, too.
                let some = again.iter().filter(|_| cuts.is_multiple_of(DEEPER)).step_by(STRIDE);
                for second in some {
                    let story = format!("{story}, and again after {}", second.operation);
                    survive(second.survivors(seed), step, (&life, &after), &story);
                }
            }
            cuts += 1;
        }
        life = after;
        check(&mut index, (&life, &[]), "no cut");
        let _ = device.take_cuts();
    }
    assert!(cuts > 60, "{cuts} cuts");
}
