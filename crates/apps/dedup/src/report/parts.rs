//! Pieces of the page: escaped words, bars and tables.

use std::fmt::{self, Display, Formatter, Write};

use crate::summary::Largest;
use crate::units;

/// Words without markup, with control characters as escapes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        nandex_html::Escaped(&units::printable(self.0)).fmt(f)
    }
}

/// A path: escaped, broken into lines after slashes, and isolated if it is written from right to left.
pub(super) struct Path<'a>(pub(super) &'a str);

impl Display for Path<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("<bdi>")?;
        for part in self.0.split_inclusive('/') {
            let break_here = if part.ends_with('/') { "<wbr>" } else { "" };
            write!(f, "{}{break_here}", Escaped(part))?;
        }
        f.write_str("</bdi>")
    }
}

/// A bar whose parts are given as shares of its width.
pub(super) struct Bar<'a> {
    pub(super) class: &'a str,
    pub(super) label: &'a str,
    pub(super) unique: f64,
    pub(super) duplicate: f64,
}

impl Display for Bar<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let unique = 100.0 * self.unique;
        let duplicate = 100.0 * self.duplicate;
        write!(
            f,
            "<svg class=\"{}\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-label=\"{}\"><rect class=\"track\" width=\"100\" height=\"10\"/>\
             <rect class=\"unique\" width=\"{unique:.2}\" height=\"10\"/>\
             <rect class=\"duplicate\" x=\"{unique:.2}\" width=\"{duplicate:.2}\" height=\"10\"/></svg>",
            self.class,
            Escaped(self.label),
        )
    }
}

/// Writes a table of files or directories; each bar is relative to the first, which has the most.
pub(super) fn write_list(out: &mut String, what: &str, list: &[Largest]) -> fmt::Result {
    writeln!(out, "<section>\n<h2>{what} with the most duplicate bytes</h2>")?;
    let Some(first) = list.first() else {
        return out.write_str("<p class=\"note\">None has any.</p>\n</section>\n");
    };
    out.write_str(
        "<table>\n<thead><tr><th>Path</th><th class=\"number\">Duplicate</th>\
         <th class=\"number\">Share</th><th>Against the first</th></tr></thead>\n<tbody>\n",
    )?;
    for entry in list {
        write_row(out, entry, first.duplicate_bytes)?;
    }
    out.write_str("</tbody>\n</table>\n</section>\n")
}

fn write_row(out: &mut String, entry: &Largest, most: u64) -> fmt::Result {
    let duplicate = units::bytes(entry.duplicate_bytes);
    let share = units::ratio(entry.duplicate_bytes, entry.bytes).unwrap_or(0.0);
    let bar = Bar {
        class: "row",
        label: &format!("{duplicate} duplicate"),
        unique: 0.0,
        duplicate: units::ratio(entry.duplicate_bytes, most).unwrap_or(0.0),
    };
    writeln!(
        out,
        "<tr><td class=\"path\">{}</td><td class=\"number\">{duplicate}</td>\
         <td class=\"number\">{} of {}</td><td class=\"bar\">{bar}</td></tr>",
        Path(&entry.path),
        units::percent(share),
        units::bytes(entry.bytes),
    )
}
