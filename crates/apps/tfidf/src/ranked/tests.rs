//! Rank indexes compared with scans of the same documents.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::raw::device::Counted;
use nandex::{Threads, Volume, VolumeOptions};
use proptest::prelude::*;

use super::*;
use crate::{Analysis, CorpusConfig, Document, DocumentLimit, Norm, RAM_BYTES_MIN, Repeats};

const CONFIG: CorpusConfig = CorpusConfig { ram_bytes: RAM_BYTES_MIN };

fn documents(texts: &[String]) -> Vec<Document> {
    (0..).zip(texts).map(|(n, text)| Document::new(format!("d{n}"), text.as_str())).collect()
}

type Flash = Arc<Counted<MemoryDevice>>;

fn empty(analysis: &Analysis) -> (Corpus, Flash) {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    // Without threads of its own, as the tests count operations of the device.
    let (threads, log_bytes, hash_key) = (Threads::Inline, 16 << 20, Some(42));
    let options = VolumeOptions { threads, log_bytes, hash_key, ..VolumeOptions::default() };
    let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
    (Corpus::create_in(&volume, analysis, CONFIG).unwrap(), device)
}

fn add(corpus: &mut Corpus, documents: &[Document]) {
    corpus.update(documents.iter().cloned().map(Ok), Repeats::Refuse).unwrap();
}

fn make(corpus: &mut Corpus, documents: &[Document], indexing: &Indexing) -> Indexed {
    corpus.index(documents.iter().cloned().map(Ok), indexing, None).unwrap()
}

/// Returns the answer of the rank index, which must equal that of a scan, bit for bit.
#[track_caller]
fn checked(
    corpus: &Corpus,
    documents: &[Document],
    (query, count): (&str, usize),
    indexing: &Indexing,
) -> RankAnswer {
    let (selection, weighting) = (&indexing.selection, indexing.weighting);
    let answer = RankIndex::of(corpus, selection, weighting).unwrap().rank(query, count).unwrap();
    let model = Model::fit(corpus, selection, weighting, None).unwrap();
    let scanned = model.rank(query, documents.iter().cloned().map(Ok), count).unwrap();
    let bits = |all: &[Ranked]| -> Vec<(String, u64, u64)> {
        all.iter().map(|it| (it.id.clone(), it.number, it.cosine.to_bits())).collect()
    };
    assert_eq!(bits(&answer.ranked), bits(&scanned), "{query:?} {count} {indexing:?}");
    answer
}

fn texts() -> Vec<String> {
    ["red fish red", "blue fish", "green fish blue", "", "red"].map(str::to_owned).to_vec()
}

#[test]
fn an_index_ranks_as_a_scan_does_with_every_option() {
    let documents = documents(&texts());
    let (mut corpus, _) = empty(&Analysis::default().ngrams(1, 2));
    add(&mut corpus, &documents);
    let usual = Weighting::default();
    for weighting in [
        usual,
        Weighting { norm: Norm::L1, ..usual },
        Weighting { norm: Norm::None, sublinear_tf: true, ..usual },
        Weighting { use_idf: false, binary: true, ..usual },
        Weighting { smooth_idf: false, ..usual },
    ] {
        for selection in [
            Selection::default(),
            Selection { min_df: DocumentLimit::Count(2), ..Selection::default() },
            Selection { max_features: Some(3), ..Selection::default() },
        ] {
            let indexing = Indexing { selection, weighting, source: "texts".into() };
            let figures = make(&mut corpus, &documents, &indexing);
            assert_eq!(figures.documents, 5);
            for query in ["red", "blue fish", "fish red fish blue", "", "nothing of it", "green"] {
                for count in [0, 1, 2, 9] {
                    checked(&corpus, &documents, (query, count), &indexing);
                }
            }
            let index = RankIndex::of(&corpus, &selection, weighting).unwrap();
            assert_eq!((index.source(), index.figures()), ("texts", figures));
        }
    }
}

#[test]
fn only_documents_that_share_a_term_are_weighed() {
    let documents = documents(&texts());
    let (mut corpus, _) = empty(&Analysis::default());
    add(&mut corpus, &documents);
    let indexing = Indexing::default();
    let figures = make(&mut corpus, &documents, &indexing);
    assert_eq!((figures.terms, figures.postings), (4, 2 + 2 + 3 + 1));
    let found = |query| checked(&corpus, &documents, (query, 9), &indexing).documents;
    assert_eq!((found("red"), found("fish red"), found("none")), (2, 4, 0));
}

#[test]
fn other_documents_than_those_that_were_counted_can_be_ranked() {
    let counted = documents(&texts());
    let (mut corpus, _) = empty(&Analysis::default());
    add(&mut corpus, &counted);
    // Green is in no document here, and in the row of the query.
    let ranked = documents(&["fish unknown".into(), "blue blue".into()]);
    let indexing = Indexing::default();
    assert_eq!(make(&mut corpus, &ranked, &indexing).postings, 2);
    for query in ["green fish", "green", "unknown fish", "blue"] {
        checked(&corpus, &ranked, (query, 9), &indexing);
    }
}

#[test]
fn an_index_goes_when_documents_come_or_go_and_says_so() {
    let documents = documents(&texts());
    let (mut corpus, _) = empty(&Analysis::default());
    add(&mut corpus, &documents[..4]);
    let indexing = Indexing::default();
    let why = |corpus: &Corpus, weighting| {
        RankIndex::of(corpus, &indexing.selection, weighting).unwrap_err()
    };
    let usual = indexing.weighting;
    assert_eq!(why(&corpus, usual), NoRankIndex::Missing);
    make(&mut corpus, &documents[..4], &indexing);
    let other = why(&corpus, Weighting { sublinear_tf: true, ..usual });
    assert!(matches!(&other, NoRankIndex::OtherOptions { .. }));
    assert!(other.to_string().contains("\"sublinear_tf\":true"), "{other}");
    checked(&corpus, &documents[..4], ("red", 9), &indexing);
    add(&mut corpus, &documents[4..]);
    assert_eq!(why(&corpus, usual), NoRankIndex::Stale);
    make(&mut corpus, &documents, &indexing);
    checked(&corpus, &documents, ("red", 9), &indexing);
    // A run that skips everything changes nothing, and neither does a second index.
    corpus.update(documents.iter().cloned().map(Ok), Repeats::Skip).unwrap();
    make(&mut corpus, &documents, &indexing);
    checked(&corpus, &documents, ("red", 9), &indexing);
    corpus.remove([Ok(documents[1].clone())]).unwrap();
    assert_eq!(why(&corpus, usual), NoRankIndex::Stale);
    let (mut more, _) = empty(&Analysis::default());
    add(&mut more, &[Document::new("other", "red moon")]);
    make(&mut corpus, &documents, &indexing);
    corpus.merge(&more).unwrap();
    assert_eq!(why(&corpus, usual), NoRankIndex::Stale);
}

#[test]
fn an_index_that_fails_on_the_way_leaves_the_old_one() {
    let documents = documents(&texts());
    let (mut corpus, _) = empty(&Analysis::default());
    add(&mut corpus, &documents);
    let indexing = Indexing::default();
    make(&mut corpus, &documents, &indexing);
    let error = nandex_corpus::Error::Malformed { document: "3".into(), reason: "bad".into() };
    let failing = documents[..2].iter().cloned().map(Ok).chain([Err(error)]);
    corpus.index(failing, &indexing, None).unwrap_err();
    checked(&corpus, &documents, ("red", 9), &indexing);
}

/// Creates documents of a few common words and many words of their own.
fn many(count: u32) -> Vec<Document> {
    let text = |n: u32| {
        let own: Vec<String> = (0..20).map(|word| format!("w{:06}", n * 13 + word * 7)).collect();
        format!("all common{} {}", n % 10, own.join(" "))
    };
    documents(&(0..count).map(text).collect::<Vec<_>>())
}

#[test]
fn a_query_reads_the_postings_of_its_terms_and_says_what_it_read() {
    const DOCUMENTS: u32 = 5000;
    let documents = many(DOCUMENTS);
    let (mut corpus, device) = empty(&Analysis::default());
    add(&mut corpus, &documents);
    let indexing = Indexing::default();
    let before = device.snapshot();
    let figures = make(&mut corpus, &documents, &indexing);
    let cost = device.snapshot().since(&before);
    println!("{figures:?}, {cost:?}");
    assert_eq!(figures.postings, u64::from(DOCUMENTS) * 22);
    // 20 gaps of two bytes and more, one of a byte and one of less; the terms; 24 bytes and an id.
    assert!(figures.bytes < figures.postings * 12, "{figures:?}");
    let pages = figures.bytes.div_ceil(4096);
    // Each byte once, with headers and the ends of pages and of writes.
    assert!(cost.pages_written < pages + pages / 8 + 16, "{cost:?} of {pages} pages");
    // A write has 16 pages, as the segments of a new log, except for the ends, the tables and the states.
    assert!(cost.writes < pages / 16 + 32, "{cost:?} of {pages} pages");
    let read = |query: &str| {
        let before = device.snapshot();
        let index = RankIndex::of(&corpus, &indexing.selection, indexing.weighting).unwrap();
        let answer = index.rank(query, 10).unwrap();
        let cost = device.snapshot().since(&before);
        println!("{query:?}: {} documents, {cost:?}", answer.documents);
        assert_eq!((answer.reads, answer.pages_read), (cost.reads, cost.pages_read), "{query}");
        checked(&corpus, &documents, (query, 10), &indexing);
        answer
    };
    // The tree has at most 3 levels; a term of 20 documents is a list, in one block, and some blocks of lengths.
    let rare = read("w001300");
    assert!(rare.documents < 30 && rare.reads <= 3 + 2 + 2 * rare.documents, "{rare:?}");
    // All documents: one byte each, lengths, and ten ids.
    let all = read("all");
    assert_eq!(all.documents, u64::from(DOCUMENTS));
    let blocks = u64::from(DOCUMENTS) / 682 + 1 + u64::from(DOCUMENTS) / (16 << 10) + 1;
    assert!(all.reads <= blocks + 4 + 10 * 4, "{all:?}");
    assert_eq!(read("absent").documents, 0);
    read("all common3 w000500 w000507");
}

#[test]
fn terms_longer_than_nodes_and_ids_longer_than_blocks_are_found() {
    let long = |letter: &str, bytes: usize| letter.repeat(bytes);
    let texts: Vec<String> =
        ["a", "b", "c", "d"].map(|letter| long(letter, 40_000) + " zz").to_vec();
    let mut documents = documents(&texts);
    documents[2].id = long("i", 50_000);
    documents[3].id = String::new();
    let (mut corpus, _) = empty(&Analysis::default());
    add(&mut corpus, &documents);
    let indexing = Indexing::default();
    make(&mut corpus, &documents, &indexing);
    for query in [&long("a", 40_000), &long("c", 40_000), &long("d", 40_000), "zz", "bb", "zzz"] {
        checked(&corpus, &documents, (query, 9), &indexing);
    }
}

#[test]
fn a_damaged_block_is_an_error() {
    let documents = documents(&texts());
    let (mut corpus, _) = empty(&Analysis::default());
    add(&mut corpus, &documents);
    let indexing = Indexing::default();
    make(&mut corpus, &documents, &indexing);
    let index = RankIndex::of(&corpus, &indexing.selection, indexing.weighting).unwrap();
    for section in crate::corpus::Section::ALL {
        let whole = index.blocks.get_many(section, 0..1).unwrap().remove(0);
        for damaged in [&whole[..whole.len() - 1], &[], &vec![0xff; whole.len()]] {
            index.blocks.put(section, 0, damaged).unwrap();
            let error = index.rank("red fish green blue", 9).unwrap_err();
            assert!(matches!(error, crate::Error::Contradiction { .. }), "{section:?}: {error}");
        }
        index.blocks.put(section, 0, &whole).unwrap();
    }
    index.rank("red fish green blue", 9).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_documents_are_ranked_as_a_scan_does(
        // At least two: of one document no term is in two, which fails.
        texts in proptest::collection::vec("[a-d]{2}( [a-d]{2}){0,9}|", 2..40),
        queries in proptest::collection::vec("[a-d]{2}( [a-d]{2}){0,5}", 1..6),
        (norm, sublinear_tf, use_idf) in (0..3_usize, any::<bool>(), any::<bool>()),
        min_df in 1..3_u64,
    ) {
        let norm = [Norm::L2, Norm::L1, Norm::None][norm];
        let weighting = Weighting { norm, sublinear_tf, use_idf, ..Weighting::default() };
        let min_df = DocumentLimit::Count(min_df);
        let selection = Selection { min_df, ..Selection::default() };
        let indexing = Indexing { selection, weighting, source: String::new() };
        let documents = documents(&texts);
        let (mut corpus, _) = empty(&Analysis::default().ngrams(1, 3));
        add(&mut corpus, &documents);
        let made = corpus.index(documents.iter().cloned().map(Ok), &indexing, None);
        if let Err(error) = made {
            prop_assert!(matches!(error, crate::Error::NoTerms { .. }), "{}", error);
            return Ok(());
        }
        for query in &queries {
            for count in [1, 5, 100] {
                checked(&corpus, &documents, (query, count), &indexing);
            }
        }
    }
}
