//! The page's matrix of the content that trees share, and its list of copies.

use std::fmt::{self, Write};

use super::parts::{Bar, Path};
use crate::{ComparedTree, Comparison, CopiedFile, units};

/// Writes a table with a line and a column for each tree, and a table of copies.
pub(super) fn write(out: &mut String, comparison: &Comparison) -> fmt::Result {
    out.write_str(
        "<section>\n<h2>What the trees share</h2>\n<p class=\"note\">In each line, the bytes of that tree that are \
         also in the tree of the column, and their share of it.</p>\n<div class=\"scroll\" tabindex=\"0\">\n\
         <table class=\"matrix\">\n<thead><tr><th>Tree</th><th class=\"number\">Bytes</th>",
    )?;
    for number in 1..=comparison.trees.len() {
        write!(out, "<th class=\"number\">in {number}</th>")?;
    }
    out.write_str("</tr></thead>\n<tbody>\n")?;
    for (index, tree) in comparison.trees.iter().enumerate() {
        write_tree(out, index, tree)?;
    }
    out.write_str("</tbody>\n</table>\n</div>\n</section>\n")?;
    write_copies(out, &comparison.copies)
}

fn write_tree(out: &mut String, index: usize, tree: &ComparedTree) -> fmt::Result {
    let (number, bytes) = (index + 1, units::bytes(tree.bytes));
    write!(
        out,
        "<tr><th scope=\"row\">{number} {}</th><td class=\"number\">{bytes}</td>",
        Path(&tree.path)
    )?;
    for (other, (&shared, &fraction)) in
        tree.shared_bytes.iter().zip(&tree.shared_fraction).enumerate()
    {
        if other == index {
            out.write_str("<td class=\"number self\">&ndash;</td>")?;
            continue;
        }
        let label = format!("{} shared", units::percent(fraction));
        let bar = Bar { class: "row", label: &label, unique: 0.0, duplicate: fraction };
        let (bytes, share) = (units::bytes(shared), units::percent(fraction));
        write!(out, "<td class=\"number\">{bytes}<br><b>{share}</b>{bar}</td>")?;
    }
    out.write_str("</tr>\n")
}

fn write_copies(out: &mut String, copies: &[CopiedFile]) -> fmt::Result {
    out.write_str("<section>\n<h2>Files with content of earlier files</h2>\n")?;
    if copies.is_empty() {
        return out
            .write_str("<p class=\"note\">None has anything of an earlier one.</p>\n</section>\n");
    }
    out.write_str(
        "<p class=\"note\">Each with the earlier file that had most of it.</p>\n<table class=\"copies\">\n\
         <thead><tr><th>File</th><th>Earlier file</th><th class=\"number\">Bytes</th><th class=\"number\">Share</th></tr>\
         </thead>\n<tbody>\n",
    )?;
    for copy in copies {
        let share = units::ratio(copy.copied_bytes, copy.bytes).unwrap_or(0.0);
        writeln!(
            out,
            "<tr><td class=\"path\">{}</td><td class=\"path\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td></tr>",
            Path(&copy.path),
            Path(&copy.copy_of),
            units::bytes(copy.copied_bytes),
            units::percent(share),
        )?;
    }
    out.write_str("</tbody>\n</table>\n</section>\n")
}
