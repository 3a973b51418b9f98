//! The description of an SSD, as rows of a data sheet.

use super::figures::{Figure, figure};
use super::number::{binary_bytes, counted, decimal_bytes, exact_ps, exact_time, grouped};
use crate::Spec;
use crate::spec::{FtlKind, HOST_PAGE_BYTES, Level, Mapping, Victim};

/// Returns the fields of a description, and the numbers that follow from them.
pub(super) fn sheet(spec: &Spec) -> Vec<Figure> {
    let mut rows = capacity(spec);
    rows.extend(host(spec));
    rows.extend(timing(spec));
    rows.extend(policy(spec));
    rows
}

fn capacity(spec: &Spec) -> Vec<Figure> {
    let flash = &spec.flash;
    let host_bytes = u128::from(spec.page_count() * HOST_PAGE_BYTES);
    let raw_bytes = u128::from(spec.raw_units() * HOST_PAGE_BYTES);
    let tree =
        format!("{} x {} x {} x {}", flash.channels, flash.packages, flash.dies, flash.planes);
    vec![
        figure(
            "offers",
            decimal_bytes(host_bytes),
            format!("{} pages of 4 KiB", grouped(spec.page_count())),
        ),
        figure(
            "flash",
            binary_bytes(raw_bytes),
            "planes x blocks of a plane x pages of a block x bytes of a page",
        ),
        figure("flash.tree", tree, "channels x packages of each x dies of each x planes of each"),
        figure("flash.blocks", grouped(flash.blocks.into()), "blocks of a plane"),
        figure("flash.pages", grouped(flash.pages.into()), "pages of a block"),
        figure("flash.page_bytes", format!("{} B", flash.page_bytes), "bytes of a flash page"),
        figure("erases_max", grouped(spec.erases_max.into()), "erases that a block is good for"),
    ]
}

fn per_byte(ps: u64) -> String {
    match ps {
        0 => "no time".into(),
        ps => format!("{}/B", exact_ps(ps)),
    }
}

/// Returns the bandwidth that corresponds to a time for each byte.
fn bandwidth(ps: u64) -> String {
    match 1_000_000_000_000_u64.checked_div(ps) {
        Some(rate) => format!("{}/s at most", decimal_bytes(rate.into())),
        None => "takes no time".into(),
    }
}

fn host(spec: &Spec) -> Vec<Figure> {
    let host = &spec.host;
    let safe = if host.buffer_is_safe { "outlives a power cut" } else { "is lost in a power cut" };
    let buffer = match host.buffer_bytes {
        0 => figure("host.buffer_bytes", "none", "a write ends when it is on the flash"),
        bytes => figure(
            "host.buffer_bytes",
            binary_bytes(bytes.into()),
            format!("write buffer; it {safe}"),
        ),
    };
    let link = if host.duplex { "both ways at once" } else { "one way at a time" };
    vec![
        figure("host.depth", grouped(host.depth.into()), "requests that the device takes at once"),
        figure(
            "host.link_ps_per_byte",
            per_byte(host.link_ps_per_byte),
            format!("{}, {link}", bandwidth(host.link_ps_per_byte)),
        ),
        figure(
            "host.controller_ns",
            exact_time(host.controller_ns),
            "controller's time for each request, one after the other",
        ),
        figure(
            "host.read_latency_ns",
            exact_time(host.read_latency_ns),
            "further latency of a read",
        ),
        figure(
            "host.write_latency_ns",
            exact_time(host.write_latency_ns),
            "further latency of a write",
        ),
        buffer,
    ]
}

fn timing(spec: &Spec) -> Vec<Figure> {
    let timing = &spec.timing;
    vec![
        figure("timing.read_ns", exact_time(timing.read_ns), "array to register, tR"),
        figure("timing.program_ns", exact_time(timing.program_ns), "register to array, tPROG"),
        figure("timing.erase_ns", exact_time(timing.erase_ns), "erasing a block, tBERS"),
        figure(
            "timing.command_ns",
            exact_time(timing.command_ns),
            "command and address on the bus",
        ),
        figure(
            "timing.transfer_ps_per_byte",
            per_byte(timing.transfer_ps_per_byte),
            bandwidth(timing.transfer_ps_per_byte),
        ),
        figure(
            "timing.spare_bytes_per_sector",
            format!("{} B", timing.spare_bytes_per_sector),
            "bytes that cross the bus with each 512 B of data",
        ),
        figure(
            "timing.whole_page_transfer",
            yes(timing.whole_page_transfer),
            "a read brings the whole flash page over the bus, also where the host wants less of it",
        ),
    ]
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::Channel => "channel",
        Level::Package => "package",
        Level::Die => "die",
        Level::Plane => "plane",
    }
}

const fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn policy(spec: &Spec) -> Vec<Figure> {
    let (ftl, parallel) = (&spec.ftl, &spec.parallel);
    let kind = match ftl.kind {
        FtlKind::Page => "page mapping".into(),
        FtlKind::LogBlock { log_blocks } => {
            format!("{} for each plane", counted(log_blocks.into(), "log block"))
        }
        FtlKind::Raw => "none: a raw chip".into(),
    };
    let mapping = match ftl.mapping {
        Mapping::WriteOrder => "write order",
        Mapping::Lba => "address",
    };
    let victim = match ftl.victim {
        Victim::Greedy => "fewest valid pages",
        Victim::Fifo => "filled first",
        Victim::WearAware => "fewest valid pages, sparing worn ones",
    };
    let permille = |permille: u32| format!("{}.{} %", permille / 10, permille % 10);
    let units = spec.flash.count(parallel.unit);
    vec![
        figure(
            "parallel.unit",
            level(parallel.unit),
            format!(
                "works on one operation at a time; there are {}",
                counted(units.into(), "unit")
            ),
        ),
        figure(
            "parallel.pipelined",
            yes(parallel.pipelined),
            "array works while the register is on the bus",
        ),
        figure(
            "parallel.two_plane",
            yes(parallel.two_plane),
            "planes of a die share one array time",
        ),
        figure("ftl.kind", kind, "what stands between the host's pages and the flash"),
        figure("ftl.mapping", mapping, "what says which chunk goes to which domain"),
        figure("ftl.domain", level(ftl.domain), "what a chunk goes to"),
        figure("ftl.chunk_bytes", binary_bytes(ftl.chunk_bytes.into()), "bytes of a chunk"),
        figure(
            "ftl.spare_permille",
            permille(ftl.spare_permille),
            "blocks that the host does not see",
        ),
        figure(
            "ftl.clean_at_permille",
            permille(ftl.clean_at_permille),
            format!(
                "free blocks of a plane at which cleaning begins: {}",
                counted(spec.clean_at_blocks().into(), "block")
            ),
        ),
        figure("ftl.victim", victim, "which block is cleaned next"),
        figure("ftl.copy_back", yes(ftl.copy_back), "valid pages move without crossing the bus"),
        figure("ftl.background", yes(ftl.background), "cleans when a unit has nothing else to do"),
    ]
}
