//! The form of doc comments: the first sentence of each is a statement that names its subject.
//!
//! rustdoc shows that sentence alone in lists of items, so it must be understood without the rest.
//! clap shows it as a help text, which ends without a full stop by clap's convention, so files that derive
//! clap's traits need no full stops.

use crate::Violation;
use crate::tree::File;

/// Words that begin a question or a clause without a subject.
const REFUSED: [&str; 18] = [
    "What", "Whose", "Who", "Whom", "Why", "How", "Is", "Are", "Does", "Do", "Has", "Have", "Can",
    "Was", "Were", "May", "Must", "Should",
];

/// The two markers of doc comments: of the item that follows, and of the file or module around.
const MARKERS: [&str; 2] = ["///", "//!"];

/// The derives by which clap makes help texts of doc comments.
const CLAP_DERIVES: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Reports the doc comments of a Rust file whose first sentence has another form.
#[must_use]
pub fn check(file: &File) -> Vec<Violation> {
    if !file.is("rs") || !file.path.starts_with("crates") {
        return Vec::new();
    }
    let stops = !derives_clap(&file.text);
    let mut found = Vec::new();
    for (line, block) in blocks(&file.text) {
        let faults = faults(&block, stops).into_iter();
        found.extend(faults.map(|message| Violation::new(&file.path, line, message)));
    }
    found
}

/// Returns whether a file names clap and derives a trait by which doc comments become help texts.
fn derives_clap(text: &str) -> bool {
    let derives = |attribute: &str| {
        let list = attribute.split(')').next().unwrap_or_default();
        let mut names = list.split(',').map(|name| name.trim().trim_start_matches("clap::"));
        names.any(|name| CLAP_DERIVES.contains(&name))
    };
    text.contains("clap::") && text.split("derive(").skip(1).any(derives)
}

/// Returns the doc comments of a file: the number of the first line, and the lines without their marker.
fn blocks(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut blocks: Vec<(usize, Vec<&str>)> = Vec::new();
    let mut before = None;
    for (index, line) in text.lines().enumerate() {
        let found = doc_line(line);
        match (found, blocks.last_mut()) {
            (Some((marker, doc)), Some((_, block))) if before == Some(marker) => block.push(doc),
            (Some((_, doc)), _) => blocks.push((index + 1, vec![doc])),
            (None, _) => {}
        }
        before = found.map(|(marker, _)| marker);
    }
    blocks
}

/// Returns the marker and the text of a line of a doc comment; four slashes make an ordinary comment.
fn doc_line(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let marker = MARKERS.into_iter().find(|marker| line.starts_with(marker))?;
    let doc = &line[marker.len()..];
    (!doc.starts_with('/')).then_some((marker, doc.trim()))
}

/// Returns the faults of one doc comment; `stops` says whether it must end with a full stop.
fn faults(block: &[&str], stops: bool) -> Vec<String> {
    let Some(sentence) = first_sentence(block) else { return Vec::new() };
    let mut faults = Vec::new();
    if let Some(word) = REFUSED.iter().find(|word| first_word(&sentence.text) == **word) {
        faults
            .push(format!("begins with `{word}`: begin with a verb in the third person or a noun"));
    }
    match sentence.text.trim_end_matches(CLOSING).chars().next_back() {
        Some('?') => faults.push("asks a question: say what the item is or does".to_owned()),
        Some('.' | ':') => {}
        _ if sentence.leads_to_block || !stops => {}
        _ => faults.push("the first sentence ends with no full stop".to_owned()),
    }
    faults
}

/// Characters that may follow the mark that ends a sentence.
const CLOSING: [char; 6] = [')', ']', '"', '*', '_', '`'];

struct Sentence {
    text: String,
    /// Whether a list, a table or a block of code follows it at once.
    leads_to_block: bool,
}

/// Returns the first sentence, past headings and blocks; nothing for a comment that has none.
fn first_sentence(block: &[&str]) -> Option<Sentence> {
    let mut in_code = false;
    let start = block.iter().position(|line| {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence && !line.is_empty() && !begins_block(line)
    })?;
    let rest = &block[start..];
    let end = rest.iter().position(|line| line.is_empty() || begins_block(line));
    let paragraph = rest[..end.unwrap_or(rest.len())].join(" ");
    let next = rest.iter().skip(end.unwrap_or(rest.len())).find(|line| !line.is_empty());
    let length = sentence_bytes(&paragraph);
    let leads_to_block = length == paragraph.len() && next.is_some_and(|line| begins_block(line));
    Some(Sentence { text: paragraph[..length].to_owned(), leads_to_block })
}

/// Returns whether a line begins a heading, a list, a table or a block of code.
fn begins_block(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = digits.len() < line.len() && digits.starts_with(". ");
    is_numbered || ["```", "# ", "## ", "- ", "* ", "|"].iter().any(|mark| line.starts_with(mark))
}

/// Returns the bytes up to the end of the first sentence. A mark ends a sentence outside of code spans, where
/// a space and no small letter follow: "e.g. this" goes on.
fn sentence_bytes(paragraph: &str) -> usize {
    let mut in_code = false;
    for (at, letter) in paragraph.char_indices() {
        in_code ^= letter == '`';
        if in_code || !matches!(letter, '.' | '?' | '!') {
            continue;
        }
        let after = paragraph[at + 1..].trim_start_matches(CLOSING);
        let goes_on = after.trim_start().starts_with(char::is_lowercase);
        if after.starts_with(' ') && !goes_on {
            return paragraph.len() - after.len();
        }
    }
    paragraph.len()
}

fn first_word(sentence: &str) -> &str {
    let start = sentence.trim_start_matches(|c: char| !c.is_alphanumeric());
    start.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<(usize, String)> {
        let file = File { path: "crates/a/src/b.rs".into(), text: text.into() };
        check(&file).into_iter().map(|found| (found.line, found.message)).collect()
    }

    fn count(text: &str) -> usize {
        complaints(text).len()
    }

    #[test]
    fn a_question_is_found_and_a_question_further_on_is_let_through() {
        assert_eq!(count("/// A filter that is full?\nfn f() {}\n"), 1);
        assert_eq!(count("//! Finds (or not?) a key,\n//! or is it two?\n"), 1);
        assert_eq!(count("/// A filter. Is it full? It may be.\nfn f() {}\n"), 0);
    }

    #[test]
    fn a_missing_full_stop_is_found_and_a_colon_a_list_and_code_are_let_through() {
        assert_eq!(count("/// A key\nfn f() {}\n"), 1);
        assert_eq!(count("/// A key\n///\n/// That was inserted.\nfn f() {}\n"), 1);
        for text in
            ["A key.", "A key, e.g. seven. It\n/// goes on", "A key (or `two.`.)", "Two keys:"]
        {
            assert_eq!(count(&format!("/// {text}\nfn f() {{}}\n")), 0, "{text}");
        }
        for text in ["- one\n/// - two", "1. one", "```\n/// code\n/// ```", "\n/// | a | b |"] {
            assert_eq!(count(&format!("/// Two keys\n/// {text}\nfn f() {{}}\n")), 0, "{text}");
        }
    }

    #[test]
    fn files_that_derive_the_traits_of_clap_need_no_full_stops() {
        for name in CLAP_DERIVES {
            let derived = format!("#[derive(Debug, clap::{name})]\n/// A key\nstruct A;\n");
            assert_eq!(count(&derived), 0, "{name}");
            let used =
                format!("use clap::{name};\n/// A key\n#[derive({name}, Debug)]\nstruct A;\n");
            assert_eq!(count(&used), 0, "{name}");
            let foreign = format!("#[derive({name})]\n/// A key\nstruct A;\n");
            assert_eq!(count(&foreign), 1, "{name}");
        }
        assert_eq!(count("use clap::Args;\n/// A key\n#[derive(Debug)]\nstruct A;\n"), 1);
    }

    #[test]
    fn files_that_derive_the_traits_of_clap_follow_all_other_rules() {
        let [name, ..] = CLAP_DERIVES;
        let clap = format!("use clap::{name};\n#[derive({name})]\n");
        assert_eq!(count(&format!("{clap}/// Is it a key?\nstruct A;\n")), 2);
        assert_eq!(count(&format!("{clap}/// How many keys\nstruct A;\n")), 1);
    }

    #[test]
    fn a_word_of_a_question_is_found_first_and_let_through_further_on() {
        for word in REFUSED {
            assert_eq!(count(&format!("/// {word} a key does.\nfn f() {{}}\n")), 1, "{word}");
            assert_eq!(count(&format!("/// Tells\n/// {word} a key.\nfn f() {{}}\n")), 0, "{word}");
        }
        assert_eq!(count("/// Whatever it finds.\nfn f() {}\n"), 0);
        assert_eq!(count("/// `What` of a [`Question`].\nstruct A;\n"), 1);
    }

    #[test]
    fn fields_and_variants_and_heads_of_files_count_and_the_line_is_told() {
        let text = "//! How it works.\n\nenum A {\n    /// One.\n    B {\n        /// Is it one.\n\
                    c: u8,\n    },\n    /// Two\n    D,\n}\n";
        let lines: Vec<usize> = complaints(text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 6, 9]);
    }

    #[test]
    fn what_is_no_doc_comment_of_a_crate_is_let_through() {
        assert_eq!(count("// Is it so?\n//// What\nfn f() {}\n"), 0);
        assert_eq!(count("/// # Errors\n/// A full disk.\nfn f() {}\n"), 0);
        assert_eq!(count("/// ```text\n/// What\n/// ```\nfn f() {}\n"), 0);
        let file = File { path: "examples/a.rs".into(), text: "/// Is it?\n".into() };
        assert_eq!(check(&file), []);
    }
}
