//! Indexes compared with counts in plain maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::{Volume, VolumeOptions, WhenFull};
use proptest::prelude::*;

use super::*;
use crate::{Document, StopWords};

pub(super) const CONFIG: CorpusConfig = CorpusConfig { ram_bytes: RAM_BYTES_MIN };

/// The most bytes of the file of an index of a few documents, without its log.
const BYTES_SMALL: u64 = 2 << 20;

fn volume() -> Volume {
    let options =
        VolumeOptions { log_bytes: 16 << 20, hash_key: Some(42), ..VolumeOptions::default() };
    Volume::create(Arc::new(MemoryDevice::new()), options).unwrap()
}

fn empty(analysis: &Analysis) -> Corpus {
    Corpus::create_in(&volume(), analysis, CONFIG).unwrap()
}

pub(super) fn documents(texts: &[&str]) -> Vec<Document> {
    let numbered = texts.iter().enumerate();
    numbered.map(|(number, text)| Document::new(format!("d{number}"), *text)).collect()
}

pub(super) fn add(corpus: &mut Corpus, documents: &[Document]) -> Updated {
    corpus.update(documents.iter().cloned().map(Ok), Repeats::Refuse).unwrap()
}

/// Returns all terms with their documents and occurrences, by the simplest code.
pub(super) fn counted(
    analysis: &Analysis,
    documents: &[Document],
) -> BTreeMap<String, TermFrequency> {
    let analyser = Analyser::new(analysis).unwrap();
    let mut tokens = crate::tokenise::Tokens::default();
    let mut all: BTreeMap<String, TermFrequency> = BTreeMap::new();
    for document in documents {
        analyser.analyse(&document.text, &mut tokens);
        let terms: Vec<String> =
            analyser.terms(&tokens).map(|it| String::from_utf8(it.to_vec()).unwrap()).collect();
        for term in &terms {
            all.entry(term.clone()).or_default().occurrences += 1;
        }
        let distinct: std::collections::BTreeSet<String> = terms.into_iter().collect();
        for term in distinct {
            all.entry(term).or_default().documents += 1;
        }
    }
    all
}

/// Returns all terms of an index, as listed.
pub(super) fn listed(corpus: &Corpus) -> BTreeMap<String, TermFrequency> {
    let mut all = BTreeMap::new();
    let take = |_: &TermKey, text: &[u8], frequency| {
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert_eq!(all.insert(text, frequency), None, "a term is listed once");
        Ok(())
    };
    corpus.for_each_term(take).unwrap();
    // Each is also found individually.
    let terms: Vec<&String> = all.keys().collect();
    let found = corpus.frequencies(&terms).unwrap();
    assert!(found.iter().eq(all.values()), "{found:?}");
    all
}

#[test]
fn an_index_counts_documents_and_occurrences_of_each_term() {
    let analysis = Analysis::default().ngrams(1, 2);
    let documents = documents(&["red fish red cat", "", "blue fish", "a !"]);
    let mut corpus = empty(&analysis);
    let updated = add(&mut corpus, &documents);
    assert_eq!(updated, Updated { documents: 4, skipped: 0, occurrences: 10 });
    assert_eq!((corpus.documents(), corpus.occurrences()), (4, 10));
    assert_eq!(listed(&corpus), counted(&analysis, &documents));
    let found = corpus.frequencies(&["red", "fish", "Fish", "red cat"]).unwrap();
    let plain: Vec<(u64, u64)> = found.iter().map(|it| (it.documents, it.occurrences)).collect();
    assert_eq!(plain, [(1, 2), (2, 2), (0, 0), (1, 1)]);
}

#[test]
fn what_is_removed_was_never_there_and_only_that_can_be_removed() {
    let analysis = Analysis::default();
    let all = documents(&["red fish", "blue fish fish", "green"]);
    let mut corpus = empty(&analysis);
    add(&mut corpus, &all);
    let removed = corpus.remove([Ok(all[1].clone())]).unwrap();
    assert_eq!(removed, Updated { documents: 1, skipped: 0, occurrences: 3 });
    let left = [all[0].clone(), all[2].clone()];
    assert_eq!((listed(&corpus), corpus.documents()), (counted(&analysis, &left), 2));
    let mut refusal =
        |it: &[Document]| corpus.remove(it.iter().cloned().map(Ok)).unwrap_err().to_string();
    let text = "document d1 cannot be removed: no document of this id was added; its text is needed as it was when \
                it was added";
    assert_eq!(refusal(&all[1..2]), text);
    assert!(refusal(&[Document::new("d0", "red")]).contains("it was added with another text"));
    let twice = [all[0].clone(), all[0].clone()];
    assert!(refusal(&twice).contains("the same run has removed it before"));
    assert_eq!(listed(&corpus), counted(&analysis, &left), "a failed run changes nothing here");
    add(&mut corpus, &all[1..2]);
    assert_eq!(listed(&corpus), counted(&analysis, &all));
}

#[test]
fn an_id_twice_is_an_error_or_left_out_where_the_text_is_the_same() {
    let mut corpus = empty(&Analysis::default());
    let documents = documents(&["red fish", "blue"]);
    add(&mut corpus, &documents[..1]);
    let run = |corpus: &mut Corpus, it: &[Document], repeats| {
        corpus.update(it.iter().cloned().map(Ok), repeats).map_err(|error| error.to_string())
    };
    let error = run(&mut corpus, &documents, Repeats::Refuse).unwrap_err();
    assert!(error.starts_with("document d0 is in the index already, with the same text; remove"));
    let updated = run(&mut corpus, &documents, Repeats::Skip).unwrap();
    assert_eq!(updated, Updated { documents: 1, skipped: 1, occurrences: 1 });
    let changed = [Document::new("d0", "green")];
    let error = run(&mut corpus, &changed, Repeats::Skip).unwrap_err();
    assert!(error.contains("with another text"), "{error}");
    let twice = [Document::new("n", "one"), Document::new("n", "one")];
    assert!(run(&mut corpus, &twice, Repeats::Refuse).is_err());
    assert_eq!(run(&mut corpus, &twice, Repeats::Skip).unwrap().documents, 1);
    assert_eq!(corpus.documents(), 3);
}

/// An index of version 1: a log of blocks of one length, and a state with that length.
#[test]
fn an_index_of_the_first_version_is_read_and_goes_on() {
    let (volume, analysis) = (volume(), Analysis::default());
    let documents = documents(&["red fish", "blue fish"]);
    let fixed = ValuesConfig::holding(12 << 20, WhenFull::Refuse);
    let mut corpus =
        Corpus::create_with(&volume, (&analysis, &Stated::default()), CONFIG, fixed).unwrap();
    add(&mut corpus, &documents[..1]);
    let state = String::from_utf8(corpus.blocks.state().unwrap().unwrap()).unwrap();
    let first = state.replace(r#""version":2"#, r#""version":1,"text_bytes_max":4194304"#);
    let first = first.replace(r#","ranked":null,"ranked_is_stale":false"#, "");
    assert!(first.contains("text_bytes_max") && !first.contains(r#""ranked":null"#), "{first}");
    corpus.blocks.put_state(first.as_bytes()).unwrap();
    drop(corpus);
    let mut corpus = Corpus::open_in(&volume, CONFIG).unwrap();
    assert_eq!(listed(&corpus), counted(&analysis, &documents[..1]));
    add(&mut corpus, &documents[1..]);
    drop(corpus);
    let corpus = Corpus::open_in(&volume, CONFIG).unwrap();
    assert_eq!(listed(&corpus), counted(&analysis, &documents));
}

#[test]
fn an_index_is_found_again_as_it_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.nandex");
    let list = ["the", "and"].map(str::to_owned).into();
    let analysis = Analysis { stop_words: StopWords::List(list), ..Analysis::default() };
    let documents = documents(&["the red fish", "the fish and the cat"]);
    let mut corpus = Corpus::create(&path, &analysis, CONFIG).unwrap();
    add(&mut corpus, &documents[..1]);
    corpus.close().unwrap();
    let mut corpus = Corpus::open(&path, CONFIG).unwrap();
    assert_eq!(corpus.analysis(), &analysis);
    add(&mut corpus, &documents[1..]);
    drop(corpus);
    let corpus = Corpus::open(&path, CONFIG).unwrap();
    assert_eq!((listed(&corpus), corpus.documents()), (counted(&analysis, &documents), 2));
    let error = Corpus::create(&path, &analysis, CONFIG).unwrap_err().to_string();
    assert!(error.contains("index.nandex: File exists"), "{error}");
}

#[test]
fn a_state_that_was_not_written_for_sure_stops_changes_until_the_index_is_opened_again() {
    let volume = volume();
    let mut corpus = Corpus::create_in(&volume, &Analysis::default(), CONFIG).unwrap();
    let documents = documents(&["red fish", "blue"]);
    add(&mut corpus, &documents[..1]);
    corpus.is_unsure = true;
    let error = corpus.update([Ok(documents[1].clone())], Repeats::Refuse).unwrap_err();
    assert!(matches!(error, Error::Unsure));
    assert!(matches!(corpus.merge(&empty(&Analysis::default())).unwrap_err(), Error::Unsure));
    drop(corpus);
    let mut corpus = Corpus::open_in(&volume, CONFIG).unwrap();
    add(&mut corpus, &documents[1..]);
    assert_eq!(listed(&corpus), counted(&Analysis::default(), &documents));
}

#[test]
fn shards_merge_to_what_one_index_of_all_documents_is() {
    let analysis = Analysis::default().ngrams(1, 2);
    let all = documents(&["red fish red", "blue fish", "green cat", "the red fish"]);
    let (mut left, mut right) = (empty(&analysis), empty(&analysis));
    add(&mut left, &all[..2]);
    add(&mut right, &all[2..]);
    left.merge(&right).unwrap();
    let whole = counted(&analysis, &all);
    assert_eq!((listed(&left), left.documents(), left.occurrences()), (whole, 4, 16));
    let error = left.merge(&right).unwrap_err().to_string();
    assert!(error.contains("is in the index already, with the same text"), "{error}");
    let error = left.merge(&empty(&Analysis::default())).unwrap_err().to_string();
    assert!(
        error.contains("expected the analysis {\"lowercase\":true,\"ngram_min\":1,\"ngram_max\":2")
    );
}

#[test]
fn a_term_that_is_too_long_names_its_document() {
    let mut corpus = empty(&Analysis::default());
    let long = Document::new("blob", "x".repeat(TERM_BYTES_MAX + 1));
    let error = corpus.update([Ok(long)], Repeats::Refuse).unwrap_err().to_string();
    assert!(
        error.starts_with("document blob: a term of 131073 bytes, and at most 131072 are kept")
    );
    let longest = Document::new("blob", "x".repeat(TERM_BYTES_MAX));
    corpus.update([Ok(longest)], Repeats::Refuse).unwrap();
    assert_eq!(corpus.occurrences(), 1);
}

#[test]
fn too_little_ram_and_other_limits_are_refused() {
    let ram = CorpusConfig { ram_bytes: 1 << 20 };
    let error = ram.validate().unwrap_err().to_string();
    assert!(
        error.starts_with("ram_bytes: 1048576 bytes; give 67108864 (64 MiB) or more"),
        "{error}"
    );
}

/// Returns the numbers of terms in runs and in tables.
fn terms_in(corpus: &Corpus) -> (Vec<u64>, u64) {
    let runs = corpus.state.runs.iter().map(|run| run.terms).collect();
    (runs, corpus.state.texts.map_or(0, |texts| texts.terms))
}

#[test]
fn runs_are_merged_when_many_and_folded_when_they_have_as_much_as_the_tables() {
    let analysis = Analysis::default();
    let mut corpus = empty(&analysis);
    let text = |from: u32, to: u32| -> String { (from..to).map(|n| format!("t{n:03} ")).collect() };
    let whole = Document::new("whole", text(0, 100));
    add(&mut corpus, std::slice::from_ref(&whole));
    assert_eq!(terms_in(&corpus), (vec![], 100));
    assert!(
        corpus
            .tables
            .as_ref()
            .is_some_and(|tables| tables.find_many(&[TermKey::of(b"t000")]).unwrap()
                == [Delta { documents: 1, occurrences: 1 }])
    );
    corpus.runs_max = 4;
    let mut all = vec![whole];
    let mut seen = Vec::new();
    for number in 0..12 {
        let document = Document::new(format!("d{number}"), text(number * 10, number * 10 + 10));
        add(&mut corpus, std::slice::from_ref(&document));
        all.push(document);
        assert_eq!(listed(&corpus), counted(&analysis, &all));
        seen.push(terms_in(&corpus));
    }
    assert_eq!(seen[2], (vec![10; 3], 100));
    // The fourth merged them into one.
    assert_eq!(seen[3], (vec![40], 100));
    // The next three joined it. With 100 terms all were folded into the tables.
    assert_eq!((seen[8].clone(), seen[9].clone()), ((vec![70, 10, 10], 100), (vec![], 100)));
    // A term removed from all documents is not in a table after a fold.
    let gone = all.split_off(1);
    corpus.remove(gone.into_iter().map(Ok)).unwrap();
    corpus.fold().unwrap();
    assert_eq!((listed(&corpus), terms_in(&corpus)), (counted(&analysis, &all), (vec![], 100)));
    let tables: Vec<String> = corpus.volume.structures().into_iter().map(|it| it.name).collect();
    assert_eq!(tables.iter().filter(|name| name.starts_with("tfidf-df-")).count(), 1, "{tables:?}");
}

#[test]
fn blocks_that_nobody_needs_are_removed() {
    let mut corpus = empty(&Analysis::default());
    let documents = documents(&["red fish", "blue fish", "a green cat", "one more"]);
    for document in &documents {
        add(&mut corpus, std::slice::from_ref(document));
        corpus.fold().unwrap();
    }
    corpus.settle().unwrap();
    let blocks = corpus.blocks.table().iter().unwrap();
    let mut keys: Vec<Vec<u8>> = blocks.map(|block| block.unwrap().0).collect();
    keys.sort();
    let texts = corpus.state.texts.unwrap().id as u8;
    assert_eq!(keys, [&b"state"[..], &[b't', texts, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]);
    assert_eq!((corpus.state.unused.len(), corpus.state.unapplied), (0, None));
}

#[test]
fn a_failure_in_the_middle_of_a_batch_leaves_none_of_it() {
    let mut corpus = empty(&Analysis::default().ngrams(1, 2));
    let documents = documents(&["red fish", "blue fish"]);
    add(&mut corpus, &documents[..1]);
    let error = nandex_corpus::Error::Malformed { document: "2".into(), reason: "bad".into() };
    let failing = [Ok(documents[1].clone()), Err(error)];
    corpus.update(failing, Repeats::Refuse).unwrap_err();
    assert_eq!(listed(&corpus), counted(corpus.analysis(), &documents[..1]));
    add(&mut corpus, &documents[1..]);
    assert_eq!(listed(&corpus), counted(corpus.analysis(), &documents));
}

/// Documents of a thousand terms each that no other has, and one that all have; each occurs twice.
fn large() -> impl Iterator<Item = Document> {
    (0..250_u32).flat_map(|number| {
        let terms: Vec<String> = (0..1000).map(|n| format!("t{:06}", number * 1000 + n)).collect();
        let document = Document::new(format!("d{number}"), terms.join(" ") + " common");
        [document.clone(), document]
    })
}

#[test]
fn a_run_of_many_batches_counts_each_document_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.nandex");
    let mut corpus = Corpus::create(&path, &Analysis::default(), CONFIG).unwrap();
    let length = || std::fs::metadata(&path).unwrap().len();
    let begun = length();
    let updated = corpus.update(large().map(Ok), Repeats::Skip).unwrap();
    assert_eq!(updated, Updated { documents: 250, skipped: 250, occurrences: 250_250 });
    let error = corpus.update(large().map(Ok), Repeats::Refuse).unwrap_err();
    assert!(matches!(error, Error::Repeated { .. }));
    // The terms take more than the log of blocks begins with, 5 MiB.
    let stats = corpus.blocks.table().stats().values;
    assert!(stats.growths > 0 && length() > begun, "{stats:?}");
    corpus.close().unwrap();
    let mut corpus = Corpus::open(&path, CONFIG).unwrap();
    let found = corpus.frequencies(&["common", "t000000", "t249999", "t250000"]).unwrap();
    assert_eq!(found.iter().map(|it| it.documents).collect::<Vec<_>>(), [250, 1, 1, 0]);
    check_columns_on_flash(&corpus, folder.path());
    let summary = corpus.summary().unwrap();
    assert_eq!((summary.terms, summary.terms_once), (250_001, 250_000));
    assert_eq!((summary.top[0].term.as_str(), summary.top[0].documents), ("common", 250));
    assert_eq!((summary.top.len(), summary.ranks[0]), (crate::TOP_TERMS_MAX, (1, 250)));
    let gone = large().step_by(2).take(3);
    assert_eq!(corpus.remove(gone.map(Ok)).unwrap().documents, 3);
    let mut sum = 0;
    let take = |_: &TermKey, _: &[u8], it: TermFrequency| {
        sum += it.documents;
        Ok(())
    };
    corpus.for_each_term(take).unwrap();
    assert_eq!(sum, 247 * 1001);
    assert_eq!((corpus.documents(), corpus.occurrences()), (247, 247 * 1001));
}

#[test]
fn a_few_documents_make_a_file_of_a_few_mebibytes_whatever_the_ram() {
    let folder = tempfile::tempdir().unwrap();
    for ram_bytes in [RAM_BYTES_MIN, 256 << 20, 1 << 30] {
        let path = folder.path().join(ram_bytes.to_string());
        let config = CorpusConfig { ram_bytes };
        let mut corpus = Corpus::create(&path, &Analysis::default(), config).unwrap();
        add(&mut corpus, &documents(&["red fish", "blue fish"]));
        corpus.close().unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        println!("{ram_bytes} bytes of RAM: a file of {length}");
        // The log grows as it fills.
        assert!(length <= BYTES_SMALL, "{length}");
    }
}

#[test]
fn runs_that_cancel_out_leave_an_index_that_finds_its_terms() {
    // Runs of additions and of their removals were merged into a run without terms: it had no blocks, the state named
    // it, and each query of a term failed until the next fold.
    let analysis = Analysis::default();
    let whole =
        Document::new("whole", (0..100).map(|term| format!("t{term} ")).collect::<String>());
    for runs_max in 2..6 {
        let mut corpus = empty(&analysis);
        corpus.runs_max = runs_max;
        add(&mut corpus, std::slice::from_ref(&whole));
        for number in 0..8 {
            let gone = Document::new(format!("d{number}"), "here and gone");
            add(&mut corpus, std::slice::from_ref(&gone));
            corpus.remove([Ok(gone)]).unwrap();
            assert_eq!(listed(&corpus), counted(&analysis, std::slice::from_ref(&whole)));
            let runs = &corpus.state.runs;
            assert!(runs.iter().all(|run| run.terms > 0 && run.blocks > 0), "{runs:?}");
        }
    }
}

/// The documents that an index without space keeps of those given.
#[derive(PartialEq, Eq)]
enum Kept {
    None,
    All,
}

/// Adds more documents than fit: the index fails with `reason`, keeps its content and continues.
fn check_without_space(volume: &Volume, values: ValuesConfig, (kept, reason): (Kept, &str)) {
    let analysis = Analysis::default().ngrams(1, 2);
    let mut corpus =
        Corpus::create_with(volume, (&analysis, &Stated::default()), CONFIG, values).unwrap();
    let small = [Document::new("s0", "few terms"), Document::new("s1", "fewer")];
    add(&mut corpus, &small);
    let error = corpus.update(large().map(Ok), Repeats::Skip).unwrap_err();
    assert!(matches!(error, Error::NoSpace(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("no space for more terms: ") && text.contains(reason), "{text}");
    let mut documents = small.to_vec();
    if kept == Kept::All {
        documents.extend(large().step_by(2));
    }
    assert_eq!(listed(&corpus), counted(&analysis, &documents));
    // The remains are removed, so that the index can continue.
    corpus.remove([Ok(documents.remove(0))]).unwrap();
    assert_eq!(listed(&corpus), counted(&analysis, &documents));
}

#[test]
fn an_index_without_space_says_what_to_do_and_keeps_what_it_has() {
    let check_limited = |bytes_max: u64, expected: (Kept, &str)| {
        let limited = MemoryDevice::with_limit(bytes_max / 4096);
        let options =
            VolumeOptions { log_bytes: 4 << 20, hash_key: Some(42), ..VolumeOptions::default() };
        let limited = Volume::create(Arc::new(limited), options).unwrap();
        check_without_space(&limited, growing_values(), expected);
    };
    check_limited(14 << 20, (Kept::None, "make space for the volume, or remove some"));
    // The documents fit, and new tables of their counts do not.
    check_limited(19 << 20, (Kept::All, "the device is limited to"));
    // A log of blocks of a fixed size, as in older indexes.
    let fixed = ValuesConfig::holding(3 << 20, WhenFull::Refuse);
    check_without_space(&volume(), fixed, (Kept::None, "the value log is full"));
}

/// Checks that a vocabulary larger than the RAM for columns is still in order.
fn check_columns_on_flash(corpus: &Corpus, folder: &Path) {
    let selection = crate::Selection::default();
    let weighting = crate::Weighting { use_idf: false, ..crate::Weighting::default() };
    let model = crate::Model::fit(corpus, &selection, weighting, Some(folder)).unwrap();
    assert!(model.columns() * 76 > CONFIG.ram_bytes / 4, "the columns are in RAM");
    assert_eq!(model.columns(), 250_001);
    let mut row = 0;
    let take = |it: crate::Row<'_>| {
        let columns: Vec<u64> = it.entries.iter().map(|entry| entry.column).collect();
        // The column of "common" is the first, before those of all others.
        let own = 1 + row * 1000..1 + (row + 1) * 1000;
        assert!(columns.into_iter().eq(std::iter::once(0).chain(own)));
        row += 1;
        Ok(())
    };
    model.rows(large().step_by(2).map(Ok), take).unwrap();
    assert_eq!(row, 250);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn any_order_of_updates_and_removals_counts_what_is_left(
        texts in proptest::collection::vec("[a-e]{2}( [a-e]{2}){0,6}", 1..20),
        removed in proptest::collection::vec(any::<bool>(), 20),
    ) {
        let analysis = Analysis::default().ngrams(1, 3);
        let all = documents(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let mut corpus = empty(&analysis);
        for some in all.chunks(3) {
            add(&mut corpus, some);
        }
        let (gone, left): (Vec<_>, Vec<_>) =
            all.into_iter().zip(removed).partition(|(_, removed)| *removed);
        corpus.remove(gone.into_iter().map(|(document, _)| Ok(document))).unwrap();
        let left: Vec<Document> = left.into_iter().map(|(document, _)| document).collect();
        prop_assert_eq!(listed(&corpus), counted(&analysis, &left));
    }
}
