//! The keys of `get` and `delete`: as words, or one per line on stdin.

use std::io::{self, BufRead, Read};

use anyhow::{Context, Result, anyhow, bail};

use crate::field::Column;

/// The number of keys that are looked up in one call.
const BATCH_KEYS: usize = 1024;
/// The same number if each may have a value of megabytes.
const BATCH_KEYS_ANY_SIZE: usize = 32;
/// The longest line: the longest key, in hex.
const LINE_BYTES_MAX: usize = 2 * nandex::large::KEY_BYTES_MAX + 16;

/// The keys of a call.
#[derive(Clone, Debug, clap::Args)]
pub struct KeyWords {
    /// Keys; `-` alone reads them from stdin, one per line
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
}

impl KeyWords {
    /// Passes all keys to `act`, in order and in batches.
    ///
    /// # Errors
    /// A word or a line that is not a key: no word is passed, but all lines before it are. Errors of `act`.
    pub fn for_each_batch(
        &self,
        column: &Column,
        mut act: impl FnMut(&[&[u8]]) -> Result<()>,
    ) -> Result<()> {
        let most = column.bytes.map_or(BATCH_KEYS_ANY_SIZE, |_| BATCH_KEYS);
        let mut act = |keys: &[Vec<u8>]| act(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
        if self.keys == ["-"] {
            return from_lines(&mut io::BufReader::new(io::stdin()), column, most, &mut act);
        }
        let keys = self.keys.iter().map(|key| column.parse(key).map_err(|why| anyhow!(why)));
        keys.collect::<Result<Vec<_>>>()?.chunks(most).try_for_each(act)
    }
}

fn from_lines(
    input: &mut io::BufReader<impl Read>,
    column: &Column,
    most: usize,
    act: &mut dyn FnMut(&[Vec<u8>]) -> Result<()>,
) -> Result<()> {
    let mut keys = Vec::new();
    for number in 1_u64.. {
        match read_key(input, column).with_context(|| format!("line {number}")) {
            Ok(Some(key)) => keys.push(key),
            Ok(None) => return act(&keys),
            Err(error) => return act(&keys).and(Err(error)),
        }
        // A user or program that sends keys one after another gets answers one after another.
        if keys.len() == most || input.buffer().is_empty() {
            act(&keys)?;
            keys.clear();
        }
    }
    Ok(())
}

/// Returns the key of the next line; `None` at the end.
fn read_key(input: &mut impl BufRead, column: &Column) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let bytes = input.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    if bytes == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if bytes > LINE_BYTES_MAX {
        bail!("it is longer than {LINE_BYTES_MAX} bytes; write a key on each line");
    }
    let text = String::from_utf8(line).context("it is not UTF-8; write keys as hex")?;
    column.parse(&text).map(Some).map_err(|why| anyhow!(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{FieldFormat, Role};

    fn read(text: &[u8], most: usize) -> (Vec<usize>, Vec<Vec<u8>>, Result<()>) {
        let column = Column::new(Role::Key, None, FieldFormat::Text).unwrap();
        let (mut batches, mut keys) = (Vec::new(), Vec::new());
        let mut act = |some: &[Vec<u8>]| {
            batches.push(some.len());
            keys.extend_from_slice(some);
            Ok(())
        };
        let result = from_lines(&mut io::BufReader::new(text), &column, most, &mut act);
        (batches, keys, result)
    }

    #[test]
    fn a_key_is_a_line_and_the_last_one_needs_no_line_feed() {
        let (batches, keys, result) = read(b"a\n\nb c\nlast", 2);
        result.unwrap();
        assert_eq!(keys, [&b"a"[..], b"", b"b c", b"last"]);
        assert_eq!(batches, [2, 2, 0]);
    }

    #[test]
    fn a_line_that_is_no_key_is_named_after_those_before_it() {
        let (_, keys, result) = read(b"a\nb\n\xff\nc\n", 1024);
        assert_eq!(keys, [b"a", b"b"]);
        let error = format!("{:#}", result.unwrap_err());
        assert!(error.contains("line 3: it is not UTF-8"), "{error}");
        let (_, _, result) = read(&vec![b'x'; LINE_BYTES_MAX + 1], 1024);
        assert!(format!("{:#}", result.unwrap_err()).contains("line 1: it is longer than"));
    }
}
