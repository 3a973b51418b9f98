//! Decides on the documents of JSON lines, and reports the rate. If the index exists, the documents are added to it.
//!
//! `cargo run --release -p nandex-neardup --example neardup_jsonl -- posts.jsonl index.nandex 10000000 256`
//!
//! The numbers are the capacity of a new index in documents, and its RAM in MiB. For a rate per second of processor
//! time, run it under `time`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use nandex_neardup::documents::{Fields, Reading, Source};
use nandex_neardup::{Index, IndexConfig, NearOptions, Repeats};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [texts, path, documents, ram] = &arguments[..] else {
        return Err("give the JSON lines, the index, its documents, and its RAM in MiB".into());
    };
    let ram_bytes = ram.parse::<u64>()? << 20;
    let config = IndexConfig { ram_bytes, documents: documents.parse()?, ..IndexConfig::default() };
    let source = Source::JsonLines { path: PathBuf::from(texts), fields: Fields::default() };
    let mut index = if Path::new(path).exists() {
        Index::open(path, config)?
    } else {
        Index::create(path, &NearOptions::default(), config)?
    };
    // Ids are line numbers; later runs have others.
    let first = index.documents();
    let numbered = source.documents(Reading::default())?.zip(first..).map(|(document, number)| {
        document.map(|document| nandex_neardup::Document { id: number.to_string(), ..document })
    });
    let start = Instant::now();
    let updated = index.update(numbered, Repeats::Refuse, |_, _| Ok(()))?;
    let elapsed_s = start.elapsed().as_secs_f64();
    println!("{updated:?}, {:.0} per second", updated.documents as f64 / elapsed_s);
    println!("{:?}", index.stats());
    index.close()?;
    Ok(())
}
