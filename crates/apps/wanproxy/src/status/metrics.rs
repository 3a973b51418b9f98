//! Figures in the text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

use crate::stats::{
    ConnectionSnapshot, LATENCY_BOUNDS_US, LatencySnapshot, Snapshot, TrafficSnapshot,
};

/// The most open connections with figures of their own: the first ones. The page has as many.
pub(super) const CONNECTIONS_SHOWN_MAX: usize = 200;

/// Returns all figures of a half.
pub(super) fn text(half: &str, snapshot: &Snapshot) -> String {
    let mut out = String::new();
    counters(&mut out, half, snapshot);
    traffic(&mut out, half, &snapshot.traffic);
    cache(&mut out, half, snapshot);
    latency(&mut out, half, &snapshot.latency);
    connections(&mut out, half, &snapshot.connections);
    out
}

/// Writes one figure with its description.
fn figure(
    out: &mut String,
    half: &str,
    (kind, name, help): (&str, &str, &str),
    value: impl Display,
) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "# HELP nandex_wan_{name} {help}\n# TYPE nandex_wan_{name} {kind}\nnandex_wan_{name}{{half=\"{half}\"}} {value}"
    );
}

fn counters(out: &mut String, half: &str, snapshot: &Snapshot) {
    let counts = [
        ("connections_accepted_total", "Connections accepted.", snapshot.accepted),
        (
            "connections_full_total",
            "Connections closed immediately, because there were too many.",
            snapshot.full,
        ),
        ("handshakes_failed_total", "Handshakes that failed.", snapshot.handshakes_failed),
        ("requests_refused_total", "Requests refused.", snapshot.requests_refused),
        (
            "peer_unreachable_total",
            "Times the other half could not be reached.",
            snapshot.unreachable,
        ),
        (
            "connections_bypassed_total",
            "Connections that bypassed the other half.",
            snapshot.bypassed,
        ),
        ("connections_finished_total", "Connections transferred completely.", snapshot.finished),
        ("connections_reset_total", "Connections that were reset.", snapshot.reset),
    ];
    for (name, help, value) in counts {
        figure(out, half, ("counter", name, help), value);
    }
    figure(
        out,
        half,
        ("gauge", "connections_open", "Connections that are open."),
        snapshot.connections.len(),
    );
}

fn traffic(out: &mut String, half: &str, traffic: &TrafficSnapshot) {
    let counts = [
        (
            "local_in_bytes_total",
            "Bytes from programs or targets at this side.",
            traffic.local_in_bytes,
        ),
        ("local_out_bytes_total", "Bytes to them.", traffic.local_out_bytes),
        ("link_in_bytes_total", "Bytes of messages from the other half.", traffic.link_in_bytes),
        ("link_out_bytes_total", "Bytes of messages to it.", traffic.link_out_bytes),
        ("bypassed_bytes_total", "Bytes that bypassed the other half.", traffic.bypassed_bytes),
        ("segments_total", "Segments sent.", traffic.segments),
        ("chunks_total", "Chunks looked up.", traffic.chunks),
        ("known_chunks_total", "Chunks replaced by references.", traffic.known_chunks),
        ("known_bytes_total", "Bytes replaced by references.", traffic.known_bytes),
        ("plain_bytes_total", "Bytes sent unencoded.", traffic.plain_bytes),
        (
            "again_segments_total",
            "Segments that the other half requested again.",
            traffic.again_segments,
        ),
        (
            "asked_segments_total",
            "Segments that this half requested again.",
            traffic.asked_segments,
        ),
    ];
    for (name, help, value) in counts {
        figure(out, half, ("counter", name, help), value);
    }
    let ratio = ("gauge", "ratio", "Bytes of streams for each byte over the link, both ways.");
    figure(out, half, ratio, format!("{:.4}", traffic.ratio()));
}

fn cache(out: &mut String, half: &str, snapshot: &Snapshot) {
    let stats = &snapshot.cache;
    let counts = [
        ("cache_added_bytes_total", "Bytes added to the cache.", stats.bytes_added),
        (
            "cache_index_hits_total",
            "Lookups in the cache's index that were successful.",
            stats.index_hits,
        ),
        ("cache_index_misses_total", "Lookups that were unsuccessful.", stats.index_misses),
        ("cache_flash_reads_total", "Reads of flash.", stats.flash_reads),
    ];
    for (name, help, value) in counts {
        figure(out, half, ("counter", name, help), value);
    }
    let gauges = [
        (
            "budget_bytes",
            "Bytes that all connections may have in transit.",
            snapshot.buffers.budget_bytes,
        ),
        ("sent_bytes", "Bytes in transit.", snapshot.buffers.sent_bytes),
        ("held_bytes", "Bytes held for connections.", snapshot.buffers.held_bytes),
        (
            "held_bytes_max",
            "The most bytes that were held for connections.",
            snapshot.buffers.held_bytes_max,
        ),
        (
            "cache_content_bytes",
            "Bytes of content that the cache can hold.",
            stats.content_bytes_max,
        ),
        ("cache_ram_bytes", "Bytes of RAM of the cache.", stats.ram_bytes),
        ("cache_flash_bytes", "Bytes of flash of the cache.", stats.flash_bytes),
        (
            "cache_failed",
            "1 if streams continue without the cache.",
            u64::from(snapshot.cache_failure.is_some()),
        ),
    ];
    for (name, help, value) in gauges {
        figure(out, half, ("gauge", name, help), value);
    }
}

fn latency(out: &mut String, half: &str, latency: &LatencySnapshot) {
    let name = "nandex_wan_latency_seconds";
    let _ = writeln!(
        out,
        "# HELP {name} Time that segments waited in this half.\n# TYPE {name} histogram"
    );
    let mut below = 0;
    for (bound, count) in LATENCY_BOUNDS_US.iter().zip(&latency.buckets) {
        below += count;
        let bound_s = *bound as f64 / 1e6;
        let _ = writeln!(out, "{name}_bucket{{half=\"{half}\",le=\"{bound_s}\"}} {below}");
    }
    let (count, sum_s) = (latency.count, latency.sum_us as f64 / 1e6);
    let _ = writeln!(
        out,
        "{name}_bucket{{half=\"{half}\",le=\"+Inf\"}} {count}\n{name}_sum{{half=\"{half}\"}} {sum_s}\n\
         {name}_count{{half=\"{half}\"}} {count}"
    );
}

/// A figure of a connection.
type FigureOf = fn(&ConnectionSnapshot) -> f64;

fn connections(out: &mut String, half: &str, connections: &[ConnectionSnapshot]) {
    let figures: [(&str, &str, FigureOf); 9] = [
        ("local_in_bytes", "Bytes from this side", |it| it.traffic.local_in_bytes as f64),
        ("local_out_bytes", "Bytes to this side", |it| it.traffic.local_out_bytes as f64),
        ("link_in_bytes", "Bytes from the link", |it| it.traffic.link_in_bytes as f64),
        ("link_out_bytes", "Bytes to the link", |it| it.traffic.link_out_bytes as f64),
        ("ratio", "Bytes of streams for each byte over the link", |it| it.traffic.ratio()),
        ("chunks", "Chunks looked up", |it| it.traffic.chunks as f64),
        ("known_chunks", "Chunks replaced by references", |it| it.traffic.known_chunks as f64),
        ("waited_segments", "Segments that waited in this half", |it| it.latency.count as f64),
        ("waited_seconds", "Time that they waited", |it| it.latency.sum_us as f64 / 1e6),
    ];
    for (name, help, value) in figures {
        let name = format!("nandex_wan_connection_{name}");
        let _ = writeln!(out, "# HELP {name} {help}, of an open connection.\n# TYPE {name} gauge");
        for connection in connections.iter().take(CONNECTIONS_SHOWN_MAX) {
            let ConnectionSnapshot { number, peer, target, .. } = connection;
            // Peers and targets are names of few letters, so that no escaping is needed.
            let _ = writeln!(
                out,
                "{name}{{half=\"{half}\",connection=\"{number}\",peer=\"{peer}\",target=\"{target}\"}} {}",
                value(connection)
            );
        }
    }
}
