//! Devices that fail: the k-th write, sync, read or growth, once or from then on, of a run that reaches
//! every sort of I/O that a filter does. The error says where and what to do, nothing is acknowledged after
//! it, nothing that was is lost, nothing panics and nothing hangs.
//!
//! Everything runs on one thread, so the k-th operation is the same one each time. Which ones there are
//! is told by a run without faults; `NANDEX_SWEEP=full` fails every one of them in every way, else some of
//! each class.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandex::cascade::Cascade;
use nandex::device::Device;
use nandex::{Error, Filter};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};

use super::life::{Past, Witness, live, recover};
use super::runner::key;
use super::support::Setup;
use crate::chance::{Dice, full_sweep};
use crate::ground::DURABILITIES;
use crate::guarded::guarded;
use crate::sites::{Site, Sites};

/// What can fail.
const SORTS: [FaultOn; 4] = [FaultOn::Read, FaultOn::Write, FaultOn::Sync, FaultOn::Grow];

/// How it can fail.
const KINDS: [FaultKind; 3] = [FaultKind::Io, FaultKind::NoSpace, FaultKind::Short];

/// For how long.
const SPANS: [FaultSpan; 2] = [FaultSpan::Once, FaultSpan::FromThenOn];

/// Every class of I/O that a filter's life has.
const SITES: [(FaultOn, &str); 17] = [
    (FaultOn::Read, "superblock"),
    (FaultOn::Read, "checkpoint"),
    (FaultOn::Read, "log"),
    (FaultOn::Read, "run"),
    (FaultOn::Read, "stroke of a run"),
    (FaultOn::Read, "blank"),
    (FaultOn::Write, "superblock"),
    (FaultOn::Write, "checkpoint"),
    (FaultOn::Write, "log"),
    (FaultOn::Write, "run"),
    (FaultOn::Write, "stroke of a run"),
    (FaultOn::Sync, "superblock"),
    (FaultOn::Sync, "checkpoint"),
    (FaultOn::Sync, "log"),
    (FaultOn::Sync, "blank"),
    (FaultOn::Grow, "empty"),
    (FaultOn::Grow, "longer"),
];

type Failing = Sites<SimDevice>;

/// After a failed write or sync nothing is acknowledged any more, and nothing written.
struct Refusals {
    device: Arc<Failing>,
    on: FaultOn,
}

impl Witness for Refusals {
    fn begins(&mut self, part: &'static str) {
        self.device.begin(part);
    }

    fn failed(&mut self, filter: &Cascade, first: &Error) {
        // The volume goes on after a failed read, and where a merge found no room for its run.
        let may_go_on = matches!(self.on, FaultOn::Read | FaultOn::Grow);
        if may_go_on && !Filter::sync(filter).is_err_and(|error| is_poisoned(&error)) {
            return;
        }
        let written = self.device.inner().seen(FaultOn::Write);
        let key = key(1);
        let refused = [
            ("insert", filter.insert(&key)),
            ("insert_many", filter.insert_many(&[&key])),
            ("delete", filter.delete(&key)),
            ("sync", Filter::sync(filter)),
            ("flush", Filter::flush(filter)),
            ("compact", filter.compact()),
        ];
        for (act, result) in refused {
            let error = result.expect_err(act);
            assert!(is_poisoned(&error), "{act}: {error} after {first}");
        }
        assert_eq!(self.device.inner().seen(FaultOn::Write), written, "{first}");
    }
}

/// Says the error what failed before, and what to do?
fn is_poisoned(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("refuses writes because an earlier one failed") && text.contains("open it again")
}

/// Says the error what failed, where, and what to do?
fn names_place_and_remedy(on: FaultOn, error: &Error) -> bool {
    let text = error.to_string();
    let sort = ["read of ", "write of ", "sync of ", "grow of "][on as usize];
    let failed = text.contains(sort) && text.contains(" at page ") && text.contains("mend");
    failed || on == FaultOn::Grow && text.contains("no room for") && text.contains("free some")
}

fn device() -> Arc<Failing> {
    Arc::new(Sites::new(SimDevice::instant()))
}

fn shared(device: &Arc<Failing>) -> Arc<dyn Device> {
    Arc::clone(device) as Arc<dyn Device>
}

fn case(setup: Setup, fault: Fault, site: Site) {
    let device = device();
    device.inner().arm(fault);
    let mut past = Past::default();
    let mut refusals = Refusals { device: Arc::clone(&device), on: fault.on };
    let result = live(&shared(&device), setup, 1, &mut past, &mut refusals);
    let story = format!("{setup:?}, {fault:?} at {site:?} ({result:?})");
    assert_eq!(device.site(fault.on, fault.at), Some(site), "{story}: another run");
    let error = result.expect_err(&story);
    assert!(names_place_and_remedy(fault.on, &error), "{story}: {error}");
    // All that it was given, as a process that goes on finds it.
    recover(device.inner().survivors(1), setup, &past, &story);
}

/// The operations of a run without faults, by sort.
fn sites(setup: Setup) -> BTreeMap<usize, Vec<Site>> {
    let device = device();
    let mut past = Past::default();
    let mut refusals = Refusals { device: Arc::clone(&device), on: FaultOn::Read };
    live(&shared(&device), setup, 1, &mut past, &mut refusals).unwrap();
    SORTS.map(|on| (on as usize, device.sites(on))).into()
}

fn busy() -> impl Iterator<Item = Setup> {
    let setups = DURABILITIES.map(|durability| {
        let setup = Setup::exact(durability);
        [setup, setup.fanned(None).counting().parted(3)]
    });
    setups.into_iter().flatten()
}

/// Fails operations of one sort: all of them, or `each` of every class, spread over the run.
fn sweep(on: FaultOn, each: usize) {
    let mut struck = 0;
    for setup in busy() {
        let all = sites(setup).remove(&(on as usize)).unwrap();
        let mut classes: BTreeMap<Site, Vec<u64>> = BTreeMap::new();
        for (at, site) in (1..).zip(&all) {
            classes.entry(*site).or_default().push(at);
        }
        for (site, places) in classes {
            let mut dice = Dice(places[0]);
            let stride = if full_sweep() { 1 } else { places.len().div_ceil(each) };
            for at in places.into_iter().step_by(stride) {
                let ways = KINDS.into_iter().filter(|kind| kind.can_strike(on));
                let ways: Vec<_> = ways.flat_map(|kind| SPANS.map(|span| (kind, span))).collect();
                let chosen = dice.below(ways.len() as u64);
                // Lookups read thousands of pages in one and the same way.
                let all_ways = full_sweep() && site.about != "run";
                for (number, (kind, span)) in (0..).zip(ways) {
                    if all_ways || number == chosen {
                        struck += 1;
                        let fault = Fault { on, at, kind, span };
                        guarded(&format!("{setup:?}, {fault:?}"), move || case(setup, fault, site));
                    }
                }
            }
        }
    }
    println!("{struck} operations failed");
    assert!(struck > 20, "{struck}");
}

#[test]
fn the_run_reaches_every_class_of_io() {
    let mut reached: BTreeMap<(usize, &str), (usize, Vec<&str>)> = BTreeMap::new();
    for (on, sites) in busy().flat_map(sites) {
        for site in sites {
            let (count, parts) = reached.entry((on, site.about)).or_default();
            *count += 1;
            if !parts.contains(&site.part) {
                parts.push(site.part);
            }
        }
    }
    for ((on, about), (count, parts)) in &reached {
        println!("{:?} {about}: {count}, in {parts:?}", SORTS[*on]);
    }
    let mut expected: Vec<_> = SITES.iter().map(|(on, about)| (*on as usize, *about)).collect();
    expected.sort_unstable();
    assert_eq!(reached.into_keys().collect::<Vec<_>>(), expected);
}

#[test]
fn a_failed_write_poisons_and_loses_nothing_acknowledged() {
    sweep(FaultOn::Write, 3);
}

#[test]
fn a_failed_sync_poisons_and_loses_nothing_acknowledged() {
    sweep(FaultOn::Sync, 3);
}

#[test]
fn a_failed_read_is_told_and_loses_nothing() {
    sweep(FaultOn::Read, 3);
}

#[test]
fn a_failed_growth_is_told_and_loses_nothing() {
    sweep(FaultOn::Grow, 3);
}

#[test]
fn a_read_that_fails_once_fails_one_lookup_and_no_other() {
    let setup = Setup::exact(DURABILITIES[1]).fanned(None);
    let device = Arc::new(SimDevice::instant());
    let filter = setup.create(Arc::clone(&device) as Arc<dyn Device>).unwrap();
    let keys: Vec<_> = (0..3000).map(key).collect();
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    filter.insert_many(&keys).unwrap();
    filter.compact().unwrap();
    let (on, kind, span) = (FaultOn::Read, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at: device.seen(on) + 1, kind, span });
    let failed: Vec<_> = keys.iter().filter_map(|key| filter.contains(key).err()).collect();
    assert_eq!(failed.len(), 1);
    assert!(failed[0].to_string().contains("read of 1 page(s) at page"), "{}", failed[0]);
    device.arm(Fault { on, at: device.seen(on) + 5, kind, span });
    filter.contains_many(&keys).unwrap_err();
    assert!(filter.contains_many(&keys).unwrap().iter().all(|found| *found));
    filter.insert(keys[0]).unwrap();
    filter.close().unwrap();
}

#[test]
fn closing_a_poisoned_filter_tells_that_not_all_was_saved() {
    let setup = Setup::exact(DURABILITIES[1]);
    let device = SimDevice::instant();
    let filter = setup.create(Arc::new(device.clone())).unwrap();
    filter.insert(&key(1)).unwrap();
    let (on, kind, span) = (FaultOn::Sync, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at: device.seen(on) + 1, kind, span });
    Filter::sync(&filter).unwrap_err();
    let error = filter.close().unwrap_err().to_string();
    assert!(error.contains("an earlier one failed"), "{error}");
}
