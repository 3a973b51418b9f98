//! Power cuts after every operation of an index's life, and the state that the next opening finds.

use std::sync::Arc;

use nandex::device::Device;
use nandex::raw::device::Counted;
use nandex::{Threads, Volume, VolumeOpenOptions, VolumeOptions, WhenFull};
use nandex_sim::{Cut, Image, SimDevice};

use super::tests::{CONFIG, counted, listed};
use super::*;
use crate::{Document, Indexing, Model, RankIndex};

/// RAM of a batch, so that a few documents fill it.
const BATCH_BYTES: usize = 12_000;

/// The number of runs at which they are merged.
const RUNS_MAX: usize = 3;

/// One in this many recoveries is cut itself, at every operation of this many.
const DEEPER: u64 = 40;
const STRIDE: usize = 5;

fn create(device: Arc<dyn Device>, analysis: &Analysis, values: ValuesConfig) -> Corpus {
    let (threads, log_bytes) = (Threads::Inline, 2 << 20);
    let options = VolumeOptions { threads, log_bytes, ..VolumeOptions::tiny() };
    let options = VolumeOptions { volume_id: Some(7), log_block_bytes: 128 << 10, ..options };
    let volume = Volume::create(device, options).unwrap();
    limited(Corpus::create_with(&volume, (analysis, &Stated::default()), CONFIG, values).unwrap())
}

/// A log of blocks that has to grow during the test.
fn short() -> ValuesConfig {
    let (segment_pages, segments, io_chunk_pages) = (2, 5, 1);
    ValuesConfig { segment_pages, segments, io_chunk_pages, when_full: WhenFull::Grow }
}

fn open(device: Arc<dyn Device>) -> Corpus {
    let options = VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
    let volume = Volume::open(device, options).unwrap();
    limited(Corpus::open_in(&volume, CONFIG).unwrap())
}

fn limited(corpus: Corpus) -> Corpus {
    Corpus { batch_bytes: BATCH_BYTES, runs_max: RUNS_MAX, ..corpus }
}

fn analysis() -> Analysis {
    Analysis::default().ngrams(1, 2)
}

fn document(number: u32) -> Document {
    // Long words, so that their blocks fill the log and are longer than its first segments.
    let long = "x".repeat(80);
    let text = format!("own{number}{long} red fish own{} all own{number}{long}", number % 5);
    Document::new(format!("d{number}"), text)
}

/// A step in the life of an index: documents are added or removed, by their numbers, one by one; or all of another
/// index are merged; or a rank index is created.
#[derive(Clone, Debug)]
enum Step {
    Add(Vec<u32>),
    Remove(Vec<u32>),
    Merge(Vec<u32>),
    Index,
}

impl Step {
    /// Runs the step, or the rest of it.
    fn run(&self, corpus: &mut Corpus, has: &[u32]) -> Result<()> {
        let documents = |numbers: &[u32]| -> Vec<_> {
            numbers.iter().map(|number| Ok(document(*number))).collect()
        };
        match self {
            Self::Add(numbers) => corpus.update(documents(numbers), Repeats::Skip).map(drop),
            Self::Remove(numbers) => {
                let left = numbers.iter().copied().filter(|number| has.contains(number));
                corpus.remove(documents(&left.collect::<Vec<_>>())).map(drop)
            }
            Self::Merge(numbers) if numbers.iter().all(|number| has.contains(number)) => Ok(()),
            Self::Merge(numbers) => {
                let mut other = create(Arc::new(SimDevice::instant()), &analysis(), short());
                other.update(documents(numbers), Repeats::Refuse)?;
                corpus.merge(&other)
            }
            Self::Index => {
                let indexing = Indexing { source: format!("{has:?}"), ..Indexing::default() };
                corpus.index(documents(has), &indexing, None).map(drop)
            }
        }
    }

    /// Returns the possible contents of an index after a part of the step, given its content before.
    fn outcomes(&self, before: &[u32]) -> Vec<Vec<u32>> {
        let with = |numbers: &[u32]| [before, numbers].concat();
        match self {
            Self::Add(numbers) => (0..=numbers.len()).map(|len| with(&numbers[..len])).collect(),
            Self::Merge(numbers) => vec![before.to_vec(), with(numbers)],
            Self::Index => vec![before.to_vec()],
            Self::Remove(numbers) => {
                let without = |len: usize| {
                    let stays = |number: &&u32| !numbers[..len].contains(number);
                    before.iter().filter(stays).copied().collect()
                };
                (0..=numbers.len()).map(without).collect()
            }
        }
    }
}

/// Returns the numbers of the documents that an index has, which must be one of `outcomes`: every count and its table
/// of documents must agree.
#[track_caller]
fn found(corpus: &Corpus, outcomes: &[Vec<u32>], story: &str) -> Vec<u32> {
    let count = usize::try_from(corpus.documents()).unwrap();
    let outcome = outcomes.iter().find(|outcome| outcome.len() == count);
    let outcome = outcome.unwrap_or_else(|| panic!("{story}: {count} documents"));
    let documents: Vec<Document> = outcome.iter().map(|number| document(*number)).collect();
    let expected = counted(&analysis(), &documents);
    assert_eq!(listed(corpus), expected, "{story}");
    let occurrences: u64 = expected.values().map(|it| it.occurrences).sum();
    assert_eq!(corpus.occurrences(), occurrences, "{story}");
    let mut ids: Vec<Vec<u8>> =
        corpus.documents.iter().map(|entry| entry.unwrap().0.to_vec()).collect();
    ids.sort_unstable();
    let mut wanted: Vec<Vec<u8>> =
        documents.iter().map(|it| TermKey::of(it.id.as_bytes()).0.to_vec()).collect();
    wanted.sort_unstable();
    assert_eq!(ids, wanted, "{story}");
    check_ranked(corpus, outcome, story);
    outcome.clone()
}

/// Checks that a rank index, if present, is whole, and of these documents.
#[track_caller]
fn check_ranked(corpus: &Corpus, has: &[u32], story: &str) {
    let Indexing { selection, weighting, .. } = Indexing::default();
    let Ok(index) = RankIndex::of(corpus, &selection, weighting) else { return };
    assert_eq!(index.source(), format!("{has:?}"), "{story}");
    let answer = index.rank("own3 red", usize::MAX).unwrap();
    let model = Model::fit(corpus, &selection, weighting, None).unwrap();
    let documents = has.iter().map(|number| Ok(document(*number)));
    let scanned = model.rank("own3 red", documents, usize::MAX).unwrap();
    assert_eq!((answer.ranked, answer.documents), (scanned, has.len() as u64), "{story}");
}

/// Opens the image after a cut, checks all of it, and does the rest of the step. Returns the cuts during that.
fn survive(image: Image, step: &Step, before: &[u32], story: &str) -> Vec<Cut> {
    let outcomes = step.outcomes(before);
    let device = SimDevice::instant().with_image(image);
    device.record_cuts();
    let mut corpus = open(Arc::new(device.clone()));
    let has = found(&corpus, &outcomes, story);
    step.run(&mut corpus, &has).unwrap();
    let all = &outcomes[outcomes.len() - 1..];
    found(&corpus, all, story);
    let is_ranked = corpus.ranked().0.is_some();
    assert_eq!(is_ranked, matches!(step, Step::Index), "{story}");
    drop(corpus);
    let cuts = device.take_cuts();
    found(&open(Arc::new(device)), all, story);
    cuts
}

#[test]
fn after_a_power_cut_at_any_operation_whole_batches_count_and_the_rest_can_be_done() {
    let steps = [
        Step::Add((0..40).collect()),
        Step::Add((40..44).collect()),
        Step::Remove((3..12).collect()),
        Step::Index,
        Step::Index,
        Step::Merge((100..120).collect()),
        Step::Add((3..6).collect()),
    ];
    let device = SimDevice::instant();
    device.record_cuts();
    let mut corpus = create(Arc::new(device.clone()), &analysis(), short());
    // The remains of an index that is not created yet are of no use.
    let _ = device.take_cuts();
    let (mut has, mut cuts, mut commits) = (Vec::new(), 0_u64, std::collections::BTreeSet::new());
    for step in &steps {
        step.run(&mut corpus, &has).unwrap();
        for cut in device.take_cuts() {
            for seed in [0, 1, 2 + cuts] {
                let story = format!("{step:?} cut after {} operations, {seed}", cut.operation);
                let again = survive(cut.survivors(seed), step, &has, &story);
                // Some recoveries are cut, too.
                let some = again.iter().filter(|_| cuts.is_multiple_of(DEEPER)).step_by(STRIDE);
                for second in some {
                    let story = format!("{story}, and again after {}", second.operation);
                    survive(second.survivors(seed), step, &has, &story);
                }
            }
            cuts += 1;
        }
        has = step.outcomes(&has).pop().unwrap();
        assert_eq!(found(&corpus, std::slice::from_ref(&has), "no cut"), has);
        commits.insert(corpus.state.next_run);
        let _ = device.take_cuts();
    }
    assert!(cuts > 100, "{cuts} cuts");
    assert!(corpus.blocks.table().stats().values.growths > 0, "the log never grew");
    assert!(corpus.state.generation > 1 && commits.len() == steps.len(), "{:?}", corpus.state);
}

/// Creates a document of a thousand terms.
fn long(number: u32) -> Document {
    let terms: Vec<String> = (0..1000).map(|n| format!("t{:05}", number * 500 + n)).collect();
    Document::new(format!("long{number}"), terms.join(" "))
}

#[test]
fn a_batch_reads_nothing_for_its_terms_and_writes_them_once() {
    let device = Arc::new(Counted::new(SimDevice::instant()));
    let sizes = growing_values();
    let corpus = create(Arc::clone(&device) as Arc<dyn Device>, &Analysis::default(), sizes);
    let mut corpus = Corpus { batch_bytes: 1 << 20, runs_max: 48, ..corpus };
    corpus.update((0..40).map(|number| Ok(long(number))), Repeats::Refuse).unwrap();
    assert_eq!((corpus.state.terms().0, corpus.state.runs.len()), (20_500, 0));
    let before = device.snapshot();
    corpus.update((40..45).map(|number| Ok(long(number))), Repeats::Refuse).unwrap();
    let cost = device.snapshot().since(&before);
    assert_eq!(corpus.state.runs.len(), 1);
    // 3,000 different terms of 6 bytes, with 3 more each, are 7 pages; each sync writes a page or two. What is
    // read are records that are replaced, few whatever the number of terms.
    assert_eq!(corpus.state.runs[0].terms, 3000);
    assert!(cost.pages_read <= 8 && cost.pages_written <= 40, "{cost:?}");
    assert!(cost.syncs <= 16, "{cost:?}");
    // A term's counts: a page of each table, and a block of the run, of which it needs the first places, too.
    let before = device.snapshot();
    corpus.frequencies(&["t20499"]).unwrap();
    let cost = device.snapshot().since(&before);
    assert!(cost.reads <= 4 + 2, "{cost:?}");
}
