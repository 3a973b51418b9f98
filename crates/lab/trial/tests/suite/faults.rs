//! Devices that fail: the k-th write, sync, read or growth, once or from then on, of a life that reaches
//! every class of I/O there is. The error names the place and the remedy, nothing is acknowledged after it,
//! nothing acknowledged is lost, nothing panics and nothing hangs.
//!
//! Everything runs on one thread, so the k-th operation is the same one each time. A life without faults
//! lists the operations; `NANDEX_SWEEP=full` fails every one of them in every way, else some of each class.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use nandex::Error;
use nandex::raw::device::Watched;
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, Image, SimDevice};
use nandex_trial::{
    Contract, Oracle, Session, Stop, Watcher, amount, filter, live, neighbors, parallel, recover,
    table,
};

use crate::guarded::guarded;
use crate::large;
use crate::sites::{Site, Sites};

/// The kinds of failure.
const KINDS: [FaultKind; 3] = [FaultKind::Io, FaultKind::NoSpace, FaultKind::Short];

/// The spans of failure.
const SPANS: [FaultSpan; 2] = [FaultSpan::Once, FaultSpan::FromThenOn];

/// Every class of I/O of store and index: the operation, and its content. A sync is named after the content
/// written last before it.
const SITES: [(FaultOn, &str); 4] = [
    (
        FaultOn::Read,
        "blank, checkpoint, counts, data, filter, group of records, image, I/O chunk of a run, log, records, run, \
         slice, superblock, values, whole data, whole slice",
    ),
    (
        FaultOn::Write,
        "checkpoint, counts, filter, group of records, image, I/O chunk of a run, log, records, run, slice, \
         superblock, values, whole data, whole slice",
    ),
    (
        FaultOn::Sync,
        "blank, checkpoint, log, records, slice, superblock, values, whole data, whole slice",
    ),
    (FaultOn::Grow, "empty, longer"),
];

/// The kind and the span of a failure.
type Way = (FaultKind, FaultSpan);

/// The contents with thousands of equal reads.
const LOOKED_UP: [&str; 6] = ["counts", "data", "records", "slice", "run", "values"];

/// The seed of each life, and the calls in each of its openings.
const LIFE: (u64, u64) = (5, 60);

/// A watcher that records the part of the life of an operation. After a failed write or sync nothing is
/// acknowledged any more, and nothing written.
struct Failing {
    device: Watched<SimDevice, Sites>,
    on: FaultOn,
    error: Option<Error>,
}

impl Failing {
    fn new(on: FaultOn) -> Self {
        let device = Watched::with(SimDevice::instant(), Arc::default());
        Self { device, on, error: None }
    }

    fn live<C: Contract>(&mut self, setup: &C) -> (Session<C>, Result<(), String>) {
        let mut session = Session::new(setup.clone());
        let device = Arc::new(self.device.clone());
        let result = live(&mut session, device, LIFE, self);
        session.kill();
        (session, result)
    }
}

impl<C: Contract> Watcher<C> for Failing {
    fn begins(&mut self, part: &'static str) {
        self.device.observer().begin(part);
    }

    fn after(&mut self, session: &mut Session<C>, result: Result<(), Stop>) -> Result<(), String> {
        let error = match result {
            Ok(()) => return Ok(()),
            Err(Stop::Wrong(what)) => panic!("{what}"),
            Err(Stop::Failed(error)) => error,
        };
        let text = error.to_string();
        self.error = Some(error);
        // The volume continues after a failed read, and if a new structure or run found no space.
        let may_go_on = matches!(self.on, FaultOn::Read | FaultOn::Grow);
        if session.is_open() && (session.is_poisoned() || !may_go_on) {
            let written = self.device.inner().seen(FaultOn::Write);
            if let Err(stop) = session.must_refuse() {
                panic!("{stop:?} after {text}");
            }
            assert_eq!(self.device.inner().seen(FaultOn::Write), written, "{text}");
        }
        Err(text)
    }
}

/// Returns whether the error names the failed operation, the place and the remedy.
fn names_place_and_remedy(on: FaultOn, error: &Error) -> bool {
    let text = error.to_string();
    let operation = ["read of ", "write of ", "sync of ", "grow of "][on as usize];
    let failed =
        text.contains(operation) && text.contains(" at page ") && text.contains("fix the cause");
    failed || on == FaultOn::Grow && text.contains("no space for") && text.contains("free some")
}

/// The states that faults of a structure left, by the hash of the bytes and of the oracle's state: one
/// recovery serves all faults with the same state. A lookup's read changes neither, so thousands of them
/// leave the same state as the first.
#[derive(Default)]
struct Recovered(Mutex<HashSet<(u64, u64)>>);

impl Recovered {
    /// Records a state, and returns whether it is the first.
    fn insert<C: Contract>(&self, image: &Image, session: &Session<C>) -> bool {
        let mut hasher = DefaultHasher::new();
        (session.past.save(), session.is_made()).hash(&mut hasher);
        self.0.lock().unwrap().insert((image.hash(), hasher.finish()))
    }
}

/// Fails an operation, and recovers from states that were not recovered from before. Returns the number of
/// operations of its kind that were started.
fn run<C: Contract>(setup: &C, fault: Fault, site: Site, recovered: &Recovered) -> u64 {
    let mut failing = Failing::new(fault.on);
    failing.device.inner().arm(fault);
    let (session, result) = failing.live(setup);
    let story = format!("{setup:?}, {fault:?} at {site:?} ({result:?})");
    assert_eq!(
        failing.device.observer().site(fault.on, fault.at),
        Some(site),
        "{story}: another run"
    );
    let passes = fault.kind == FaultKind::NoSpace && setup.asks_for_less();
    assert!(failing.error.is_some() || passes, "{story}: not told");
    let is_told = |error| names_place_and_remedy(fault.on, error);
    assert!(failing.error.as_ref().is_none_or(is_told), "{story}: {:?}", failing.error);
    // The whole content of the device, as a continuing process finds it.
    let device = failing.device.inner();
    let image = device.survivors(1);
    if recovered.insert(&image, &session) {
        recover(&session, image, fault.at).unwrap_or_else(|what| panic!("{story}: {what}"));
    }
    device.seen(fault.on)
}

/// An operation, and the ways in which it fails.
struct Case {
    on: FaultOn,
    at: u64,
    site: Site,
    ways: Vec<Way>,
}

/// Fails an operation in each of its ways; returns their number.
fn fail_in<C: Contract>(setup: &C, case: &Case, recovered: &Arc<Recovered>) -> u64 {
    let &Case { on, at, site, ref ways } = case;
    let mut was_last = None;
    for &(kind, span) in ways {
        // If no operation of its kind came after the one that failed once, the rest of them cannot fail
        // either.
        if span == FaultSpan::FromThenOn && was_last == Some(kind) {
            continue;
        }
        let (setup, fault) = (setup.clone(), Fault { on, at, kind, span });
        let (story, recovered) = (format!("{setup:?}, {fault:?}"), Arc::clone(recovered));
        let seen = guarded(&story, move || run(&setup, fault, site, &recovered));
        was_last = (seen == at).then_some(kind);
    }
    ways.len() as u64
}

/// Returns the operations of a life without faults.
fn sites<C: Contract>(setup: &C, on: FaultOn) -> Vec<Site> {
    let mut failing = Failing::new(on);
    let (_, result) = failing.live(setup);
    result.unwrap();
    failing.device.observer().sites(on)
}

/// Fails operations of one kind: all of them, or some of each class, spread over the life. Returns their
/// number.
fn fail<C: Contract>(setup: &C, on: FaultOn) -> u64 {
    let mut classes: BTreeMap<Site, Vec<u64>> = BTreeMap::new();
    for (at, site) in (1..).zip(sites(setup, on)) {
        classes.entry(site).or_default().push(at);
    }
    let ways = KINDS.into_iter().filter(|kind| kind.can_strike(on));
    let ways: Vec<_> = ways.flat_map(|kind| SPANS.map(|span| (kind, span))).collect();
    let mut cases = Vec::new();
    for (site, places) in classes {
        let mut rng = SplitMix64::new(places[0]);
        let each = amount::count(2, places.len() as u64) as usize;
        for at in places.iter().copied().step_by(places.len().div_ceil(each)) {
            let all_ways = amount::is_full() && !LOOKED_UP.contains(&site.about);
            let chosen = rng.below(ways.len() as u64) as usize;
            let ways = if all_ways { &ways[..] } else { &ways[chosen..=chosen] };
            cases.push(Case { on, at, site, ways: ways.to_vec() });
        }
    }
    let recovered = Arc::default();
    let setups = cases.into_iter().map(|case| (case, setup.clone()));
    parallel::each(setups, |(case, setup)| fail_in(&setup, &case, &recovered)).iter().sum()
}

/// Returns tables: each durability with policies that keep nothing, part and everything, and two kinds of
/// slices.
fn tables() -> impl Iterator<Item = table::TableSetup> {
    let bufferhash = [0, 2, 6, 8, 12, 14, 18, 20].map(table::TableSetup::bufferhash);
    let slicehash = [0, 2, 8, 12, 20, 38].map(table::TableSetup::slicehash);
    let further = table::further();
    let further =
        further.flat_map(|(_, row)| (0..4).map(move |it| table::TableSetup::registered(row, it)));
    bufferhash.into_iter().chain(slicehash).chain(further)
}

fn filters() -> impl Iterator<Item = filter::FilterSetup> {
    let wide = [2, 15].map(|number| filter::FilterSetup::cascade(number).wide());
    let further = filter::further();
    let further =
        further.flat_map(|(_, row)| (0..4).map(move |it| filter::FilterSetup::registered(row, it)));
    [0, 4, 8, 14, 18, 22].map(filter::FilterSetup::cascade).into_iter().chain(wide).chain(further)
}

fn indexes() -> impl Iterator<Item = neighbors::NeighborsSetup> {
    neighbors::further()
        .flat_map(|(_, row)| (0..4).map(move |it| neighbors::NeighborsSetup::registered(row, it)))
}

fn sweep(on: FaultOn) {
    let mut failed: u64 = tables().map(|setup| fail(&setup, on)).sum();
    failed += filters().map(|setup| fail(&setup, on)).sum::<u64>();
    failed += indexes().map(|setup| fail(&setup, on)).sum::<u64>();
    failed += large::configurations().map(|setup| fail(&setup, on)).sum::<u64>();
    println!("{failed} operations failed");
    assert!(failed > 60, "{failed}");
}

/// The places and the number of times that each class of I/O is reached.
type Reached = BTreeMap<(usize, &'static str), (usize, Vec<&'static str>)>;

fn reach<C: Contract>(setups: impl Iterator<Item = C>, reached: &mut Reached) {
    for setup in setups {
        let mut failing = Failing::new(FaultOn::Read);
        failing.live(&setup).1.unwrap();
        for (on, _) in SITES {
            for site in failing.device.observer().sites(on) {
                let (count, parts) = reached.entry((on as usize, site.about)).or_default();
                *count += 1;
                if !parts.contains(&site.part) {
                    parts.push(site.part);
                }
            }
        }
    }
}

#[test]
fn lives_reach_every_class_of_io() {
    let mut reached = Reached::new();
    reach(tables(), &mut reached);
    reach(indexes(), &mut reached);
    reach(filters(), &mut reached);
    reach(large::configurations(), &mut reached);
    for ((on, about), (count, parts)) in &reached {
        println!("{:?} {about}: {count}, in {parts:?}", SITES[*on].0);
    }
    let of =
        |(on, sites): (FaultOn, &'static str)| sites.split(", ").map(move |it| (on as usize, it));
    let expected = SITES.into_iter().flat_map(of);
    let reached: BTreeSet<_> = reached.into_keys().collect();
    assert_eq!(reached, expected.collect());
}

#[test]
fn a_failed_write_poisons_and_loses_nothing_acknowledged() {
    sweep(FaultOn::Write);
}

#[test]
fn a_failed_sync_poisons_and_loses_nothing_acknowledged() {
    sweep(FaultOn::Sync);
}

#[test]
fn a_failed_read_is_told_and_loses_nothing() {
    sweep(FaultOn::Read);
}

#[test]
fn a_failed_growth_is_told_and_loses_nothing() {
    sweep(FaultOn::Grow);
}
