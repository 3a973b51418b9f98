//! The prediction as a report: every figure, its meaning and its section of the paper.

use super::advise::Search;
use super::paper::Store;
use super::sizing::BufferHashSizing;
use super::updates::CleanedRing;
use crate::bufferhash::Config;
use crate::bufferhash::filter::FilterKind;
use crate::model::text::{Line, bytes, count, line, time};
use crate::model::{Notes, PAGE_BYTES, ParameterValue, Prediction, Requirements, page_slots};
use crate::{OpenOptions, Result};

pub(super) fn predict(search: &Search<'_>, found: &BufferHashSizing) -> Result<Prediction> {
    let requirements = search.requirements;
    let config = found.config(requirements);
    config.validate()?;
    let costs = config.operation_costs()?;
    let flush_bytes = found.segment_bytes() as f64;
    let device = &requirements.device.costs;
    let is_relaxed = found.miss_reads > search.miss_reads_max;
    let mut prediction = Prediction {
        config: config.into(),
        options: OpenOptions::default(),
        requirements: requirements.clone(),
        costs,
        entries_capacity: found.entries_capacity(requirements.entries),
        buffer_bytes: found.buffer_bytes,
        filter_bytes: found.filter_bytes,
        optional_filter_bytes: 0,
        other_bytes: found.other_bytes(),
        flash_bytes: found.flash_bytes(),
        insert_amortised_ns: device.flush_ns(flush_bytes) / found.entries as f64,
        insert_worst_ns: device.insert_worst_ns(flush_bytes),
        compromise: is_relaxed.then_some("its filters do not fit into the RAM"),
        parameters: vec![
            ("super_tables", ParameterValue::Count(found.super_tables.into())),
            ("incarnations", ParameterValue::Count(found.incarnations.into())),
            ("pages_per_buffer", ParameterValue::Count(found.pages.into())),
            ("relaxed", ParameterValue::Flag(is_relaxed)),
        ],
        notes: Notes::default(),
    };
    prediction.notes = notes(search, found, &prediction);
    Ok(prediction)
}

fn notes(search: &Search<'_>, found: &BufferHashSizing, prediction: &Prediction) -> Notes {
    let requirements = search.requirements;
    let device = requirements.device.name;
    let (hit, miss) = (time(prediction.hit_ns()), time(prediction.miss_ns()));
    let segments = count(found.segments());
    let flush_bytes = found.segment_bytes() as f64;
    let entry_bytes = flush_bytes / found.entries as f64;
    let store = Store { flash_bytes: found.live() as f64 * flush_bytes, entry_bytes };
    let best = bytes(store.buffer_bytes_best() as u64);
    let spare = found.spare_buffers;
    let with_log = prediction.write_amplification_with_log();
    let written = format!("per byte inserted; {with_log:.2} with the log");
    Notes {
        shape: shape(requirements, found),
        ram: ram(search, prediction.compromise.is_some()),
        buffers: format!(
            "B, with {spare} spare buffers; the paper's B_opt is {best} (section 6.4)"
        ),
        filters: "b: all columns, live or not (section 6.4)".into(),
        other: format!("fixed, and a map of {segments} segments"),
        per_entry: "all RAM over the required entries",
        flash: format!("{segments} segments of {} pages", found.segment_pages()),
        hit: format!("1 + (k - 1) p / 2, {hit} on {device} (section 6.2)"),
        miss: format!("k p, {miss} on {device} (section 6.2)"),
        insert: "of device time, amortised: a flush over its entries (section 6.1)".into(),
        insert_worst: "C_worst: one flush, with an erase if it must wait for one (section 6.1)",
        update: update(prediction.config.of().ok().and_then(Config::ring_when_full)),
        written: vec![line(
            "bytes written",
            format!("{:.2}", prediction.write_amplification()),
            written,
        )],
    }
}

/// Describes what an update writes, in a ring of this kind.
pub(in crate::bufferhash) fn update(ring: Option<CleanedRing>) -> String {
    match ring {
        None => "with the log; as an insert: the old version goes with its incarnation".into(),
        Some(ring) => format!(
            "with the log; an entry is written {:.2} times: super tables are rewritten when {:.0} % of them lives",
            ring.times_written(),
            ring.live_share() * 100.0
        ),
    }
}

fn shape(requirements: &Requirements, found: &BufferHashSizing) -> Vec<Line> {
    let columns = 64 * found.filter.words();
    let (pages, slots) = (found.pages, page_slots(requirements.entry_bytes()));
    let fresh = count(found.entries);
    let bits = found.filter_bytes as f64 * 8.0 / requirements.entries as f64;
    let rate = found.filter.rate(found.entries);
    let filter = match found.filter.kind() {
        FilterKind::Bloom => format!("Bloom, {} hashes", found.filter.hashes()),
        FilterKind::Fuse => format!("fuse, {}-bit", found.filter.bits_per_slot()),
    };
    vec![
        line(
            "super tables",
            found.super_tables.to_string(),
            "partitions of the key space, each with a buffer (section 5.2)",
        ),
        line(
            "incarnations",
            found.incarnations.to_string(),
            format!("k per super table, in {columns} columns (section 5.1)"),
        ),
        line(
            "buffer",
            bytes(u64::from(pages) * PAGE_BYTES),
            format!("B': {pages} pages of {slots} slots, {fresh} new entries each (section 6.4)"),
        ),
        line(
            "filter",
            filter,
            format!(
                "{bits:.1} bits of RAM per entry; one column errs at {rate:.2e} (section 5.1.3)"
            ),
        ),
    ]
}

fn ram(search: &Search<'_>, is_relaxed: bool) -> String {
    let asked = search.miss_reads_max;
    match search.requirements.ram_bytes.map(bytes) {
        None => "the least that keeps the reads per miss (section 6.4)".to_owned(),
        Some(offered) if is_relaxed => {
            format!(
                "{offered} offered: too little for {asked} reads per miss, so the filters are smaller"
            )
        }
        Some(offered) if search.spends_spare_ram() => {
            format!("{offered} offered: what buffers leave goes to filters (section 6.4)")
        }
        Some(offered) => {
            format!("{offered} offered: more would gain almost nothing (section 6.4, Figure 3)")
        }
    }
}
