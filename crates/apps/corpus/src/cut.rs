//! Long texts in parts, so that a part at a time is analysed.

/// The length of a part that is worth its own call, in bytes.
pub const PART_BYTES: usize = 256 << 10;

/// Returns whether a text is worth being analysed in parts of [`PART_BYTES`].
#[must_use]
pub fn is_long(text: &str) -> bool {
    text.len() > 2 * PART_BYTES
}

/// Cuts a text before ASCII white space, into parts of at least `bytes` bytes. So no word is in two parts, and neither
/// the case nor the normal form of a character depends on another part. A text without white space is one part.
///
/// ```
/// use nandex_corpus::cut::parts_of;
///
/// assert_eq!(parts_of("a cat sat", 3).collect::<Vec<_>>(), ["a cat", " sat"]);
/// ```
pub fn parts_of(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_cut = |byte: &u8| byte.is_ascii_whitespace();
        let later = rest.as_bytes().get(bytes..).and_then(|it| it.iter().position(is_cut));
        let (part, after) = rest.split_at(later.map_or(rest.len(), |it| bytes + it));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Words in a row, with a byte between neighbours: their bytes, and the beginning and the end of each.
pub type WordSpans = (Vec<u8>, Vec<(usize, usize)>);

/// Returns the last `count` words of a part of a text, followed by those of the next part. The sequences of words that
/// cross both parts are in it.
#[must_use]
pub fn carried_into(
    (bytes, spans): (&[u8], &[(usize, usize)]),
    count: usize,
    (next_bytes, next_spans): (&[u8], &[(usize, usize)]),
) -> WordSpans {
    let carried = &spans[spans.len().saturating_sub(count)..];
    let (Some((from, _)), Some((_, to))) = (carried.first(), carried.last()) else {
        return (next_bytes.to_vec(), next_spans.to_vec());
    };
    let bytes = [&bytes[*from..*to], b" ", next_bytes].concat();
    let by = to - from + 1;
    let carried = carried.iter().map(|(start, end)| (start - from, end - from));
    let next = next_spans.iter().map(|(start, end)| (start + by, end + by));
    (bytes, carried.chain(next).collect())
}

#[cfg(test)]
mod tests {
    use super::{carried_into, parts_of};

    #[test]
    fn the_last_words_come_before_those_of_the_next_part() {
        let before = (&b"one two three"[..], &[(0, 3), (4, 7), (8, 13)][..]);
        let next = (&b"four"[..], &[(0, 4)][..]);
        let (bytes, spans) = carried_into(before, 2, next);
        assert_eq!(bytes, b"two three four");
        assert_eq!(spans, [(0, 3), (4, 9), (10, 14)]);
        assert_eq!(carried_into(before, 0, next), (b"four".to_vec(), vec![(0, 4)]));
        assert_eq!(carried_into((b"", &[]), 3, next), (b"four".to_vec(), vec![(0, 4)]));
        assert_eq!(carried_into(before, 9, next).1.len(), 4);
    }

    #[test]
    fn parts_are_cut_before_white_space_and_make_up_the_text() {
        let parts: Vec<&str> = parts_of("ab cd efgh  ij\u{e9}\u{e9} k", 4).collect();
        assert_eq!(parts, ["ab cd", " efgh", "  ij\u{e9}\u{e9}", " k"]);
        assert_eq!(parts_of("", 4).count(), 0);
        assert_eq!(parts_of("abcdefgh", 4).collect::<Vec<_>>(), ["abcdefgh"]);
    }
}
