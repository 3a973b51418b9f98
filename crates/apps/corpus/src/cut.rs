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

#[cfg(test)]
mod tests {
    use super::parts_of;

    #[test]
    fn parts_are_cut_before_white_space_and_make_up_the_text() {
        let parts: Vec<&str> = parts_of("ab cd efgh  ij\u{e9}\u{e9} k", 4).collect();
        assert_eq!(parts, ["ab cd", " efgh", "  ij\u{e9}\u{e9}", " k"]);
        assert_eq!(parts_of("", 4).count(), 0);
        assert_eq!(parts_of("abcdefgh", 4).collect::<Vec<_>>(), ["abcdefgh"]);
    }
}
