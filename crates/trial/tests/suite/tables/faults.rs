//! Devices that fail: the k-th write, sync, read or growth, once or from then on, of a run that reaches
//! every sort of I/O there is. The error says where and what to do, nothing is acknowledged after it,
//! nothing that was is lost, nothing panics and nothing hangs.
//!
//! Everything runs on one thread, so the k-th operation is the same one each time. Which ones there are
//! is told by a run without faults; `NANDEX_SWEEP=full` fails every one of them in every way, else some of
//! each class.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandex::bufferhash::Policy;
use nandex::device::Device;
use nandex::{AnyTable, Error, Table};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};

use super::life::{Past, Witness, live, recover};
use super::support::{DURABILITIES, Dice, SLICES, Setup, full_sweep};
use crate::guarded::guarded;
use crate::sites::{Site, Sites};

/// What can fail.
const SORTS: [FaultOn; 4] = [FaultOn::Read, FaultOn::Write, FaultOn::Sync, FaultOn::Grow];

/// How it can fail.
const KINDS: [FaultKind; 3] = [FaultKind::Io, FaultKind::NoSpace, FaultKind::Short];

/// For how long.
const SPANS: [FaultSpan; 2] = [FaultSpan::Once, FaultSpan::FromThenOn];

/// Every class of I/O that store and index do: the sort, and what it is about. A sync is named after what
/// was written last before it.
const SITES: [(FaultOn, &str); 24] = [
    (FaultOn::Read, "superblock"),
    (FaultOn::Read, "checkpoint"),
    (FaultOn::Read, "log"),
    (FaultOn::Read, "image"),
    (FaultOn::Read, "data"),
    (FaultOn::Read, "whole data"),
    (FaultOn::Read, "filter"),
    (FaultOn::Read, "slice"),
    (FaultOn::Read, "whole slice"),
    (FaultOn::Read, "blank"),
    (FaultOn::Write, "superblock"),
    (FaultOn::Write, "checkpoint"),
    (FaultOn::Write, "log"),
    (FaultOn::Write, "image"),
    (FaultOn::Write, "whole data"),
    (FaultOn::Write, "whole slice"),
    (FaultOn::Sync, "superblock"),
    (FaultOn::Sync, "checkpoint"),
    (FaultOn::Sync, "log"),
    (FaultOn::Sync, "whole data"),
    (FaultOn::Sync, "whole slice"),
    (FaultOn::Sync, "blank"),
    (FaultOn::Grow, "empty"),
    (FaultOn::Grow, "longer"),
];

type Failing = Sites<SimDevice>;

/// After a failed write or sync nothing is acknowledged any more, and nothing written.
struct Refusals {
    device: Arc<Failing>,
    setup: Setup,
    on: FaultOn,
}

impl Witness for Refusals {
    fn begins(&mut self, part: &'static str) {
        self.device.begin(part);
    }

    fn failed(&mut self, table: &AnyTable, first: &Error) {
        // The volume goes on after a failed read that only a lookup needed, and where a new table found
        // no room.
        let may_go_on = matches!(self.on, FaultOn::Read | FaultOn::Grow);
        if may_go_on && !table.sync().is_err_and(|error| is_poisoned(&error)) {
            return;
        }
        let written = self.device.inner().seen(FaultOn::Write);
        let (key, value) = (self.setup.key(1), self.setup.value(1));
        let refused = [
            ("insert", table.insert(&key, &value)),
            ("insert_many", table.insert_many(&[(&key, &value)])),
            ("remove", table.remove(&key)),
            ("sync", table.sync()),
            ("flush", table.flush()),
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
    let mut refusals = Refusals { device: Arc::clone(&device), setup, on: fault.on };
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
    let mut refusals = Refusals { device: Arc::clone(&device), setup, on: FaultOn::Read };
    live(&shared(&device), setup, 1, &mut past, &mut refusals).unwrap();
    SORTS.map(|on| (on as usize, device.sites(on))).into()
}

fn busy() -> impl Iterator<Item = Setup> {
    let setups = DURABILITIES.map(|durability| {
        let of = |policy| Setup { roomy: false, ..Setup::busy(policy, durability).inline() };
        let fifo = of(Policy::Fifo);
        [fifo, of(Policy::Update), fifo.sliced(SLICES[0]), fifo.sliced(SLICES[1])]
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
                let all_ways = full_sweep() && !["data", "slice"].contains(&site.about);
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
    assert!(struck > 50, "{struck}");
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
    let setup = Setup::new(Policy::Fifo, DURABILITIES[1]);
    read_that_fails_once(setup, 5000);
    read_that_fails_once(setup.sliced(SLICES[0]), 3000);
    read_that_fails_once(setup.sliced(SLICES[3]), 3000);
}

fn read_that_fails_once(setup: Setup, keys: u64) {
    let device = Arc::new(SimDevice::instant());
    let table = setup.create(Arc::clone(&device) as Arc<dyn Device>).unwrap();
    for key in 0..keys {
        table.insert_u64(key, key).unwrap();
    }
    table.flush().unwrap();
    let (on, kind, span) = (FaultOn::Read, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at: device.seen(on) + 1, kind, span });
    let failed: Vec<_> = (0..keys).filter_map(|key| table.get_u64(key).err()).collect();
    assert_eq!(failed.len(), 1);
    assert!(failed[0].to_string().contains("read of 1 page(s) at page"), "{}", failed[0]);
    device.arm(Fault { on, at: device.seen(on) + 5, kind, span });
    let keys: Vec<_> = (0..keys).map(|key| key.to_le_bytes()).collect();
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    table.get_many(&keys).unwrap_err();
    assert!(table.get_many(&keys).unwrap().iter().all(Option::is_some));
    table.insert_u64(1, 2).unwrap();
    table.close().unwrap();
}

/// Closing said that all was well, though the buffer had not been saved.
#[test]
fn closing_a_poisoned_table_tells_that_not_all_was_saved() {
    let setup = Setup::new(Policy::Fifo, DURABILITIES[1]).inline();
    close_poisoned(setup);
    close_poisoned(setup.sliced(SLICES[0]));
}

fn close_poisoned(setup: Setup) {
    let device = SimDevice::instant();
    let table = setup.create(Arc::new(device.clone())).unwrap();
    table.insert(&setup.key(1), &setup.value(1)).unwrap();
    let (on, kind, span) = (FaultOn::Sync, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at: device.seen(on) + 1, kind, span });
    table.sync().unwrap_err();
    let error = table.close().unwrap_err().to_string();
    assert!(error.contains("an earlier one failed"), "{error}");
}
