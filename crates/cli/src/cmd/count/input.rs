//! What is counted in the inputs: lines, words, or lines with amounts.

use anyhow::{Context, Result, anyhow};
use nandex_tfidf::Analysis;
use nandex_tfidf::tokenise::{Analyser, Tokens};

use super::form::KeyForm;
use crate::console::Console;
use crate::interrupt::Interrupt;
use crate::key_feed::{FeedResult, KeyArgs};

/// The inputs, and what is counted in them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct InputArgs {
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Count words instead of lines: runs of two or more letters, digits and underscores
    #[arg(long)]
    words: bool,
    /// Make the words' letters small
    #[arg(long, requires = "words")]
    lowercase: bool,
    /// A line is a key, a tab, and the amount to add to its count, which may be negative
    #[arg(long, conflicts_with = "words")]
    weights: bool,
}

/// A stored key and what is added to its count.
pub type Amount = (Vec<u8>, i64);

impl InputArgs {
    /// Reads all inputs and passes what is to be added to `act`, batch by batch. A batch with a bad key is refused as a
    /// whole.
    pub fn feed(
        &self,
        form: KeyForm,
        (console, interrupt): (&Console, &Interrupt),
        act: &mut dyn FnMut(&[Amount]) -> Result<()>,
    ) -> (FeedResult, Result<()>) {
        let mut words = match Words::new(self.lowercase) {
            Ok(words) => words,
            Err(error) => return (FeedResult::default(), Err(error)),
        };
        let mut before = 0;
        self.keys.feed("counting", (console, interrupt), &mut |lines| {
            let mut amounts = Vec::with_capacity(lines.len());
            for (line, number) in lines.iter().zip(before + 1..) {
                let at = || format!("line {number} of the input");
                self.read(line, form, &mut words, &mut amounts).with_context(at)?;
            }
            before += lines.len() as u64;
            act(&amounts)?;
            Ok(true)
        })
    }

    fn read(
        &self,
        line: &[u8],
        form: KeyForm,
        words: &mut Words,
        amounts: &mut Vec<Amount>,
    ) -> Result<()> {
        if self.words {
            return words.each(line, |word| {
                let at = || format!("the word `{}`", String::from_utf8_lossy(word));
                amounts.push((form.encode(word).with_context(at)?, 1));
                Ok(())
            });
        }
        let (key, amount) = if self.weights { weighed(line)? } else { (line, 1) };
        amounts.push((form.encode(key)?, amount));
        Ok(())
    }
}

/// The key and the amount of a line.
fn weighed(line: &[u8]) -> Result<(&[u8], i64)> {
    let parts = line.iter().rposition(|byte| *byte == b'\t').map(|tab| line.split_at(tab));
    let read = parts.and_then(|(key, amount)| {
        let amount = std::str::from_utf8(amount).ok()?.trim().parse().ok()?;
        Some((key, amount))
    });
    read.ok_or_else(|| {
        anyhow!(
            "expected a key, a tab and an amount from -2^63 to 2^63 - 1, found `{}`",
            String::from_utf8_lossy(line)
        )
    })
}

/// Finds the words of lines, as scikit-learn finds them.
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

    /// Passes each word of a line. Bytes that are no UTF-8 end a word.
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
        // A mark that combines is no part of a word.
        assert_eq!(words("ab\u{93e}cd".as_bytes(), true), ["ab", "cd"]);
    }

    #[test]
    fn an_amount_stands_after_the_last_tab() {
        assert_eq!(weighed(b"a\tb\t-3").unwrap(), (&b"a\tb"[..], -3));
        assert!(weighed(b"a 3").is_err() && weighed(b"a\t9223372036854775808").is_err());
    }
}
