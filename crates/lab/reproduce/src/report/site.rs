//! The pages of all papers, which link to each other: an index, and a page for each paper.

use std::fmt::{self, Write};

use nandex_html::{Escaped, Frame};

use super::page::{self, FOOTER, STYLES};
use super::{Counted, Part};
use crate::{Constant, Exhibit, Paper, Scale, Shown, Source, exhibits};

/// The link from a page to the index.
const UP: &str = "<p><a href=\"index.html\">All papers</a></p>\n";

/// A file of the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// Its name, without a folder.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Returns the pages of all papers and of the constants, the index last: each paper has one if any of its
/// experiments ran. They load nothing and run nothing, and the same parts give the same bytes in whatever
/// order they are.
#[must_use]
pub fn pages(parts: &[Part], constants: &[Constant], scale: Scale) -> Vec<Page> {
    let mut pages = Vec::new();
    for paper in Paper::ALL {
        let parts = in_order(paper, parts);
        if !parts.is_empty() {
            pages.push(page_of(paper, &parts, scale));
        }
    }
    let text = constants_html(constants, UP);
    pages.push(Page { name: "constants.html".into(), text });
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_index(&mut text, parts, scale);
    pages.push(Page { name: "index.html".into(), text });
    pages
}

fn file_name(paper: Paper) -> String {
    format!("{}.html", paper.structure())
}

/// Returns the parts of a paper in the order of its exhibits.
fn in_order(paper: Paper, parts: &[Part]) -> Vec<&Part> {
    let find = |exhibit: &Exhibit| part_of(paper, exhibit, parts);
    exhibits(paper).iter().filter_map(find).collect()
}

fn part_of<'p>(paper: Paper, exhibit: &Exhibit, parts: &'p [Part]) -> Option<&'p Part> {
    let Shown::By(name) = exhibit.shown else { return None };
    parts.iter().find(|part| part.paper == paper && part.name == name)
}

fn page_of(paper: Paper, parts: &[&Part], scale: Scale) -> Page {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = page::write(&mut text, paper, scale, parts, UP);
    Page { name: file_name(paper), text }
}

fn write_index(out: &mut String, parts: &[Part], scale: Scale) -> fmt::Result {
    let frame = Frame { title: "The papers' experiments again", styles: STYLES };
    frame.open(out)?;
    write!(
        out,
        "<header>\n<p class=\"eyebrow\">Experiments run again</p>\n<h1>Ours and the papers'</h1>\n\
         <p class=\"lead\">What {} papers on hash tables for flash have measured, measured again on models of \
         their drives, in virtual time.</p>\n<p class=\"notice\">Scale {}, seed {}. <code>{}</code> makes these pages \
         again, byte for byte.</p>\n",
        Paper::ALL.len(),
        scale.times(),
        scale.seed(),
        Escaped(&command(scale)),
    )?;
    write_cards(out, parts)?;
    out.write_str("</header>\n")?;
    out.write_str(
        "<section>\n<p>A fitted number proves nothing, and an assumed one little. <a href=\"constants.html\">All \
         constants</a> are on one page, each with the printed number that it was chosen \
         for or the reason why it was \
         assumed. A bound, such as \"at least as fast\", is kept or missed and never near. Conclusions are not \
         counted: they relate rows that are.</p>\n</section>\n",
    )?;
    Paper::ALL.into_iter().try_for_each(|paper| write_paper(out, paper, parts))?;
    frame.close(out, FOOTER)
}

/// Returns the command that makes all pages again.
fn command(scale: Scale) -> String {
    let mut text = format!("nandex-lab reproduce all --report DIR --scale {}", scale.times());
    if scale.seed() != Scale::default().seed() {
        let _ = write!(text, " --seed {}", scale.seed());
    }
    text
}

fn write_cards(out: &mut String, parts: &[Part]) -> fmt::Result {
    let all = Part::sum(parts);
    let cards = [
        ("experiments", parts.len()),
        ("numbers within a tenth of the paper's number", all.near),
        ("within twice", all.off),
        ("further off", all.far),
        ("bounds of the paper kept by a tenth or less", all.bounds.by_tenth),
        ("kept by twice or less", all.bounds.by_twice),
        ("kept by more", all.bounds.by_more),
        ("bounds missed", all.bounds.missed),
        ("fitted: their agreement proves nothing", all.fitted),
        ("resting on an assumed constant", all.assumed),
        ("inputs of the load and the paper's formulas", all.given),
        ("stated, not measured here", all.stated),
        ("that no paper has", all.own),
    ];
    out.write_str("<section class=\"cards\">\n")?;
    for (label, count) in cards {
        writeln!(
            out,
            "<div class=\"card\"><div class=\"figure\">{count}</div><div class=\"label\">{label}</div></div>"
        )?;
    }
    out.write_str("</section>\n")
}

fn write_paper(out: &mut String, paper: Paper, parts: &[Part]) -> fmt::Result {
    let has_page = parts.iter().any(|part| part.paper == paper);
    let title = Escaped(paper.title());
    writeln!(out, "<section id=\"{}\">", paper.structure())?;
    match has_page {
        true => writeln!(out, "<h2><a href=\"{}\">{title}</a></h2>", file_name(paper))?,
        false => writeln!(out, "<h2>{title}</h2>")?,
    }
    out.write_str(
        "<div class=\"wide\"><table class=\"rows\">\n<thead><tr><th>Where</th><th>What</th>\
         <th>Numbers next to the paper's</th></tr></thead>\n<tbody>\n",
    )?;
    for exhibit in exhibits(paper) {
        write_exhibit(out, paper, exhibit, part_of(paper, exhibit, parts))?;
    }
    out.write_str("</tbody>\n</table></div>\n</section>\n")
}

fn write_exhibit(
    out: &mut String,
    paper: Paper,
    exhibit: &Exhibit,
    part: Option<&Part>,
) -> fmt::Result {
    write!(out, "<tr><td>{}</td><td class=\"what\">", Escaped(exhibit.place))?;
    let about = Escaped(exhibit.about);
    match (exhibit.shown, part) {
        (Shown::By(name), Some(part)) => {
            write!(
                out,
                "<a href=\"{}#{name}\">{about}</a></td><td class=\"why\">",
                file_name(paper)
            )?;
            write_counted(out, part.counted)?;
        }
        (Shown::By(name), None) => {
            let name = Escaped(name);
            write!(
                out,
                "{about}</td><td class=\"why\">Not asked for: the experiment <code>{name}</code>."
            )?;
        }
        (Shown::Nothing(why) | Shown::NotHere(why), _) => {
            write!(out, "{about}</td><td class=\"why\">{}", Escaped(why))?;
        }
    }
    out.write_str("</td></tr>\n")
}

/// Writes a bar with a piece for each kind of row that the paper has a number for, and the counts in words.
fn write_counted(out: &mut String, counted: Counted) -> fmt::Result {
    let kinds = [
        ("near", "near", counted.near),
        ("off", "within twice", counted.off),
        ("far", "further off", counted.far),
        ("keeps", "bounds kept", counted.bounds.kept()),
        ("misses", "bounds missed", counted.bounds.missed),
        ("fitted", "fitted", counted.fitted),
        ("fitted", "assumed", counted.assumed),
        ("fitted", "given", counted.given),
        ("track", "stated", counted.stated),
    ];
    let sum: usize = kinds.iter().map(|kind| kind.2).sum();
    let words: Vec<_> = kinds
        .iter()
        .filter(|kind| kind.2 > 0)
        .map(|(_, word, count)| format!("{count} {word}"))
        .collect();
    if sum == 0 {
        return write!(out, "The paper prints none; {} of ours.", counted.own);
    }
    let words = words.join(", ");
    write!(
        out,
        "<svg class=\"counted\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{words}\">"
    )?;
    let mut x = 0.0;
    for (class, _, count) in kinds.into_iter().filter(|kind| kind.2 > 0) {
        let width = 100.0 * count as f64 / sum as f64;
        write!(out, "<rect class=\"{class}\" x=\"{x:.2}\" width=\"{width:.2}\" height=\"6\"/>")?;
        x += width;
    }
    write!(out, "</svg>{words}")?;
    if counted.own > 0 {
        write!(out, "; {} of ours alone", counted.own)?;
    }
    Ok(())
}

/// Returns a page with all chosen constants, alone.
#[must_use]
pub fn constants_page(constants: &[Constant]) -> String {
    constants_html(constants, "")
}

fn constants_html(constants: &[Constant], more: &str) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_constants(&mut out, constants, more);
    out
}

fn write_constants(out: &mut String, constants: &[Constant], more: &str) -> fmt::Result {
    Frame { title: "Constants", styles: STYLES }.open(out)?;
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">Experiments run again</p>\n<h1>Constants</h1>\n\
         <p class=\"lead\">Every constant of the models that was chosen. The fitted ones were chosen so that a \
         printed number comes out; rows that give such a number back are marked as \
         fitted. The assumed ones are \
         our judgement; rows that rest on one are marked as assumed. Readings of a text \
         have no number; all \
         others are halved and doubled in the experiments <code>conclusions</code>. \
         <code>nandex-lab reproduce constants</code> prints them.</p>\n{more}</header>",
    )?;
    for (title, is_fitted) in [("Fitted", true), ("Assumed", false)] {
        let is_shown = |it: &&Constant| matches!(it.source, Source::FittedTo(_)) == is_fitted;
        write_constants_table(out, title, constants.iter().filter(is_shown))?;
    }
    Frame { title: "", styles: &[] }.close(out, "Written by nandex.")
}

fn write_constants_table<'c>(
    out: &mut String,
    title: &str,
    constants: impl Iterator<Item = &'c Constant>,
) -> fmt::Result {
    writeln!(
        out,
        "<section>\n<h2>{title}</h2>\n<div class=\"wide\"><table class=\"rows\">\n<thead><tr><th>Name</th>\
         <th>What it is</th><th>Value</th><th>Why</th></tr></thead>\n<tbody>",
    )?;
    for constant in constants {
        writeln!(
            out,
            "<tr id=\"{}\"><td><code>{}</code></td><td class=\"what\">{}</td><td class=\"why\">{}</td>\
             <td class=\"why\">{}</td></tr>",
            Escaped(constant.name),
            Escaped(constant.name),
            Escaped(constant.about),
            Escaped(&constant.shown()),
            Escaped(&constant.source.shown())
        )?;
    }
    out.write_str("</tbody>\n</table></div>\n</section>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Ran, Row, Table, constants};

    fn part(paper: Paper, name: &'static str, ours: f64) -> Part {
        let rows = vec![Row::measured("a", "", ours).paper(1.0)];
        let outcome =
            Outcome { tables: vec![Table { title: "t".into(), rows }], ..Outcome::default() };
        let ran = Ran { name, title: "Title", reference: "section 1", outcome };
        Part::of(paper, &ran, Scale::default())
    }

    #[test]
    fn there_is_a_page_for_each_paper_that_ran_and_links_lead_to_sections() {
        let parts = [
            part(Paper::Rhik, "figure-1", 1.0),
            part(Paper::BufferHash, "figure-6", 3.0),
            part(Paper::BufferHash, "figure-3", 1.5),
        ];
        let made = pages(&parts, &constants().unwrap(), Scale::default());
        let names: Vec<_> = made.iter().map(|page| page.name.as_str()).collect();
        assert_eq!(names, ["bufferhash.html", "rhik.html", "constants.html", "index.html"]);
        let index = &made[3].text;
        for link in index.split("href=\"").skip(1) {
            let link = link.split('"').next().unwrap();
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let page = made.iter().find(|page| page.name == file).expect(link);
            assert!(
                section.is_empty() || page.text.contains(&format!("<section id=\"{section}\">"))
            );
        }
        let places = ["figure-3", "figure-6"].map(|it| made[0].text.find(&format!("id=\"{it}\"")));
        assert!(places[0] < places[1], "in the paper's order: {places:?}");
        assert!(index.contains("1 near") && index.contains("1 further off"));
        assert!(index.contains("Not asked for: the experiment <code>figure-7</code>"));
    }

    #[test]
    fn the_page_of_constants_has_each_once_under_its_heading() {
        let constants = constants().unwrap();
        let page = constants_page(&constants);
        let (fitted, assumed) = page.split_once("<h2>Assumed</h2>").unwrap();
        for constant in &constants {
            let row = format!("<tr id=\"{}\">", constant.name);
            let is_fitted = matches!(constant.source, Source::FittedTo(_));
            let found = [fitted, assumed].map(|part| part.matches(&row).count());
            assert_eq!(found, if is_fitted { [1, 0] } else { [0, 1] }, "{row}");
        }
    }

    #[test]
    fn what_cannot_be_reproduced_says_why_and_the_order_of_parts_is_no_matter() {
        let parts = [part(Paper::Cascade, "deck", 1.0), part(Paper::Rhik, "figure-4", 1.0)];
        let made = pages(&parts, &constants().unwrap(), Scale::default());
        let swapped =
            pages(&[parts[1].clone(), parts[0].clone()], &constants().unwrap(), Scale::default());
        assert_eq!(made, swapped);
        let index = &made[3].text;
        for paper in Paper::ALL {
            for exhibit in exhibits(paper) {
                if let Shown::NotHere(why) = exhibit.shown {
                    assert!(index.contains(&Escaped(why).to_string()), "{why}");
                }
            }
        }
    }
}
