//! The summary as one self-contained page: inline style and drawings, no scripts, nothing fetched.

mod comparison;
mod parts;

use std::fmt::{self, Write};

use nandex_html::Frame;

use crate::{Provenance, Summary, units};
use parts::{Bar, Escaped, Path};

const STYLE: &str = include_str!("page.css");

/// Returns one HTML page that shows the summary, for a browser at any width, light or dark.
///
/// Paths are escaped. The page forbids itself to load or run anything, so a file name can do no harm in it. About 20
/// KiB.
#[must_use]
pub fn html(summary: &Summary) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, summary);
    out
}

fn write_page(out: &mut String, summary: &Summary) -> fmt::Result {
    let title = format!(
        "Duplicate chunks: {} of {}",
        units::percent(summary.duplicate_fraction),
        units::bytes(summary.total_bytes)
    );
    let frame = Frame { title: &title, styles: &[STYLE] };
    frame.open(out)?;
    write_header(out, summary)?;
    write_whole(out, summary)?;
    write_three_numbers(out, summary)?;
    write_details(out, summary)?;
    if let Some(comparison) = &summary.comparison {
        comparison::write(out, comparison)?;
    }
    parts::write_list(out, "Files", &summary.largest_duplicate_files)?;
    parts::write_list(out, "Directories", &summary.largest_duplicate_directories)?;
    write_skipped(out, summary)?;
    write_provenance(out, summary)?;
    frame.close(
        out,
        "Written by nandex. A chunk is duplicate if it was there before: earlier in the run, or in the \
         index from earlier runs.",
    )
}

fn write_header(out: &mut String, summary: &Summary) -> fmt::Result {
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">Deduplication report</p>\n\
         <h1><em>{}</em> of {} is duplicate</h1>\n\
         <p class=\"lead\">{} files were cut into {} chunks, and {} of these were not there \
         before.</p>",
        units::percent(summary.duplicate_fraction),
        units::bytes(summary.total_bytes),
        units::count(summary.files),
        units::count(summary.total_chunks),
        units::count(summary.unique_chunks),
    )?;
    if summary.interrupted {
        out.write_str(
            "<p class=\"alarm\" role=\"alert\">The run was interrupted. The figures cover what was \
             looked up until then.</p>\n",
        )?;
    }
    if summary.forgotten_entries_life > 0 {
        writeln!(
            out,
            "<p class=\"alarm\">The index is full and has forgotten {} entries, {} of them in this run. Chunks \
             that it has forgotten count as unique, so more may be duplicate than is shown.</p>",
            units::count(summary.forgotten_entries_life),
            units::count(summary.forgotten_entries),
        )?;
    }
    out.write_str("</header>\n")
}

/// Writes the bar of unique and duplicate bytes.
fn write_whole(out: &mut String, summary: &Summary) -> fmt::Result {
    let unique = units::bytes(summary.unique_bytes());
    let duplicate = units::bytes(summary.duplicate_bytes);
    let bar = Bar {
        class: "whole",
        label: &format!("{unique} unique, {duplicate} duplicate"),
        unique: if summary.total_bytes == 0 { 0.0 } else { 1.0 - summary.duplicate_fraction },
        duplicate: summary.duplicate_fraction,
    };
    writeln!(
        out,
        "<section>\n<h2>Unique and duplicate bytes</h2>\n{bar}\n<p class=\"legend\">\
         <span><i class=\"unique\"></i>{unique} unique</span>\
         <span><i class=\"duplicate\"></i>{duplicate} duplicate</span></p>\n</section>"
    )
}

/// Writes the three figures that measure an index on flash.
fn write_three_numbers(out: &mut String, summary: &Summary) -> fmt::Result {
    let entries = units::count(summary.index_entries);
    let cards = [
        (
            units::digits(summary.ram_bytes_per_entry),
            "bytes of RAM per entry",
            format!("{entries} entries in the index"),
        ),
        (
            units::digits(summary.reads_per_lookup),
            "flash reads per lookup",
            "counted over the lookups of this run".to_owned(),
        ),
        (
            units::rate(summary.bytes_per_s),
            "read, cut, hashed and looked up",
            format!("{} in all", units::duration(summary.elapsed_s)),
        ),
    ];
    out.write_str("<section class=\"cards\" aria-label=\"The three numbers\">\n")?;
    for (figure, label, note) in cards {
        writeln!(
            out,
            "<div class=\"card\"><p class=\"figure\">{figure}</p><p class=\"label\">{label}</p>\
             <p class=\"note\">{note}</p></div>"
        )?;
    }
    out.write_str("</section>\n")
}

fn write_details(out: &mut String, summary: &Summary) -> fmt::Result {
    let ratio = summary.dedup_ratio;
    let mean = summary.total_bytes.checked_div(summary.total_chunks).unwrap_or(0);
    let rows = [
        (
            "Deduplication ratio",
            ratio.map_or("nothing unique".to_owned(), |ratio| {
                format!("{} to 1", units::digits(ratio))
            }),
        ),
        ("Chunker", summary.chunker.to_string()),
        ("Nominal average chunk", units::bytes(summary.average_bytes)),
        ("Mean chunk of this run", units::bytes(mean)),
        ("Fingerprints", summary.hash.to_string()),
        ("Index entries", units::count(summary.index_entries)),
        ("Entries forgotten in this run", units::count(summary.forgotten_entries)),
        ("Entries forgotten in the index's life", units::count(summary.forgotten_entries_life)),
        ("Index on flash", units::bytes(summary.index_bytes)),
        ("Files", units::count(summary.files)),
    ];
    out.write_str("<section>\n<dl>\n")?;
    for (name, figure) in rows {
        writeln!(out, "<div><dt>{name}</dt><dd>{figure}</dd></div>")?;
    }
    out.write_str("</dl>\n</section>\n")
}

fn write_skipped(out: &mut String, summary: &Summary) -> fmt::Result {
    out.write_str("<section>\n<h2>Passed over or changed</h2>\n")?;
    if summary.skipped_count == 0 {
        return out.write_str("<p class=\"note\">Nothing: every file was read.</p>\n</section>\n");
    }
    for kind in &summary.skipped_by_kind {
        let open = if kind.kind.is_trouble() { " open" } else { "" };
        let count = units::count(kind.count);
        writeln!(out, "<details{open}><summary>{count} {}</summary>\n<ul>", kind.kind.label())?;
        let of_kind = summary.skipped.iter().filter(|skipped| skipped.kind == kind.kind);
        let mut listed = 0;
        for skipped in of_kind {
            listed += 1;
            let reason = Escaped(&skipped.reason);
            writeln!(out, "<li>{} <span>{reason}</span></li>", Path(&skipped.path))?;
        }
        if listed < kind.count {
            let more = units::count(kind.count - listed);
            writeln!(out, "<li><span>and {more} more</span></li>")?;
        }
        out.write_str("</ul></details>\n")?;
    }
    out.write_str("</section>\n")
}

fn write_provenance(out: &mut String, summary: &Summary) -> fmt::Result {
    let Some(Provenance { command, version, date }) = &summary.provenance else { return Ok(()) };
    writeln!(
        out,
        "<section>\n<h2>Made by</h2>\n<pre>{}</pre>\n<p class=\"note\">nandex {}, {}</p>\n</section>",
        Escaped(command),
        Escaped(version),
        Escaped(date)
    )
}

#[cfg(test)]
mod tests;
