//! Parameters with one of a few values: a word in text, its number on flash.

use nandex_store::bytes::Reader;

use super::Stored;
use crate::Result;

/// Parses one of several words.
///
/// # Errors
/// A list of the words.
pub(crate) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> std::result::Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("{text:?} is none of {}", words.join(", "))
    })
}

/// Returns the word of a value.
pub(crate) fn word_of<T: PartialEq>(value: &T, words: &[(&str, T)]) -> String {
    words
        .iter()
        .find(|(_, it)| it == value)
        .map_or_else(String::new, |(word, _)| (*word).to_owned())
}

/// A parameter with one of a few values, stored on flash as the number of its word.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// As [`Stored::FORM`].
    const FORM: &'static str;

    /// The words, in the order of their numbers.
    const WORDS: &'static [(&'static str, Self)];
}

impl<C: Choice> Stored for C {
    const FORM: &'static str = C::FORM;

    fn put(&self, out: &mut Vec<u8>) {
        let number = C::WORDS.iter().position(|(_, it)| it == self);
        out.push(number.expect("a choice that was checked has a word") as u8);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(choice(reader, C::WORDS, C::FORM)?.1)
    }

    fn check_value(&self) -> std::result::Result<(), String> {
        let found = C::WORDS.iter().find(|(_, it)| it == self);
        found.map(drop).ok_or_else(|| format!("it can only be {}", C::FORM))
    }

    fn show(&self) -> String {
        word_of(self, C::WORDS)
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        word(text, C::WORDS)
    }
}

impl Choice for bool {
    const FORM: &'static str = "true or false";
    const WORDS: &'static [(&'static str, Self)] = &[("false", false), ("true", true)];
}

/// Reads a choice that is stored as its number in `all`.
///
/// # Errors
/// Corruption: another number instead of `expected`.
pub(crate) fn choice<T: Copy>(
    reader: &mut Reader<'_>,
    all: &[T],
    expected: &'static str,
) -> Result<T> {
    let number = reader.u8()?;
    let found = all.get(usize::from(number)).copied();
    found.ok_or_else(|| reader.refuse(expected, number).into())
}
