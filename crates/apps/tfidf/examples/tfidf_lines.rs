//! Writes the TF-IDF matrix of a text file, with a document in each line, and prints the duration of each step. Without
//! a matrix it only counts.
//!
//! `cargo run --release -p nandex-tfidf --example tfidf_lines -- texts.txt index.nandex matrix.npz 1 3`

use std::path::PathBuf;
use std::time::Instant;

use nandex_tfidf::documents::{Reading, Source};
use nandex_tfidf::{
    Analysis, Corpus, CorpusConfig, MatrixFiles, Model, Repeats, Selection, Weighting,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (texts, index, matrix, min, max) = match &arguments[..] {
        [texts, index, min, max] => (texts, index, None, min, max),
        [texts, index, matrix, min, max] => (texts, index, Some(matrix), min, max),
        _ => {
            let usage =
                "give the texts, a new index, perhaps the matrix, and the lengths of n-grams";
            return Err(usage.into());
        }
    };
    let analysis = Analysis::default().ngrams(min.parse()?, max.parse()?);
    let source = Source::Lines(PathBuf::from(texts));
    let documents = || source.documents(Reading::default());

    let start = Instant::now();
    let mut corpus = Corpus::create(index, &analysis, CorpusConfig::default())?;
    let count = corpus.update(documents()?, Repeats::Refuse)?.documents;
    let rate = |start: Instant| count as f64 / start.elapsed().as_secs_f64();
    println!("counted: {:.0} documents/s; {:?}", rate(start), corpus.stats());
    let Some(matrix) = matrix else { return Ok(corpus.close()?) };

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
