//! Lives of indexes of neighbours.

use nandex::{AnyNeighbors, Result};
use nandex_trial::neighbors::{NeighborsSetup, further};
use nandex_trial::{Session, Stop};

use super::Life;
use super::figures::{BOUNDS, Bounds, Figures};
use super::living::Lived;
use crate::devices::DURABILITIES;

/// Returns indexes that refuse more than `documents` documents.
pub fn keeping(life: Life, documents: u64) -> impl Iterator<Item = NeighborsSetup> {
    let of_row = |row| [1, 5, 9].map(|number| NeighborsSetup::registered(row, number));
    let durabilities = DURABILITIES.into_iter().cycle().skip(life as usize);
    let all = further().flat_map(move |(_, row)| of_row(row)).zip(durabilities);
    all.map(move |(it, durability)| it.with_documents(documents, durability))
}

impl Lived for NeighborsSetup {
    fn label(&self) -> String {
        self.policy()
    }

    fn key_count(&self) -> u64 {
        self.documents()
    }

    /// Returns the bounds. A document that is inserted again, or was removed, is counted until its partition
    /// is merged.
    fn bounds(&self, _life: Life) -> Bounds {
        Bounds { ram: 1.8, off: 0.6, ..BOUNDS }
    }

    fn pages_per_lookup(&self) -> f64 {
        self.tables().into()
    }

    fn put(session: &mut Session<Self>, documents: &[u64]) -> std::result::Result<(), Stop> {
        session.insert_many(documents)
    }

    fn remove(session: &mut Session<Self>, document: u64) -> std::result::Result<(), Stop> {
        session.remove(document)
    }

    fn sync(session: &mut Session<Self>) -> std::result::Result<(), Stop> {
        let result = session.handle().sync();
        session.synced(result)
    }

    fn flush(session: &mut Session<Self>) -> std::result::Result<(), Stop> {
        let result = session.handle().flush();
        session.synced(result)
    }

    fn is_there(session: &Session<Self>, document: u64) -> bool {
        session.past.is_there(document)
    }

    fn find(&self, index: &AnyNeighbors, document: u64) -> Result<bool> {
        let keys: Vec<_> = self.keys(document).collect();
        Ok(index.candidates(&keys)?.contains(&document))
    }

    /// Returns the figures, with entries counted by documents.
    fn stats(index: &AnyNeighbors) -> Figures {
        let stats = index.stats();
        let entries = stats.entries / u64::from(stats.tables);
        let (flash_bytes, ram_bytes) = (stats.flash_bytes, stats.ram_bytes);
        Figures { flash_bytes, ram_bytes, entries, ..Figures::default() }
    }
}
