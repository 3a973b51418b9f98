//! `nandex-trial`: runs trials from a seed on, on all cores, until their number or the time is reached.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{available_parallelism, scope, sleep};
use std::time::{Duration, Instant};

use nandex_trial::{BLOCK, Counters, Failure, Structure, run};

/// The time after which a trial counts as hanging; none takes a tenth of it.
const HANG: Duration = Duration::from_secs(300);

const USAGE: &str =
    "usage: nandex-trial [--seed N | [--start N] [--seeds N] [--cuts N] [--hours H] \
[--minutes M] [--threads N]]
--seed N     runs one seed
--start N    the first seed (default 0)
--seeds N    ends after N seeds (default all structures once, unless another limit is given)
--cuts N     ends after N cut points
--hours H, --minutes M   ends after this time
--threads N  the number of trials at once (default: the number of cores)";

/// The limits of the run.
#[derive(Clone, Copy, Debug)]
struct Limits {
    start: u64,
    seeds: u64,
    cuts: u64,
    time: Duration,
    threads: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let limits = match parse(&arguments) {
        Ok(limits) => limits,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let started = Instant::now();
    let (counters, failures) = run_all(&limits, started);
    println!("{counters}");
    let seconds = started.elapsed().as_secs_f64();
    let rate = counters.cut_points as f64 / seconds;
    println!("seconds           {seconds:>12.1}   {rate:.0} cut points a second");
    println!("failures          {:>12}", failures.len());
    failures.iter().for_each(|failure| eprintln!("{failure}"));
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(arguments: &[String]) -> Result<Limits, String> {
    let cores = available_parallelism().map_or(1, usize::from);
    let mut limits =
        Limits { start: 0, seeds: u64::MAX, cuts: u64::MAX, time: Duration::MAX, threads: cores };
    let mut is_limited = false;
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        let wrong = || format!("{name} {value}: not a number");
        let count = || value.parse::<u64>().map_err(|_| wrong());
        let time = |seconds: f64| {
            let number = value.parse::<f64>().map_err(|_| wrong())?;
            Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
        };
        is_limited |= !["--start", "--threads"].contains(&name.as_str());
        match name.as_str() {
            "--seed" => (limits.start, limits.seeds) = (count()?, 1),
            "--start" => limits.start = count()?,
            "--seeds" => limits.seeds = count()?,
            "--cuts" => limits.cuts = count()?,
            "--hours" => limits.time = time(3600.0)?,
            "--minutes" => limits.time = time(60.0)?,
            "--threads" => limits.threads = usize::try_from(count()?.max(1)).unwrap_or(1),
            _ => return Err(format!("{name}: no such option")),
        }
    }
    if !is_limited {
        limits.seeds = Structure::all().count() as u64 * BLOCK;
    }
    Ok(limits)
}

/// The shared state of the threads.
struct Shared<'a> {
    limits: &'a Limits,
    started: Instant,
    next: AtomicU64,
    stop: AtomicBool,
    total: Mutex<(Counters, Vec<Failure>)>,
}

fn run_all(limits: &Limits, started: Instant) -> (Counters, Vec<Failure>) {
    let shared = Shared {
        limits,
        started,
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        total: Mutex::default(),
    };
    let running: Vec<_> = (0..limits.threads).map(|_| Mutex::new(None)).collect();
    scope(|scope| {
        let threads: Vec<_> =
            running.iter().map(|running| scope.spawn(|| work(&shared, running))).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            sleep(Duration::from_millis(20));
            running.iter().for_each(end_if_hanging);
        }
    });
    shared.total.into_inner().expect("no holder of this lock panics")
}

/// A seed and the time at which it began.
type Running = Mutex<Option<(u64, Instant)>>;

fn end_if_hanging(running: &Running) {
    let running = *running.lock().expect("no holder of this lock panics");
    if let Some((seed, since)) = running.filter(|(_, since)| since.elapsed() > HANG) {
        let seconds = since.elapsed().as_secs();
        eprintln!("trial {seed} hangs: {seconds} seconds so far\nmake trial SEED={seed}");
        std::process::exit(1);
    }
}

fn work(shared: &Shared<'_>, running: &Running) {
    let Limits { start, seeds, cuts, time, .. } = *shared.limits;
    while !shared.stop.load(Relaxed) && shared.started.elapsed() < time {
        let index = shared.next.fetch_add(1, Relaxed);
        if index >= seeds {
            return;
        }
        let seed = start.wrapping_add(index);
        *running.lock().expect("no holder of this lock panics") = Some((seed, Instant::now()));
        let result = run(seed, 1);
        *running.lock().expect("no holder of this lock panics") = None;
        let mut total = shared.total.lock().expect("no holder of this lock panics");
        match result {
            Ok(counters) => total.0 += &counters,
            Err(failure) => {
                eprintln!("{failure}");
                total.1.push(*failure);
                shared.stop.store(true, Relaxed);
            }
        }
        if total.0.cut_points >= cuts {
            shared.stop.store(true, Relaxed);
        }
    }
}
