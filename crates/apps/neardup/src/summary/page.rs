//! Renders the figures as one self-contained page: inline style and drawings, no scripts, nothing fetched.

use std::fmt::{self, Write};

use nandex::raw::size::show_count as grouped;
use nandex_html::chart::{self, CHART_STYLE, Chart, Scaling, Series};
use nandex_html::{BASE_STYLE, Escaped, Frame, shown};

use super::difference::parts;
use super::{Example, IndexSummary};
use crate::Measure;

/// The style of words that only one of two texts has, and of texts next to each other.
const STYLE: &str = ".texts{display:grid;grid-template-columns:1fr 1fr;gap:1rem}.texts p{margin:0;overflow-wrap:anywhere}\
                     .texts del,.texts ins{text-decoration:none;border-bottom:2px solid currentColor;font-weight:600}\n";

/// Returns one HTML page with the figures, for a browser at any width, light or dark. Ids and texts are escaped, and
/// the page forbids itself to load or run anything. About 20 KiB, and the texts.
#[must_use]
pub fn html(summary: &IndexSummary) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, summary);
    out
}

fn write_page(out: &mut String, summary: &IndexSummary) -> fmt::Result {
    let title = format!("Near-duplicates of {} documents", grouped(summary.documents));
    let frame = Frame { title: &title, styles: &[BASE_STYLE, CHART_STYLE, STYLE] };
    frame.open(out)?;
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">Near-duplicate index</p>\n<h1>{} of {} documents are new</h1>\n<p \
         class=\"lead\">{} have a text that is equal to another one's, and {} are near another one: {}.</p>\n</header>",
        grouped(summary.kept),
        grouped(summary.documents),
        grouped(summary.exact),
        grouped(summary.near),
        near(summary),
    )?;
    write_cards(out, summary)?;
    write_curve(out, summary)?;
    write_clusters(out, summary)?;
    write_examples(out, summary)?;
    frame.close(
        out,
        match summary.measure {
            Measure::Jaccard => {
                "Written by nandex. An estimate is the share of equal values of two MinHash signatures."
            }
            Measure::Hamming => "Written by nandex. A distance is the bits in which two SimHash signatures differ.",
            Measure::Euclidean => {
                "Written by nandex. A distance is estimated by the places of two vectors on all lines."
            }
        },
    )
}

/// Describes the threshold.
fn near(summary: &IndexSummary) -> String {
    let threshold = summary.threshold;
    match summary.measure {
        Measure::Jaccard => format!("an estimated Jaccard similarity of {threshold} or more"),
        Measure::Hamming => format!("signatures that differ in {threshold} bits or fewer"),
        Measure::Euclidean => format!("an estimated distance of {threshold} or less"),
    }
}

fn write_cards(out: &mut String, summary: &IndexSummary) -> fmt::Result {
    let ratio = |part: u64, whole: u64| {
        if whole == 0 { "0".to_owned() } else { shown(part as f64 / whole as f64) }
    };
    let cards = [
        (
            ratio(summary.neighbors_ram_bytes, summary.documents),
            "bytes of RAM per document",
            "of the tables of buckets; buffers do not grow with the documents",
        ),
        (
            ratio(summary.lookup_reads, summary.lookups),
            "flash reads per document",
            "for its buckets, since the index was opened",
        ),
        (
            ratio(summary.records_read, summary.lookups),
            "records read per document",
            "of candidates, since the index was opened",
        ),
        (grouped(summary.dropped), "ids that full buckets dropped", "a bucket keeps its oldest"),
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

fn write_curve(out: &mut String, summary: &IndexSummary) -> fmt::Result {
    let threshold = vec![(summary.threshold, 0.0), (summary.threshold, 1.0)];
    let chart = Chart {
        title: "Probability of being compared".into(),
        x: summary.measure.name(),
        y: "probability",
        x_scaling: Scaling::Linear,
        y_scaling: Scaling::Linear,
        series: vec![
            Series::ours("two documents share a bucket", summary.curve.clone()),
            Series::ours("threshold", threshold),
        ],
    };
    let probes = match summary.probes {
        0 => String::new(),
        probes => {
            format!(" Lookups try {probes} cells more in each table, and find more than this.")
        }
    };
    let family = Escaped(&summary.family);
    writeln!(
        out,
        "<section>\n<h2>Candidates</h2>\n<p>{family}. The curve is predicted by these numbers.{probes}</p>"
    )?;
    chart::write(out, &chart)?;
    out.write_str("</section>\n")
}

fn write_clusters(out: &mut String, summary: &IndexSummary) -> fmt::Result {
    writeln!(
        out,
        "<section>\n<h2>Clusters</h2>\n<p>{} documents are in {} clusters of near-duplicates.</p>\n<div \
         class=\"wide\"><table>\n<tr><th class=\"number\">documents</th><th class=\"number\">clusters</th></tr>",
        grouped(summary.clustered),
        grouped(summary.clusters),
    )?;
    for (sizes, clusters) in cluster_rows(summary) {
        writeln!(
            out,
            "<tr><td class=\"number\">{sizes}</td><td class=\"number\">{}</td></tr>",
            grouped(clusters)
        )?;
    }
    out.write_str("</table></div>\n</section>\n")
}

/// Returns the numbers of clusters by size: each below 4, and then by powers of two.
fn cluster_rows(summary: &IndexSummary) -> Vec<(String, u64)> {
    let mut groups: Vec<(u64, u64)> = Vec::new();
    for (size, clusters) in &summary.cluster_sizes {
        let first = if *size < 4 { *size } else { 1 << size.ilog2() };
        match groups.last_mut() {
            Some((last, sum)) if *last == first => *sum += clusters,
            _ => groups.push((first, *clusters)),
        }
    }
    let words = |first: u64| match first {
        0..4 => grouped(first),
        first => format!("{} to {}", grouped(first), grouped(2 * first - 1)),
    };
    groups.into_iter().map(|(first, clusters)| (words(first), clusters)).collect()
}

fn write_examples(out: &mut String, summary: &IndexSummary) -> fmt::Result {
    if summary.examples.is_empty() {
        return Ok(());
    }
    out.write_str(
        "<section>\n<h2>Examples</h2>\n<p>The pairs that are least near of those that are near-duplicates.</p>\n",
    )?;
    for example in &summary.examples {
        write_example(out, example)?;
    }
    out.write_str("</section>\n")
}

fn write_example(out: &mut String, example: &Example) -> fmt::Result {
    let Example { id, earlier, estimate, texts } = example;
    writeln!(out, "<h3>{} and {}: {}</h3>", Escaped(id), Escaped(earlier), shown(*estimate))?;
    let Some((later_text, earlier_text)) = texts else { return Ok(()) };
    let (later, earlier) = parts(later_text, earlier_text);
    out.write_str("<div class=\"texts\">\n")?;
    for (parts, tag) in [(later, "ins"), (earlier, "del")] {
        out.write_str("<p>")?;
        for (text, is_common) in &parts {
            write_part(out, (text, *is_common), tag)?;
        }
        out.write_str("</p>\n")?;
    }
    out.write_str("</div>\n")
}

fn write_part(out: &mut String, (text, is_common): (&str, bool), tag: &str) -> fmt::Result {
    let text = Escaped(text);
    if is_common { write!(out, "{text} ") } else { write!(out, "<{tag}>{text}</{tag}> ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shingling;

    fn summary(documents: u64, examples: Vec<Example>) -> IndexSummary {
        IndexSummary {
            documents,
            kept: documents / 2,
            exact: 3,
            near: 4,
            shingling: Shingling::default(),
            measure: Measure::Jaccard,
            threshold: 0.8,
            family: "MinHash".into(),
            tables: 9,
            probes: 0,
            documents_capacity: 1000,
            curve: vec![(0.0, 0.0), (0.5, 0.1), (1.0, 1.0)],
            clusters: 4,
            clustered: 20,
            cluster_sizes: [(2, 1), (5, 1), (6, 1), (7, 1)].into(),
            examples,
            ram_bytes: 5,
            neighbors_ram_bytes: 24_690,
            flash_bytes: 6,
            channels: 1,
            lookups: 4,
            lookup_reads: 2,
            records_read: 1,
            dropped: 0,
        }
    }

    #[test]
    fn a_page_has_its_figures_and_differences_and_texts_do_no_harm() {
        let texts = Some(("a <b> c".into(), "a d c".into()));
        let (id, earlier) = ("<i>".into(), "x".into());
        let page = html(&summary(12_345, vec![Example { id, earlier, estimate: 0.8125, texts }]));
        assert!(page.contains("<h1>6,172 of 12,345 documents are new</h1>"));
        assert!(page.contains("<p>a <ins>&lt;b&gt;</ins> c </p>"));
        assert!(page.contains("<p>a <del>d</del> c </p>"));
        assert!(page.contains("&lt;i&gt; and x") && !page.contains("<i>"));
        assert!(page.contains("<td class=\"number\">4 to 7</td><td class=\"number\">3</td>"));
        assert_eq!(page.matches("<path ").count(), 2);
        assert!(!page.contains("NaN") && page.ends_with("</html>\n"));
    }

    #[test]
    fn a_page_of_distances_says_what_is_near_and_what_probes_add() {
        let vectors = IndexSummary {
            measure: Measure::Euclidean,
            threshold: 0.5,
            probes: 8,
            curve: vec![(0.0, 1.0), (2.0, 0.1)],
            ..summary(10, vec![])
        };
        let page = html(&vectors);
        assert!(page.contains("near another one: an estimated distance of 0.5 or less."));
        assert!(page.contains("Euclidean distance") && page.contains("try 8 cells more"));
        let (measure, threshold) = (Measure::Hamming, 3.0);
        let page = html(&IndexSummary { measure, threshold, ..summary(10, vec![]) });
        assert!(page.contains("signatures that differ in 3 bits or fewer"));
        assert!(page.contains("bits that differ") && !page.contains("cells more"));
    }

    #[test]
    fn an_index_without_documents_has_a_page_too() {
        let page = html(&summary(0, vec![]));
        assert!(page.contains("0 of 0 documents") && !page.contains("NaN"));
    }
}
