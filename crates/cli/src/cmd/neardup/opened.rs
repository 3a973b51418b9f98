//! The index of near-duplicates, as the verbs open it.

use anyhow::Result;
use nandex::Volume;
use nandex::raw::Stated;
use nandex_neardup::{Index, IndexConfig};

use crate::cmd::document_index::DocumentIndex;

use super::hints::explained;

impl DocumentIndex for Index {
    const WHAT: &'static str = "an index of near-duplicates, which `nandex neardup index` creates";

    fn open_in(volume: &Volume, ram_bytes: u64, stated: &Stated) -> Result<Self> {
        let config = IndexConfig { ram_bytes, ..IndexConfig::default() };
        Self::open_stated(volume, config, stated).map_err(explained)
    }

    fn documents(&self) -> u64 {
        self.documents()
    }
}
