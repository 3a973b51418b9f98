//! The advice as text: every number, with what it is and the section of the paper it comes from.

use std::fmt;

use super::advice::Advice;
use crate::bufferhash::filter::FilterKind;
use crate::model::PAGE_BYTES;
use crate::model::text::{self, Line, bytes, count, line, time};

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.shape_lines().into_iter().chain(self.ram_lines()).chain(self.cost_lines());
        text::write(f, lines)
    }
}

impl Advice {
    fn shape_lines(&self) -> Vec<Line> {
        let need = &self.need;
        let (key, value) = (need.key_bytes, need.value_bytes);
        let room = count(self.entries_capacity);
        let tables = "partitions of the key space, each with a buffer (section 5.2)";
        let columns = 64 * self.words;
        let (pages, slots) = (self.pages_per_buffer, self.page_slots);
        let fresh = count(self.entries_per_incarnation);
        vec![
            line(
                "entries",
                count(need.entries),
                format!("{key} + {value} bytes each; room for {room}"),
            ),
            line("super tables", self.super_tables.to_string(), tables),
            line(
                "incarnations",
                self.incarnations.to_string(),
                format!("k per super table, in {columns} columns (section 5.1)"),
            ),
            line(
                "buffer",
                bytes(u64::from(pages) * PAGE_BYTES),
                format!(
                    "B': {pages} pages of {slots} slots, {fresh} new entries each (section 6.4)"
                ),
            ),
            self.filter_line(),
        ]
    }

    fn filter_line(&self) -> Line {
        let bits = self.filter_bytes as f64 * 8.0 / self.need.entries as f64;
        let rate = self.filter.rate(self.entries_per_incarnation);
        let value = match self.filter.kind() {
            FilterKind::Bloom => format!("Bloom, {} hashes", self.filter.hashes()),
            FilterKind::Fuse => format!("fuse, {}-bit", self.filter.bits_per_slot()),
        };
        let note = format!(
            "{bits:.1} bits of RAM per entry; one column errs at {rate:.2e} (section 5.1.3)"
        );
        line("filter", value, note)
    }

    fn ram_lines(&self) -> Vec<Line> {
        let best = bytes(self.paper_buffer_bytes_best as u64);
        let spare = self.spare_buffers;
        let segments = count(self.segments);
        let flash = format!("{segments} segments of {} pages", self.pages_per_incarnation);
        vec![
            line("RAM", bytes(self.ram_bytes), self.ram_note()),
            line(
                "  buffers",
                bytes(self.buffer_bytes),
                format!("B, with {spare} spare buffers; the paper's B_opt is {best} (section 6.4)"),
            ),
            line(
                "  filters",
                bytes(self.filter_bytes),
                "b: all columns, live or not (section 6.4)",
            ),
            line(
                "  other",
                bytes(self.other_bytes),
                format!("fixed, and a map of {segments} segments"),
            ),
            line(
                "  per entry",
                format!("{:.2} bytes", self.ram_bytes_per_entry),
                "all RAM over the entries asked for",
            ),
            line("flash", bytes(self.flash_bytes), flash),
        ]
    }

    fn ram_note(&self) -> String {
        let asked = self.need.miss_reads_max;
        match self.need.ram_bytes.map(bytes) {
            None => "the least that keeps the reads per miss (section 6.4)".to_owned(),
            Some(offered) if self.relaxed => {
                format!(
                    "{offered} offered: too little for {asked} reads per miss, so the filters are smaller"
                )
            }
            Some(offered) => {
                format!(
                    "{offered} offered: more would bring next to nothing (section 6.4, Figure 3)"
                )
            }
        }
    }

    fn cost_lines(&self) -> Vec<Line> {
        let device = self.need.device.name;
        let (hit, miss) = (time(self.hit_ns), time(self.miss_ns));
        let with_log = self.write_amplification_with_log;
        vec![
            line(
                "reads per hit",
                format!("{:.4}", self.reads_per_hit),
                format!("1 + (k - 1) p / 2, {hit} on {device} (section 6.2)"),
            ),
            line(
                "reads per miss",
                format!("{:.4}", self.reads_per_miss),
                format!("k p, {miss} on {device} (section 6.2)"),
            ),
            line(
                "insert",
                time(self.insert_amortised_ns),
                "of device time, amortised: C_worst over the entries of a flush (section 6.1)",
            ),
            line("insert, worst", time(self.insert_worst_ns), "C_worst: one flush (section 6.1)"),
            line(
                "bytes written",
                format!("{:.2}", self.write_amplification),
                format!("per byte inserted; {with_log:.2} with the log"),
            ),
        ]
    }
}
