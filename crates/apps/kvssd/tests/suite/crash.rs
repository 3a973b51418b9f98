//! A power cut during every operation of the device, over every index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nandex::Durability;
use nandex_kvssd::{
    Config, DeleteMissing, GroupFilter, KeySpace, RetrieveOptions, StoreKind, StoreOptions,
};
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Cut, SimDevice};

use crate::common::{INDEXES, add_space, create_on, key, open_on, value};

const KEYS: u64 = 14;

/// The possible values of a key: those of calls that were not acknowledged, and the last acknowledged one.
type Versions = BTreeMap<u64, BTreeSet<Option<Vec<u8>>>>;

struct Past {
    now: BTreeMap<u64, Vec<u8>>,
    /// The versions that a cut during the current call may leave.
    allowed: Versions,
}

impl Past {
    fn attempt(&mut self, number: u64, value: Option<Vec<u8>>) {
        let old = self.now.get(&number).cloned();
        self.allowed.entry(number).or_default().extend([old, value.clone()]);
        match value {
            Some(value) => self.now.insert(number, value),
            None => self.now.remove(&number),
        };
    }
}

/// Makes one call, and notes what its acknowledgement makes durable.
fn call(space: &KeySpace, past: &mut Past, rng: &mut SplitMix64) {
    let number = rng.below(KEYS);
    match rng.below(10) {
        0 | 1 => {
            past.attempt(number, None);
            space.delete(&key(number), DeleteMissing::Ignore).unwrap();
        }
        2 => {
            let more = value(rng.next_u64(), 100);
            let old = past.now.get(&number).cloned().unwrap_or_default();
            let whole = [old, more.clone()].concat();
            if whole.len() <= 8192 {
                past.attempt(number, Some(whole));
                space.store(&key(number), &more, StoreKind::Append.into()).unwrap();
            }
        }
        3 => {
            let group = number % 16;
            let prefix = format!("g{group:02}");
            let numbers = (0..KEYS).filter(|number| number % 16 == group).collect::<Vec<_>>();
            numbers.iter().for_each(|number| past.attempt(*number, None));
            space.delete_group(GroupFilter::prefix(prefix.as_bytes())).unwrap();
        }
        _ => {
            let value = value(rng.next_u64(), rng.below(3000) as usize);
            past.attempt(number, Some(value.clone()));
            space.store(&key(number), &value, StoreOptions::default()).unwrap();
        }
    }
}

fn check(cut: &Cut, survivors: u64, past: &Past) {
    let device = SimDevice::instant().with_image(cut.survivors(survivors));
    let shared = Arc::new(device.clone());
    let drive = open_on(shared, Durability::Always).unwrap_or_else(|error| panic!("{error}"));
    let space = drive.open_key_space("main").unwrap();
    let mut pairs = 0;
    let mut value_bytes = 0;
    for number in 0..KEYS {
        let found = space.retrieve(&key(number), RetrieveOptions::default()).ok();
        let found = found.map(|it| it.bytes);
        let is_right = match past.allowed.get(&number) {
            Some(allowed) => allowed.contains(&found),
            None => found.as_ref() == past.now.get(&number),
        };
        let operation = cut.operation;
        assert!(is_right, "key {number}, cut after {operation}, survivors {survivors}");
        pairs += u64::from(found.is_some());
        value_bytes += found.map_or(0, |found| found.len() as u64);
    }
    let info = space.info().unwrap();
    assert_eq!((info.pairs, info.value_bytes), (pairs, value_bytes), "counted again");
    space.store(&key(0), b"works on", StoreOptions::default()).unwrap();
    drop((space, drive));
    let report = nandex::check(Arc::new(device), None, &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings.first());
}

#[test]
fn what_was_acknowledged_outlives_a_power_cut_during_any_operation() {
    for (seed, index) in (0..).zip(INDEXES) {
        let device = SimDevice::instant();
        let shared = Arc::new(device.clone());
        let drive = create_on(shared, Config::tiny(), index, Durability::Always).unwrap();
        drop(add_space(&drive, "main"));
        // It is closed and opened, so that the first update must mark the counts as outdated.
        drive.close().unwrap();
        let drive = open_on(Arc::new(device.clone()), Durability::Always).unwrap();
        let space = drive.open_key_space("main").unwrap();
        device.record_cuts();
        let mut rng = SplitMix64::new(seed);
        let mut past = Past { now: BTreeMap::new(), allowed: Versions::new() };
        let mut cuts = 0;
        for _ in 0..40 {
            call(&space, &mut past, &mut rng);
            for cut in device.take_cuts() {
                cuts += 1;
                check(&cut, cuts % 5, &past);
            }
            past.allowed.clear();
        }
        drop(space);
        drive.close().unwrap();
        for cut in device.take_cuts() {
            cuts += 1;
            check(&cut, cuts % 5, &past);
        }
        assert!(cuts > 100, "{index}: {cuts}");
    }
}
