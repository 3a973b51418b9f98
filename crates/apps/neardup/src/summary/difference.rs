//! The words in which two texts differ.

/// The number of words compared; the rest is cut off.
const WORDS_MAX: usize = 400;

/// A run of words, and whether the other text also has it at this place.
pub(super) type Part = (String, bool);

/// Splits both texts into parts, by the longest common sequence of words.
pub(super) fn parts(left: &str, right: &str) -> (Vec<Part>, Vec<Part>) {
    let words = |text: &str| -> Vec<String> {
        text.split_whitespace().take(WORDS_MAX).map(str::to_owned).collect()
    };
    let (left, right) = (words(left), words(right));
    let lengths = common(&left, &right);
    let (mut in_left, mut in_right) = (vec![false; left.len()], vec![false; right.len()]);
    let (mut a, mut b) = (0, 0);
    while a < left.len() && b < right.len() {
        if left[a] == right[b] {
            (in_left[a], in_right[b]) = (true, true);
            (a, b) = (a + 1, b + 1);
        } else if lengths[a + 1][b] >= lengths[a][b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    (joined(&left, &in_left), joined(&right, &in_right))
}

/// Returns the length of the longest common sequence of all ends of both.
fn common(left: &[String], right: &[String]) -> Vec<Vec<u16>> {
    let mut lengths = vec![vec![0; right.len() + 1]; left.len() + 1];
    for a in (0..left.len()).rev() {
        for b in (0..right.len()).rev() {
            lengths[a][b] = if left[a] == right[b] {
                lengths[a + 1][b + 1] + 1
            } else {
                lengths[a + 1][b].max(lengths[a][b + 1])
            };
        }
    }
    lengths
}

/// Joins neighbouring words of a kind into one part.
fn joined(words: &[String], are_common: &[bool]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (word, is_common) in words.iter().zip(are_common) {
        match parts.last_mut() {
            Some((part, kind)) if kind == is_common => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push((word.clone(), *is_common)),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_have_is_common_and_the_rest_is_not() {
        let part = |text: &str, is_common| (text.to_owned(), is_common);
        let (left, right) = parts("the red fish  saw a cat", "the blue fish saw two cats");
        assert_eq!(
            left,
            [part("the", true), part("red", false), part("fish saw", true), part("a cat", false)]
        );
        assert_eq!(right[1], part("blue", false));
        assert_eq!(right[3], part("two cats", false));
        assert_eq!(parts("", "a"), (vec![], vec![part("a", false)]));
        assert_eq!(parts("a b", "a b").0, [part("a b", true)]);
    }
}
