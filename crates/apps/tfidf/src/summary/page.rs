//! Renders the figures as one self-contained page: inline style and drawings, no scripts, nothing fetched.

use std::fmt::{self, Write};

use nandex::raw::size::show_count as grouped;
use nandex_html::chart::{self, CHART_STYLE, Chart, Scaling, Series};
use nandex_html::{BASE_STYLE, Escaped, Frame, shown};

use super::CorpusSummary;

/// Returns one HTML page with the figures, for a browser at any width, light or dark. Terms are escaped, and the page
/// forbids itself to load or run anything. About 20 KiB.
#[must_use]
pub fn html(summary: &CorpusSummary) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, summary);
    out
}

fn write_page(out: &mut String, summary: &CorpusSummary) -> fmt::Result {
    let title = format!("Terms of {} documents", grouped(summary.documents));
    let frame = Frame { title: &title, styles: &[BASE_STYLE, CHART_STYLE] };
    frame.open(out)?;
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">TF-IDF index</p>\n<h1>{} terms</h1>\n<p class=\"lead\">They occur {} times in \
         {} documents. {} of them occur once.</p>\n</header>",
        grouped(summary.terms),
        grouped(summary.occurrences),
        grouped(summary.documents),
        grouped(summary.terms_once),
    )?;
    write_cards(out, summary)?;
    write_curve(out, summary)?;
    write_top(out, summary)?;
    frame.close(out, "Written by nandex. The rank of a term is its place by frequency.")
}

fn write_cards(out: &mut String, summary: &CorpusSummary) -> fmt::Result {
    let ratio = |part: u64, whole: u64| {
        if whole == 0 { "0".to_owned() } else { shown(part as f64 / whole as f64) }
    };
    let cards = [
        (ratio(summary.ram_bytes, summary.terms), "bytes of RAM per term", "of all tables"),
        (
            ratio(summary.lookup_reads, summary.lookups),
            "flash reads per lookup of a count",
            "since the index was opened",
        ),
        (ratio(summary.occurrences, summary.documents), "terms per document", "on average"),
    ];
    out.write_str("<section class=\"cards\" aria-label=\"Figures\">\n")?;
    for (figure, label, note) in cards {
        writeln!(
            out,
            "<div class=\"card\"><p class=\"figure\">{figure}</p><p class=\"label\">{label}</p>\
             <p class=\"note\">{note}</p></div>"
        )?;
    }
    out.write_str("</section>\n")
}

fn write_curve(out: &mut String, summary: &CorpusSummary) -> fmt::Result {
    let point = |(rank, occurrences): &(u64, u64)| (*rank as f64, *occurrences as f64);
    let points: Vec<(f64, f64)> = summary.ranks.iter().map(point).collect();
    // Zipf's law: frequency is inverse to rank.
    let first = points.first().map_or(0.0, |(_, occurrences)| *occurrences);
    let law = points.iter().map(|(rank, _)| (*rank, first / rank)).filter(|(_, y)| *y >= 1.0);
    let law = law.collect();
    let chart = Chart {
        title: "Frequency by rank".into(),
        x: "rank",
        y: "occurrences",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Logarithmic,
        series: vec![Series::ours("terms", points), Series::ours("inverse to the rank", law)],
    };
    out.write_str("<section>\n<h2>Frequencies</h2>\n")?;
    chart::write(out, &chart)?;
    out.write_str("</section>\n")
}

fn write_top(out: &mut String, summary: &CorpusSummary) -> fmt::Result {
    out.write_str(
        "<section>\n<h2>The most frequent terms</h2>\n<div class=\"wide\"><table>\n<tr><th>term</th>\
         <th class=\"number\">occurrences</th><th class=\"number\">documents</th></tr>\n",
    )?;
    for top in &summary.top {
        writeln!(
            out,
            "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
            Escaped(&top.term),
            grouped(top.occurrences),
            grouped(top.documents)
        )?;
    }
    out.write_str("</table></div>\n</section>\n")
}

#[cfg(test)]
mod tests {
    use super::super::TopTerm;
    use super::*;

    #[test]
    fn a_page_has_its_figures_and_its_terms_do_no_harm() {
        let top = TopTerm { term: "<b>".into(), documents: 2, occurrences: 12_345 };
        let summary = CorpusSummary {
            documents: 7,
            terms: 1_234_567,
            occurrences: 14,
            terms_once: 3,
            top: vec![top],
            ranks: vec![(1, 8), (2, 5), (9, 1)],
            ram_bytes: 1_234_567,
            lookups: 4,
            lookup_reads: 2,
        };
        let page = html(&summary);
        assert!(page.contains("<h1>1,234,567 terms</h1>") && page.contains("in 7 documents. 3 of"));
        assert!(page.contains("<td>&lt;b&gt;</td><td class=\"number\">12,345</td>"));
        assert!(page.contains("<p class=\"figure\">0.500</p><p class=\"label\">flash reads"));
        assert_eq!(page.matches("<path ").count(), 2);
        assert!(!page.contains("NaN") && page.ends_with("</html>\n"));
    }

    #[test]
    fn an_index_without_documents_has_a_page_too() {
        let summary = CorpusSummary {
            documents: 0,
            terms: 0,
            occurrences: 0,
            terms_once: 0,
            top: vec![],
            ranks: vec![],
            ram_bytes: 0,
            lookups: 0,
            lookup_reads: 0,
        };
        let page = html(&summary);
        assert!(page.contains("<h1>0 terms</h1>") && !page.contains("NaN"));
    }
}
