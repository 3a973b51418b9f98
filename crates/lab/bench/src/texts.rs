//! A corpus with near-duplicates whose originals are known: paragraphs of made-up words, each computed from
//! its number.
//!
//! The frequencies of words follow Zipf's law. A near-duplicate has the words of its original, some of them
//! replaced. If a share `p` is replaced, a shingle of three words stays with the probability `x = (1 - p)^3`,
//! and the Jaccard similarity is about `x / (2 - x)`.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use crate::documents::{DocumentSettings, Documents};
use crate::keys::{KeySpace, Picker, Rng};
use anyhow::{Context, Result};
use nandex_device::output::OutputFile;

/// The number of different words.
const WORDS: u64 = 50_000;

/// The range of words of a paragraph: 118 on average, which is about 730 bytes.
const LENGTH: Range<u64> = 20..217;

/// The number of words of a sentence.
const SENTENCE: usize = 14;

/// The share of near-duplicates that are equal to their originals.
const EQUAL_SHARE: f64 = 0.1;

/// The number of words of a shingle, as the default of an index.
const SHINGLE_WORDS: i32 = 3;

const SYLLABLES: [&str; 37] = [
    "a", "be", "co", "di", "e", "fa", "go", "hi", "i", "ja", "ka", "li", "mo", "nu", "o", "pe",
    "qua", "ro", "si", "ta", "u", "ve", "wi", "xe", "yo", "za", "ment", "ing", "er", "tion", "al",
    "est", "un", "con", "re", "st", "th",
];

/// The texts of a seed.
pub struct Texts {
    documents: Documents,
    seed: u64,
    words: Picker,
    /// The share of a near-duplicate's words that are replaced.
    replaced: f64,
}

impl Texts {
    /// Creates texts, a share of which is near earlier ones, with about this Jaccard similarity.
    pub fn new(seed: u64, near_share: f64, similarity: f64) -> Self {
        let settings = DocumentSettings { near_share, similarity, ..DocumentSettings::default() };
        let kept: f64 = 2.0 * similarity / (1.0 + similarity);
        Self {
            documents: Documents::new(KeySpace::new(seed), settings),
            seed,
            words: Picker::new(WORDS, Some(1.0)),
            replaced: 1.0 - kept.powf(1.0 / f64::from(SHINGLE_WORDS)),
        }
    }

    /// Returns the document that a document is near: itself for an original.
    pub fn original(&self, number: u64) -> u64 {
        self.documents.original(number)
    }

    /// Replaces the content of `text` by the text of a document.
    pub fn write(&self, number: u64, text: &mut String) {
        let mut ranks = self.ranks(self.original(number));
        let mut rng = Rng::new(self.seed, 1, number);
        if self.original(number) != number && rng.unit() >= EQUAL_SHARE {
            for rank in &mut ranks {
                if rng.unit() < self.replaced {
                    *rank = self.words.pick(&mut rng);
                }
            }
        }
        text.clear();
        for sentence in ranks.chunks(SENTENCE) {
            for (place, rank) in sentence.iter().enumerate() {
                let start = text.len();
                push_word(*rank, text);
                if place == 0 {
                    text[start..=start].make_ascii_uppercase();
                }
                text.push(' ');
            }
            text.pop();
            text.push_str(". ");
        }
        text.pop();
    }

    /// Returns the words of an original.
    fn ranks(&self, number: u64) -> Vec<u64> {
        let mut rng = Rng::new(self.seed, 0, number);
        let length = LENGTH.start + rng.below(LENGTH.end - LENGTH.start);
        (0..length).map(|_| self.words.pick(&mut rng)).collect()
    }

    /// Writes the documents of these numbers to a file, a JSON object in each line. The file gets its name
    /// when it is complete. Returns the bytes of all texts.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn write_file(&self, path: &Path, numbers: Range<u64>) -> Result<u64> {
        let written = self.write_lines(path, numbers);
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    fn write_lines(&self, path: &Path, numbers: Range<u64>) -> Result<u64> {
        let mut out = OutputFile::begin(path)?;
        let (mut text, mut bytes) = (String::new(), 0);
        for number in numbers {
            self.write(number, &mut text);
            bytes += text.len() as u64;
            // Words have only letters, so JSON needs no escapes.
            writeln!(out, "{{\"id\":{number},\"text\":\"{text}\"}}")?;
        }
        out.finish()?;
        Ok(bytes)
    }
}

/// Appends the word of this rank: the number in syllables.
fn push_word(rank: u64, text: &mut String) {
    let base = SYLLABLES.len() as u64;
    let mut rest = rank;
    loop {
        text.push_str(SYLLABLES[(rest % base) as usize]);
        rest /= base;
        if rest == 0 {
            return;
        }
        rest -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;

    use super::*;

    fn text(texts: &Texts, number: u64) -> String {
        let mut text = String::new();
        texts.write(number, &mut text);
        text
    }

    fn shingles(text: &str) -> HashSet<Vec<String>> {
        let words: Vec<String> =
            text.split(' ').map(|it| it.replace('.', "").to_lowercase()).collect();
        words.windows(3).map(<[String]>::to_vec).collect()
    }

    #[test]
    fn near_duplicates_have_the_stated_share_and_similarity() {
        let texts = Texts::new(7, 0.25, 0.9);
        let near: Vec<u64> = (0..4000).filter(|it| texts.original(*it) != *it).collect();
        // Six standard deviations are 165.
        assert!(near.len().abs_diff(1000) < 165, "{}", near.len());
        let (mut sum, mut equal) = (0.0, 0);
        for number in &near {
            let (own, its) = (text(&texts, *number), text(&texts, texts.original(*number)));
            equal += usize::from(own == its);
            let (own, its) = (shingles(&own), shingles(&its));
            let shared = own.intersection(&its).count() as f64;
            sum += shared / ((own.len() + its.len()) as f64 - shared);
        }
        // A tenth is equal, and few have no word replaced by chance.
        let mean = sum / near.len() as f64;
        assert!((0.89..0.94).contains(&mean), "{mean}");
        assert!(equal > near.len() / 20 && equal < near.len() / 2, "{equal}");
    }

    #[test]
    fn a_file_has_a_line_for_each_document_and_is_the_same_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let texts = Texts::new(7, 0.25, 0.9);
        let path = dir.path().join("texts.jsonl");
        let bytes = texts.write_file(&path, 10..110).unwrap();
        let first = fs::read_to_string(&path).unwrap();
        texts.write_file(&path, 10..110).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), first);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let lines: Vec<serde_json::Value> =
            first.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), &lines[0]["id"]), (100, &10.into()));
        assert_eq!(
            lines.iter().map(|it| it["text"].as_str().unwrap().len() as u64).sum::<u64>(),
            bytes
        );
        assert!((50_000..100_000).contains(&bytes), "{bytes}");
        let words: HashSet<String> = (0..WORDS)
            .map(|rank| {
                let mut word = String::new();
                push_word(rank, &mut word);
                word
            })
            .collect();
        assert!(words.len() as u64 > WORDS * 9 / 10, "{}", words.len());
    }
}
