//! The page for people: figures in tables, without external resources.

use std::fmt::Write;

use nandex::raw::size::show_count as grouped;
use nandex_html::{BASE_STYLE, Escaped, Frame};

use super::metrics::CONNECTIONS_SHOWN_MAX;
use crate::buffers::BufferSnapshot;
use crate::stats::{
    ConnectionSnapshot, LATENCY_BOUNDS_US, LatencySnapshot, Snapshot, TrafficSnapshot,
};

/// Returns the page of a half.
pub(super) fn page(half: &str, snapshot: &Snapshot) -> String {
    let frame = Frame { title: &format!("nandex wan proxy, {half} half"), styles: &[BASE_STYLE] };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = frame.open(&mut out);
    let _ = writeln!(out, "<h1>nandex wan proxy, {half} half</h1>");
    failures(&mut out, snapshot);
    table(&mut out, "Bytes", &bytes(&snapshot.traffic));
    table(&mut out, "Connections", &counts(snapshot));
    table(&mut out, "Held for connections", &held(&snapshot.buffers));
    table(&mut out, "Cache", &cache(snapshot));
    table(&mut out, "Time in this half", &latency(&snapshot.latency));
    connections(&mut out, &snapshot.connections);
    let _ = frame.close(
        &mut out,
        "All figures are since this half was started. <a href=\"/metrics\">For Prometheus</a>.",
    );
    out
}

fn failures(out: &mut String, snapshot: &Snapshot) {
    if let Some(failure) = &snapshot.cache_failure {
        let _ = writeln!(
            out,
            "<p class=\"notice\">Streams continue without the cache: {}</p>",
            Escaped(failure)
        );
    }
    if let Some(error) = &snapshot.last_error {
        let _ = writeln!(
            out,
            "<p class=\"note\">The last connection that failed: {}</p>",
            Escaped(error)
        );
    }
}

fn table(out: &mut String, title: &str, rows: &[(String, String)]) {
    let _ = writeln!(out, "<section><h2>{title}</h2>\n<div class=\"wide\"><table>");
    for (name, value) in rows {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"number\">{}</td></tr>",
            Escaped(name),
            Escaped(value)
        );
    }
    let _ = writeln!(out, "</table></div></section>");
}

fn row(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn bytes(traffic: &TrafficSnapshot) -> Vec<(String, String)> {
    vec![
        row("from this side", grouped(traffic.local_in_bytes)),
        row("to this side", grouped(traffic.local_out_bytes)),
        row("from the link", grouped(traffic.link_in_bytes)),
        row("to the link", grouped(traffic.link_out_bytes)),
        row("bytes of streams for each byte over the link", format!("{:.2}", traffic.ratio())),
        row("known share of sent bytes", percent(traffic.known_bytes, traffic.local_in_bytes)),
        row("known share of chunks looked up", percent(traffic.known_chunks, traffic.chunks)),
        row("as they are", grouped(traffic.plain_bytes)),
        row("around the other half", grouped(traffic.bypassed_bytes)),
        row("segments that the other half requested again", grouped(traffic.again_segments)),
        row("segments that this half requested again", grouped(traffic.asked_segments)),
    ]
}

fn counts(snapshot: &Snapshot) -> Vec<(String, String)> {
    vec![
        row("open", grouped(snapshot.connections.len() as u64)),
        row("accepted", grouped(snapshot.accepted)),
        row("went over whole", grouped(snapshot.finished)),
        row("were reset", grouped(snapshot.reset)),
        row("closed immediately: too many", grouped(snapshot.full)),
        row("handshakes that failed", grouped(snapshot.handshakes_failed)),
        row("requests refused", grouped(snapshot.requests_refused)),
        row("the other half could not be reached", grouped(snapshot.unreachable)),
        row("went around the other half", grouped(snapshot.bypassed)),
    ]
}

fn held(buffers: &BufferSnapshot) -> Vec<(String, String)> {
    vec![
        row("bytes on their way", grouped(buffers.sent_bytes)),
        row("of all connections, at most", grouped(buffers.budget_bytes)),
        row("bytes held", grouped(buffers.held_bytes)),
        row("maximum held", grouped(buffers.held_bytes_max)),
    ]
}

fn cache(snapshot: &Snapshot) -> Vec<(String, String)> {
    let stats = &snapshot.cache;
    let lookups = stats.index_hits + stats.index_misses;
    vec![
        row("bytes of content, at most", grouped(stats.content_bytes_max)),
        row("bytes added", grouped(stats.bytes_added)),
        row("successful lookups in the index", percent(stats.index_hits, lookups)),
        row("reads of flash", grouped(stats.flash_reads)),
        row("bytes of RAM", grouped(stats.ram_bytes)),
    ]
}

fn latency(latency: &LatencySnapshot) -> Vec<(String, String)> {
    let bounds = LATENCY_BOUNDS_US.iter().map(|us| format!("up to {} ms", *us as f64 / 1e3));
    let names = bounds.chain(["longer".to_owned()]);
    let mut rows: Vec<_> =
        names.zip(&latency.buckets).map(|(name, count)| (name, grouped(*count))).collect();
    rows.push(row("mean", format!("{:.3} ms", latency.mean_us() / 1e3)));
    rows
}

fn connections(out: &mut String, connections: &[ConnectionSnapshot]) {
    let _ = writeln!(
        out,
        "<section><h2>Open connections</h2>\n<div class=\"wide\"><table><tr><th>peer</th><th>target</th><th>seconds</th>\
         <th>from this side</th><th>to this side</th><th>from the link</th><th>to the link</th>\
         <th>one byte for</th><th>known chunks</th><th>mean wait</th></tr>"
    );
    for connection in connections.iter().take(CONNECTIONS_SHOWN_MAX) {
        let ConnectionSnapshot { peer, target, open_s, traffic, latency, .. } = connection;
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{open_s}</td>",
            Escaped(peer),
            Escaped(target)
        );
        for figure in [
            grouped(traffic.local_in_bytes),
            grouped(traffic.local_out_bytes),
            grouped(traffic.link_in_bytes),
            grouped(traffic.link_out_bytes),
            format!("{:.2}", traffic.ratio()),
            percent(traffic.known_chunks, traffic.chunks),
            format!("{:.3} ms", latency.mean_us() / 1e3),
        ] {
            let _ = write!(out, "<td class=\"number\">{figure}</td>");
        }
        let _ = writeln!(out, "</tr>");
    }
    let more = connections.len().saturating_sub(CONNECTIONS_SHOWN_MAX);
    let rest = if more > 0 { format!("<p>and {more} more</p>") } else { String::new() };
    let _ = writeln!(out, "</table></div>{rest}</section>");
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}
