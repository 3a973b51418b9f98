//! Power cuts during merges of tables.

use nandex_sim::{Image, SimDevice};
use nandex_store::VolumeOpenOptions;

use super::*;

/// The tables that are merged while the power is cut.
struct Sweep<'v> {
    kind: &'static str,
    durability: Durability,
    options: AbsorbOptions,
    versions: Vec<Versions<'v>>,
    ours: Map,
    theirs: Vec<&'v Map>,
}

impl Sweep<'_> {
    fn open(&self, image: Image) -> (SimDevice, AnyTable) {
        let device = SimDevice::instant().with_image(image);
        let (durability, threads) = (self.durability, Threads::Inline);
        let options = VolumeOpenOptions { threads, durability, ..VolumeOpenOptions::default() };
        let volume = Volume::open(Arc::new(device.clone()), options).unwrap();
        let table = AnyTable::open_with(&volume, "t", &inline()).unwrap();
        (device, table)
    }

    /// Merges once, and opens the image after a cut within each operation: none, all or some of the unsynced writes
    /// survive. Returns the number of cuts.
    fn run(&self) -> usize {
        let (all, prefer) = ([&[&self.ours][..], &self.theirs].concat(), self.options.prefer);
        let merged = expected(&all, prefer).0;
        let device = SimDevice::instant();
        let own = table_on(Arc::new(device.clone()), &tiny(self.kind), 7);
        fill(&own, self.ours.iter().map(|(key, value)| (*key, Some(*value))));
        own.close().unwrap();
        let (device, mut table) = self.open(device.survivors(1));
        device.record_cuts();
        let whole = table.absorb(&self.versions, &self.options, &unwatched).unwrap();
        assert_eq!(contents(&table), merged);
        let cuts = device.take_cuts();
        for (number, cut) in (0..).zip(&cuts) {
            for seed in [number % 2, number + 2] {
                let said = format!("{}, cut {number}, survivors {seed}", self.kind);
                self.check((self.open(cut.survivors(seed)).1, &whole), &merged, &said);
            }
        }
        // The last writes were durable, so they survive in any case.
        let (_, table) = self.open(device.survivors(0));
        assert_eq!(contents(&table), merged, "{}, durable", self.kind);
        cuts.len()
    }

    /// Checks that no entry is lost or invented, and that absorbing the same tables again completes the merge.
    fn check(&self, (mut table, whole): (AnyTable, &Absorbed), merged: &Map, said: &str) {
        let found = contents(&table);
        let has = |map: &Map, key: &u64, value: &u64| map.get(key) == Some(value);
        let is_right =
            |(key, value): (&u64, &u64)| has(&self.ours, key, value) || has(merged, key, value);
        assert!(found.iter().all(is_right), "{said}");
        assert!(self.ours.keys().all(|key| found.contains_key(key)), "{said}");
        let again = table.absorb(&self.versions, &self.options, &unwatched).unwrap();
        assert_eq!(contents(&table), *merged, "{said}, again");
        let counts = |it: &Absorbed| (it.keys, it.shared, it.differing, it.only_own);
        if self.options.resumes {
            assert_eq!(counts(&again), counts(whole), "{said}");
        }
    }
}

#[test]
fn a_power_cut_within_a_merge_loses_nothing_and_absorbing_again_ends_it() {
    let (one, two) = (table("bufferhash", 7), table("slicehash", 7));
    let maps = [(&one, 3, 0..1200), (&two, 4, 800..2000)]
        .map(|(table, seed, keys)| fill(table, updates(seed, 1500, keys)));
    let ours = updates(5, 900, 400..1600).filter_map(|(key, value)| Some((key, value?))).collect();
    let into: [(Map, Prefer); 2] = [(ours, Prefer::Last), (Map::new(), Prefer::First)];
    for kind in ["bufferhash", "slicehash"] {
        for durability in [Durability::Always, Durability::Never] {
            for (ours, prefer) in &into {
                let resumes = ours.is_empty();
                let sweep = Sweep {
                    kind,
                    durability,
                    options: AbsorbOptions {
                        prefer: *prefer,
                        ram_bytes: ram_to_put(1200),
                        resumes,
                    },
                    versions: vec![one.versions().unwrap(), two.versions().unwrap()],
                    ours: ours.clone(),
                    theirs: maps.iter().collect(),
                };
                let cuts = sweep.run();
                assert!(cuts > 5, "{kind}: {cuts}");
            }
        }
    }
}
