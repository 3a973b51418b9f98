//! The words of an ASCII text, 64 bytes at a time. Ends of words are unpredictable, so no branch depends on a byte.
//!
//! ```text
//!   text      A  quick,  fox
//!   kept      a  quick,  fox      small letters, if they are wanted
//!   is kept   10011111000111      a bit for each byte
//!   changes   11010000100100      where a word begins, or has ended
//! ```

/// The number of bytes whose bits form one number.
const GROUP: usize = 64;
/// The number of bytes of a word that are copied at once.
const COPIED: usize = 16;

/// The classes of the bytes of one text; reused for the next. Its memory is twice that of the text.
///
/// ```
/// use nandex_corpus::ascii_words::{AsciiWords, Words};
///
/// let (mut bytes, mut spans) = (Vec::new(), Vec::new());
/// let words = Words { bytes: &mut bytes, spans: &mut spans };
/// AsciiWords::default().take(b"A quick, RED fox", true, words, |word| word.len() > 1);
/// assert_eq!((&bytes[..], spans), (&b"quick red fox"[..], vec![(0, 5), (6, 9), (10, 13)]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct AsciiWords {
    /// Each byte, in lower case if requested.
    kept: Vec<u8>,
    /// 1 for a byte of a word.
    is_kept: Vec<u8>,
}

/// The words of a text.
#[derive(Debug)]
pub struct Words<'w> {
    /// One word after another, with a space between.
    pub bytes: &'w mut Vec<u8>,
    /// The begin and the end of each word in `bytes`.
    pub spans: &'w mut Vec<(usize, usize)>,
}

impl AsciiWords {
    /// Copies the words of a text that `is_taken` accepts into two empty lists; in lower case with `fold_case`. Words
    /// are those of [`is_word`](crate::characters::is_word), and a byte that is not ASCII is in none.
    pub fn take(
        &mut self,
        text: &[u8],
        fold_case: bool,
        words: Words<'_>,
        mut is_taken: impl FnMut(&[u8]) -> bool,
    ) {
        self.classify(text, fold_case);
        let Words { bytes, spans } = words;
        // A word is copied in full steps, and is followed by a space.
        bytes.resize(text.len() + COPIED + 1, 0);
        let (mut len, mut is_before) = (0, 0);
        let mut start = None;
        for (first, group) in (0..).step_by(GROUP).zip(self.is_kept.chunks_exact(GROUP)) {
            let is_kept = bits(group);
            let mut changes = is_kept ^ (is_kept << 1 | is_before);
            is_before = is_kept >> (GROUP - 1);
            while changes != 0 {
                let at = first + changes.trailing_zeros() as usize;
                changes &= changes - 1;
                let Some(start) = start.take() else {
                    start = Some(at);
                    continue;
                };
                if !is_taken(&self.kept[start..at]) {
                    continue;
                }
                let end = len + (at - start);
                copy(&self.kept[start..], &mut bytes[len..], at - start);
                bytes[end] = b' ';
                spans.push((len, end));
                len = end + 1;
            }
        }
        bytes.truncate(len.saturating_sub(1));
    }

    /// Classifies each byte. The bytes after the text are in no word, so the last word ends.
    fn classify(&mut self, text: &[u8], fold_case: bool) {
        let groups = text.len() / GROUP + 1;
        self.kept.resize(groups * GROUP + COPIED, 0);
        self.is_kept.resize(groups * GROUP, 0);
        let case_bit = if fold_case { b'a' - b'A' } else { 0 };
        let of_byte = self.kept.iter_mut().zip(&mut self.is_kept);
        for ((kept, is_kept), &byte) in of_byte.zip(text) {
            let is_capital = byte.wrapping_sub(b'A') < 26;
            let is_letter = is_capital | (byte.wrapping_sub(b'a') < 26);
            let is_digit = byte.wrapping_sub(b'0') < 10;
            *kept = if is_capital { byte | case_bit } else { byte };
            *is_kept = u8::from(is_letter | is_digit | (byte == b'_'));
        }
        self.is_kept[text.len()..].fill(0);
    }
}

/// Returns the lowest bit of each of 64 bytes.
#[inline]
fn bits(group: &[u8]) -> u64 {
    group.chunks_exact(8).enumerate().fold(0, |bits, (eighth, bytes)| {
        let bytes = bytes.try_into().map_or(0, u64::from_le_bytes);
        // The product has the lowest bit of each byte in its last byte, in order.
        let of_bytes = bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits | of_bytes << (8 * eighth)
    })
}

/// Copies the first `len` bytes, and for a short word also some bytes behind them: a copy of a fixed size is the
/// fastest.
#[inline]
fn copy(from: &[u8], to: &mut [u8], len: usize) {
    let len = if len <= COPIED { COPIED } else { len };
    to[..len].copy_from_slice(&from[..len]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::characters::is_word;

    fn words(text: &str, fold_case: bool) -> (String, Vec<String>) {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        let mut words = AsciiWords::default();
        let mut take = |text: &[u8]| {
            bytes.clear();
            spans.clear();
            let to = Words { bytes: &mut bytes, spans: &mut spans };
            words.take(text, fold_case, to, |word| word != b"not");
        };
        take(&[b'x'; 300]);
        take(text.as_bytes());
        let joined = String::from_utf8(bytes).unwrap();
        let each = spans.iter().map(|(start, end)| joined[*start..*end].to_owned()).collect();
        (joined, each)
    }

    #[test]
    fn words_are_found_wherever_groups_of_bytes_end() {
        for before in 0..130 {
            for length in [1, 15, 16, 17, 63, 64, 65, 200] {
                let word = "Z".repeat(length);
                let text = format!("{}{word}. not b_9", " ".repeat(before));
                let (joined, each) = words(&text, false);
                assert_eq!(each, [&word[..], "b_9"], "{text}");
                assert_eq!(joined, format!("{word} b_9"));
            }
        }
    }

    #[test]
    fn a_text_without_words_has_nothing() {
        for text in ["", ".", "  ... ", "not", &"-".repeat(64)] {
            assert_eq!(words(text, true), (String::new(), Vec::new()));
        }
    }

    #[test]
    fn every_byte_is_in_a_word_or_not_as_pythons_are() {
        for byte in 0..128_u8 {
            let text = char::from(byte).to_string();
            let (_, each) = words(&text, true);
            let is_word = is_word(char::from(byte));
            let lowered = text.to_ascii_lowercase();
            assert_eq!(each, if is_word { vec![lowered] } else { vec![] }, "{byte}");
        }
    }
}
