//! Markdown pages: one title each, named fences, and links that lead somewhere.

use std::path::{Component, Path, PathBuf};

use crate::Violation;
use crate::tree::File;

/// The languages that a fence may name. A test of the command line runs the commands of `console` and `sh`,
/// the doctests run `rust`, and the Python package's tests run `python`; `text` is for
/// everything else.
const FENCES: [&str; 9] = ["console", "sh", "rust", "python", "c", "toml", "json", "text", "csv"];

/// Reports the violations in a Markdown page, given the paths of all files.
#[must_use]
pub fn check(file: &File, all: &[PathBuf]) -> Vec<Violation> {
    if !file.is("md") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut titles = 0;
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            found.extend(fence(file, index + 1, language, fenced));
            fenced = !fenced;
        } else if !fenced {
            titles += usize::from(line.starts_with("# "));
            found.extend(dead_links(file, index + 1, line, all));
        }
    }
    // In the table of contents of the book a title begins a part.
    if titles != 1 && !file.path.ends_with("SUMMARY.md") {
        let message = format!("{titles} titles (`# `); a page has exactly one");
        found.push(Violation::new(&file.path, 0, message));
    }
    if fenced {
        found.push(Violation::new(&file.path, 0, "a fence is not closed"));
    }
    found
}

fn fence(file: &File, line: usize, language: &str, closes: bool) -> Option<Violation> {
    let name = language.split([',', ' ']).next().unwrap_or_default();
    let right = if closes { name.is_empty() } else { FENCES.contains(&name) };
    (!right).then(|| {
        let message = format!("a fence of `{name}`; name one of {}", FENCES.join(", "));
        Violation::new(&file.path, line, message)
    })
}

fn dead_links(file: &File, number: usize, line: &str, all: &[PathBuf]) -> Vec<Violation> {
    let folder = file.path.parent().unwrap_or(Path::new(""));
    let local = |target: &&str| !target.contains("://") && !target.starts_with('#');
    let exists = |target: &str| {
        let path = target.split('#').next().unwrap_or(target);
        let path = normal(&folder.join(path));
        all.iter().any(|known| known.starts_with(&path))
    };
    link_targets(line)
        .into_iter()
        .filter(local)
        .filter(|target| !exists(target))
        .map(|target| Violation::new(&file.path, number, format!("the link to {target} is dead")))
        .collect()
}

/// The targets of the links in a line.
pub(crate) fn link_targets(line: &str) -> Vec<&str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
}

/// The path without `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let file = File { path: "docs/page.md".into(), text: text.into() };
        let all = [PathBuf::from("docs/page.md"), PathBuf::from("README.md")];
        check(&file, &all).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn a_page_with_a_title_a_named_fence_and_live_links_passes() {
        let text = "# T\n[a](../README.md) [b](page.md#x) [c](https://x.y)\n```text\n# no\n```\n";
        assert_eq!(complaints(text), [""; 0]);
    }

    #[test]
    fn two_titles_and_none_are_refused() {
        assert_eq!(complaints("# A\n# B\n").len(), 1);
        assert_eq!(complaints("prose\n").len(), 1);
    }

    #[test]
    fn a_nameless_or_open_fence_is_refused() {
        assert_eq!(complaints("# A\n```\nx\n```\n").len(), 1);
        assert_eq!(complaints("# A\n```text\nx\n").len(), 1);
    }

    #[test]
    fn a_dead_link_is_refused() {
        assert_eq!(complaints("# A\n[x](gone.md)\n"), ["the link to gone.md is dead"]);
    }
}
