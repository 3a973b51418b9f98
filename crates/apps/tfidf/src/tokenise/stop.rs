//! Stop words: tokens that are skipped.

use std::collections::HashSet;

use crate::StopWords;

/// scikit-learn's list `english`; the file states its source and its licence.
const ENGLISH: &str = include_str!("english_stop_words.txt");

/// Returns the words of [`ENGLISH`].
pub(super) fn english() -> impl Iterator<Item = &'static str> {
    ENGLISH.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

/// A set of stop words.
#[derive(Clone, Debug)]
pub(super) struct StopSet {
    words: HashSet<Box<[u8]>>,
    /// The bytes of the longest; longer tokens are not looked up.
    bytes_max: usize,
}

impl StopSet {
    pub(super) fn new(words: &StopWords) -> Self {
        let owned = |word: &str| Box::from(word.as_bytes());
        let words: HashSet<Box<[u8]>> = match words {
            StopWords::None => HashSet::new(),
            StopWords::English => english().map(owned).collect(),
            StopWords::List(list) => list.iter().map(|word| owned(word)).collect(),
        };
        let bytes_max = words.iter().map(|word| word.len()).max().unwrap_or(0);
        Self { words, bytes_max }
    }

    pub(super) fn contains(&self, token: &[u8]) -> bool {
        token.len() <= self.bytes_max && self.words.contains(token)
    }
}
