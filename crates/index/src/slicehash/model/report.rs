//! The prediction as a report: every figure, its meaning and its section of the paper.

use super::advise::{Search, SliceHashSizing, slice_entries, slice_mean};
use crate::model::text::{Line, bytes, count, line, time};
use crate::model::{Notes, PAGE_BYTES, ParameterValue, Prediction, log_bytes};
use crate::{OpenOptions, Result};

pub(super) fn predict(search: &Search<'_>, found: &SliceHashSizing) -> Result<Prediction> {
    let (requirements, layout) = (search.requirements, &found.layout);
    let slices = f64::from(layout.partitions) * f64::from(layout.slices);
    let mean = slice_mean(requirements.entry_bytes(), search.loss_max);
    let entries_capacity = (slices * mean) as u64;
    let config = found.config(requirements, entries_capacity).aligned_to(&requirements.channels);
    config.validate()?;
    let own = OpenOptions { filter_bytes: found.filter_bytes, ..OpenOptions::default() };
    let mut prediction = Prediction {
        flash_bytes: config.slicetable_pages() * PAGE_BYTES,
        config: config.into(),
        options: own,
        requirements: requirements.clone(),
        costs: search.operation_costs(layout),
        entries_capacity,
        buffer_bytes: found.buffer_bytes,
        filter_bytes: found.filter_bytes,
        optional_filter_bytes: found.filter_bytes,
        other_bytes: found.other_bytes,
        insert_amortised_ns: search.flush_ns(layout) / layout.entries_per_flush,
        insert_worst_ns: search.flush_worst_ns(layout),
        compromise: None,
        parameters: vec![
            ("partitions", ParameterValue::Count(layout.partitions.into())),
            ("incarnations", ParameterValue::Number(found.incarnations)),
            ("pages_per_buffer", ParameterValue::Count(layout.buffer_pages.into())),
            ("slices", ParameterValue::Count(layout.slices.into())),
        ],
        notes: Notes::default(),
    };
    requirements.check_flash(prediction.flash_bytes)?;
    prediction.notes = notes(search, found, &prediction);
    Ok(prediction)
}

fn notes(search: &Search<'_>, found: &SliceHashSizing, prediction: &Prediction) -> Notes {
    let requirements = search.requirements;
    let device = requirements.device.name;
    let (hit, miss) = (time(prediction.hit_ns()), time(prediction.miss_ns()));
    let rate = count(prediction.costs.inserts_per_s(&requirements.device) as u64);
    let (spare, tables) = (found.layout.spare_buffers(), found.layout.spare_slicetables());
    let with_log = prediction.costs.insert_write_bytes;
    let rewritten = with_log - log_bytes(requirements.entry_bytes());
    let written = format!("per entry inserted, and as many read; {with_log:.1} with the log");
    Notes {
        shape: shape(search, found),
        ram: match requirements.ram_bytes.map(bytes) {
            None => "the least that keeps k at 32, or the load".to_owned(),
            Some(offered) => format!("{offered} offered: more would mean fewer incarnations"),
        },
        buffers: format!("M, with {spare} spare buffers"),
        filters: match found.filter_bytes {
            0 => "none: a lookup of an absent key reads one page too (section 5.1.2)".to_owned(),
            filter_bytes => {
                let bits = filter_bytes as f64 * 8.0 / requirements.entries as f64;
                format!("Bloom filters of all partitions, {bits:.1} bits per entry (section 5.1.2)")
            }
        },
        other: "I/O chunks of a rewrite, log, maps".into(),
        per_entry: "all RAM over the required entries (section 5.4)",
        flash: format!("F: the slicetables and {tables} spare ones"),
        hit: format!("r_p: {hit} on {device}; none where a buffer answers (section 5.4)"),
        miss: format!("{miss} on {device}"),
        insert: format!("of device time, amortised; at most {rate} a second (section 5.4)"),
        insert_worst: "one flush: a slicetable is read and written (section 5.4)",
        update: "with the log; as an insert: a rewrite leaves the old version out".into(),
        written: vec![line("bytes written", format!("{rewritten:.1}"), written)],
    }
}

fn shape(search: &Search<'_>, found: &SliceHashSizing) -> Vec<Line> {
    let (layout, entry_bytes) = (&found.layout, search.requirements.entry_bytes());
    let fresh = count(layout.entries_per_flush as u64);
    let (slices, most) = (layout.slices, slice_entries(entry_bytes));
    let mean = slice_mean(entry_bytes, search.loss_max);
    vec![
        line(
            "partitions",
            layout.partitions.to_string(),
            "n: each has a buffer and a slicetable (section 5.1.1)",
        ),
        line(
            "buffer",
            bytes(u64::from(layout.buffer_pages) * PAGE_BYTES),
            format!("H: {fresh} new entries a flush (section 5.1)"),
        ),
        line(
            "slicetable",
            bytes(layout.slicetable_bytes()),
            format!("S: {slices} slices of one page, {mean:.1} of {most} entries each"),
        ),
        line(
            "incarnations",
            format!("{:.1}", found.incarnations),
            "k: flushes that a slicetable holds (section 5.4)",
        ),
    ]
}
