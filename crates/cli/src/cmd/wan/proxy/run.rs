//! The life of a half, until it must stop.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use nandex_wanproxy::{Address, BufferSnapshot, Proxy, Snapshot};

use crate::console::{Console, aligned};
use crate::exit::{LEFT_OUT, Quiet};
use crate::interrupt::Interrupt;
use crate::size::{show_bytes, show_count};

/// The interval of the checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Prints the addresses of the half, waits, and shows its figures at its end.
///
/// # Errors
/// A failed write to stdout; a cache that cannot be made durable, or that failed while streams continued without it.
pub fn run_until_told(proxy: Proxy, interrupt: &Interrupt, console: &Console) -> Result<()> {
    console.print(&proxy.addresses(), |addresses| addresses.iter().map(line).collect())?;
    while !interrupt.is_set() {
        thread::sleep(LOOK_EVERY);
    }
    let before = proxy.snapshot();
    let stopped = proxy.stop();
    // The figures are shown also when the cache cannot be saved.
    let snapshot = stopped.as_ref().unwrap_or(&before);
    console.print(snapshot, |snapshot| aligned(&rows(snapshot)))?;
    let snapshot = stopped.context("the cache at the end")?;
    if snapshot.cache_failure.is_some() {
        // The figures show the reason.
        return Err(Quiet(LEFT_OUT).into());
    }
    Ok(())
}

/// Formats an address that it listens on.
pub(super) fn line(address: &Address) -> String {
    format!("{} on {}\n", address.role, address.address)
}

fn shown_buffers(buffers: &BufferSnapshot) -> String {
    let (held, budget) = (show_bytes(buffers.held_bytes_max), show_bytes(buffers.budget_bytes));
    format!("{held} of streams; {budget} may be on their way")
}

fn rows(snapshot: &Snapshot) -> Vec<(&'static str, String)> {
    let traffic = &snapshot.traffic;
    let mut rows = vec![
        ("connections", show_count(snapshot.accepted)),
        ("went over whole", show_count(snapshot.finished)),
        ("were reset", show_count(snapshot.reset)),
        ("handshakes that failed", show_count(snapshot.handshakes_failed)),
        ("refused", show_count(snapshot.requests_refused + snapshot.full)),
        ("other half not reached", show_count(snapshot.unreachable)),
        ("around the other half", show_count(snapshot.bypassed)),
        ("bytes at this side", show_count(traffic.local_in_bytes + traffic.local_out_bytes)),
        ("bytes over the link", show_count(traffic.link_in_bytes + traffic.link_out_bytes)),
        ("one byte for", format!("{:.1}", traffic.ratio())),
        (
            "known chunks",
            format!("{} of {}", show_count(traffic.known_chunks), show_count(traffic.chunks)),
        ),
        ("bytes as they are", show_count(traffic.plain_bytes)),
        ("segments again", show_count(traffic.again_segments + traffic.asked_segments)),
        ("held at most", shown_buffers(&snapshot.buffers)),
        ("reads of flash", show_count(snapshot.cache.flash_reads)),
    ];
    let failures =
        [("the cache failed", &snapshot.cache_failure), ("last error", &snapshot.last_error)];
    rows.extend(failures.into_iter().filter_map(|(name, it)| Some((name, it.clone()?))));
    rows
}
