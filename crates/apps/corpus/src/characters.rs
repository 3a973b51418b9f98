//! The characters that are parts of words.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// The version of Unicode whose general categories determine the word characters.
pub const CATEGORIES_VERSION: (u64, u64, u64) = unicode_general_category::UNICODE_VERSION;

/// Returns whether Python's `\w` matches this character.
///
/// Python matches `_` and the characters of `str.isalnum`: letters, and characters with a numeric value. Those of the
/// latter that are not numbers by category are ideographs, and so letters.
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

/// Returns whether this is a mark that combines with the character before it, such as an accent or a vowel sign.
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
