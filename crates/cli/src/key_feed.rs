//! Keys from files and stdin: one per line, ended by a zero byte, of fixed width, or a column of CSV. A thread reads
//! them in batches.

mod csv;
mod ram;
mod read;

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::console::Console;
use crate::interrupt::Interrupt;
use crate::refuse;
use crate::size;

pub use csv::{CsvColumn, CsvFormat, Delimiter};
use ram::BatchLimits;
pub use ram::{FeedRam, advised_beside};
use read::{Batches, check_header, read_input};

/// The longest key; a longer one is probably a mistake.
const KEY_BYTES_MAX: usize = 1 << 20;
/// The number of bytes per read.
const READ_BYTES: usize = 64 << 10;
/// The number of bytes of each file that are sampled to estimate its keys.
const SAMPLE_BYTES: u64 = 1 << 18;
/// The number of files that are sampled for the estimate.
const SAMPLED_FILES: usize = 16;
/// The interval at which an interrupt is checked while no keys arrive.
const LOOK: Duration = Duration::from_millis(50);

/// The inputs, and their format.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KeyArgs {
    /// Files with keys, one per line; `-`, or none, is stdin
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Keys end with a zero byte and may contain line feeds
    #[arg(long, conflicts_with = "width")]
    nul: bool,
    /// Keys have this many bytes each, with nothing between them
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    width: Option<u64>,
}

/// The format of keys in an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Each key ends with this byte; the last one need not.
    Ended(u8),
    /// Each key has this many bytes.
    Width(usize),
}

/// The format of an input.
#[derive(Clone, Debug)]
enum Format {
    Plain(Form),
    Csv(CsvFormat),
}

type Input = BufReader<Box<dyn Read>>;

/// The name of an input and of the places in it, for messages.
#[derive(Debug)]
struct InputName {
    name: String,
    counts_lines: bool,
}

impl InputName {
    fn new(path: &Path, counts_lines: bool) -> Self {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "stdin".into() } else { path.display().to_string() };
        Self { name, counts_lines }
    }

    fn place(&self, number: u64) -> String {
        let between = if self.counts_lines { ":" } else { ", key " };
        format!("{}{between}{number}", self.name)
    }
}

/// Consecutive keys of one input.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// The line of each key, if keys may span several lines.
    lines: Vec<u64>,
    input: Arc<InputName>,
    /// The number of the first key in its input.
    first: u64,
    /// The number of bytes read so far, of all inputs.
    read_bytes: u64,
}

impl Batch {
    fn new(input: &Arc<InputName>, first: u64, limits: BatchLimits) -> Self {
        let (bytes, keys) = limits.reserved();
        let (bytes, ends) = (Vec::with_capacity(bytes), Vec::with_capacity(keys));
        Self { bytes, ends, lines: Vec::new(), input: Arc::clone(input), first, read_bytes: 0 }
    }

    /// Returns an empty batch in the memory of this one, without what a very long key took.
    fn renewed(mut self, input: &Arc<InputName>, first: u64, limits: BatchLimits) -> Self {
        self.bytes.clear();
        self.bytes.shrink_to(2 * limits.reserved().0);
        self.ends.clear();
        self.lines.clear();
        Self { input: Arc::clone(input), first, read_bytes: 0, ..self }
    }

    /// Returns the keys, in order.
    pub fn keys(&self) -> Vec<&[u8]> {
        let ends = || self.ends.iter().map(|end| *end as usize);
        let starts = std::iter::once(0).chain(ends());
        starts.zip(ends()).map(|(start, end)| &self.bytes[start..end]).collect()
    }

    /// Returns the place of a key: `FILE:LINE`, or `FILE, key NUMBER` if keys are not lines.
    pub fn place(&self, index: usize) -> String {
        let number = self.lines.get(index).copied().unwrap_or(self.first + index as u64);
        self.input.place(number)
    }

    fn next_number(&self) -> u64 {
        self.first + self.ends.len() as u64
    }

    /// Ends a key with the bytes so far.
    fn end_key(&mut self) {
        let end = u32::try_from(self.bytes.len()).expect("a batch and a key have a few MiB");
        self.ends.push(end);
    }

    /// Removes the bytes of a key that did not end.
    fn complete(mut self) -> Self {
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
        self
    }

    fn is_full(&self, limits: BatchLimits) -> bool {
        limits.is_full(self.ends.len(), self.bytes.len())
    }

    /// The RAM that it takes, in bytes.
    fn ram_bytes(&self) -> u64 {
        let lines = self.lines.capacity() * size_of::<u64>();
        (self.bytes.len() + self.ends.len() * size_of::<u32>() + lines) as u64
    }
}

/// The result of reading.
#[derive(Clone, Copy, Default, Debug)]
pub struct FeedResult {
    /// The number of keys that were passed on.
    pub keys: u64,
    /// The total time.
    pub elapsed_s: f64,
    /// Whether it was stopped.
    pub interrupted: bool,
    /// The most RAM that batches of keys took, with what the caller takes for the keys of one.
    pub ram_bytes: u64,
}

impl FeedResult {
    /// Returns the number of keys per second.
    pub fn keys_per_s(&self) -> f64 {
        self.keys as f64 / self.elapsed_s.max(f64::MIN_POSITIVE)
    }
}

impl KeyArgs {
    /// Returns the format of the keys.
    ///
    /// # Errors
    /// A width that is not valid.
    pub fn form(&self) -> Result<Form> {
        match self.width.map(usize::try_from).transpose()? {
            None => Ok(Form::Ended(if self.nul { 0 } else { b'\n' })),
            Some(width) if (1..=KEY_BYTES_MAX).contains(&width) => Ok(Form::Width(width)),
            Some(width) => refuse!("--width {width}: keys have 1 to {KEY_BYTES_MAX} bytes"),
        }
    }

    /// Returns the width of keys of one width.
    pub fn width(&self) -> Option<u64> {
        self.width
    }

    /// Rejects unreadable inputs and bad formats before anything is created.
    ///
    /// # Errors
    /// An input that does not exist, is a directory, or may not be read.
    pub fn check(&self) -> Result<()> {
        self.form()?;
        for path in self.files() {
            let cannot = || format!("cannot open {}", path.display());
            if File::open(path).and_then(|file| file.metadata()).with_context(cannot)?.is_dir() {
                bail!("{} is a directory; name the files in it", path.display());
            }
        }
        Ok(())
    }

    /// Checks the inputs as [`check`](Self::check) does, for a column of CSV.
    ///
    /// # Errors
    /// As for `check`; a file without such a column.
    pub fn check_csv(&self, csv: &CsvFormat) -> Result<()> {
        self.check()?;
        self.files().try_for_each(|path| check_header(path, csv))
    }

    fn files(&self) -> impl Iterator<Item = &Path> {
        self.inputs.iter().map(PathBuf::as_path).filter(|path| *path != Path::new("-"))
    }

    /// Returns the bytes of all inputs; `None` if unknown beforehand.
    fn bytes(&self) -> Option<u64> {
        if self.inputs.is_empty() || self.files().count() < self.inputs.len() {
            return None;
        }
        let size = |path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
        self.files().map(|path| size(path).map(|it| it.len())).sum()
    }

    /// Estimates the number of keys, from the size of the inputs and the length of the first keys; returns `None` if
    /// the size is unknown.
    ///
    /// # Errors
    /// A failed read.
    pub fn estimate(&self) -> Result<Option<u64>> {
        let Some(bytes) = self.bytes() else { return Ok(None) };
        let end = match self.form()? {
            Form::Width(width) => return Ok(Some(bytes / width as u64)),
            Form::Ended(end) => end,
        };
        let (mut sampled, mut keys) = (0, 0);
        for path in self.files().take(SAMPLED_FILES) {
            let mut sample = Vec::new();
            File::open(path)?.take(SAMPLE_BYTES).read_to_end(&mut sample)?;
            sampled += sample.len();
            keys += sample.iter().filter(|byte| **byte == end).count() + 1;
        }
        Ok(Some((keys as f64 * bytes as f64 / sampled.max(1) as f64) as u64))
    }

    /// Reads all keys and passes them to `act`, batch by batch, until it has enough, or the user wants to stop. Returns
    /// the result, also after a failure.
    pub fn feed(
        &self,
        (what, ram): (&'static str, FeedRam),
        heard: (&Console, &Interrupt),
        act: &mut dyn FnMut(&[&[u8]]) -> Result<bool>,
    ) -> (FeedResult, Result<()>) {
        self.feed_batches(None, (what, ram), heard, &mut |batch| act(&batch.keys()))
    }

    /// Feeds keys as [`feed`](Self::feed) does, with their places, and from a column of CSV if that is given.
    pub fn feed_batches(
        &self,
        csv: Option<&CsvFormat>,
        (what, ram): (&'static str, FeedRam),
        (console, interrupt): (&Console, &Interrupt),
        act: &mut dyn FnMut(&Batch) -> Result<bool>,
    ) -> (FeedResult, Result<()>) {
        let (start, mut fed) = (Instant::now(), FeedResult::default());
        let meter = console.meter(what, self.bytes());
        let result = self.start(csv, ram.limits()).and_then(|reading| {
            while let Some(batch) = next(&reading.batches, interrupt)? {
                let taken = ram.taken(batch.ram_bytes(), batch.ends.len());
                fed.ram_bytes = fed.ram_bytes.max(taken);
                let goes_on = act(&batch)?;
                fed.keys += batch.ends.len() as u64;
                meter.at(batch.read_bytes);
                if !goes_on {
                    break;
                }
                // If this fails, the last batch was read.
                drop(reading.used.send(batch));
            }
            Ok(())
        });
        meter.finish();
        let (elapsed_s, interrupted) = (start.elapsed().as_secs_f64(), interrupt.is_set());
        (FeedResult { elapsed_s, interrupted, ..fed }, result)
    }

    /// Starts the thread that reads. It ends with the last batch, or when the receiver is dropped.
    fn start(&self, csv: Option<&CsvFormat>, limits: BatchLimits) -> Result<Reading> {
        // The caller has a batch, this one waits, and the thread fills another one.
        let (sender, batches) = sync_channel(1);
        let (used, returned) = channel();
        let stdin = [PathBuf::from("-")];
        let inputs = if self.inputs.is_empty() { &stdin } else { &self.inputs[..] };
        let inputs = inputs.to_vec();
        let format = match csv {
            Some(csv) => Format::Csv(csv.clone()),
            None => Format::Plain(self.form()?),
        };
        let read = move || {
            let (mut read_bytes, fresh) = (0, Batches { limits, returned });
            for path in inputs {
                let mut send = |batch| sender.send(Ok(batch)).is_ok();
                match read_input(&path, &format, (&mut read_bytes, &fresh), &mut send) {
                    Ok(true) => {}
                    Ok(false) => return,
                    // If this fails, the receiver was dropped.
                    Err(error) => return drop(sender.send(Err(error))),
                }
            }
        };
        thread::Builder::new().name("nandex-keys".into()).spawn(read)?;
        Ok(Reading { batches, used })
    }
}

/// A thread that reads: its batches, and the way back for those that were used.
struct Reading {
    batches: Receiver<Result<Batch>>,
    used: Sender<Batch>,
}

/// Returns the next batch; `None` at the end, or when the user wants to stop.
fn next(batches: &Receiver<Result<Batch>>, interrupt: &Interrupt) -> Result<Option<Batch>> {
    loop {
        if interrupt.is_set() {
            return Ok(None);
        }
        match batches.recv_timeout(LOOK) {
            Ok(batch) => return batch.map(Some),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

impl Form {
    /// Writes a key as it was read.
    ///
    /// # Errors
    /// An error of the output.
    pub fn write(self, out: &mut dyn Write, key: &[u8]) -> io::Result<()> {
        out.write_all(key)?;
        match self {
            Self::Ended(end) => out.write_all(&[end]),
            Self::Width(_) => Ok(()),
        }
    }
}
