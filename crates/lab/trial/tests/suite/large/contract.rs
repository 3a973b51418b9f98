//! Large values under trial: their calls. Their answers must be those of a table.

use nandex::large::ValuesConfig;
use nandex::testing::Retention;
use nandex::{AnyTable, Durability, LargeTable, Result, Threads, Volume, VolumeOptions, WhenFull};
use nandex_sim::workload::SplitMix64;
use nandex_trial::table::{Found, Past, stretch};
use nandex_trial::{Contract, Session, Stop};

use super::support::{DURABILITIES, Setup, key, value_bytes};

/// The number of keys that come and go.
const KEYS: u64 = 24;

/// Returns each durability with a value log that is cleaned, one that is overwritten, and one that grows;
/// half of those that keep all have a cache with space for some of the records, or for all.
pub fn configurations() -> impl Iterator<Item = Setup> + Clone {
    DURABILITIES.into_iter().flat_map(|durability| {
        let mut keep = Setup::new(durability, WhenFull::Refuse);
        keep.values.segments = 9;
        let mut grow = Setup::new(durability, WhenFull::Grow);
        grow.values = ValuesConfig { segment_pages: 2, segments: 5, ..grow.values };
        match durability {
            Durability::Never => grow.cache_bytes = 1 << 20,
            Durability::Every(_) => keep.cache_bytes = 1 << 20,
            Durability::Always => keep.cache_bytes = 100 << 10,
        }
        [keep, Setup::new(durability, WhenFull::EvictOldest), grow]
    })
}

impl Setup {
    /// Returns the value that the put of a number gives the key: none at all, or the number and more.
    fn value(&self, key: u64, put: u64) -> Vec<u8> {
        let mut rng = SplitMix64::new(put);
        let bytes = match rng.below(2) {
            // Around the ends of pages, if there is space for that.
            0 if self.values.segments >= 40 => [3900, 7900][rng.below(2) as usize] + rng.below(300),
            _ => value_bytes(&mut SplitMix64::new(put)) as u64,
        };
        stretch(put << 16 | key, if bytes == 0 { 0 } else { bytes.max(8) as usize })
    }
}

impl Contract for Setup {
    type Handle = LargeTable<AnyTable>;
    type Past = Past;

    fn past(&self) -> Past {
        // Overwritten entries may be gone at once.
        let evicts = self.values.when_full == WhenFull::EvictOldest;
        Past::new(KEYS, if evicts { Retention::Newest(0) } else { Retention::All })
    }

    fn volume_options(&self) -> VolumeOptions {
        let Self { durability, threads, hash, .. } = *self;
        let volume_id = Some(7);
        VolumeOptions { durability, threads, hash, volume_id, ..VolumeOptions::tiny() }
    }

    fn create(&self, volume: &Volume, name: &str) -> Result<Self::Handle> {
        let table = AnyTable::create_with(volume, name, &self.index(), &self.options())?;
        self.with_cache(LargeTable::create(volume, &format!("{name}-values"), table, self.values)?)
    }

    fn open(&self, volume: &Volume, name: &str) -> Result<Self::Handle> {
        let table = AnyTable::open_with(volume, name, &self.options())?;
        self.with_cache(LargeTable::open(volume, &format!("{name}-values"), table)?)
    }

    fn asks_for_less(&self) -> bool {
        self.values.when_full == WhenFull::Grow
    }

    fn without_threads(&self) -> Self {
        Self { threads: Threads::Inline, ..*self }
    }

    fn close(table: Self::Handle) -> Result<()> {
        // The table below is dropped afterwards, which cannot report what it then fails to save.
        table.flush()?;
        table.close()
    }

    fn call(session: &mut Session<Self>, rng: &mut SplitMix64) -> std::result::Result<(), Stop> {
        let number = rng.below(KEYS);
        match rng.below(30) {
            0 => {
                let result = session.handle().flush();
                session.synced(result)
            }
            1 | 2 => {
                let result = session.handle().sync();
                session.synced(result)
            }
            3..=7 => {
                session.past.attempt(number, true);
                let result = session.handle().remove(&key(number));
                session.updated(&[number], result)
            }
            8 | 9 => get_many(session, &[number, (number + 1) % KEYS]).map(drop),
            10 => put_many(session, &[number, (number + 1) % KEYS]),
            _ => {
                let put = session.past.attempt(number, false);
                let result =
                    session.handle().put(&key(number), &session.setup().value(number, put));
                session.updated(&[number], result)
            }
        }
    }

    fn look(session: &mut Session<Self>) -> std::result::Result<(), Stop> {
        let found = get_many(session, &(0..KEYS).collect::<Vec<_>>())?;
        (0..).zip(found).for_each(|(key, found)| session.past.settle(key, found));
        Ok(())
    }

    fn updates(session: &mut Session<Self>) -> Vec<(&'static str, Result<()>)> {
        let put = session.past.attempt(0, false);
        session.past.attempt(0, true);
        let (key, value) = (key(0), session.setup().value(0, put));
        let table = session.handle();
        vec![
            ("put", table.put(&key, &value)),
            ("put_many", table.put_many(&[(&key, &value)])),
            ("remove", table.remove(&key)),
            ("sync", table.sync()),
            ("flush", table.flush()),
        ]
    }
}

fn put_many(session: &mut Session<Setup>, keys: &[u64]) -> std::result::Result<(), Stop> {
    let setup = *session.setup();
    let pair =
        |number: &u64| (key(*number), setup.value(*number, session.past.attempt(*number, false)));
    let pairs: Vec<_> = keys.iter().map(pair).collect();
    let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    let result = session.handle().put_many(&borrowed);
    session.updated(keys, result)
}

fn get_many(
    session: &mut Session<Setup>,
    numbers: &[u64],
) -> std::result::Result<Vec<Found>, Stop> {
    let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
    let borrowed: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    let values = session.handle().get_many(&borrowed)?;
    let mut answers = Vec::with_capacity(numbers.len());
    for (&number, found) in numbers.iter().zip(values) {
        let found = Found::proven(found.as_deref(), |put| session.setup().value(number, put));
        session.past.judge(number, found, session.trust()).map_err(Stop::Wrong)?;
        answers.push(found);
    }
    Ok(answers)
}

#[test]
fn lives_overwrite_and_clean_segments_and_add_some() {
    for setup in configurations() {
        let mut session = Session::new(setup);
        session.create(std::sync::Arc::new(nandex_sim::SimDevice::instant())).unwrap();
        let mut rng = SplitMix64::new(1);
        for _ in 0..300 {
            session.call(&mut rng).unwrap();
            session.settle();
        }
        let stats = session.handle().stats().values;
        let is_reached = match setup.values.when_full {
            WhenFull::EvictOldest => stats.overwritten_segments > 0,
            WhenFull::Refuse => stats.cleaned_segments > 0,
            WhenFull::Grow => stats.growths > 1 && stats.cleaned_segments > 0,
        };
        assert!(is_reached, "{setup:?}: {stats:?}");
    }
}
