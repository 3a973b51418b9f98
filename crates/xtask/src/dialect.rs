//! Words of our own for which the field has others: refused in identifiers and in prose.

use crate::Violation;
use crate::tree::File;

/// A refused word, with its other forms, and what to say instead. Words of a phrase follow one another.
const REFUSED: [(&[&str], &str); 21] = [
    (&["stroke", "strokes"], "an I/O chunk, or a sequential write"),
    (&["vain"], "a false-positive read"),
    (&["relieve", "relieves", "relieved"], "flush_before"),
    (&["tally", "tallies"], "counters"),
    (&["crew", "crews"], "workers"),
    (&["desk", "desks"], "a request queue"),
    (&["wish", "wishes", "wished"], "a request, or requirements"),
    (&["dice"], "rng"),
    (&["midst", "amidst"], "the middle"),
    (&["so many"], "a number, or that many"),
    (&["left over"], "carried over, or remaining"),
    (&["room", "rooms"], "space, or a structure"),
    (&["beside", "besides"], "next to, during, or in addition"),
    (&["lie", "lies", "lying"], "is, or is stored"),
    (&["give up", "gives up"], "evict, or drop"),
    (&["granted"], "reserved"),
    (&["tend", "tends", "tended"], "maintain"),
    (&["anew"], "again"),
    (&["parted"], "separated"),
    (&["by and by"], "later"),
    (&["hence", "whence", "thereof", "therein", "wherein", "lest"], "so, from where, of it, in it"),
];

/// What keeps its name because users' scripts say it.
const KEPT: [&str; 3] =
    ["lookup-beside-inserts", "lookup-hit beside inserts", "p99_beside_over_quiet"];

/// Where words of that sort are refused.
const FOLDERS: [&str; 2] = ["crates", "docs"];

/// Where a file has a refused word.
#[must_use]
pub fn check(file: &File) -> Vec<Violation> {
    let is_prose_or_code = file.is("rs") || file.is("md");
    let is_in_folders = FOLDERS.iter().any(|folder| file.path.starts_with(folder));
    if !is_prose_or_code || !is_in_folders || file.path.ends_with("dialect.rs") {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    lines.flat_map(|(index, line)| in_line(file, index + 1, line)).collect()
}

fn in_line(file: &File, number: usize, line: &str) -> Vec<Violation> {
    let line = KEPT.iter().fold(line.to_owned(), |line, kept| line.replace(kept, ""));
    let words = format!(" {} ", words(&line).join(" "));
    let refused =
        REFUSED.iter().flat_map(|(forms, instead)| forms.iter().map(move |it| (it, instead)));
    refused
        .filter(|(form, _)| words.contains(&format!(" {form} ")))
        .map(|(form, instead)| {
            Violation::new(&file.path, number, format!("`{form}`: say {instead}"))
        })
        .collect()
}

/// The words of a line in small letters; `RunShape` and `run_shape` are two each.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_small = false;
    for letter in line.chars() {
        let begins = letter.is_uppercase() && before_is_small || !letter.is_alphabetic();
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphabetic()) {
            word.extend(letter.to_lowercase());
        }
        before_is_small = letter.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        check(&File { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn a_refused_word_is_found_in_prose_and_in_names_of_all_sorts() {
        for text in ["// in vain", "let stroke_pages", "struct RunStrokes;", "const DICE_MAX"] {
            assert_eq!(complaints("crates/store/src/a.rs", text), 1, "{text}");
        }
        assert_eq!(complaints("docs/format.md", "It takes so many\n"), 1);
    }

    #[test]
    fn words_that_only_contain_one_names_that_stay_and_other_pages_are_let_through() {
        assert_eq!(complaints("docs/device.md", "a desktop, so that many; keystroke"), 0);
        assert_eq!(complaints("docs/cli.md", "--workload lookup-beside-inserts"), 0);
        assert_eq!(complaints("docs/cli.md", "lookups beside inserts"), 1);
        assert_eq!(complaints("CHANGELOG.md", "in vain"), 0);
    }
}
