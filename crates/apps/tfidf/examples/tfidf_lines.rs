//! Writes the TF-IDF matrix of a text file, with a document in each line, and how long each step took.
//!
//! `cargo run --release -p nandex-tfidf --example tfidf_lines -- texts.txt index.nandex matrix.npz 1 3`

use std::path::PathBuf;
use std::time::Instant;

use nandex_tfidf::documents::{Reading, Source};
use nandex_tfidf::tokenise::{Analyser, Tokens};
use nandex_tfidf::{
    Analysis, Corpus, CorpusConfig, MatrixFiles, Model, Repeats, Selection, Weighting,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [texts, index, matrix, min, max] = &arguments[..] else {
        return Err("give the texts, a new index, the matrix, and the lengths of n-grams".into());
    };
    let analysis = Analysis::default().ngrams(min.parse()?, max.parse()?);
    let source = Source::Lines(PathBuf::from(texts));
    let documents = || source.documents(Reading::default());

    let start = Instant::now();
    let (analyser, mut tokens) = (Analyser::new(&analysis)?, Tokens::default());
    let (mut count, mut terms) = (0_u64, 0);
    for document in documents()? {
        analyser.analyse(&document?.text, &mut tokens);
        terms += analyser.terms(&tokens).count();
        count += 1;
    }
    let rate = |start: Instant| count as f64 / start.elapsed().as_secs_f64();
    println!("tokens alone: {count} documents, {terms} terms, {:.0} documents/s", rate(start));

    let start = Instant::now();
    let mut corpus = Corpus::create(index, &analysis, CorpusConfig::default())?;
    corpus.update(documents()?, Repeats::Refuse)?;
    println!("counted: {:.0} documents/s; {:?}", rate(start), corpus.stats());

    let start = Instant::now();
    let model = Model::fit(&corpus, &Selection::default(), Weighting::default(), None)?;
    println!("fitted: {} columns in {:.2} s", model.columns(), start.elapsed().as_secs_f64());

    let start = Instant::now();
    let files = MatrixFiles { matrix: matrix.into(), vocabulary: None, documents: None };
    let shape = model.write_npz(documents()?, &files)?;
    println!("written: {:.0} documents/s; {shape:?}", rate(start));
    drop(model);
    corpus.close()?;
    Ok(())
}
