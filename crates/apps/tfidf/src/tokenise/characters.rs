//! Which characters are parts of words.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// What each ASCII character of words becomes in lower case; 0 for others.
pub(super) const LOWERED: [u8; 128] = table(true);

/// The same without lower case.
pub(super) const KEPT: [u8; 128] = table(false);

const fn table(lowercase: bool) -> [u8; 128] {
    let mut classes = [0; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            classes[byte as usize] = if lowercase { byte.to_ascii_lowercase() } else { byte };
        }
        byte += 1;
    }
    classes
}

/// Does Python's `\w` take this character?
///
/// Python takes `_` and what `str.isalnum` takes: letters, and characters with a numeric value. Of the latter those
/// that are no numbers by category are ideographs, and so letters.
pub(super) fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return KEPT[c as usize] != 0;
    }
    matches!(
        get_general_category(c),
        Category::UppercaseLetter
            | Category::LowercaseLetter
            | Category::TitlecaseLetter
            | Category::ModifierLetter
            | Category::OtherLetter
            | Category::DecimalNumber
            | Category::LetterNumber
            | Category::OtherNumber
    )
}
