//! Models of small indexes with known numbers.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::{Volume, VolumeOptions};

use super::*;
use crate::{Analysis, CorpusConfig, Document, DocumentLimit, Norm, RAM_BYTES_MIN, Repeats};

fn corpus(texts: &[&str]) -> (Corpus, Vec<Document>) {
    let options =
        VolumeOptions { log_bytes: 16 << 20, hash_key: Some(42), ..VolumeOptions::default() };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    let config = CorpusConfig { ram_bytes: RAM_BYTES_MIN };
    let mut corpus = Corpus::create_in(&volume, &Analysis::default(), config).unwrap();
    let documents: Vec<Document> =
        (0..).zip(texts).map(|(n, text)| Document::new(format!("d{n}"), *text)).collect();
    corpus.update(documents.iter().cloned().map(Ok), Repeats::Refuse).unwrap();
    (corpus, documents)
}

const TEXTS: [&str; 4] = ["red fish red", "blue fish", "green fish blue", ""];

fn fit<'c>(corpus: &'c Corpus, selection: &Selection) -> Model<'c> {
    Model::fit(corpus, selection, Weighting::default(), None).unwrap()
}

fn texts(model: &Model<'_>) -> Vec<String> {
    model.terms().map(|term| term.unwrap().text).collect()
}

#[test]
fn columns_are_terms_in_the_order_of_code_points() {
    let (corpus, _) = corpus(&["zz éé Éé ab", "日本 aa 𝔞𝔞 ﬀﬀ"]);
    let model = fit(&corpus, &Selection::default());
    assert_eq!(texts(&model), ["aa", "ab", "zz", "éé", "日本", "ﬀﬀ", "𝔞𝔞"]);
    assert_eq!(texts(&model).len() as u64, model.columns());
}

#[test]
fn an_owner_keeps_an_index_and_its_model_and_changes_it_again_without_the_model() {
    let (corpus, documents) = corpus(&TEXTS);
    let mut corpus = Arc::new(corpus);
    let (selection, weighting) = (Selection::default(), Weighting::default());
    let model = Model::fit_shared(&corpus, &selection, weighting, None).unwrap();
    assert!(Arc::get_mut(&mut corpus).is_none());
    assert_eq!(texts(&model), texts(&fit(&corpus, &selection)));
    drop(model);
    let alone = Arc::get_mut(&mut corpus).unwrap();
    alone.remove(documents[..1].iter().cloned().map(Ok)).unwrap();
    let model = Model::fit_shared(&corpus, &selection, weighting, None).unwrap();
    assert_eq!(texts(&model), ["blue", "fish", "green"]);
}

#[test]
fn limits_keep_terms_by_their_documents_and_the_most_frequent() {
    let (corpus, _) = corpus(&TEXTS);
    let of = |selection: Selection| texts(&fit(&corpus, &selection));
    let all = Selection::default();
    assert_eq!(of(all), ["blue", "fish", "green", "red"]);
    assert_eq!(of(Selection { min_df: DocumentLimit::Count(2), ..all }), ["blue", "fish"]);
    assert_eq!(
        of(Selection { max_df: DocumentLimit::Share(0.5), ..all }),
        ["blue", "green", "red"]
    );
    // blue and red occur twice each; fish three times.
    assert_eq!(of(Selection { max_features: Some(2), ..all }), ["blue", "fish"]);
    assert_eq!(of(Selection { max_features: Some(3), ..all }), ["blue", "fish", "red"]);
    assert_eq!(of(Selection { max_features: Some(9), ..all }).len(), 4);
    let rare = Selection { max_df: DocumentLimit::Count(1), max_features: Some(1), ..all };
    assert_eq!(of(rare), ["red"]);
    let binary = Weighting { binary: true, ..Weighting::default() };
    let both = Model::fit(&corpus, &rare, binary, None).unwrap();
    assert_eq!(texts(&both), ["green"], "each is in one document, and green is first");
}

#[test]
fn an_empty_choice_is_an_error_that_says_why() {
    let (corpus, _) = corpus(&TEXTS);
    let selection = Selection { min_df: DocumentLimit::Count(4), ..Selection::default() };
    let refuse = |corpus: &Corpus, selection: &Selection| {
        Model::fit(corpus, selection, Weighting::default(), None).unwrap_err().to_string()
    };
    let text = "no terms: none is in 4 to 4 documents; try a lower min_df or a higher max_df";
    assert_eq!(refuse(&corpus, &selection), text);
    let (empty, _) = super::tests::corpus(&["", "a"]);
    assert!(
        refuse(&empty, &Selection::default()).starts_with("no terms: the documents of the index")
    );
}

#[test]
fn rows_have_the_numbers_of_the_formula() {
    let (corpus, documents) = corpus(&TEXTS);
    let weighting = Weighting { norm: Norm::None, ..Weighting::default() };
    let model = Model::fit(&corpus, &Selection::default(), weighting, None).unwrap();
    let mut rows = Vec::new();
    let other = Document::new("new", "red unknown");
    let all = documents.into_iter().chain([other]).map(Ok);
    model
        .rows(all, |row| {
            rows.push((row.id.to_owned(), row.entries.to_vec()));
            Ok(())
        })
        .unwrap();
    let idf = |documents: f64| (5.0 / (1.0 + documents)).ln() + 1.0;
    let entry = |column, value| Entry { column, value };
    let ids: Vec<&str> = rows.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["d0", "d1", "d2", "d3", "new"]);
    assert_eq!(rows[0].1, [entry(1, idf(3.0)), entry(3, 2.0 * idf(1.0))]);
    assert_eq!(rows[2].1, [entry(0, idf(2.0)), entry(1, idf(3.0)), entry(2, idf(1.0))]);
    assert_eq!(rows[3].1, []);
    assert_eq!(rows[4].1, [entry(3, idf(1.0))]);
    let terms: Vec<Term> = model.terms().map(|it| it.unwrap()).collect();
    assert_eq!(terms[0], Term { text: "blue".into(), documents: 2, idf: idf(2.0) });
}

#[test]
fn more_documents_than_are_gathered_give_all_rows_in_order() {
    let texts: Vec<String> = (0..9000).map(|n| format!("w{} x{} common", n % 97, n)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (corpus, documents) = corpus(&texts);
    let model = fit(&corpus, &Selection::default());
    assert_eq!(model.columns(), 9000 + 97 + 1);
    let mut count = 0;
    model
        .rows(documents.into_iter().map(Ok), |row| {
            assert_eq!((row.id, row.entries.len()), (format!("d{count}").as_str(), 3));
            count += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(count, 9000);
}

#[test]
fn keywords_are_the_heaviest_terms() {
    let (corpus, documents) = corpus(&TEXTS);
    let model = fit(&corpus, &Selection::default());
    let mut found = Vec::new();
    model
        .keywords(documents.into_iter().map(Ok), 2, |id, keywords| {
            let terms: Vec<String> = keywords.iter().map(|it| it.term.clone()).collect();
            found.push(format!("{id}: {}", terms.join(" ")));
            assert!(keywords.is_sorted_by(|a, b| a.value >= b.value));
            Ok(())
        })
        .unwrap();
    assert_eq!(found, ["d0: red fish", "d1: blue fish", "d2: green blue", "d3: "]);
}

#[test]
fn documents_are_ranked_by_their_cosine() {
    let (corpus, documents) = corpus(&TEXTS);
    for norm in [Norm::L2, Norm::L1, Norm::None] {
        let weighting = Weighting { norm, ..Weighting::default() };
        let model = Model::fit(&corpus, &Selection::default(), weighting, None).unwrap();
        let rank = |query: &str, count| {
            let all = documents.iter().cloned().map(Ok);
            let found = model.rank(query, all, count).unwrap();
            found.into_iter().map(|it| (it.id, it.cosine)).collect::<Vec<_>>()
        };
        let found = rank("blue fish", 9);
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["d1", "d2", "d0"]);
        assert!((found[0].1 - 1.0).abs() < 1e-12);
        assert_eq!(rank("blue fish", 1).len(), 1);
        assert_eq!(rank("nothing of it", 9), []);
        assert_eq!(rank("blue", 0), []);
    }
}
