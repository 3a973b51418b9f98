//! The items that are counted in the inputs: lines, words, columns of CSV, keys of fixed width, or lines with amounts.

use std::borrow::Cow;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use nandex_tfidf::Analysis;
use nandex_tfidf::tokenise::{Analyser, Tokens};

use super::form::KeyForm;
use super::quoted::unquoted;
use super::written::WrittenKeys;
use crate::console::Console;
use crate::field::FieldFormat;
use crate::interrupt::Interrupt;
use crate::key_feed::{CsvColumn, CsvFormat, Delimiter, FeedRam, FeedResult, KeyArgs};

/// The inputs, and the items that are counted in them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct InputArgs {
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Inputs are CSV, and keys are a column of it: given by its name in the first line, or by its number, from 1 on,
    /// if there is no such line
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["nul", "width", "weights"])]
    csv: Option<CsvColumn>,
    /// Separator of CSV fields in place of a comma: one byte, or \t for a tab
    #[arg(long, value_name = "BYTE", requires = "csv")]
    delimiter: Option<Delimiter>,
    /// Count words instead of lines: runs of two or more letters, digits and underscores
    #[arg(long)]
    pub words: bool,
    /// Convert words to lower case
    #[arg(long, requires = "words")]
    lowercase: bool,
    /// Each line is a key, a tab, and the amount to add to its count, which may be negative
    #[arg(long, conflicts_with = "words")]
    weights: bool,
    /// Format of keys; default: text, but u64 for numbers and hex for others of fixed width
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["words", "width"])]
    pub key_format: Option<FieldFormat>,
    /// Handling of a key that is longer than the table accepts; default: skip words, refuse others
    #[arg(long, value_name = "WHAT")]
    too_long: Option<TooLongArg>,
}

/// The handling of a key that is too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TooLongArg {
    /// Fail and end the run
    Refuse,
    /// Leave it out, and exit with 4
    Skip,
}

/// A stored key and the amount added to its count.
pub type Amount = (Vec<u8>, i64);

/// The result of reading.
#[derive(Debug, Default)]
pub struct InputRead {
    pub fed: FeedResult,
    pub left_out: LeftOut,
}

/// The number of keys that were left out because they are too long.
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    pub keys: u64,
    /// The place of the first of them.
    first: String,
}

impl LeftOut {
    /// Forgets all but the first `keys`.
    fn forget_after(&mut self, keys: u64) {
        self.keys = keys;
        if keys == 0 {
            self.first.clear();
        }
    }

    /// Returns what was left out, and the remedy, for people; `None` if everything was counted.
    pub fn note(&self, form: KeyForm) -> Option<String> {
        let KeyForm::Texts(longest) = form else { return None };
        let keys = crate::size::show_count(self.keys);
        (self.keys > 0).then(|| {
            format!(
                "{keys} keys of more than {longest} bytes are left out, the first at {}; {}",
                self.first,
                remedy(longest)
            )
        })
    }
}

/// Returns the way to count longer keys.
fn remedy(longest: u8) -> String {
    let longer = match longest {
        super::form::TEXT_BYTES_MAX => String::new(),
        _ => format!("--longest, up to {}, or ", super::form::TEXT_BYTES_MAX),
    };
    format!("a table built with {longer}--fpr accepts them")
}

impl InputArgs {
    /// Rejects unreadable inputs before anything is created.
    ///
    /// # Errors
    /// An input that does not exist, is a directory, or has no such column.
    pub fn check(&self) -> Result<()> {
        match self.csv_format() {
            Some(csv) => self.keys.check_csv(&csv),
            None => self.keys.check(),
        }
    }

    fn csv_format(&self) -> Option<CsvFormat> {
        let delimiter = self.delimiter.unwrap_or_default();
        self.csv.clone().map(|column| CsvFormat { column, delimiter })
    }

    /// Reads all inputs and passes the amounts to `act`, some thousand at a time. Passes all lines before a bad one,
    /// and nothing of the bad one. The result counts the lines that `act` took.
    pub fn feed(
        &self,
        (form, ram): (KeyForm, FeedRam),
        heard: (&Console, &Interrupt),
        act: &mut dyn FnMut(&[Amount]) -> Result<()>,
    ) -> (InputRead, Result<()>) {
        let mut reader = match InputReader::new(self, form) {
            Ok(reader) => reader,
            Err(error) => return (InputRead::default(), Err(error)),
        };
        let (csv, mut pending) = (self.csv_format(), Pending::new(act));
        let feed = ("counting", ram);
        let (fed, result) = self.keys.feed_batches(csv.as_ref(), feed, heard, &mut |batch| {
            for (index, line) in batch.keys().iter().enumerate() {
                let place = || batch.place(index);
                let before = reader.left_out.keys;
                if let Err(error) = reader.read(line, &mut pending, &place) {
                    reader.left_out.forget_after(before);
                    pending.drop_line();
                    return pending.pass().and(Err(error.context(place())));
                }
                pending.end_line()?;
            }
            // A batch may be followed by nothing for a long time.
            pending.pass().map(|()| true)
        });
        let fed = FeedResult { keys: pending.lines_passed, ..fed };
        (InputRead { fed, left_out: reader.left_out }, result)
    }

    fn skips_long_keys(&self) -> bool {
        self.too_long.map_or(self.words, |what| what == TooLongArg::Skip)
    }
}

/// The number of amounts that are passed at once. A line with more words than this is passed in pieces.
const AMOUNTS: usize = 2048;

/// Amounts that wait to be passed together.
struct Pending<'a> {
    act: &'a mut dyn FnMut(&[Amount]) -> Result<()>,
    amounts: Vec<Amount>,
    /// Amounts of complete lines.
    complete: usize,
    /// The number of these lines, and of those that were passed before.
    lines: u64,
    lines_passed: u64,
}

impl<'a> Pending<'a> {
    fn new(act: &'a mut dyn FnMut(&[Amount]) -> Result<()>) -> Self {
        let amounts = Vec::with_capacity(AMOUNTS);
        Self { act, amounts, complete: 0, lines: 0, lines_passed: 0 }
    }

    /// Adds an amount of the current line.
    fn push(&mut self, amount: Amount) -> Result<()> {
        self.amounts.push(amount);
        if self.amounts.len() < 2 * AMOUNTS { Ok(()) } else { self.pass() }
    }

    fn end_line(&mut self) -> Result<()> {
        (self.complete, self.lines) = (self.amounts.len(), self.lines + 1);
        if self.complete < AMOUNTS { Ok(()) } else { self.pass() }
    }

    /// Drops what is left of a line that did not end.
    fn drop_line(&mut self) {
        self.amounts.truncate(self.complete);
    }

    fn pass(&mut self) -> Result<()> {
        (self.act)(&self.amounts)?;
        self.lines_passed += std::mem::take(&mut self.lines);
        self.amounts.clear();
        self.complete = 0;
        Ok(())
    }
}

/// Converts lines to amounts.
struct InputReader<'a> {
    args: &'a InputArgs,
    written: WrittenKeys,
    words: Words,
    left_out: LeftOut,
}

impl<'a> InputReader<'a> {
    fn new(args: &'a InputArgs, form: KeyForm) -> Result<Self> {
        let is_raw = args.words || args.keys.width().is_some() && form != KeyForm::Numbers;
        let format = if is_raw { Some(FieldFormat::Text) } else { args.key_format };
        let written = WrittenKeys::new(form, format)?;
        let words = Words::new(args.lowercase)?;
        Ok(Self { args, written, words, left_out: LeftOut::default() })
    }

    fn read(
        &mut self,
        line: &[u8],
        pending: &mut Pending<'_>,
        place: &dyn Fn() -> String,
    ) -> Result<()> {
        let Self { args, written, words, left_out } = self;
        let mut add = |key: &[u8], amount: i64| -> Result<()> {
            if args.skips_long_keys() && written.form.is_too_long(key) {
                left_out.keys += 1;
                if left_out.first.is_empty() {
                    left_out.first = place();
                }
                return Ok(());
            }
            if let (true, KeyForm::Texts(longest)) = (written.form.is_too_long(key), written.form) {
                let found = key.len();
                let remedy = remedy(longest);
                bail!(
                    "it has {found} bytes, and the table takes keys of up to {longest}: --too-long skip leaves such keys \
                     out, and {remedy}"
                );
            }
            pending.push((written.form.store(key)?, amount))
        };
        if args.words {
            return words.each(line, |word| {
                let at = || format!("the word `{}`", String::from_utf8_lossy(word));
                add(word, 1).with_context(at)
            });
        }
        let (line, amount) = if args.weights { weighed(line)? } else { (line, 1) };
        let is_quoted = args.weights && written.is_text();
        let line = if is_quoted { Cow::Owned(unquoted(line)?) } else { Cow::Borrowed(line) };
        add(&written.read(&line)?, amount)
    }
}

/// Splits a line into its key and its amount.
fn weighed(line: &[u8]) -> Result<(&[u8], i64)> {
    let parts = line.iter().rposition(|byte| *byte == b'\t').map(|tab| line.split_at(tab));
    let read = parts.and_then(|(key, amount)| {
        let amount = std::str::from_utf8(amount).ok()?.trim().parse().ok()?;
        Some((key, amount))
    });
    read.with_context(|| {
        let found = String::from_utf8_lossy(line);
        format!("expected a key, a tab and an amount from -2^63 to 2^63 - 1, found `{found}`")
    })
}

/// Finds the words of lines as scikit-learn does.
#[derive(Debug)]
struct Words {
    analyser: Analyser,
    tokens: Tokens,
}

impl Words {
    fn new(lowercase: bool) -> Result<Self> {
        let analysis = Analysis { lowercase, ..Analysis::default() };
        Ok(Self { analyser: Analyser::new(&analysis)?, tokens: Tokens::default() })
    }

    /// Passes each word of a line. Bytes that are not UTF-8 end a word.
    fn each(&mut self, line: &[u8], mut act: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for chunk in line.utf8_chunks() {
            self.analyser.analyse(chunk.valid(), &mut self.tokens);
            self.analyser.terms(&self.tokens).try_for_each(&mut act)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_two_or_more() {
        let words = |line: &[u8], lowercase| {
            let mut found = Vec::new();
            let each = |word: &[u8]| {
                found.push(String::from_utf8(word.to_vec()).unwrap());
                Ok(())
            };
            Words::new(lowercase).unwrap().each(line, each).unwrap();
            found
        };
        assert_eq!(words(b"I can't_do 7 or 42", true), ["can", "t_do", "or", "42"]);
        assert_eq!(words("Größer\u{ff}".as_bytes(), false), ["Größerÿ"]);
        assert_eq!(words(b"AB\xffcd", true), ["ab", "cd"]);
        // A combining mark is not part of a word.
        assert_eq!(words("ab\u{93e}cd".as_bytes(), true), ["ab", "cd"]);
    }

    #[test]
    fn an_amount_stands_after_the_last_tab() {
        assert_eq!(weighed(b"a\tb\t-3").unwrap(), (&b"a\tb"[..], -3));
        assert!(weighed(b"a 3").is_err() && weighed(b"a\t9223372036854775808").is_err());
    }
}
