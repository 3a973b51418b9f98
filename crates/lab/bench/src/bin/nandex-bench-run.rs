//! `nandex-bench-run`: the speed of writing, reading, merging and looking up runs of fingerprints, and their
//! size in bits.
//!
//! Rates are of one core and a device of memory, medians of several runs: no flash is measured. They depend
//! on the machine; bits and pages are the same everywhere.
#![forbid(unsafe_code)]

use nandex_store::IoChunks;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nandex_bench::keys::Rng;
use nandex_bench::percentiles::median;
use nandex_bench::process::finish;
use nandex_device::{Device, MemoryDevice, PAGE_BYTES, PageBuf, PageId};
use nandex_store::fingerprint::Universe;
use nandex_store::page::PAGE_HEADER_BYTES;
use nandex_store::reads::LookupStep;
use nandex_store::run::{
    Entry, Merge, MergeOptions, Run, RunPage, RunPlace, RunReader, RunShape, RunWriter, Sorted,
    Source,
};
use nandex_store::space::Extent;
use nandex_store::{Poison, StructureId};

/// Measures runs: entries per second, nanoseconds of a look, bits per fingerprint.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-run", version)]
struct Arguments {
    /// Fingerprints of the runs that rates are measured with.
    #[arg(long, default_value_t = 10_000_000)]
    keys: u64,
    /// The rate of false positives that they are made for.
    #[arg(long, default_value_t = 0.0039)]
    rate: f64,
    /// Runs of each kind; medians are printed.
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// A run in memory.
struct Flash {
    device: MemoryDevice,
    run: Run,
}

/// Returns about `keys` different fingerprints, in order, of a universe as large as the rate requires.
fn entries(universe: Universe, keys: u64, seed: u64) -> Vec<Entry> {
    let mut rng = Rng::new(seed, 0, 0);
    let mut all: Vec<_> = (0..keys).map(|_| universe.of(rng.next())).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|fingerprint| Entry { fingerprint, count: 1 }).collect()
}

fn write(
    universe: Universe,
    expected: u64,
    fill: impl FnOnce(&mut RunWriter) -> Result<()>,
) -> Result<(Flash, f64)> {
    let shape = RunShape::for_entries(universe, expected, 0);
    let device = MemoryDevice::new();
    device.grow(shape.pages())?;
    let place = RunPlace {
        structure: StructureId(1),
        extent: Extent { start: PageId(0), pages: shape.pages() },
        generation: 1,
    };
    let poison = Arc::new(Poison::default());
    let start = Instant::now();
    let mut writer = RunWriter::new(&device, poison, place, shape, IoChunks::default())?;
    fill(&mut writer)?;
    let run = writer.finish()?;
    Ok((Flash { device, run }, start.elapsed().as_secs_f64()))
}

fn write_all(universe: Universe, entries: &[Entry]) -> Result<(Flash, f64)> {
    write(universe, entries.len() as u64, |writer| Ok(writer.push(entries)?))
}

fn median_of(runs: usize, mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
    let all = (0..runs.max(1)).map(|_| measure()).collect::<Result<Vec<_>>>()?;
    Ok(median(all))
}

/// Returns the entries read from a source per second.
fn drained(source: &mut dyn Source) -> Result<f64> {
    let (mut batch, mut entries) = (Vec::new(), 0);
    let start = Instant::now();
    while source.next_batch(&mut batch)? {
        entries += batch.len();
        batch.clear();
    }
    Ok(entries as f64 / start.elapsed().as_secs_f64())
}

/// Returns the entries decoded per second from pages that are in memory and checked.
fn decoded(flash: &Flash) -> Result<f64> {
    let image = flash.device.image();
    let (mut batch, mut entries) = (Vec::new(), 0);
    let start = Instant::now();
    for page in image.chunks_exact(PAGE_BYTES).take(flash.run.used_pages() as usize) {
        batch.clear();
        let page = RunPage::parse(&page[PAGE_HEADER_BYTES..]).context("a page")?;
        page.read(&mut batch).context("its entries")?;
        entries += batch.len();
    }
    Ok(entries as f64 / start.elapsed().as_secs_f64())
}

/// Returns the nanoseconds of a lookup in a page that is in memory: all of it, and without the check of the
/// page.
fn looks(flash: &Flash, entries: &[Entry]) -> Result<(f64, f64)> {
    let (device, run) = (&flash.device, &flash.run);
    // Neighbours, so that the pages stay in the processor's cache like a page that was just read.
    let asked: Vec<_> = entries.iter().take(100_000).map(|entry| entry.fingerprint).collect();
    let pages = asked.last().map_or(0, |last| run.page_of(*last).0 as usize + 1);
    let image = device.read(PageId(0), PageBuf::zeroed(pages))?;
    let page_of = |fingerprint| image.page(run.page_of(fingerprint).0 as usize);
    let mut order: Vec<_> = (0..asked.len()).collect();
    order.sort_unstable_by_key(|at| (*at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let asked: Vec<_> = order.into_iter().map(|at| asked[at]).collect();
    let mut found = 0;
    let start = Instant::now();
    for fingerprint in &asked {
        let look = run.look(run.page_of(*fingerprint), page_of(*fingerprint), *fingerprint)?;
        found += u64::from(look == LookupStep::Answer(1));
    }
    let whole = start.elapsed().as_nanos() as f64 / asked.len() as f64;
    ensure!(found + asked.len() as u64 / 500 >= asked.len() as u64, "{found} of {}", asked.len());
    let start = Instant::now();
    for fingerprint in &asked {
        let page = RunPage::parse(&page_of(*fingerprint)[PAGE_HEADER_BYTES..]).context("a page")?;
        found += page.count(*fingerprint).context("its counts")? as u64;
    }
    ensure!(found > 0, "nothing was found");
    Ok((whole, start.elapsed().as_nanos() as f64 / asked.len() as f64))
}

fn two(universe: Universe, keys: u64) -> [Vec<Entry>; 2] {
    [1, 2].map(|seed| entries(universe, keys / 2, seed))
}

/// Returns the entries merged per second: in memory, and from two runs into a third.
fn merged(universe: Universe, arguments: &Arguments) -> Result<[f64; 2]> {
    let lists = two(universe, arguments.keys);
    let in_memory = median_of(arguments.runs, || {
        let sources = lists.clone().map(|list| Box::new(Sorted::new(list)) as Box<dyn Source>);
        drained(&mut Merge::new(sources.into(), MergeOptions::default()))
    })?;
    let [a, b] = &lists;
    let inputs = [write_all(universe, a)?.0, write_all(universe, b)?.0];
    let on_flash = median_of(arguments.runs, || {
        let expected = inputs.iter().map(|flash| flash.run.entries()).sum();
        let (flash, seconds) = write(universe, expected, |writer| {
            let reader = |flash: &Flash| -> Result<Box<dyn Source>> {
                Ok(Box::new(RunReader::new(&flash.device, &flash.run, IoChunks::default())?))
            };
            let sources = inputs.iter().map(reader).collect::<Result<_>>()?;
            let mut merge = Merge::new(sources, MergeOptions::default());
            let mut batch = Vec::new();
            while merge.next_batch(&mut batch)? {
                writer.push(&batch)?;
                batch.clear();
            }
            Ok(())
        })?;
        Ok(flash.run.entries() as f64 / seconds)
    })?;
    Ok([in_memory, on_flash])
}

/// Returns the bits per fingerprint, all pages counted, and the share of lookups that read a second page.
fn size(keys: u64, rate: f64) -> Result<(f64, f64)> {
    let universe = Universe::for_rate(keys, rate)?;
    let entries = entries(universe, keys, keys);
    let (flash, _) = write_all(universe, &entries)?;
    let (image, run) = (flash.device.image(), &flash.run);
    let mut carried = 0;
    for entry in &entries {
        let page = run.page_of(entry.fingerprint);
        let start = page.0 as usize * PAGE_BYTES + PAGE_HEADER_BYTES;
        let end = (page.0 as usize + 1) * PAGE_BYTES;
        let page = RunPage::parse(&image[start..end]).context("a page")?;
        carried += u64::from(entry.fingerprint >= page.limit());
    }
    let bits = (run.used_pages() * PAGE_BYTES as u64 * 8) as f64;
    Ok((bits / entries.len() as f64, carried as f64 / entries.len() as f64))
}

fn report(arguments: &Arguments) -> Result<String> {
    let universe = Universe::for_rate(arguments.keys, arguments.rate)?;
    let all = entries(universe, arguments.keys, 3);
    let (flash, _) = write_all(universe, &all)?;
    let write = median_of(arguments.runs, || Ok(all.len() as f64 / write_all(universe, &all)?.1))?;
    let read = median_of(arguments.runs, || {
        drained(&mut RunReader::new(&flash.device, &flash.run, IoChunks::default())?)
    })?;
    let decode = median_of(arguments.runs, || decoded(&flash))?;
    let look = median_of(arguments.runs, || Ok(looks(&flash, &all)?.0))?;
    let find = median_of(arguments.runs, || Ok(looks(&flash, &all)?.1))?;
    let [in_memory, on_flash] = merged(universe, arguments)?;
    let mut text = format!(
        "{} fingerprints at a rate of {}, one core, a device of memory, medians of {} runs\n\
         pages decoded       {:>8.1} M/s\n\
         run read            {:>8.1} M/s, checksums and copies included\n\
         run written         {:>8.1} M/s, the same\n\
         two lists merged    {:>8.1} M/s of output\n\
         two runs into one   {:>8.1} M/s of output, all included\n\
         look at a page      {:>8.1} ns, of which {:.1} without its checksum\n",
        arguments.keys,
        arguments.rate,
        arguments.runs,
        decode / 1e6,
        read / 1e6,
        write / 1e6,
        in_memory / 1e6,
        on_flash / 1e6,
        look,
        find,
    );
    text.push_str("\n      rate        keys  bits per key  second page per million\n");
    for rate in [0.1, 0.01, 0.0039, 1e-3, 1e-6, 1e-9] {
        for keys in [1000, 100_000, 1_000_000, 10_000_000] {
            let (bits, second) = size(keys, rate)?;
            let million = second * 1e6;
            text.push_str(&format!("{rate:>10} {keys:>11} {bits:>13.3} {million:>24.1}\n"));
        }
    }
    Ok(text)
}

fn main() -> ExitCode {
    finish("nandex-bench-run", report(&Arguments::parse()).context("runs could not be measured"))
}
