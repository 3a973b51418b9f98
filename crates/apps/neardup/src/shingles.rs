//! Converts text into hashes of shingles.
//!
//! ```text
//!   "Der Fuß, the FOOT"  --NFC, case-->  "der fuß, the foot"  --words-->  der fuß the foot
//!      --shingles of 3-->  "der fuß the", "fuß the foot"  --hash-->  two numbers
//! ```
//!
//! The words of a document are written one after another into one buffer, with a space between. So a shingle is a slice
//! of it, and needs no allocation. It has the same bytes as words that a user of datasketch joins with spaces.

use std::mem::take;

use nandex::raw::signature::Scheme;
use nandex_corpus::ascii_words::{AsciiWords, Words};
use nandex_corpus::characters::{is_mark, is_word};
use nandex_corpus::cut::carried_into;
use unicode_normalization::UnicodeNormalization;

use crate::{Shingling, Unit};

/// The shingles of one text; reuses its memory for the next text.
///
/// ```
/// use nandex_neardup::{Shingles, Shingling};
///
/// let mut shingles = Shingles::new(Shingling { length: 2, ..Shingling::default() });
/// shingles.take("Red fish, BLUE fish");
/// let found: Vec<&str> = shingles.iter().map(|it| std::str::from_utf8(it).unwrap()).collect();
/// assert_eq!(found, ["red fish", "fish blue", "blue fish"]);
/// ```
#[derive(Clone, Debug)]
pub struct Shingles {
    shingling: Shingling,
    /// The words with a space between, or the characters.
    bytes: Vec<u8>,
    /// The beginning and the end of each word or character.
    spans: Vec<(usize, usize)>,
    /// The beginning of the current word.
    start: usize,
    ascii: AsciiWords,
}

impl Shingles {
    /// Creates shingles of this kind, without a text.
    #[must_use]
    pub fn new(shingling: Shingling) -> Self {
        let ascii = AsciiWords::default();
        Self { shingling, bytes: Vec::new(), spans: Vec::new(), start: 0, ascii }
    }

    /// Replaces the shingles by those of a text. Costs a pass over the text; its memory is three times that of the
    /// text, and 16 bytes for each word or character.
    pub fn take(&mut self, text: &str) {
        self.bytes.clear();
        self.spans.clear();
        self.start = 0;
        let Shingling { unit, nfc, fold_case, .. } = self.shingling;
        match (unit, text.is_ascii()) {
            (Unit::Words, true) => {
                let words = Words { bytes: &mut self.bytes, spans: &mut self.spans };
                self.ascii.take(text.as_bytes(), fold_case, words, |_| true);
            }
            (_, true) => self.take_chars(text.chars().map(|c| folded_ascii(c, fold_case))),
            (_, false) => match (nfc, fold_case) {
                (true, true) => self.take_chars(text.nfc().flat_map(folded)),
                (true, false) => self.take_chars(text.nfc()),
                (false, true) => self.take_chars(text.chars().flat_map(folded)),
                (false, false) => self.take_chars(text.chars()),
            },
        }
    }

    /// Replaces the shingles by those of the next part of a text whose words end with it: those that end in this part.
    pub(crate) fn take_next(&mut self, part: &str) {
        let (bytes, spans) = (take(&mut self.bytes), take(&mut self.spans));
        self.take(part);
        let count = self.shingling.length.saturating_sub(1);
        (self.bytes, self.spans) =
            carried_into((&bytes, &spans), count, (&self.bytes, &self.spans));
    }

    /// Returns whether there are as many words or characters as a shingle has.
    pub(crate) fn has_whole(&self) -> bool {
        self.spans.len() >= self.shingling.length
    }

    /// Forgets the text.
    pub(crate) fn clear(&mut self) {
        self.take("");
    }

    fn take_chars(&mut self, text: impl Iterator<Item = char>) {
        match self.shingling.unit {
            Unit::Words => {
                for c in text {
                    if is_word(c) || is_mark(c) {
                        self.push(c);
                    } else {
                        self.end_word();
                    }
                }
                self.end_word();
                self.drop_last_space();
            }
            Unit::Characters => {
                let mut is_after_space = true;
                for c in text {
                    let is_space = c.is_whitespace();
                    if !(is_space && is_after_space) {
                        let start = self.bytes.len();
                        self.push(if is_space { ' ' } else { c });
                        self.spans.push((start, self.bytes.len()));
                    }
                    is_after_space = is_space;
                }
                if self.bytes.last() == Some(&b' ') {
                    self.bytes.pop();
                    self.spans.pop();
                }
            }
        }
    }

    fn push(&mut self, c: char) {
        self.bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn end_word(&mut self) {
        if self.bytes.len() > self.start {
            self.spans.push((self.start, self.bytes.len()));
            self.bytes.push(b' ');
            self.start = self.bytes.len();
        }
    }

    fn drop_last_space(&mut self) {
        if self.bytes.last() == Some(&b' ') {
            self.bytes.pop();
        }
    }

    /// Returns the shingles' bytes, in the order of the text. A shingle that occurs twice is returned twice.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let length = self.shingling.length.min(self.spans.len());
        // A window of no words would be an error, but a text without words has no windows.
        let windows = self.spans.windows(length.max(1));
        windows.map(|spans| {
            let (first, last) = (spans[0], spans[spans.len() - 1]);
            &self.bytes[first.0..last.1]
        })
    }

    /// Replaces the content of `hashes` by the shingles' hashes.
    pub fn hash(&self, scheme: Scheme, hashes: &mut Vec<u64>) {
        hashes.clear();
        self.hash_more(scheme, hashes);
    }

    /// Adds the shingles' hashes to `hashes`.
    pub(crate) fn hash_more(&self, scheme: Scheme, hashes: &mut Vec<u64>) {
        hashes.extend(self.iter().map(|shingle| scheme.hash(shingle)));
    }
}

fn folded_ascii(c: char, fold_case: bool) -> char {
    if fold_case { c.to_ascii_lowercase() } else { c }
}

/// Folds a character to lower case; a sigma is the same wherever it is in its word.
fn folded(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shingles(shingling: Shingling, text: &str) -> Vec<String> {
        let mut shingles = Shingles::new(shingling);
        shingles.take("the text before");
        shingles.take(text);
        shingles.iter().map(|it| String::from_utf8(it.to_vec()).unwrap()).collect()
    }

    fn words(length: usize, text: &str) -> Vec<String> {
        shingles(Shingling { length, ..Shingling::default() }, text)
    }

    fn characters(length: usize, text: &str) -> Vec<String> {
        shingles(Shingling { unit: Unit::Characters, length, ..Shingling::default() }, text)
    }

    #[test]
    fn shingles_of_words_are_all_runs_of_that_many() {
        assert_eq!(words(2, "A quick-brown FOX_1!"), ["a quick", "quick brown", "brown fox_1"]);
        assert_eq!(words(3, "one two three"), ["one two three"]);
        assert_eq!(words(1, "a b a"), ["a", "b", "a"]);
    }

    #[test]
    fn a_text_of_fewer_words_has_one_shingle_and_one_without_words_has_none() {
        assert_eq!(words(3, "one"), ["one"]);
        assert_eq!(words(3, "  one, two. "), ["one two"]);
        assert_eq!(words(3, " ... !"), [""; 0]);
        assert_eq!(words(3, ""), [""; 0]);
        assert_eq!(characters(5, "ab"), ["ab"]);
        assert_eq!(characters(5, " \t\n"), [""; 0]);
    }

    #[test]
    fn characters_have_single_spaces_and_none_at_the_ends() {
        assert_eq!(characters(3, "  Ab \t\u{3000}c "), ["ab ", "b c"]);
        assert_eq!(characters(2, "é字x"), ["é字", "字x"]);
    }

    #[test]
    fn case_and_ways_of_writing_are_folded_unless_it_is_switched_off() {
        let text = "CAFE\u{301} ΟΔΟΣ हिन्दी";
        assert_eq!(words(1, text), ["café", "οδοσ", "हिन्दी"]);
        let plain = Shingling { length: 1, nfc: false, fold_case: false, ..Shingling::default() };
        assert_eq!(shingles(plain, text), ["CAFE\u{301}", "ΟΔΟΣ", "हिन्दी"]);
        let nfc = Shingling { nfc: true, ..plain };
        assert_eq!(shingles(nfc, text)[0], "CAFÉ");
    }

    #[test]
    fn hashes_are_those_of_the_shingles() {
        let mut shingles = Shingles::new(Shingling::default());
        shingles.take("the red fish saw");
        let mut hashes = vec![1];
        shingles.hash(Scheme::Rensa, &mut hashes);
        let expected = [b"the red fish", &b"red fish saw"[..]].map(|it| Scheme::Rensa.hash(it));
        assert_eq!(hashes, expected);
    }

    proptest! {
        #[test]
        fn the_way_for_ascii_finds_what_the_other_finds(text in "[ -~\t\n]{0,60}", fold_case: bool) {
            for unit in [Unit::Words, Unit::Characters] {
                let shingling = Shingling { unit, length: 2, nfc: true, fold_case };
                let mut other = Shingles::new(shingling);
                if fold_case {
                    other.take_chars(text.nfc().flat_map(folded));
                } else {
                    other.take_chars(text.nfc());
                }
                let other: Vec<&[u8]> = other.iter().collect();
                let found = shingles(shingling, &text);
                prop_assert!(found.iter().map(String::as_bytes).eq(other));
            }
        }
    }
}
