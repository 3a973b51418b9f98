//! Converts text into terms, as scikit-learn's `CountVectorizer` does.
//!
//! ```text
//!   "Der Fuß, the FOOT"  --lower case-->  "der fuß, the foot"  --tokens-->  der | fuß | the | foot
//!      --stop words-->  der | fuß | foot  --n-grams of 1 to 2-->  der, fuß, foot, der fuß, fuß foot
//! ```
//!
//! - **Lower case** is Python's `str.lower`: the full mappings of Unicode, so that `İ` becomes two characters, and `Σ`
//!   becomes `ς` at the end of a word.
//! - **Tokens** are the longest runs of word characters, of at least two characters. A word character is `_` or one of
//!   the general categories L (letters) and N (numbers): the same as Python's `\w`, for all of Unicode. A combining
//!   mark is not a word character, so it separates tokens.
//! - **Versions of Unicode.** Categories here are of the version [`CATEGORIES_VERSION`], and lower case is of the
//!   compiler's. Python 3.11 has Unicode 14, Python 3.14 has Unicode 16. A code point that was assigned after Python's
//!   version separates tokens there, and is a part of one here. All others agree, except for a `Σ` before U+0295, which
//!   is a small letter in Unicode 14 and has no case in the compiler's version: the `Σ` is a final one here.
//! - **n-grams** are neighbouring tokens joined by one space, after stop words are removed.
//!
//! The tokens of a document are written one after another into one buffer, with a space between. So an n-gram is a
//! slice of it, and no token needs an allocation.

mod key;
mod stop;
#[cfg(test)]
mod tests;

use nandex_corpus::ascii_words::{AsciiWords, Words};
use nandex_corpus::characters::is_word;
use nandex_corpus::cut::carried_into;

pub(crate) use key::KeyMap;
pub use key::TermKey;
pub use nandex_corpus::characters::CATEGORIES_VERSION;

use crate::{Analysis, Result};
use stop::StopSet;

/// The least number of characters of a token.
const TOKEN_CHARS_MIN: usize = 2;

/// Returns the English stop words of scikit-learn, sorted.
pub fn english_stop_words() -> impl Iterator<Item = &'static str> {
    stop::english()
}

/// A converter of texts into terms.
///
/// ```
/// use nandex_tfidf::{Analysis, tokenise::{Analyser, Tokens}};
///
/// let analyser = Analyser::new(&Analysis::default().ngrams(1, 2))?;
/// let mut tokens = Tokens::default();
/// analyser.analyse("Red fish, a blue FISH", &mut tokens);
/// let terms: Vec<&str> = analyser.terms(&tokens).map(|term| std::str::from_utf8(term).unwrap()).collect();
/// assert_eq!(terms, ["red", "fish", "blue", "fish", "red fish", "fish blue", "blue fish"]);
/// # Ok::<(), nandex_tfidf::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Analyser {
    analysis: Analysis,
    stop_words: StopSet,
}

/// The tokens of one text; reuses its memory for the next text.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// The tokens, with a space between.
    bytes: Vec<u8>,
    /// The beginning and the end of each.
    spans: Vec<(usize, usize)>,
    ascii: AsciiWords,
}

impl Tokens {
    /// Returns their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the tokens, with a space between.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the beginning and the end of each token.
    pub(crate) fn spans(&self) -> &[(usize, usize)] {
        &self.spans
    }

    /// Returns the n-grams of `length` tokens, in order.
    pub(crate) fn ngrams(&self, length: usize) -> impl Iterator<Item = &[u8]> {
        let spans = self.spans.windows(length);
        spans.map(move |span| &self.bytes[span[0].0..span[length - 1].1])
    }

    /// Releases what only the analysis of a text needs: twice its bytes, and the space that lists have grown by.
    pub(crate) fn shrink(&mut self) {
        self.ascii = AsciiWords::default();
        self.bytes.shrink_to_fit();
        self.spans.shrink_to_fit();
    }

    /// Returns the last `count` tokens, followed by all of `later`; without any if `count` is 0.
    pub(crate) fn carried_into(&self, count: usize, later: &Self) -> Self {
        let (before, later) =
            ((&self.bytes[..], &self.spans[..]), (&later.bytes[..], &later.spans[..]));
        let (bytes, spans) = carried_into(before, count, later);
        Self { bytes, spans, ..Self::default() }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Returns the beginning of the next token.
    fn next_start(&self) -> usize {
        self.spans.last().map_or(0, |(_, end)| end + 1)
    }
}

impl Analyser {
    /// Creates an analyser with these options.
    ///
    /// # Errors
    /// Invalid options: [`Analysis::validate`].
    pub fn new(analysis: &Analysis) -> Result<Self> {
        analysis.validate()?;
        let stop_words = StopSet::new(&analysis.stop_words);
        Ok(Self { analysis: analysis.clone(), stop_words })
    }

    /// Returns its options.
    #[must_use]
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// Replaces the content of `tokens` by the tokens of `text`. Costs one pass over the text; its memory is three
    /// times that of the text, and 16 bytes for each token.
    pub fn analyse(&self, text: &str, tokens: &mut Tokens) {
        tokens.clear();
        if text.is_ascii() {
            return self.analyse_ascii(text.as_bytes(), tokens);
        }
        let mut sink = Sink { tokens, stop_words: &self.stop_words, start: 0, chars: 0 };
        match self.analysis.lowercase {
            // The lower case of a sigma depends on the characters around it.
            true if text.contains('Σ') => sink.take_chars(text.to_lowercase().chars()),
            true => sink.take_chars(text.chars().flat_map(char::to_lowercase)),
            false => sink.take_chars(text.chars()),
        }
        sink.end_token();
    }

    fn analyse_ascii(&self, text: &[u8], Tokens { bytes, spans, ascii }: &mut Tokens) {
        let is_token =
            |word: &[u8]| word.len() >= TOKEN_CHARS_MIN && !self.stop_words.contains(word);
        ascii.take(text, self.analysis.lowercase, Words { bytes, spans }, is_token);
    }

    /// Returns the terms of the tokens, in UTF-8 and in the order of scikit-learn: n-grams of the fewest tokens first.
    pub fn terms<'t>(&self, tokens: &'t Tokens) -> impl Iterator<Item = &'t [u8]> + use<'t> {
        let (min, max) = (self.analysis.ngram_min, self.analysis.ngram_max);
        (min..=max.min(tokens.len())).flat_map(move |length| tokens.ngrams(length))
    }
}

/// A collector of the characters of the current token.
struct Sink<'a> {
    tokens: &'a mut Tokens,
    stop_words: &'a StopSet,
    /// The beginning of the token.
    start: usize,
    chars: usize,
}

impl Sink<'_> {
    fn take_chars(&mut self, text: impl Iterator<Item = char>) {
        for c in text {
            if is_word(c) {
                self.tokens.bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                self.chars += 1;
            } else {
                self.end_token();
            }
        }
    }

    /// Stores the current token, unless it is too short or a stop word, and begins the next.
    fn end_token(&mut self) {
        let chars = std::mem::take(&mut self.chars);
        if chars == 0 {
            return;
        }
        let end = self.tokens.bytes.len();
        let is_kept = chars >= TOKEN_CHARS_MIN
            && !self.stop_words.contains(&self.tokens.bytes[self.start..end]);
        if is_kept {
            self.tokens.spans.push((self.start, end));
            self.tokens.bytes.push(b' ');
        } else {
            self.tokens.bytes.truncate(self.start);
        }
        self.start = self.tokens.next_start();
    }
}
