//! A long life of a structure: endless updates and removals, syncs, flushes and openings in between, and
//! faults. It knows the wanted keys, and after a power cut restores them.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use nandex::device::{Device, MemoryDevice};
use nandex::raw::device::{Call, Observer, OpKind, PAGE_BYTES, Watched};
use nandex::{Threads, VolumeOptions};
use nandex_sim::workload::SplitMix64;
use nandex_sim::{FaultOn, Image, SimDevice};
use nandex_trial::{Contract, Session, Stop, Trust, amount};

use super::Life;
use super::figures::{Bounds, Figures};
use crate::sites::kind_of;

/// Keys of a call.
pub const BATCH: usize = 20;

/// Batches between two power cuts, on average.
const BATCHES_PER_CUT: u64 = 250;

/// Batches between two openings, and between two damaged volumes, on average.
const BATCHES_PER_EVENT: u64 = 600;

/// A structure that can be lived in.
pub trait Lived: Contract {
    /// Structure and configuration, for messages.
    fn label(&self) -> String;

    /// Returns the total number of different keys.
    fn key_count(&self) -> u64;

    /// Returns the maximum ratios after a life.
    fn bounds(&self, life: Life) -> Bounds;

    /// Returns the bounds after a compaction, if one makes it smaller.
    fn compacted_bounds(&self) -> Option<Bounds> {
        None
    }

    /// Returns whether entries disappear without being removed.
    fn evicts(&self) -> bool {
        false
    }

    /// Returns the pages that a lookup of a key on flash reads.
    fn pages_per_lookup(&self) -> f64 {
        1.0
    }

    /// Puts these keys in one call.
    fn put(session: &mut Session<Self>, keys: &[u64]) -> Result<(), Stop>;

    /// Removes a key.
    fn remove(session: &mut Session<Self>, key: u64) -> Result<(), Stop>;

    /// Makes everything durable without writing buffers to flash.
    fn sync(session: &mut Session<Self>) -> Result<(), Stop>;

    /// Writes buffers to flash.
    fn flush(session: &mut Session<Self>) -> Result<(), Stop>;

    /// Returns whether a key is present, as far as the oracle knows after everything was looked up.
    fn is_there(session: &Session<Self>, key: u64) -> bool;

    /// Opens it without a cache.
    fn open_without_cache(&self, device: Arc<dyn Device>) -> nandex::Result<Self::Handle> {
        self.open_on(device)
    }

    /// Looks up a key.
    fn find(&self, handle: &Self::Handle, key: u64) -> nandex::Result<bool>;

    /// Returns the figures that the structure reports, without caches.
    fn stats(handle: &Self::Handle) -> Figures;
}

/// The faults of a life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adversity {
    /// No faults.
    Peace,
    /// Power cuts, now and then also during the recovery.
    Cuts,
    /// A damaged page, in a copy of the state after a close.
    Damage,
}

/// The counts of the faults.
#[derive(Clone, Copy, Default, Debug)]
pub struct Adversities {
    pub cuts: u64,
    pub cuts_of_recoveries: u64,
    pub damaged: u64,
    pub told: u64,
}

impl Adversities {
    pub fn add(&mut self, other: &Self) {
        self.cuts += other.cuts;
        self.cuts_of_recoveries += other.cuts_of_recoveries;
        self.damaged += other.damaged;
        self.told += other.told;
    }
}

/// The structure, its device, and the wanted keys.
pub struct Living<S: Lived> {
    pub session: Session<S>,
    pub met: Adversities,
    device: SimDevice,
    adversity: Adversity,
    rng: SplitMix64,
    wanted: Vec<bool>,
}

/// The pages that were read.
#[derive(Debug, Default)]
struct PagesRead(Mutex<BTreeSet<u64>>);

impl Observer for PagesRead {
    fn before(&self, call: Call<'_>) -> nandex::raw::device::Result<()> {
        if let Call::Start { kind: OpKind::Read, page, pages, .. } = call {
            self.0.lock().unwrap().extend(page.0..page.0 + pages);
        }
        Ok(())
    }
}

impl<S: Lived> Living<S> {
    /// Creates it.
    pub fn new(setup: S, seed: u64, adversity: Adversity) -> Self {
        let wanted = vec![false; setup.key_count() as usize];
        let (session, device) = (Session::new(setup), SimDevice::instant());
        let (rng, met) = (SplitMix64::new(seed), Adversities::default());
        let mut living = Self { session, met, device, adversity, rng, wanted };
        living.session.create(Arc::new(living.device.clone())).unwrap();
        living.session.settle();
        living
    }

    /// Returns the wanted keys.
    pub fn wanted(&self) -> Vec<u64> {
        let keys = (0..).zip(&self.wanted);
        keys.filter(|(_, is_wanted)| **is_wanted).map(|(key, _)| key).collect()
    }

    /// Puts keys, a batch in each call.
    pub fn put_all(&mut self, keys: impl IntoIterator<Item = u64>) {
        let keys: Vec<_> = keys.into_iter().collect();
        keys.chunks(BATCH).for_each(|keys| self.put(keys));
    }

    /// Puts keys in one call.
    pub fn put(&mut self, keys: &[u64]) {
        self.plan_cut();
        keys.iter().for_each(|key| self.wanted[*key as usize] = true);
        self.act(|session| S::put(session, keys));
        self.go_on();
    }

    /// Removes keys, one in each call.
    fn remove(&mut self, keys: &[u64]) {
        for &key in keys {
            self.wanted[key as usize] = false;
            self.act(|session| S::remove(session, key));
        }
    }

    /// Plans a power cut during one of the next operations, now and then.
    fn plan_cut(&mut self) {
        let one_in = amount::one_in(BATCHES_PER_CUT);
        if self.adversity == Adversity::Cuts && self.rng.below(one_in) == 0 {
            self.device.cut_after(self.device.operations() + self.rng.below(60));
        }
    }

    /// Puts `count` keys again, drawn from the first `n`.
    pub fn update(&mut self, n: u64, count: u64) {
        for _ in 0..count / BATCH as u64 {
            let keys = [(); BATCH].map(|()| self.rng.below(n));
            self.put(&keys);
        }
    }

    /// Removes the keys of these numbers, and puts those that come `n` later. Numbers wrap around all keys.
    pub fn churn(&mut self, n: u64, numbers: Range<u64>) {
        let all = self.wanted.len() as u64;
        for first in numbers.step_by(BATCH) {
            let keys = |first: u64| (first..).take(BATCH).map(|it| it % all).collect::<Vec<_>>();
            self.remove(&keys(first));
            self.put(&keys(first + n));
        }
    }

    /// Removes all keys but `n`, drawn uniformly.
    pub fn shrink(&mut self, n: u64) {
        let mut keys = self.wanted();
        for at in (1..keys.len()).rev() {
            keys.swap(at, self.rng.below(at as u64 + 1) as usize);
        }
        for keys in keys[n as usize..].chunks(BATCH) {
            self.plan_cut();
            self.remove(keys);
            self.go_on();
        }
    }

    /// Returns the figures that it reports after a flush.
    pub fn stats(&mut self) -> Figures {
        self.act(S::flush);
        // Background work after it may have left its memory.
        self.act(S::flush);
        // A batch leaves its page buffers.
        self.act(Session::look);
        S::stats(self.session.handle())
    }

    /// Makes a call, which a power cut may end.
    fn act(&mut self, act: impl FnOnce(&mut Session<S>) -> Result<(), Stop>) {
        match act(&mut self.session) {
            Ok(()) => self.session.settle(),
            Err(Stop::Failed(_)) if self.device.is_cut() => {
                self.restore_power();
                self.mend();
            }
            Err(stop) => panic!("{}: {stop:?}", self.session.setup().label()),
        }
    }

    /// Performs the actions between calls: syncs, flushes, openings after closes and kills, and damage.
    fn go_on(&mut self) {
        match self.rng.below(BATCHES_PER_EVENT) {
            0 => self.reopen(),
            1 => {
                self.session.kill();
                self.open_again();
                self.mend();
            }
            2 if self.adversity == Adversity::Damage => self.damage(),
            3..=9 => self.act(S::flush),
            10..=79 => self.act(S::sync),
            _ => {}
        }
    }

    fn reopen(&mut self) {
        self.act(Session::close_first);
        if !self.session.is_open() {
            self.open_again();
        }
    }

    /// Opens it after a close or a kill. The power may be cut meanwhile.
    fn open_again(&mut self) {
        match self.open() {
            Ok(()) => {}
            Err(Stop::Failed(_)) if self.device.is_cut() => {
                self.restore_power();
                self.mend();
            }
            Err(stop) => panic!("{}: {stop:?}", self.session.setup().label()),
        }
    }

    /// Opens the content of the device and looks everything up.
    fn open(&mut self) -> Result<(), Stop> {
        self.session.open(Arc::new(self.device.clone()))?;
        self.session.look()
    }

    /// Opens the state after a power cut, as often as the power is cut again meanwhile.
    fn restore_power(&mut self) {
        self.met.cuts += 1;
        loop {
            self.session.kill();
            let others = self.rng.next_u64();
            self.fork(self.device.survivors(others));
            let survivors = [0, 1, 2 + self.rng.below(1 << 32)][self.rng.below(3) as usize];
            self.device = SimDevice::instant().with_image(self.device.survivors(survivors));
            if self.rng.below(4) == 0 {
                self.device.cut_after(self.rng.below(8));
            }
            match self.open() {
                Ok(()) if !self.device.is_cut() => break self.device.cut_after(u64::MAX),
                Ok(()) => {}
                Err(Stop::Failed(_)) if self.device.is_cut() => {}
                Err(stop) => panic!("{}: {stop:?}", self.session.setup().label()),
            }
            self.met.cuts_of_recoveries += 1;
        }
    }

    /// Opens another choice of survivors, closes it, and reopens it.
    fn fork(&self, image: Image) {
        let device = SimDevice::instant().with_image(image);
        let mut session = self.session.fork();
        let work = |session: &mut Session<S>| {
            session.open(Arc::new(device.clone()))?;
            session.look()?;
            session.close()?;
            session.settle();
            session.open(Arc::new(device.clone()))?;
            session.look()
        };
        let result = work(&mut session);
        result.unwrap_or_else(|stop| panic!("{}: {stop:?}", session.setup().label()));
        session.kill();
        let report = nandex::check(Arc::new(device), None, &mut |_| {}).unwrap();
        assert!(report.ok(), "{}: {:?}", self.session.setup().label(), report.findings);
    }

    /// Removes unwanted keys, and puts the wanted ones.
    fn mend(&mut self) {
        if self.session.setup().evicts() {
            return;
        }
        let differs = |it: &(u64, bool)| S::is_there(&self.session, it.0) != it.1;
        let wanted = (0..).zip(self.wanted.iter().copied());
        let (lost, left): (Vec<_>, Vec<_>) = wanted.filter(differs).partition(|(_, it)| *it);
        for (key, _) in left {
            self.act(|session| S::remove(session, key));
        }
        for lost in lost.chunks(BATCH) {
            let keys: Vec<_> = lost.iter().map(|(key, _)| *key).collect();
            self.act(|session| S::put(session, &keys));
        }
    }

    /// Damages pages of copies of the state after a close, one in each: every answer is right or an error,
    /// and `check` names the page of each error.
    pub fn damage(&mut self) {
        self.session.close_first().unwrap();
        self.session.settle();
        let image = self.device.survivors(1).to_bytes();
        let read = Arc::new(PagesRead::default());
        let mut whole = self.session.fork();
        let device = Watched::with(MemoryDevice::from_image(image.clone()), Arc::clone(&read));
        whole.open(Arc::new(device)).and_then(|()| whole.look()).unwrap();
        whole.kill();
        let page_of = |page: u64| image.chunks_exact(PAGE_BYTES).nth(page as usize);
        let is_written = |page: &u64| page_of(*page).and_then(kind_of).is_some();
        let pages: Vec<_> = read.0.lock().unwrap().iter().copied().filter(is_written).collect();
        for _ in 0..amount::count(2, 20) {
            let page = pages[self.rng.below(pages.len() as u64) as usize];
            let at = page as usize * PAGE_BYTES + self.rng.below(PAGE_BYTES as u64) as usize;
            let mut damaged = image.clone();
            damaged[at] ^= 1 << self.rng.below(8);
            self.ask_damaged(damaged, page);
        }
        self.open().unwrap();
    }

    /// Looks everything up, with this page damaged.
    fn ask_damaged(&mut self, image: Vec<u8>, page: u64) {
        let device = Arc::new(MemoryDevice::from_image(image));
        let report = nandex::check(device.clone(), None, &mut |_| {}).unwrap();
        let is_found = report.findings.iter().any(|finding| finding.page.0 == page);
        let mut session = self.session.fork();
        session.lower_trust(Trust::RightOrError);
        let result = session.open(device).and_then(|()| session.look());
        let is_told = match result {
            Ok(()) => session.refusals() > 0,
            Err(Stop::Failed(_)) => true,
            Err(stop) => panic!("{}, page {page}: {stop:?}", session.setup().label()),
        };
        session.kill();
        assert!(
            is_found || !is_told,
            "{}: check does not name page {page}",
            session.setup().label()
        );
        self.met.damaged += 1;
        self.met.told += u64::from(is_told);
    }

    /// Flushes and closes it, and returns its resources, the number of keys that it reports, and the reads of
    /// a lookup of a present key after a reopening.
    pub fn figures(&mut self) -> Figures {
        self.adversity = Adversity::Peace;
        self.device.cut_after(u64::MAX);
        let stats = self.stats();
        self.session.close_first().unwrap();
        let opened =
            self.session.setup().open_without_cache(Arc::new(self.device.clone())).unwrap();
        let keys = self.wanted();
        let find = |key: &u64| self.session.setup().find(&opened, *key).unwrap();
        let before = self.device.seen(FaultOn::Read);
        let found = keys.iter().filter(|key| find(key)).count();
        let evicts = self.session.setup().evicts();
        assert!(evicts || found == keys.len(), "{}: {found} found", self.session.setup().label());
        let reads = (self.device.seen(FaultOn::Read) - before) as f64 / found as f64;
        Figures { reads, ram_bytes_opened: S::stats(&opened).ram_bytes, ..stats }
    }
    /// Compacts it, with nothing else open, and reopens it. As in the rest of its life nothing runs in the
    /// background: otherwise chance would decide which buffers are on flash when it is closed, and so its
    /// resources after a reopening.
    pub fn compact(&mut self) {
        let device: Arc<dyn Device> = Arc::new(self.device.clone());
        let inline = VolumeOptions { threads: Threads::Inline, ..VolumeOptions::default() };
        let options = nandex::options().ram(64_u64 << 20).volume(inline);
        let db = options.open_on(device.into()).unwrap();
        db.compact("t", &|_| ControlFlow::Continue(())).unwrap();
        drop(db);
        self.open().unwrap();
    }
}
