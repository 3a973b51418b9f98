//! The advice as text: every number, with what it is and the section of the paper it comes from.

use std::fmt;

use super::advice::Advice;
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
        let buffer = u64::from(self.buffer_pages) * PAGE_BYTES;
        let slicetable = bytes(u64::from(self.slices) * PAGE_BYTES);
        let (slices, mean) = (self.slices, self.slice_entries_mean);
        vec![
            line(
                "entries",
                count(need.entries),
                format!("{key} + {value} bytes each; room for {room}"),
            ),
            line(
                "partitions",
                self.partitions.to_string(),
                "n: each has a buffer and a slicetable (section 5.1.1)",
            ),
            line(
                "buffer",
                bytes(buffer),
                format!(
                    "H: {} new entries a flush (section 5.1)",
                    count(self.entries_per_flush as u64)
                ),
            ),
            line(
                "slicetable",
                slicetable,
                format!(
                    "S: {slices} slices of one page, {mean:.1} of {} entries each",
                    self.slice_entries_max
                ),
            ),
            line(
                "incarnations",
                format!("{:.1}", self.incarnations),
                "k: flushes that a slicetable holds (section 5.4)",
            ),
        ]
    }

    fn ram_lines(&self) -> Vec<Line> {
        let (spare, spare_tables) = (self.spare_buffers, self.spare_slicetables);
        let filters = if self.filter_bytes == 0 {
            "none: a lookup in vain reads one page too (section 5.1.2)".to_owned()
        } else {
            let bits = self.filter_bytes as f64 * 8.0 / self.need.entries as f64;
            format!("Bloom filters of all partitions, {bits:.1} bits per entry (section 5.1.2)")
        };
        vec![
            line("RAM", bytes(self.ram_bytes), self.ram_note()),
            line("  buffers", bytes(self.buffer_bytes), format!("M, with {spare} spare buffers")),
            line("  filters", bytes(self.filter_bytes), filters),
            line("  other", bytes(self.other_bytes), "strokes of a rewrite, log, maps"),
            line(
                "  per entry",
                format!("{:.2} bytes", self.ram_bytes_per_entry),
                "all RAM over the entries asked for (section 5.4)",
            ),
            line(
                "flash",
                bytes(self.flash_bytes),
                format!("F: the slicetables and {spare_tables} spare ones"),
            ),
        ]
    }

    fn ram_note(&self) -> String {
        match self.need.ram_bytes.map(bytes) {
            None => "the least that keeps k at 32, or the load".to_owned(),
            Some(offered) => format!("{offered} offered: more would mean fewer incarnations"),
        }
    }

    fn cost_lines(&self) -> Vec<Line> {
        let device = self.need.device.name;
        let (hit, miss) = (time(self.hit_ns), time(self.miss_ns));
        let log = self.bytes_written_per_entry_with_log;
        let rate = count(self.inserts_per_s as u64);
        let mut lines = vec![
            line(
                "reads per hit",
                format!("{:.4}", self.reads_per_hit),
                format!("r_p: {hit} on {device}; none where a buffer answers (section 5.4)"),
            ),
            line(
                "reads per miss",
                format!("{:.4}", self.reads_per_miss),
                format!("{miss} on {device}"),
            ),
            line(
                "insert",
                time(self.insert_amortised_ns),
                format!("of device time, amortised; at most {rate} a second (section 5.4)"),
            ),
            line(
                "insert, worst",
                time(self.insert_worst_ns),
                "one flush: a slicetable is read and written (section 5.4)",
            ),
            line(
                "bytes written",
                format!("{:.1}", self.bytes_written_per_entry),
                format!("per entry inserted, and as many read; {log:.1} with the log"),
            ),
        ];
        if let Some(years) = self.lifetime_years {
            let note = "T: until its flash is worn out by the load's inserts (section 5.4)";
            lines.push(line("lifetime", text::years(years), note));
        }
        lines
    }
}
