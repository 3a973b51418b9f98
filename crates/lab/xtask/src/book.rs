//! The book: `docs/SUMMARY.md` lists every page of docs once, links between pages lead to headings that exist, and
//! examples in Rust are doctests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::Violation;
use crate::markdown::{link_targets, normal};
use crate::tree::File;

/// The folder of the pages.
const FOLDER: &str = "docs";

/// The table of contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Returns the pages that the book lacks or lists twice, the links to headings that do not exist, and the examples in
/// Rust that no doctest runs.
#[must_use]
pub fn check(files: &[File]) -> Vec<Violation> {
    let pages: Vec<&File> = files.iter().filter(|file| file.is("md")).collect();
    let mut found = summary(&pages);
    found.extend(anchors(&pages));
    found.extend(examples(&pages, files));
    found
}

fn summary(pages: &[&File]) -> Vec<Violation> {
    let summary = Path::new(SUMMARY);
    let Some(contents) = pages.iter().find(|page| page.path == summary) else {
        return vec![Violation::new(summary, 0, "the book has no table of contents")];
    };
    let mut listed: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for target in contents.text.lines().flat_map(link_targets) {
        *listed.entry(normal(&Path::new(FOLDER).join(target))).or_default() += 1;
    }
    let is_page = |page: &&&File| page.path.starts_with(FOLDER) && page.path != summary;
    let missing = pages.iter().filter(is_page).filter(|page| !listed.contains_key(&page.path));
    let missing =
        missing.map(|page| Violation::new(&page.path, 0, format!("{SUMMARY} does not list it")));
    let twice = listed.iter().filter(|(_, count)| **count > 1);
    let twice = twice
        .map(|(path, _)| Violation::new(summary, 0, format!("{} is listed twice", path.display())));
    missing.chain(twice).collect()
}

/// Links with an anchor to a Markdown page that has no such heading.
fn anchors(pages: &[&File]) -> Vec<Violation> {
    let headings: BTreeMap<&Path, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_path(), headings(&page.text))).collect();
    let mut found = Vec::new();
    for page in pages {
        for (number, line) in prose(&page.text) {
            for target in link_targets(line).into_iter().filter(|it| !it.contains("://")) {
                let Some((path, anchor)) = target.split_once('#') else { continue };
                let folder = page.path.parent().unwrap_or(Path::new(""));
                let path =
                    if path.is_empty() { page.path.clone() } else { normal(&folder.join(path)) };
                let is_there = headings.get(path.as_path()).is_none_or(|it| it.contains(anchor));
                if !is_there {
                    let message = format!("the link to {target} leads to no heading");
                    found.push(Violation::new(&page.path, number, message));
                }
            }
        }
    }
    found
}

/// Pages of docs with examples in Rust that no crate includes.
fn examples(pages: &[&File], files: &[File]) -> Vec<Violation> {
    let included: Vec<&str> = files
        .iter()
        .filter(|file| file.is("rs"))
        .flat_map(|file| file.text.lines())
        .filter(|line| line.starts_with("#[doc = include_str!("))
        .collect();
    let is_run = |page: &File| {
        let name = format!("/{}\")", page.path.display());
        included.iter().any(|line| line.contains(&name))
    };
    let has_example = |page: &&&File| page.text.lines().any(|line| line == "```rust");
    pages
        .iter()
        .filter(has_example)
        .filter(|page| !is_run(page))
        .map(|page| Violation::new(&page.path, 0, "no doctest runs its examples in Rust"))
        .collect()
}

/// The lines outside fences, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    let mut outside = move |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    };
    text.lines().enumerate().filter(move |(_, line)| outside(line)).map(|(at, line)| (at + 1, line))
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = prose(text).filter(|(_, line)| line.starts_with('#'));
    titles.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(title: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
    let lower = title.chars().filter(kept).flat_map(char::to_lowercase);
    lower.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File { path: path.into(), text: (*text).into() };
        let files: Vec<File> = files.iter().map(file).collect();
        check(&files).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn a_page_that_the_summary_lists_once_with_live_anchors_passes() {
        let summary = ("docs/SUMMARY.md", "- [A](a.md)\n- [B](b/b.md)\n");
        let a = ("docs/a.md", "# A\n[b](b/b.md#the-way-of-b) [c](#a) [d](https://x.y#z)\n");
        let b = ("docs/b/b.md", "# B\n## The way of `b`\n```text\n# [x](gone.md#x)\n```\n");
        assert_eq!(complaints(&[summary, a, b]), [""; 0]);
    }

    #[test]
    fn a_page_that_the_summary_lacks_or_lists_twice_is_refused() {
        let a = ("docs/a.md", "# A\n");
        let lacks = complaints(&[("docs/SUMMARY.md", ""), a]);
        assert_eq!(lacks, ["docs/SUMMARY.md does not list it"]);
        let twice = complaints(&[("docs/SUMMARY.md", "[A](a.md)\n[A](a.md)\n"), a]);
        assert_eq!(twice, ["docs/a.md is listed twice"]);
        assert_eq!(complaints(&[("README.md", "# A\n")]).len(), 1, "no summary");
    }

    #[test]
    fn a_link_to_a_heading_that_does_not_exist_is_refused() {
        let summary = ("docs/SUMMARY.md", "[A](a.md)\n");
        let found = complaints(&[summary, ("docs/a.md", "# A\n[x](#gone)\n")]);
        assert_eq!(found, ["the link to #gone leads to no heading"]);
    }

    #[test]
    fn an_example_in_rust_that_no_crate_includes_is_refused() {
        let summary = ("docs/SUMMARY.md", "[A](a.md)\n");
        let page = ("docs/a.md", "# A\n```rust\n```\n");
        assert_eq!(complaints(&[summary, page]), ["no doctest runs its examples in Rust"]);
        let includes = ("crates/a/src/lib.rs", "#[doc = include_str!(\"../../../docs/a.md\")]\n");
        assert_eq!(complaints(&[summary, page, includes]), [""; 0]);
    }
}
