//! Words that are refused everywhere: marks of unfinished work, leftovers, private paths.

use crate::Violation;
use crate::tree::File;

/// Marks of unfinished work, written in halves so that this file passes its own check.
const UNFINISHED: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("dbg", "!")];

/// Prefixes of paths that exist on one machine only.
const PRIVATE: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Words that patronise the reader, or that excuse unfinished work.
const EMPTY: [&str; 4] = [
    concat!("obvious", "ly"),
    concat!("simp", "ly"),
    concat!("of cou", "rse"),
    concat!("for n", "ow"),
];

/// Files of other authors, whose words are not checked.
const FOREIGN: [&str; 3] = ["LICENSE-MIT", "LICENSE-APACHE", "Cargo.lock"];

/// Reports the refused words in a file.
#[must_use]
pub fn check(file: &File) -> Vec<Violation> {
    if FOREIGN.iter().any(|name| file.path.ends_with(name)) {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    lines.flat_map(|(index, line)| in_line(file, index + 1, line)).collect()
}

fn in_line(file: &File, number: usize, line: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut complain = |word: &str, why: &str| {
        found.push(Violation::new(&file.path, number, format!("`{word}`: {why}")));
    };
    for word in UNFINISHED.iter().filter(|word| holds_word(line, word)) {
        complain(word, "finish it, or open an issue");
    }
    for word in PRIVATE.iter().filter(|word| line.contains(**word)) {
        complain(word, "a path that exists on one machine only");
    }
    if file.is("rs") || file.is("md") {
        let lower = line.to_lowercase();
        for word in EMPTY.iter().filter(|word| holds_word(&lower, word)) {
            complain(word, "say why, or leave it out");
        }
    }
    found
}

/// Returns whether `line` contains `word` with no letter or digit right before or after it.
fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let after = &line[at + word.len()..];
        let closed = word.ends_with('!') || !is_part(after.chars().next());
        closed && !is_part(line[..at].chars().next_back())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        check(&File { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn every_forbidden_word_is_found() {
        for word in UNFINISHED.iter().chain(&PRIVATE).chain(&EMPTY) {
            assert_eq!(complaints("src/a.rs", &format!("// see {word} here\n")), 1, "{word}");
        }
    }

    #[test]
    fn words_that_only_contain_one_are_fine() {
        let text = concat!("mas", "TO", "DOn ", "XX", "XX", " FIX", "MEs");
        assert_eq!(complaints("src/a.rs", text), 0);
    }

    #[test]
    fn manners_are_asked_of_prose_and_code_only() {
        let text = concat!("simp", "ly\n");
        assert_eq!(complaints("docs/a.md", text), 1);
        assert_eq!(complaints("Makefile", text), 0);
    }
}
