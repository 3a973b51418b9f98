//! Reads an input key by key, into batches.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use anyhow::{Context, Result, bail};

use super::csv::{CsvFormat, CsvReader};
use super::ram::BatchLimits;
use super::{Batch, Form, Format, Input, InputName, KEY_BYTES_MAX, READ_BYTES};

/// Batches to fill, in the memory of those that were used.
pub struct Batches {
    pub limits: BatchLimits,
    pub returned: Receiver<Batch>,
}

impl Batches {
    fn next(&self, name: &Arc<InputName>, first: u64) -> Batch {
        match self.returned.try_recv() {
            Ok(used) => used.renewed(name, first, self.limits),
            Err(_) => Batch::new(name, first, self.limits),
        }
    }
}

/// Opens a file, or stdin.
///
/// # Errors
/// A file that does not exist or may not be read.
pub fn open(path: &Path) -> Result<Input> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
    };
    Ok(Input::with_capacity(READ_BYTES, source))
}

/// Rejects a file whose header has no such column. An input that can be read only once is not read.
///
/// # Errors
/// As [`CsvReader::new`], with the place.
pub fn check_header(path: &Path, format: &CsvFormat) -> Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        let at = || InputName::new(path, true).place(1);
        CsvReader::new(open(path)?, format).with_context(at)?;
    }
    Ok(())
}

/// Reads one input to its end. Returns whether all batches were accepted.
///
/// # Errors
/// An invalid key, with its place; a failed read. Keys before it are sent.
pub fn read_input(
    path: &Path,
    format: &Format,
    (read_bytes, fresh): (&mut u64, &Batches),
    send: &mut dyn FnMut(Batch) -> bool,
) -> Result<bool> {
    let input = open(path)?;
    match format {
        Format::Plain(form) => read_plain((path, *form), input, (read_bytes, fresh), send),
        Format::Csv(csv) => read_csv((path, csv), input, (read_bytes, fresh), send),
    }
}

fn read_plain(
    (path, form): (&Path, Form),
    mut input: Input,
    (read_bytes, fresh): (&mut u64, &Batches),
    send: &mut dyn FnMut(Batch) -> bool,
) -> Result<bool> {
    let name = Arc::new(InputName::new(path, form == Form::Ended(b'\n')));
    let mut batch = fresh.next(&name, 1);
    loop {
        let number = batch.next_number();
        let bytes = match read_key(&mut input, form, &mut batch.bytes) {
            Ok(bytes) => bytes,
            Err(error) => {
                send(batch.complete());
                return Err(error.context(name.place(number)));
            }
        };
        *read_bytes += bytes as u64;
        if bytes == 0 {
            batch.read_bytes = *read_bytes;
            return Ok(batch.ends.is_empty() || send(batch));
        }
        batch.end_key();
        // The batch is sent if the next byte is not available yet.
        if batch.is_full(fresh.limits) || input.buffer().is_empty() {
            batch.read_bytes = *read_bytes;
            if !send(batch) {
                return Ok(false);
            }
            batch = fresh.next(&name, number + 1);
        }
    }
}

fn read_csv(
    (path, format): (&Path, &CsvFormat),
    input: Input,
    (read_bytes, fresh): (&mut u64, &Batches),
    send: &mut dyn FnMut(Batch) -> bool,
) -> Result<bool> {
    let name = Arc::new(InputName::new(path, true));
    let mut reader = CsvReader::new(input, format).with_context(|| name.place(1))?;
    let (mut batch, before) = (fresh.next(&name, 1), *read_bytes);
    loop {
        match reader.read_key(&mut batch.bytes) {
            Ok(true) => {
                batch.end_key();
                batch.lines.push(reader.line());
            }
            Ok(false) => {
                *read_bytes = before + reader.read_bytes();
                batch.read_bytes = *read_bytes;
                return Ok(batch.ends.is_empty() || send(batch));
            }
            Err(error) => {
                send(batch.complete());
                return Err(error.context(name.place(reader.line())));
            }
        }
        if batch.is_full(fresh.limits) || reader.must_wait() {
            batch.read_bytes = before + reader.read_bytes();
            if !send(batch) {
                return Ok(false);
            }
            batch = fresh.next(&name, 1);
        }
    }
}

/// Appends the next key. Returns the number of bytes that were read for it, 0 at the end.
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

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;
    use crate::key_feed::FeedRam;

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
    fn a_batch_gives_its_keys_back_and_tells_where_they_are() {
        let batch = |counts_lines, lines| Batch {
            bytes: b"onetwo".to_vec(),
            ends: vec![3, 3, 6],
            lines,
            ..Batch::new(
                &Arc::new(InputName::new(Path::new("-"), counts_lines)),
                7,
                FeedRam::SMALL.limits(),
            )
        };
        assert_eq!(batch(true, Vec::new()).keys(), [&b"one"[..], b"", b"two"]);
        assert_eq!(batch(true, Vec::new()).place(2), "stdin:9");
        assert_eq!(batch(false, Vec::new()).place(1), "stdin, key 8");
        assert_eq!(batch(true, vec![3, 5, 12]).place(1), "stdin:5");
    }
}
