//! The page is whole, harmless and complete.

use super::*;
use crate::SkipKind;
use crate::summary::KindCount;
use crate::summary::tests::{comparison, example};

/// Checks that every element that is opened is closed, in order.
fn assert_well_formed(page: &str) {
    let mut open: Vec<String> = Vec::new();
    for part in page.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        let name: String = tag.chars().take_while(|c| !c.is_whitespace() && *c != '>').collect();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "at </{closed}>");
        } else if !tag.ends_with('/') && !["!doctype", "meta", "br", "wbr"].contains(&&*name) {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<String>::new());
}

#[test]
fn the_page_is_well_formed_for_full_and_empty_summaries() {
    assert_well_formed(&html(&example()));
    let empty = Summary {
        total_bytes: 0,
        duplicate_bytes: 0,
        duplicate_fraction: 0.0,
        dedup_ratio: None,
        total_chunks: 0,
        largest_duplicate_files: vec![],
        largest_duplicate_directories: vec![],
        skipped: vec![],
        skipped_count: 0,
        skipped_by_kind: vec![],
        interrupted: true,
        ..example()
    };
    let page = html(&empty);
    assert_well_formed(&page);
    assert!(page.contains("The run was interrupted."));
    assert!(page.contains("nothing unique"));
    assert!(page.contains("Nothing: every file was read."));
}

#[test]
fn the_page_fetches_and_runs_nothing() {
    let page = html(&example());
    for foreign in ["<script", "http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn paths_are_words_and_not_markup() {
    let page = html(&example());
    assert!(page.contains(r"/<wbr>data/<wbr>a/<wbr>&lt;b&gt;\u{1b}[2J&amp;.iso"));
    assert!(!page.contains("<b>"));
}

#[test]
fn the_page_says_what_made_it() {
    let page = html(&example());
    assert!(page.contains("<pre>nandex dedup &#39;/data/&lt;b&gt;&#39;</pre>"), "{page}");
    assert!(page.contains("nandex 1.2.3, 2026-11-22T16:25:18Z"));
    assert!(!html(&Summary { provenance: None, ..example() }).contains("Made by"));
}

#[test]
fn the_three_numbers_and_both_parts_of_the_bar_are_on_the_page() {
    let page = html(&example());
    for words in [
        ">2.50</p><p class=\"label\">bytes of RAM per entry",
        ">1.02</p><p class=\"label\">flash reads per lookup",
        ">763 MiB/s</p>",
        "<em>33.3 %</em> of 1.50 GiB is duplicate",
        "class=\"unique\" width=\"66.67\"",
        "class=\"duplicate\" x=\"66.67\" width=\"33.33\"",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn what_is_not_listed_as_skipped_is_counted_and_trouble_is_unfolded() {
    let kinds = vec![
        KindCount { kind: SkipKind::Unreadable, count: 1001 },
        KindCount { kind: SkipKind::Symlink, count: 3 },
    ];
    let page = html(&Summary { skipped_by_kind: kinds, skipped_count: 1004, ..example() });
    assert!(page.contains("<details open><summary>1,001 unreadable"));
    assert!(page.contains("and 1,000 more"));
    assert!(page.contains("<details><summary>3 symbolic links"));
    assert!(page.contains("cannot open it: Permission denied"));
}

#[test]
fn a_comparison_is_a_matrix_with_escaped_paths() {
    let compared = Summary { comparison: Some(comparison()), ..example() };
    let page = html(&compared);
    assert_well_formed(&page);
    let cell = "<td class=\"number\">512 MiB<br><b>50.0 %</b>";
    assert!(page.contains(cell) && page.contains("<b>12.5 %</b>"), "{page}");
    assert!(page.contains("&lt;b&gt;") && !html(&example()).contains("What the trees share"));
}
