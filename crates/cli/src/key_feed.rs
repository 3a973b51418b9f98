//! Keys from files and stdin: one per line, ended by a zero byte, or of fixed width. A thread reads them in
//! batches.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::console::Console;
use crate::interrupt::Interrupt;
use crate::size;

/// Keys of a batch at most.
const BATCH_KEYS: usize = 1 << 18;
/// A batch of this many bytes is full.
const BATCH_BYTES: usize = 4 << 20;
/// Batches that wait in the channel.
const BATCHES: usize = 3;
/// The longest key; a longer one is probably a mistake.
const KEY_BYTES_MAX: usize = 1 << 20;
/// Bytes per read, and bytes of each file that are sampled to estimate its keys.
const READ_BYTES: usize = 1 << 18;
/// Files that are sampled for the estimate.
const SAMPLED_FILES: usize = 16;
/// How often an interrupt is checked while no keys come.
const LOOK: Duration = Duration::from_millis(50);

/// The inputs, and their format.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KeyArgs {
    /// Files with keys, one a line; `-`, or none, is stdin
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Keys end with a zero byte and may hold line feeds
    #[arg(long, conflicts_with = "width")]
    nul: bool,
    /// Keys are this many bytes each, with nothing between
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    width: Option<u64>,
}

/// The format of keys in an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Each ends with this byte; the last one need not.
    Ended(u8),
    /// Each has this many bytes.
    Width(usize),
}

/// Consecutive keys.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Bytes read so far, of all inputs.
    read_bytes: u64,
}

impl Batch {
    /// Its keys, in order.
    pub fn keys(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end]).collect()
    }

    fn is_full(&self) -> bool {
        self.ends.len() >= BATCH_KEYS || self.bytes.len() >= BATCH_BYTES
    }
}

/// What was read.
#[derive(Clone, Copy, Default, Debug)]
pub struct FeedResult {
    /// Keys that were passed on.
    pub keys: u64,
    /// How long all of it took.
    pub elapsed_s: f64,
    /// Was it stopped?
    pub interrupted: bool,
}

impl FeedResult {
    /// Keys per second.
    pub fn keys_per_s(&self) -> f64 {
        self.keys as f64 / self.elapsed_s.max(f64::MIN_POSITIVE)
    }
}

impl KeyArgs {
    /// The format of the keys.
    ///
    /// # Errors
    /// A width that is not valid.
    pub fn form(&self) -> Result<Form> {
        match self.width.map(usize::try_from).transpose()? {
            None => Ok(Form::Ended(if self.nul { 0 } else { b'\n' })),
            Some(width) if (1..=KEY_BYTES_MAX).contains(&width) => Ok(Form::Width(width)),
            Some(width) => bail!("a width of {width} bytes; keys have 1 to {KEY_BYTES_MAX}"),
        }
    }

    /// Refuses unreadable inputs and bad formats before anything is made.
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

    fn files(&self) -> impl Iterator<Item = &Path> {
        self.inputs.iter().map(PathBuf::as_path).filter(|path| *path != Path::new("-"))
    }

    /// Bytes of all inputs; `None` if unknown beforehand.
    fn bytes(&self) -> Option<u64> {
        if self.inputs.is_empty() || self.files().count() < self.inputs.len() {
            return None;
        }
        let size = |path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
        self.files().map(|path| size(path).map(|it| it.len())).sum()
    }

    /// An estimate of the number of keys, from the size of the inputs and the length of the first keys;
    /// `None` if the size is unknown.
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
            File::open(path)?.take(READ_BYTES as u64).read_to_end(&mut sample)?;
            sampled += sample.len();
            keys += sample.iter().filter(|byte| **byte == end).count() + 1;
        }
        Ok(Some((keys as f64 * bytes as f64 / sampled.max(1) as f64) as u64))
    }

    /// Reads all keys and passes them to `act`, batch by batch, until it has enough, or the user wants to
    /// stop. Returns what was done, also after a failure.
    pub fn feed(
        &self,
        what: &'static str,
        (console, interrupt): (&Console, &Interrupt),
        act: &mut dyn FnMut(&[&[u8]]) -> Result<bool>,
    ) -> (FeedResult, Result<()>) {
        let (start, mut fed) = (Instant::now(), 0);
        let meter = console.meter(what, self.bytes());
        let result = self.start().and_then(|batches| {
            while let Some(batch) = next(&batches, interrupt)? {
                let keys = batch.keys();
                let goes_on = act(&keys)?;
                fed += keys.len() as u64;
                meter.at(batch.read_bytes);
                if !goes_on {
                    break;
                }
            }
            Ok(())
        });
        meter.finish();
        let interrupted = interrupt.is_set();
        (FeedResult { keys: fed, elapsed_s: start.elapsed().as_secs_f64(), interrupted }, result)
    }

    /// Starts the thread that reads. It ends with the last batch, or when the receiver is gone.
    fn start(&self) -> Result<Receiver<Result<Batch>>> {
        let (sender, receiver) = sync_channel(BATCHES);
        let stdin = [PathBuf::from("-")];
        let inputs = if self.inputs.is_empty() { &stdin } else { &self.inputs[..] };
        let (inputs, form) = (inputs.to_vec(), self.form()?);
        let read = move || {
            let mut read_bytes = 0;
            for path in inputs {
                let mut send = |batch| sender.send(Ok(batch)).is_ok();
                match read_input(&path, form, &mut read_bytes, &mut send) {
                    Ok(true) => {}
                    Ok(false) => return,
                    // The receiver is gone if this fails.
                    Err(error) => return drop(sender.send(Err(error))),
                }
            }
        };
        thread::Builder::new().name("nandex-keys".into()).spawn(read)?;
        Ok(receiver)
    }
}

/// The next batch; `None` at the end, or when the user wants to stop.
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

type Input = BufReader<Box<dyn Read>>;

fn open(path: &Path) -> Result<Input> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
    };
    Ok(BufReader::with_capacity(READ_BYTES, source))
}

/// Reads one input to its end. Returns whether all batches were taken.
fn read_input(
    path: &Path,
    form: Form,
    read_bytes: &mut u64,
    send: &mut dyn FnMut(Batch) -> bool,
) -> Result<bool> {
    let mut input = open(path)?;
    let mut batch = Batch::default();
    let mut number = 0_u64;
    loop {
        number += 1;
        let bytes = match read_key(&mut input, form, &mut batch.bytes) {
            Ok(bytes) => bytes,
            Err(error) => {
                // What came before it is complete.
                batch.bytes.truncate(batch.ends.last().copied().unwrap_or(0));
                send(batch);
                return Err(error.context(format!("{}, key {number}", path.display())));
            }
        };
        *read_bytes += bytes as u64;
        if bytes == 0 {
            batch.read_bytes = *read_bytes;
            return Ok(batch.ends.is_empty() || send(batch));
        }
        batch.ends.push(batch.bytes.len());
        // The batch is sent if the next byte has to be waited for.
        if batch.is_full() || input.buffer().is_empty() {
            batch.read_bytes = *read_bytes;
            if !send(std::mem::take(&mut batch)) {
                return Ok(false);
            }
        }
    }
}

/// Appends the next key. Returns the bytes that were read for it, 0 at the end.
fn read_key(input: &mut Input, form: Form, key: &mut Vec<u8>) -> Result<usize> {
    match form {
        Form::Ended(end) => {
            let bytes = input.by_ref().take(KEY_BYTES_MAX as u64 + 1).read_until(end, key)?;
            if bytes > 0 && key.last() == Some(&end) {
                key.pop();
            } else if bytes > KEY_BYTES_MAX {
                bail!(
                    "it is longer than {KEY_BYTES_MAX} bytes; say how keys are separated with --nul or --width"
                );
            }
            Ok(bytes)
        }
        Form::Width(width) => {
            let bytes = input.by_ref().take(width as u64).read_to_end(key)?;
            if bytes > 0 && bytes < width {
                bail!("expected {width} bytes, found {bytes} at the end; is the width right?");
            }
            Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], form: Form) -> Result<Vec<Vec<u8>>> {
        let mut input: Input = BufReader::new(Box::new(io::Cursor::new(bytes.to_vec())));
        let mut keys = Vec::new();
        loop {
            let mut key = Vec::new();
            if read_key(&mut input, form, &mut key)? == 0 {
                return Ok(keys);
            }
            keys.push(key);
        }
    }

    #[test]
    fn keys_are_what_stands_between_ends_or_of_one_width() {
        let keys =
            |keys: &[&str]| keys.iter().map(|key| key.as_bytes().to_vec()).collect::<Vec<_>>();
        let lines = Form::Ended(b'\n');
        assert_eq!(read(b"a\n\nb c\r\nlast", lines).unwrap(), keys(&["a", "", "b c\r", "last"]));
        assert_eq!(read(b"a\nb\0c\0", Form::Ended(0)).unwrap(), keys(&["a\nb", "c"]));
        assert_eq!(read(b"abcdef", Form::Width(3)).unwrap(), keys(&["abc", "def"]));
        assert_eq!(read(b"", lines).unwrap(), keys(&[]));
        let error = read(b"abcde", Form::Width(3)).unwrap_err().to_string();
        assert!(error.contains("expected 3 bytes, found 2"), "{error}");
        let long = vec![b'x'; KEY_BYTES_MAX + 1];
        assert!(read(&long, lines).is_err());
        assert_eq!(read(&long[1..], lines).unwrap().len(), 1);
    }

    #[test]
    fn a_batch_gives_its_keys_back() {
        let batch = Batch { bytes: b"onetwo".to_vec(), ends: vec![3, 3, 6], read_bytes: 0 };
        assert_eq!(batch.keys(), [&b"one"[..], b"", b"two"]);
    }
}
