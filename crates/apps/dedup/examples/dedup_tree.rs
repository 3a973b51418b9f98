//! Finds the duplicate chunks under the given paths with a table in plain memory.
//!
//! `cargo run --release -p nandex-dedup --example dedup_tree -- blake3|sha1 fastcdc|rabin|fixed PATH...`

use std::sync::atomic::AtomicBool;

use nandex::raw::oracle::MapTable;
use nandex_dedup::chunk::AVERAGE_BYTES_DEFAULT;
use nandex_dedup::{Chunking, Done, Options, VALUE_BYTES, dedup, survey, text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: dedup_tree HASH CHUNKER PATH...";
    let hash = arguments.next().ok_or(usage)?.parse()?;
    let chunker = arguments.next().ok_or(usage)?.parse()?;
    let mut options = Options::new(arguments);
    options.hash = hash;
    options.chunking = Chunking::new(chunker, AVERAGE_BYTES_DEFAULT)?;

    let survey = survey(&options.paths)?;
    eprintln!("{} files, {} bytes", survey.files, survey.bytes);
    let progress = |done: Done| eprint!("\r{:3} %", 100 * done.bytes / survey.bytes.max(1));

    let table = MapTable::new(options.hash.key_bytes(), VALUE_BYTES);
    let summary = dedup(&table, &options, &progress, &AtomicBool::new(false))?;
    eprintln!();
    print!("{}", text(&summary));
    Ok(())
}
