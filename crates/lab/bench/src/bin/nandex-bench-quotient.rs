//! `nandex-bench-quotient`: the speed of the quotient filter, and its size.
//!
//! Rates are per second of processor time of the one running thread, medians of several runs: if other
//! programs run too, they vary less than rates per second of wall time. They depend on the machine; bits per
//! key and false positives are the same everywhere.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nandex::raw::quotient::{Counts, QuotientFilter, Shape};
use nandex::raw::store::fingerprint::Universe;
use nandex_bench::keys::{KeySpace, Rng};
use nandex_bench::percentiles::median;
use nandex_bench::process::{finish, thread_cpu_ns};

/// Measures the quotient filter in RAM: inserts by load, lookups, iteration, bits per key.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-quotient", version)]
struct Arguments {
    /// Slots, any number.
    #[arg(long, default_value_t = 1 << 26)]
    slots: u64,
    /// Fingerprints per slot, as a power of two.
    #[arg(long, default_value_t = 8)]
    remainder_bits: u32,
    /// Share of the slots that is in use at the end.
    #[arg(long, default_value_t = 0.94)]
    fill: f64,
    /// Lookups of present keys, and of absent ones, in each run.
    #[arg(long, default_value_t = 10_000_000)]
    lookups: usize,
    /// Runs, each single and batched; medians are printed.
    #[arg(long, default_value_t = 3)]
    runs: u64,
    /// One line of JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Calls with one fingerprint each, or with many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Calls {
    Single,
    Batched,
}

/// Rates of one run, per second.
#[derive(serde::Serialize, Clone, Debug)]
struct Rates {
    /// By tenths of the keys.
    inserts_by_tenth: Vec<f64>,
    inserts: f64,
    lookups_there: f64,
    lookups_not_there: f64,
    iteration: f64,
}

/// The measurements.
#[derive(serde::Serialize, Debug)]
struct Figures {
    slots: u64,
    keys: u64,
    remainder_bits: u32,
    runs: u64,
    bits_per_key: f64,
    false_positive_percent: f64,
    false_positive_percent_expected: f64,
    single: Rates,
    batched: Rates,
}

/// Keys of one run, as fingerprints.
struct Keys {
    all: Vec<u64>,
    /// Some of them, in another order.
    there: Vec<u64>,
    /// Absent keys. A few are found anyway: false positives.
    others: Vec<u64>,
}

fn keys(arguments: &Arguments, universe: Universe, seed: u64) -> Keys {
    let count = (arguments.slots as f64 * arguments.fill) as u64;
    let (space, mut rng) = (KeySpace::new(seed), Rng::new(seed, 0, 0));
    let fingerprint = |number: u64| universe.of(space.key(number));
    let all: Vec<_> = (0..count).map(fingerprint).collect();
    let numbers = 0..arguments.lookups as u64;
    let there = numbers.clone().map(|_| all[rng.below(count) as usize]).collect();
    let others = numbers.map(|number| fingerprint(count + number)).collect();
    Keys { all, there, others }
}

/// Returns the CPU time of a run on this thread, in seconds.
fn seconds<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = thread_cpu_ns();
    let result = run();
    ((thread_cpu_ns() - start) as f64 / 1e9, result)
}

fn insert(filter: &mut QuotientFilter, keys: &[u64], calls: Calls) -> Result<()> {
    match calls {
        Calls::Single => keys.iter().try_for_each(|key| filter.add(*key, 1))?,
        Calls::Batched => ensure!(filter.add_many(keys)? == keys.len(), "the filter is full"),
    }
    Ok(())
}

fn found(filter: &QuotientFilter, keys: &[u64], calls: Calls) -> usize {
    if calls == Calls::Single {
        return keys.iter().filter(|key| filter.count(**key) > 0).count();
    }
    let mut counts = Vec::new();
    let batches = keys.chunks(4096).map(|keys| {
        counts.clear();
        filter.count_many(keys, &mut counts);
        counts.iter().filter(|count| **count > 0).count()
    });
    batches.sum()
}

/// Performs one run; also returns bits per key, and the share of absent keys that were found.
fn run(arguments: &Arguments, calls: Calls, seed: u64) -> Result<(Rates, f64, f64)> {
    let universe = Universe::new(arguments.slots << arguments.remainder_bits)?;
    let keys = keys(arguments, universe, seed);
    let shape = Shape::new(universe, arguments.slots, Counts::One, arguments.slots)?;
    let mut filter = QuotientFilter::new(shape);
    let rate = |count: usize, seconds: f64| count as f64 / seconds;
    let (mut inserts_by_tenth, mut insert_seconds) = (Vec::new(), 0.0);
    for tenth in keys.all.chunks(keys.all.len().div_ceil(10)) {
        let (seconds, inserted) = seconds(|| insert(&mut filter, tenth, calls));
        inserted?;
        inserts_by_tenth.push(rate(tenth.len(), seconds));
        insert_seconds += seconds;
    }
    let (there_seconds, there) = seconds(|| found(&filter, &keys.there, calls));
    ensure!(there == keys.there.len(), "{there} keys found of {}", keys.there.len());
    let (others_seconds, others) = seconds(|| found(&filter, &keys.others, calls));
    let (iteration_seconds, entries) = seconds(|| filter.iter().count());
    let rates = Rates {
        inserts_by_tenth,
        inserts: rate(keys.all.len(), insert_seconds),
        lookups_there: rate(there, there_seconds),
        lookups_not_there: rate(keys.others.len(), others_seconds),
        iteration: rate(entries, iteration_seconds),
    };
    let bits = filter.ram_bytes() as f64 * 8.0 / keys.all.len() as f64;
    Ok((rates, bits, others as f64 / keys.others.len() as f64))
}

fn medians(all: &[Rates]) -> Rates {
    let of = |rate: fn(&Rates) -> f64| median(all.iter().map(rate));
    let tenth = |tenth: usize| median(all.iter().map(|rates| rates.inserts_by_tenth[tenth]));
    Rates {
        inserts_by_tenth: (0..all[0].inserts_by_tenth.len()).map(tenth).collect(),
        inserts: of(|rates| rates.inserts),
        lookups_there: of(|rates| rates.lookups_there),
        lookups_not_there: of(|rates| rates.lookups_not_there),
        iteration: of(|rates| rates.iteration),
    }
}

fn measure(arguments: &Arguments) -> Result<Figures> {
    ensure!(arguments.fill > 0.0 && arguments.fill <= 0.95, "a fill of 0 to 0.95");
    let (mut single, mut batched) = (Vec::new(), Vec::new());
    let (mut bits_per_key, mut wrong) = (0.0, 0.0);
    let runs = arguments.runs.max(1);
    for seed in 0..runs {
        let (rates, bits, share) = run(arguments, Calls::Single, seed)?;
        single.push(rates);
        batched.push(run(arguments, Calls::Batched, seed)?.0);
        bits_per_key = bits;
        wrong += share / runs as f64;
    }
    let share = arguments.fill / (1_u64 << arguments.remainder_bits) as f64;
    Ok(Figures {
        slots: arguments.slots,
        keys: (arguments.slots as f64 * arguments.fill) as u64,
        remainder_bits: arguments.remainder_bits,
        runs,
        bits_per_key,
        false_positive_percent: 100.0 * wrong,
        // Keys share fingerprints, so there are fewer of these than keys.
        false_positive_percent_expected: 100.0 * (1.0 - (-share).exp()),
        single: medians(&single),
        batched: medians(&batched),
    })
}

fn text(figures: &Figures) -> String {
    let Figures { single, batched, .. } = figures;
    let mut text = format!(
        "quotient filter: {} keys in {} slots of {} bits\n\
         millions per second of one thread's processor time, medians of {} runs\n\
         {:<24}{:>10}{:>10}\n",
        figures.keys, figures.slots, figures.remainder_bits, figures.runs, "", "single", "batched"
    );
    let mut line = |what: &str, single: f64, batched: f64| {
        text += &format!("{what:<24}{:>10.2}{:>10.2}\n", single / 1e6, batched / 1e6);
    };
    let tenths = single.inserts_by_tenth.iter().zip(&batched.inserts_by_tenth);
    for (number, (single, batched)) in tenths.enumerate() {
        line(&format!("insert, tenth {}", number + 1), *single, *batched);
    }
    line("insert, all", single.inserts, batched.inserts);
    line("lookup, there", single.lookups_there, batched.lookups_there);
    line("lookup, not there", single.lookups_not_there, batched.lookups_not_there);
    line("iteration", single.iteration, batched.iteration);
    text + &format!(
        "bits per key            {:>10.3}\nfalse positives         {:>10.4} %, expected {:.4} %\n",
        figures.bits_per_key,
        figures.false_positive_percent,
        figures.false_positive_percent_expected
    )
}

fn report() -> Result<String> {
    let arguments = Arguments::parse();
    let figures = measure(&arguments).context("the filter could not be measured")?;
    let json = || Ok(format!("{}\n", serde_json::to_string(&figures)?));
    if arguments.json { json() } else { Ok(text(&figures)) }
}

fn main() -> ExitCode {
    finish("nandex-bench-quotient", report())
}
