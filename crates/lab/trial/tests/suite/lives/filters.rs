//! Lives of filters and counters: cascade filters, and counting tables of each discipline.

use nandex::{AnyFilter, Result};
use nandex_baseline::registry;
use nandex_trial::filter::FilterSetup;
use nandex_trial::{Session, Stop};

use super::Life;
use super::figures::{Bounds, Figures};
use super::living::Lived;
use crate::devices::DURABILITIES;

/// The number of variants of each kind.
const VARIANTS: usize = 3;

/// Returns filters that tell keys apart and delete them, of `keys` keys.
pub fn keeping(life: Life, keys: u64) -> impl Iterator<Item = FilterSetup> {
    let of_row = |row| {
        let all = (0..).map(move |number| FilterSetup::registered(row, number));
        all.take(row.testing.variants as usize).filter(|it| it.is_exact()).take(VARIANTS)
    };
    let rows = registry::filters().map(|(_, row)| row).filter(|row| row.deletes);
    let durabilities = DURABILITIES.into_iter().cycle().skip(life as usize);
    let all = rows.flat_map(of_row).zip(durabilities);
    all.map(move |(it, durability)| it.with_keys(keys).durable(durability))
}

impl Lived for FilterSetup {
    fn label(&self) -> String {
        self.policy()
    }

    fn key_count(&self) -> u64 {
        self.keys()
    }

    /// Returns the bounds. Each level of a cascade filter, and the pending changes of a counting table, may
    /// have a key again, and count it. Tables so small have a few pages freshly filled.
    fn bounds(&self, _life: Life) -> Bounds {
        let is_counting = self.policy().starts_with("counting");
        if is_counting {
            Bounds { flash: 6.5, ram: 4.5, reads: 4.0, off: 3.0 }
        } else {
            Bounds { flash: 3.5, ram: 2.5, reads: 2.5, off: 2.0 }
        }
    }

    fn put(session: &mut Session<Self>, keys: &[u64]) -> std::result::Result<(), Stop> {
        session.insert_many(keys)
    }

    /// Deletes a key as often as it is certainly present.
    fn remove(session: &mut Session<Self>, key: u64) -> std::result::Result<(), Stop> {
        let held = session.past.held(key).unsigned_abs() as usize;
        session.delete_many(&vec![key; held])
    }

    fn sync(session: &mut Session<Self>) -> std::result::Result<(), Stop> {
        let result = session.handle().sync();
        session.synced(result)
    }

    fn flush(session: &mut Session<Self>) -> std::result::Result<(), Stop> {
        let result = session.handle().flush();
        session.synced(result)
    }

    fn is_there(session: &Session<Self>, key: u64) -> bool {
        session.past.held(key) > 0
    }

    fn find(&self, filter: &AnyFilter, key: u64) -> Result<bool> {
        filter.contains(&self.key(key))
    }

    fn stats(filter: &AnyFilter) -> Figures {
        let stats = filter.stats();
        let (flash_bytes, ram_bytes) = (stats.flash_bytes, stats.ram_bytes);
        Figures { flash_bytes, ram_bytes, entries: stats.entries, ..Figures::default() }
    }
}
