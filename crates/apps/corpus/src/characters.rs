//! Which characters are parts of words.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// The version of Unicode whose general categories decide what is a word character.
pub const CATEGORIES_VERSION: (u64, u64, u64) = unicode_general_category::UNICODE_VERSION;

/// Does Python's `\w` take this character?
///
/// Python takes `_` and what `str.isalnum` takes: letters, and characters with a numeric value. Of the latter those
/// that are no numbers by category are ideographs, and so letters.
#[must_use]
pub fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
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

/// Is this a mark, which joins the character before it, such as an accent or a vowel sign?
#[must_use]
pub fn is_mark(c: char) -> bool {
    use Category::{EnclosingMark, NonspacingMark, SpacingMark};
    !c.is_ascii() && matches!(get_general_category(c), NonspacingMark | SpacingMark | EnclosingMark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_numbers_are_of_words_and_marks_are_marks() {
        for c in ['a', 'Z', '7', '_', 'é', '字', '½', 'Ⅻ', 'ª'] {
            assert!(is_word(c) && !is_mark(c), "{c}");
        }
        for c in [' ', '-', '.', '\u{a0}', '😀', 'ⓐ'] {
            assert!(!is_word(c) && !is_mark(c), "{c}");
        }
        for c in ['\u{301}', '\u{93f}', '\u{20dd}'] {
            assert!(is_mark(c) && !is_word(c), "{}", u32::from(c));
        }
    }
}
