//! The summary for a terminal: aligned lines, human units, the three numbers first.

use std::fmt::Write;

use crate::summary::Largest;
use crate::{Comparison, Provenance, Summary, units};

/// The number of lines of each list on a terminal; the page and the JSON have them all.
const LISTED_MAX: usize = 5;

/// Returns the summary in lines of text that end in a newline, for standard output.
///
/// Plain ASCII except for paths, no colours; control characters in paths are escaped, so that a file name
/// cannot control the terminal.
#[must_use]
pub fn text(summary: &Summary) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, summary);
    out
}

fn write_all(out: &mut String, summary: &Summary) -> std::fmt::Result {
    if summary.interrupted {
        writeln!(out, "Interrupted: the figures cover what was looked up until then.\n")?;
    }
    write_figures(out, summary)?;
    write_comparison(out, summary)?;
    write_list(out, "Files with the most duplicate bytes", &summary.largest_duplicate_files)?;
    let directories = &summary.largest_duplicate_directories;
    write_list(out, "Directories with the most duplicate bytes", directories)?;
    write_skipped(out, summary)?;
    write_provenance(out, summary)
}

fn write_provenance(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let Some(Provenance { command, version, date }) = &summary.provenance else { return Ok(()) };
    writeln!(out, "\nMade {date} by nandex {version}: {}", units::printable(command))
}

fn write_figures(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let ratio = summary
        .dedup_ratio
        .map_or("all duplicate".to_owned(), |ratio| format!("ratio {} to 1", units::digits(ratio)));
    let share = units::percent(summary.duplicate_fraction);
    let chunks = format!(
        "{} ({} unique), {} of {} on average, {}",
        units::count(summary.total_chunks),
        units::count(summary.unique_chunks),
        summary.chunker,
        units::bytes(summary.average_bytes),
        summary.hash
    );
    let index = format!(
        "{} entries, {} of flash",
        units::count(summary.index_entries),
        units::bytes(summary.index_bytes)
    );
    let bytes = units::bytes(summary.total_bytes);
    let duplicate = units::bytes(summary.duplicate_bytes);
    let rows = [
        ("Read", format!("{bytes} in {} files", units::count(summary.files))),
        ("Duplicate", format!("{duplicate}, {share}, {ratio}{}", doubt(summary))),
        ("Unique", units::bytes(summary.unique_bytes())),
        ("Chunks", chunks),
        ("Index", index),
        ("RAM", format!("{} bytes per entry", units::digits(summary.ram_bytes_per_entry))),
        ("Flash reads", format!("{} per lookup", units::digits(summary.reads_per_lookup))),
        ("Speed", units::rate(summary.bytes_per_s)),
        ("Time", units::duration(summary.elapsed_s)),
    ];
    rows.iter().try_for_each(|(name, figure)| writeln!(out, "{name:<12} {figure}"))?;
    write_gaps(out, summary)
}

/// Returns the addition to the line of duplicate bytes if an index that forgets makes it a lower bound.
fn doubt(summary: &Summary) -> String {
    match summary.forgotten_entries_life {
        0 => String::new(),
        count => format!(", at least: {} entries are forgotten", units::count(count)),
    }
}

/// Writes what the figures do not include.
fn write_gaps(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let (unreadable, life) = (summary.unreadable_count, summary.forgotten_entries_life);
    if unreadable > 0 {
        let what = "files and directories: the figures are without them";
        writeln!(out, "{:<12} {} {what}", "Unreadable", units::count(unreadable))?;
    }
    if life > 0 {
        let (run, life) = (units::count(summary.forgotten_entries), units::count(life));
        writeln!(
            out,
            "{:<12} {run} entries in this run, {life} in the index's life: it is full",
            "Forgotten"
        )?;
    }
    Ok(())
}

/// Writes the content that each tree shares with each, with a line for each tree and a column for each.
fn write_comparison(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let Some(Comparison { trees, copies }) = &summary.comparison else { return Ok(()) };
    writeln!(out, "\nBytes of each tree that are also in each other")?;
    let numbers: String = (1..=trees.len()).map(|tree| format!("  {tree:>18}")).collect();
    writeln!(out, "{:>15}{numbers}", "bytes")?;
    for (index, tree) in trees.iter().enumerate() {
        let shared = tree.shared_bytes.iter().zip(&tree.shared_fraction).enumerate();
        let cells: String = shared
            .map(|(other, (&bytes, &fraction))| match other == index {
                true => format!("  {:>18}", "-"),
                false => format!("  {:>10} {:>7}", units::bytes(bytes), units::percent(fraction)),
            })
            .collect();
        let path = units::printable(&tree.path);
        writeln!(out, "{:>3} {:>11}{cells}  {path}", index + 1, units::bytes(tree.bytes))?;
    }
    if !copies.is_empty() {
        writeln!(
            out,
            "\nFiles with content of earlier files: bytes and share, and the file that had most of it first"
        )?;
    }
    for copy in &copies[..copies.len().min(LISTED_MAX)] {
        let bytes = units::bytes(copy.copied_bytes);
        let share = units::percent(units::ratio(copy.copied_bytes, copy.bytes).unwrap_or(0.0));
        let (path, of) = (units::printable(&copy.path), units::printable(&copy.copy_of));
        writeln!(out, "{bytes:>10} {share:>8}  {path}  from  {of}")?;
    }
    Ok(())
}

fn write_list(out: &mut String, title: &str, list: &[Largest]) -> std::fmt::Result {
    if list.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for entry in &list[..list.len().min(LISTED_MAX)] {
        let duplicate = units::bytes(entry.duplicate_bytes);
        let share = units::percent(units::ratio(entry.duplicate_bytes, entry.bytes).unwrap_or(0.0));
        writeln!(out, "{duplicate:>10} {share:>8}  {}", units::printable(&entry.path))?;
    }
    Ok(())
}

fn write_skipped(out: &mut String, summary: &Summary) -> std::fmt::Result {
    if summary.skipped_count == 0 {
        return Ok(());
    }
    writeln!(out, "\nPassed over or changed")?;
    for kind in &summary.skipped_by_kind {
        writeln!(out, "{:>10}  {}", units::count(kind.count), kind.kind.label())?;
        let of_kind = summary.skipped.iter().filter(|skipped| skipped.kind == kind.kind);
        let listed = if kind.kind.is_trouble() { LISTED_MAX } else { 0 };
        for skipped in of_kind.take(listed) {
            writeln!(out, "            {}: {}", units::printable(&skipped.path), skipped.reason)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::{comparison, example};

    #[test]
    fn the_figures_stand_in_aligned_lines() {
        let text = text(&example());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Read         1.50 GiB in 1,234 files");
        let doubt = "at least: 19 entries are forgotten";
        assert_eq!(lines[1], format!("Duplicate    512 MiB, 33.3 %, ratio 1.50 to 1, {doubt}"));
        assert_eq!(lines[6], "Flash reads  1.02 per lookup");
        assert!(text.contains("\n   512 MiB  100.0 %  /data/a\n"), "{text}");
        assert!(text.contains("\nForgotten    7 entries in this run, 19 in the"), "{text}");
        assert!(text.contains("\nUnreadable   1 files and directories: the"), "{text}");
    }

    #[test]
    fn a_comparison_has_a_line_for_each_tree_and_says_what_is_a_copy() {
        let summary = Summary { comparison: Some(comparison()), ..example() };
        let text = text(&summary);
        let expected = "\nBytes of each tree that are also in each other\n          bytes                   1                   2\n  1    1.00 GiB                   -     512 MiB  50.0 %  /data/a\n  2    2.00 GiB     256 MiB  12.5 %                   -  /data/<b>\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("\n   256 MiB   50.0 %  /data/<b>/x  from  /data/a/x\n"), "{text}");
    }

    #[test]
    fn a_path_cannot_drive_the_terminal() {
        let text = text(&example());
        assert!(text.contains(r"<b>\u{1b}[2J&"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn the_last_line_says_what_made_it() {
        let text = text(&example());
        let line = "\nMade 2026-11-22T16:25:18Z by nandex 1.2.3: nandex dedup '/data/<b>'\n";
        assert!(text.ends_with(line), "{text}");
    }

    #[test]
    fn a_cancelled_run_says_so_first() {
        let summary = Summary { interrupted: true, dedup_ratio: None, ..example() };
        let text = text(&summary);
        assert!(text.starts_with("Interrupted:"));
        assert!(text.contains("all duplicate"));
    }
}
