//! The figures of an index of neighbours.

use anyhow::Result;
use nandex::{AnyNeighbors, OpenOptions, Volume};
use serde::Serialize;

use crate::lost::LostPages;
use crate::size::{show_bytes, show_count};
use crate::stated::Values;

/// An index of neighbours, for people and programs.
#[derive(Debug, Serialize)]
pub struct NeighborsFigures {
    tables: u32,
    /// The number of entries for each document: one in each table.
    entries: u64,
    /// Damaged pages of saved buffers, whose entries are not counted.
    #[serde(skip_serializing_if = "LostPages::is_empty")]
    lost_pages: LostPages,
    entries_capacity: u64,
    /// The number of entries that full buckets have dropped in its life.
    dropped_life: u64,
    /// The number of entries that a full index has evicted in its life.
    evicted_life: u64,
    /// The number of channels; 1 if tables are striped because no channels are known.
    channels: u32,
    /// The family of its bucket keys, in hexadecimal digits.
    family: String,
    shape: String,
    /// All parameters.
    values: Values,
    ram_bytes: u64,
    ram_bytes_per_document: f64,
    flash_bytes: u64,
}

impl NeighborsFigures {
    /// Returns the figures of the index of this name.
    ///
    /// # Errors
    /// No such index, damage.
    pub fn of(volume: &Volume, name: &str) -> Result<Self> {
        let index = AnyNeighbors::open(volume, name, &OpenOptions::default())?;
        let (stats, about) = (index.stats(), index.config().describe());
        let figures = Self {
            tables: stats.tables,
            entries: stats.entries,
            lost_pages: LostPages::of(&stats.lost_pages),
            entries_capacity: about.entries_capacity,
            dropped_life: stats.dropped_life,
            evicted_life: stats.evicted_life,
            channels: stats.channels,
            family: index.family().iter().map(|byte| format!("{byte:02x}")).collect(),
            shape: about.shape,
            values: Values::of(&index.config()),
            ram_bytes: stats.ram_bytes,
            ram_bytes_per_document: stats.ram_bytes_per_document(),
            flash_bytes: stats.flash_bytes,
        };
        index.close()?;
        Ok(figures)
    }

    /// Damaged pages whose entries are not counted.
    pub fn lost_pages(&self) -> &LostPages {
        &self.lost_pages
    }

    /// Returns its rows of a list.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let documents = |entries: u64| show_count(entries / u64::from(self.tables));
        let entries =
            format!("{}, of about {} documents", show_count(self.entries), documents(self.entries));
        let ram = show_bytes(self.ram_bytes);
        let family = if self.family.is_empty() { "of no bytes" } else { &self.family };
        let mut rows = vec![
            ("entries", entries),
            ("space for", format!("{} documents", documents(self.entries_capacity))),
            ("dropped", format!("{} entries of full buckets", show_count(self.dropped_life))),
            ("evicted", format!("{} entries", show_count(self.evicted_life))),
            ("shape", self.shape.clone()),
            self.values.row(),
            ("family", family.to_owned()),
            ("RAM", format!("{ram}, {:.2} bytes per document", self.ram_bytes_per_document)),
            ("flash", show_bytes(self.flash_bytes)),
        ];
        rows.extend(self.lost_pages.row());
        rows
    }
}
