//! Indexes that version 2 of the format wrote, stored packed: they open, give the same answers, and continue.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use nandex::device::MemoryDevice;
use nandex::{Threads, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_tfidf::{
    Analysis, Corpus, CorpusConfig, Document, DocumentResult, Indexing, Model, NoRankIndex,
    RAM_BYTES_MIN, RankIndex, Ranked, Repeats, StopWords,
};

/// One was closed, and the other was left in a crash, after its last batch was made durable.
const FIXTURES: [&str; 2] = ["v2-tfidf-closed", "v2-tfidf-crash"];

const CONFIG: CorpusConfig = CorpusConfig { ram_bytes: RAM_BYTES_MIN };

/// The numbers of all documents, of the removed ones, and of those in the first batch.
const DOCUMENTS: u32 = 60;
const REMOVED: u32 = 3;
const FIRST: u32 = 50;

fn analysis() -> Analysis {
    let stop_words = StopWords::List(["the".to_owned()].into());
    Analysis { stop_words, ..Analysis::default().ngrams(1, 2) }
}

fn document(number: u32) -> Document {
    let text = format!("The own{number} red {} fish{} all all", "é".repeat(2), number % 7);
    Document::new(format!("d{number}"), text)
}

fn documents(numbers: std::ops::Range<u32>) -> impl Iterator<Item = DocumentResult> {
    numbers.map(|number| Ok(document(number)))
}

/// Creates an index with counts in tables and in runs, a batch of removed documents, and a rank index.
fn write(is_closed: bool) -> Vec<u8> {
    let device = MemoryDevice::new();
    let (threads, log_bytes) = (Threads::Inline, 1 << 20);
    let options = VolumeOptions { threads, log_bytes, ..VolumeOptions::tiny() };
    let options = VolumeOptions { volume_id: Some(7), hash_key: Some(42), ..options };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let mut corpus = Corpus::create_in(&volume, &analysis(), CONFIG).unwrap();
    corpus.update(documents(0..FIRST), Repeats::Refuse).unwrap();
    corpus.update(documents(FIRST..DOCUMENTS), Repeats::Refuse).unwrap();
    corpus.remove(documents(0..REMOVED)).unwrap();
    let indexing = Indexing { source: "of then".into(), ..Indexing::default() };
    corpus.index(documents(REMOVED..DOCUMENTS), &indexing, None).unwrap();
    if !is_closed {
        return device.image();
    }
    corpus.close().unwrap();
    drop(volume);
    device.image()
}

/// Returns an unpacked fixture. If `NANDEX_FIXTURES` is `write` it is written again first; only a new version of the
/// format is a reason for that.
fn fixture(name: &str) -> Vec<u8> {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let path = fixtures.join(format!("{name}.img.gz"));
    if std::env::var("NANDEX_FIXTURES").is_ok_and(|what| what == "write") {
        let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::best());
        packed.write_all(&write(name.ends_with("closed"))).unwrap();
        packed.finish().unwrap();
    }
    let mut image = Vec::new();
    GzDecoder::new(File::open(&path).unwrap()).read_to_end(&mut image).unwrap();
    image
}

fn open(name: &str) -> Corpus {
    let image = fixture(name);
    let device = || Arc::new(MemoryDevice::from_image(image.clone()));
    let report = nandex::check(device(), None, &mut |_| {}).unwrap();
    assert!(report.ok(), "{name}: {:#?}", report.findings);
    let volume = Volume::open(device(), VolumeOpenOptions::default()).unwrap();
    Corpus::open_in(&volume, CONFIG).unwrap()
}

/// Returns the documents and occurrences of terms.
fn counts(corpus: &Corpus, terms: &[&str]) -> Vec<(u64, u64)> {
    let found = corpus.frequencies(terms).unwrap();
    found.into_iter().map(|it| (it.documents, it.occurrences)).collect()
}

#[test]
fn counts_are_what_they_were() {
    for name in FIXTURES {
        let corpus = open(name);
        let left = u64::from(DOCUMENTS - REMOVED);
        // Six words without the stop word, and five pairs.
        assert_eq!((corpus.documents(), corpus.occurrences()), (left, left * 11), "{name}");
        assert_eq!(corpus.analysis(), &analysis(), "{name}");
        let terms = ["all", "all all", "own0", "own3", "own59", "red éé", "the", "fish0"];
        // The numbers from 3 to 59 that 7 divides: 7 to 56.
        let expected =
            [(left, 2 * left), (left, left), (0, 0), (1, 1), (1, 1), (left, left), (0, 0), (8, 8)];
        assert_eq!(counts(&corpus, &terms), expected, "{name}");
        let summary = corpus.summary().unwrap();
        // own3 to own59, each with two pairs; seven of fish with two pairs; red, éé, all, red éé, all all.
        let own = (DOCUMENTS - REMOVED) as u64;
        assert_eq!(summary.terms, own * 2 + 7 * 3 + 5, "{name}");
    }
}

#[test]
fn ranks_are_what_a_scan_says() {
    for name in FIXTURES {
        let corpus = open(name);
        let Indexing { selection, weighting, .. } = Indexing::default();
        let index = RankIndex::of(&corpus, &selection, weighting).unwrap();
        assert_eq!((index.source(), index.figures().documents), ("of then", 57), "{name}");
        let model = Model::fit(&corpus, &selection, weighting, None).unwrap();
        for query in ["own7 fish", "red fish3 all", "éé own59", "the"] {
            let scanned: Vec<Ranked> =
                model.rank(query, documents(REMOVED..DOCUMENTS), 20).unwrap();
            assert_eq!(index.rank(query, 20).unwrap().ranked, scanned, "{name}: {query}");
        }
        assert_eq!(index.rank("own7", 1).unwrap().ranked[0].id, "d7", "{name}");
    }
}

#[test]
fn documents_come_and_go_as_before() {
    for name in FIXTURES {
        let mut corpus = open(name);
        let updated = corpus.update(documents(0..DOCUMENTS), Repeats::Skip).unwrap();
        assert_eq!((updated.documents, updated.skipped), (3, 57), "{name}");
        let Indexing { selection, weighting, .. } = Indexing::default();
        let why = RankIndex::of(&corpus, &selection, weighting).unwrap_err();
        assert_eq!(why, NoRankIndex::Stale, "{name}");
        corpus.remove(documents(0..DOCUMENTS)).unwrap();
        assert_eq!(counts(&corpus, &["all", "own3"]), [(0, 0), (0, 0)], "{name}");
    }
}
