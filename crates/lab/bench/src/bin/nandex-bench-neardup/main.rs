//! `nandex-bench-neardup`: near-duplicates from JSON lines to decisions, with an index on flash.
//!
//! Each run makes an index, decides on all documents of a corpus, and closes it; then it opens the index
//! again for a hundredth of new documents. The corpus is generated and its near-duplicates are known, or it
//! is a file of the user. With `--peers` datasketch and rensa decide on the same documents between the runs,
//! in RAM.
#![forbid(unsafe_code)]

mod peers;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nandex::raw::signature::Bands;
use nandex::raw::size::parse;
use nandex_bench::percentiles::Spread;
use nandex_bench::process::{DiskBytes, cpu_ns, finish, rss_bytes};
use nandex_bench::quantity::parse_fraction;
use nandex_bench::texts::Texts;
use nandex_neardup::documents::{Fields, Reading, Source};
use nandex_neardup::{
    Document, DocumentResult, Hashing, Index, IndexConfig, IndexStats, MinHashing, NearOptions,
    Repeats, Updated, Verdict,
};
use peers::{PeerRun, Python, Task};
use serde::Serialize;

/// Measures near-duplicates from JSON lines to decisions.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-neardup", version)]
struct Arguments {
    /// Documents of the corpus that is made.
    #[arg(long, default_value = "2M", value_parser = parse)]
    documents: u64,
    /// Share of the documents that are near-duplicates of earlier ones.
    #[arg(long, default_value = "0.1", value_parser = parse_fraction)]
    near_share: f64,
    /// Jaccard similarity of a near-duplicate and its original, approximately.
    #[arg(long, default_value = "0.9", value_parser = parse_fraction)]
    similarity: f64,
    /// JSON lines with a field `text`, in place of a corpus that is made.
    #[arg(long, value_name = "FILE", requires = "more")]
    corpus: Option<PathBuf>,
    /// JSON lines of other documents, which are added to the index of --corpus.
    #[arg(long, value_name = "FILE", requires = "corpus")]
    more: Option<PathBuf>,
    /// RAM of the index's tables.
    #[arg(long, default_value = "64MiB", value_parser = parse)]
    ram: u64,
    /// Permutations of a signature.
    #[arg(long, default_value_t = 128)]
    permutations: u32,
    /// Tables: bands of as many values of a signature as there are.
    #[arg(long, default_value_t = 10)]
    tables: u32,
    /// Documents of this estimate or more are near.
    #[arg(long, default_value_t = 0.8)]
    threshold: f64,
    /// Threads that compute signatures; by default one for each processor.
    #[arg(long)]
    threads: Option<usize>,
    /// Runs, each with a new index; medians are printed.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Seed of the corpus.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder of the corpus and the index.
    #[arg(long, default_value = "nandex-bench-data")]
    dir: PathBuf,
    /// Let datasketch and rensa decide on the first documents too, in a Python environment in --dir.
    #[arg(long)]
    peers: bool,
    /// The maximum number of documents for each of them.
    #[arg(long, default_value = "50k", value_parser = parse)]
    peer_documents: u64,
    /// One line of JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// A corpus in files.
struct Corpus {
    first: PathBuf,
    more: PathBuf,
    /// The generator of the texts, if they were generated.
    texts: Option<Texts>,
}

/// Figures by their names, which are keys of the JSON.
type Figures = BTreeMap<&'static str, f64>;

/// All measurements.
#[derive(Serialize, Debug)]
struct Report {
    schema: &'static str,
    corpus: String,
    documents: u64,
    near_share: Option<f64>,
    similarity: Option<f64>,
    ram_budget_bytes: u64,
    permutations: u32,
    bands: [u32; 2],
    threshold: f64,
    threads: usize,
    seed: u64,
    runs: Vec<Figures>,
    spread: BTreeMap<&'static str, Spread>,
    peers: Vec<PeerRun>,
    peer_spread: BTreeMap<String, BTreeMap<&'static str, Spread>>,
}

fn main() -> ExitCode {
    finish("nandex-bench-neardup", report())
}

fn report() -> Result<String> {
    let arguments = Arguments::parse();
    let report = measure(&arguments)?;
    let json = || Ok(format!("{}\n", serde_json::to_string(&report)?));
    if arguments.json { json() } else { Ok(text(&report)) }
}

fn measure(arguments: &Arguments) -> Result<Report> {
    check(arguments)?;
    let dir = &arguments.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let corpus = corpus(arguments)?;
    let python = arguments.peers.then(|| Python::in_folder(&dir.join("peers-python")));
    let python = python.transpose()?;
    let (mut runs, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..arguments.runs {
        runs.push(run(arguments, &corpus)?);
        for name in peers::NAMES {
            if let Some(python) = &python {
                peers.push(python.run(name, task(arguments, &corpus))?);
            }
        }
    }
    let bands = bands(arguments);
    let made = corpus.texts.is_some();
    Ok(Report {
        schema: "nandex-bench-neardup/1",
        corpus: corpus.first.display().to_string(),
        documents: runs[0]["documents"] as u64,
        near_share: made.then_some(arguments.near_share),
        similarity: made.then_some(arguments.similarity),
        ram_budget_bytes: arguments.ram,
        permutations: arguments.permutations,
        bands: [bands.count, bands.rows],
        threshold: arguments.threshold,
        threads: threads(arguments),
        seed: arguments.seed,
        spread: spread(&runs),
        peer_spread: peer_spread(&peers),
        runs,
        peers,
    })
}

fn check(arguments: &Arguments) -> Result<()> {
    let Arguments { documents, runs, tables, permutations, near_share, .. } = *arguments;
    ensure!(documents >= 100, "--documents {documents}: ask for at least 100");
    ensure!(runs >= 1, "--runs 0: ask for at least 1");
    ensure!(near_share <= 0.95, "--near-share {near_share}: at most 0.95");
    let fits = (1..=permutations).contains(&tables);
    ensure!(fits, "--tables {tables}: from 1 to the {permutations} permutations");
    Ok(())
}

/// Returns the files of the corpus, which are generated if no other is given.
fn corpus(arguments: &Arguments) -> Result<Corpus> {
    if let Some((first, more)) = arguments.corpus.clone().zip(arguments.more.clone()) {
        return Ok(Corpus { first, more, texts: None });
    }
    let Arguments { documents, seed, near_share, similarity, dir, .. } = arguments;
    let texts = Texts::new(*seed, *near_share, *similarity);
    let (first, more) = (dir.join("neardup.jsonl"), dir.join("neardup-more.jsonl"));
    texts.write_file(&first, 0..*documents)?;
    texts.write_file(&more, *documents..documents + documents / 100)?;
    Ok(Corpus { first, more, texts: Some(texts) })
}

fn bands(arguments: &Arguments) -> Bands {
    let Arguments { permutations, tables, .. } = *arguments;
    Bands { count: tables, rows: permutations / tables }
}

fn options(arguments: &Arguments) -> NearOptions {
    let Arguments { permutations, threshold, .. } = *arguments;
    let bands = Some(bands(arguments));
    let hashing = MinHashing { permutations, bands, threshold, ..MinHashing::default() };
    NearOptions { hashing: Hashing::MinHash(hashing), ..NearOptions::default() }
}

fn task<'c>(arguments: &Arguments, corpus: &'c Corpus) -> Task<'c> {
    Task {
        file: &corpus.first,
        documents_max: arguments.peer_documents,
        permutations: arguments.permutations,
        bands: arguments.tables,
        threshold: arguments.threshold,
    }
}

fn threads(arguments: &Arguments) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.threads.unwrap_or(processors)
}

/// A pass over a file of documents, measured.
struct Pass {
    updated: Updated,
    seconds: f64,
    cpu_seconds: f64,
    disk: Option<DiskBytes>,
    text_bytes: u64,
    /// The near-duplicates and originals of the generated corpus, and the numbers of removed ones.
    near: (u64, u64),
    originals: (u64, u64),
    stats: IndexStats,
    rss_bytes: Option<u64>,
}

/// Makes an index of the corpus, and adds the other documents to it.
fn run(arguments: &Arguments, corpus: &Corpus) -> Result<Figures> {
    let path = arguments.dir.join("neardup.nandex");
    if path.exists() {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let documents = match corpus.texts {
        Some(_) => arguments.documents,
        None => lines(&corpus.first)?,
    };
    let config = IndexConfig {
        ram_bytes: arguments.ram,
        // The buckets of one percent more than all documents, and a hundredth of that.
        documents: documents + documents.div_ceil(50),
        sketch_threads: threads(arguments),
        ..IndexConfig::default()
    };
    let create = || -> Result<Index> { Ok(Index::create(&path, &options(arguments), config)?) };
    let full = pass(&corpus.first, corpus.texts.as_ref(), create)?;
    let open = || -> Result<Index> { Ok(Index::open(&path, config)?) };
    let more = pass(&corpus.more, corpus.texts.as_ref(), open)?;
    let file_bytes = fs::metadata(&path)?.len();
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    let mut figures = figures(&full);
    figures.insert("file_bytes", file_bytes as f64);
    figures.insert("more_documents", more.updated.documents as f64);
    figures.insert("more_seconds", more.seconds);
    figures.insert("more_to_full_seconds", more.seconds / full.seconds);
    figures.insert("more_to_full_cpu", more.cpu_seconds / full.cpu_seconds);
    Ok(figures)
}

/// Counts the documents of a file of the user.
fn lines(path: &Path) -> Result<u64> {
    let source = Source::JsonLines { path: path.to_owned(), fields: Fields::default() };
    let mut count = 0;
    for document in source.documents(Reading::default())? {
        document?;
        count += 1;
    }
    Ok(count)
}

/// Decides on all documents of a file, from opening the index to closing it.
fn pass(file: &Path, texts: Option<&Texts>, open: impl FnOnce() -> Result<Index>) -> Result<Pass> {
    let (start, cpu, disk) = (Instant::now(), cpu_ns(), DiskBytes::now());
    let mut index = open()?;
    let fields = Fields { id: texts.map(|_| "id".to_owned()), ..Fields::default() };
    let source = Source::JsonLines { path: file.to_owned(), fields };
    let first = index.documents();
    // Documents of another file have the same line numbers.
    let named = |(document, number): (DocumentResult, u64)| {
        document.map(|document| match texts {
            Some(_) => document,
            None => Document { id: number.to_string(), ..document },
        })
    };
    let documents = source.documents(Reading::default())?.zip(first..).map(named);
    let (mut text_bytes, mut near, mut originals) = (0, (0, 0), (0, 0));
    let updated = index.update(documents, Repeats::Refuse, |document, outcome| {
        text_bytes += document.text.len() as u64;
        if let Some((texts, number)) = texts.zip(document.id.parse().ok()) {
            let of = if texts.original(number) == number { &mut originals } else { &mut near };
            of.0 += 1;
            of.1 += u64::from(outcome.verdict != Verdict::Kept);
        }
        Ok(())
    })?;
    let (stats, rss_bytes) = (index.stats(), rss_bytes());
    index.close()?;
    Ok(Pass {
        updated,
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: (cpu_ns() - cpu) as f64 / 1e9,
        disk: DiskBytes::now().zip(disk).map(|(now, before)| now.since(before)),
        text_bytes,
        near,
        originals,
        stats,
        rss_bytes,
    })
}

/// Returns the figures of a pass over the whole corpus.
fn figures(pass: &Pass) -> Figures {
    let Pass { updated, stats, .. } = pass;
    let neighbors = &stats.neighbors;
    let documents = updated.documents as f64;
    let share = |(all, some): (u64, u64)| (all > 0).then(|| some as f64 / all as f64);
    let disk = |of: fn(DiskBytes) -> u64| pass.disk.map(|disk| of(disk) as f64);
    let entries = [
        ("documents", Some(documents)),
        ("seconds", Some(pass.seconds)),
        ("cpu_seconds", Some(pass.cpu_seconds)),
        ("documents_per_s", Some(documents / pass.seconds)),
        ("documents_per_cpu_s", Some(documents / pass.cpu_seconds)),
        ("kept", Some(updated.kept as f64)),
        ("exact", Some(updated.exact as f64)),
        ("near", Some(updated.near as f64)),
        ("near_found_share", share(pass.near)),
        ("originals_removed_share", share(pass.originals)),
        ("ram_bytes_per_document", Some(stats.ram_bytes as f64 / documents)),
        ("neighbors_ram_bytes_per_document", Some(neighbors.ram_bytes as f64 / documents)),
        (
            "neighbors_flash_over_ram",
            Some(neighbors.flash_bytes as f64 / neighbors.ram_bytes as f64),
        ),
        ("flash_over_ram", Some(stats.flash_bytes as f64 / stats.ram_bytes as f64)),
        ("flash_bytes_per_document", Some(stats.flash_bytes as f64 / documents)),
        ("bucket_reads_per_document", Some(neighbors.lookup_reads as f64 / documents)),
        ("record_reads_per_document", Some(stats.records_read as f64 / documents)),
        ("disk_reads_per_document", disk(|it| it.read / 4096).map(|pages| pages / documents)),
        ("bytes_written_per_document", disk(|it| it.written).map(|bytes| bytes / documents)),
        (
            "bytes_written_per_text_byte",
            disk(|it| it.written).map(|it| it / pass.text_bytes as f64),
        ),
        ("text_bytes_per_document", Some(pass.text_bytes as f64 / documents)),
        ("ids_dropped", Some(neighbors.dropped as f64)),
        ("rss_bytes", pass.rss_bytes.map(|bytes| bytes as f64)),
    ];
    entries.into_iter().filter_map(|(name, figure)| Some((name, figure?))).collect()
}

fn spread(runs: &[Figures]) -> BTreeMap<&'static str, Spread> {
    let names = runs.iter().flat_map(BTreeMap::keys).copied();
    let of = |name| Spread::of(runs.iter().filter_map(|run| run.get(name).copied()));
    names.filter_map(|name| Some((name, of(name)?))).collect()
}

fn peer_spread(runs: &[PeerRun]) -> BTreeMap<String, BTreeMap<&'static str, Spread>> {
    let of_one = |name: &str| {
        let runs: Vec<Figures> =
            runs.iter().filter(|run| run.name == name).map(peer_figures).collect();
        (name.to_owned(), spread(&runs))
    };
    let names: Vec<&str> = peers::NAMES.to_vec();
    names.into_iter().filter(|name| runs.iter().any(|run| run.name == *name)).map(of_one).collect()
}

fn peer_figures(run: &PeerRun) -> Figures {
    Figures::from([
        ("documents", run.documents as f64),
        ("near", run.near as f64),
        ("documents_per_s", run.documents_per_s),
        ("documents_per_cpu_s", run.documents_per_cpu_s),
        ("ram_bytes_per_document", run.ram_bytes_per_document),
    ])
}

fn text(report: &Report) -> String {
    let Report {
        documents, ram_budget_bytes, permutations, bands, threshold, threads, runs, ..
    } = report;
    let mut text = format!(
        "near-duplicates: {documents} documents of {}, {ram_budget_bytes} bytes of RAM\n\
         {permutations} permutations, {} bands of {}, threshold {threshold}, \
         {threads} threads for signatures\n\
         {} runs\n",
        report.corpus,
        bands[0],
        bands[1],
        runs.len()
    );
    text += &rows("nandex", &report.spread);
    for (name, spread) in &report.peer_spread {
        text += &rows(name, spread);
    }
    text
}

fn rows(name: &str, spread: &BTreeMap<&'static str, Spread>) -> String {
    let mut text = format!("\n{name:<36}{:>16}{:>16}{:>16}\n", "median", "min", "max");
    for (figure, Spread { median, min, max }) in spread {
        let [median, min, max] = [median, min, max].map(|it| match it.abs() {
            large if large >= 1000.0 => format!("{it:.0}"),
            _ => format!("{it:.4}"),
        });
        text += &format!("{figure:<36}{median:>16}{min:>16}{max:>16}\n");
    }
    text
}
