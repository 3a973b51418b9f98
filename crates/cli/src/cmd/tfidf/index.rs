//! The index of terms, as the verbs open it.

use anyhow::Result;
use nandex::Volume;
use nandex::raw::Stated;
use nandex_tfidf::{Corpus, CorpusConfig};

use crate::cmd::document_index::DocumentIndex;

use super::hints::explained;

impl DocumentIndex for Corpus {
    const WHAT: &'static str = "a TF-IDF index, which `nandex tfidf build` creates";

    fn open_in(volume: &Volume, ram_bytes: u64, stated: &Stated) -> Result<Self> {
        Self::open_stated(volume, CorpusConfig { ram_bytes }, stated).map_err(explained)
    }

    fn documents(&self) -> u64 {
        self.documents()
    }
}
