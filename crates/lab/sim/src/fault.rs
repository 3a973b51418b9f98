//! Planned and random faults, and the record of those that happened.
//!
//! A [`Faults`] is a value: planned faults strike the k-th operation of a kind, the others strike by chance.
//! At most one strikes an operation, the planned before the others. Chance depends only on the seed, the kind
//! and the operation's number among its kind, so the same seed strikes the same operations, whatever other
//! operations happen in between.

use std::io;

use nandex_device::{OpKind, PageId};

use crate::Image;
use crate::workload::SplitMix64;

/// Linux's error numbers, which all Unix systems share.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

const MILLION: u64 = 1_000_000;

/// The kind of operation that a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultOn {
    /// A read, queued or not.
    Read,
    /// A write, queued or not.
    Write,
    /// A `sync`.
    Sync,
    /// A `grow`, even one to no more than the present size.
    Grow,
    /// A `discard` of at least one page.
    Discard,
}

impl From<OpKind> for FaultOn {
    fn from(kind: OpKind) -> Self {
        match kind {
            OpKind::Read => Self::Read,
            OpKind::Write => Self::Write,
        }
    }
}

/// The effect of a fault on the struck operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The operation fails with EIO and does nothing. Strikes every kind.
    Io,
    /// The operation fails with ENOSPC, a `grow` as [`Error::NoSpace`](nandex_device::Error::NoSpace), and
    /// does nothing. Strikes every kind.
    NoSpace,
    /// The operation transfers only its first pages, fewer than all and perhaps none, and then fails with
    /// EIO. Strikes reads, writes and discards.
    Short,
    /// One bit is wrong: in a read's data, once; in a write's data, until the page is written again. The
    /// operation succeeds. Strikes reads and writes.
    Flip,
    /// The operation succeeds on other pages: a read returns their bytes, a write overwrites them and leaves
    /// its own pages unchanged. Strikes reads and writes if the device has another place for them.
    Misdirected,
    /// The read succeeds, but returns one page as it was before its last write. Strikes reads of pages that
    /// were written since the fault was given to the device.
    Stale,
    /// The operation succeeds and does nothing. Strikes writes, discards, and syncs.
    Lost,
    /// The sync fails with EIO, and the data that it should have made durable never become durable, although
    /// reads still see them and the next sync succeeds: this is how kernels behave that mark pages clean
    /// after a failed write-back. Strikes syncs.
    Dropped,
    /// The operation starts later, in virtual time, and then succeeds. Strikes every kind.
    Slow {
        /// The delay in nanoseconds.
        extra_ns: u64,
    },
}

impl FaultKind {
    /// Returns whether this fault can strike this operation.
    #[must_use]
    pub const fn can_strike(self, on: FaultOn) -> bool {
        match self {
            Self::Io | Self::NoSpace | Self::Slow { .. } => true,
            Self::Short => matches!(on, FaultOn::Read | FaultOn::Write | FaultOn::Discard),
            Self::Flip | Self::Misdirected => matches!(on, FaultOn::Read | FaultOn::Write),
            Self::Stale => matches!(on, FaultOn::Read),
            Self::Dropped => matches!(on, FaultOn::Sync),
            Self::Lost => matches!(on, FaultOn::Write | FaultOn::Sync | FaultOn::Discard),
        }
    }

    /// Returns the error of the struck operation, if it fails.
    pub(crate) fn error(self) -> Option<io::Error> {
        match self {
            Self::Io | Self::Short | Self::Dropped => Some(io::Error::from_raw_os_error(EIO)),
            Self::NoSpace => Some(io::Error::from_raw_os_error(ENOSPC)),
            Self::Flip | Self::Misdirected | Self::Stale | Self::Lost | Self::Slow { .. } => None,
        }
    }
}

/// The number of operations that a planned [`Fault`] strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultSpan {
    /// One operation only.
    Once,
    /// One operation and every later one of its kind.
    FromThenOn,
}

/// A planned fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind of operation it strikes.
    pub on: FaultOn,
    /// The number of the operation among its kind, counted from 1 since the device was made.
    pub at: u64,
    /// The effect.
    pub kind: FaultKind,
    /// The number of operations that it strikes.
    pub span: FaultSpan,
}

impl Fault {
    fn is_due(&self, on: FaultOn, at: u64) -> bool {
        self.on == on
            && match self.span {
                FaultSpan::Once => at == self.at,
                FaultSpan::FromThenOn => at >= self.at,
            }
    }
}

/// A random fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Chance {
    on: FaultOn,
    kind: FaultKind,
    per_million: u32,
}

/// The faults of a device: a plan, chances, and the seed of the chances.
///
/// ```
/// use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, Faults};
///
/// let faults = Faults::seeded(7)
///     .with_chance(FaultOn::Read, FaultKind::Flip, 100)
///     .with_chance(FaultOn::Write, FaultKind::Lost, 5)
///     .with(Fault { on: FaultOn::Sync, at: 3, kind: FaultKind::Io, span: FaultSpan::Once });
/// # let _ = faults;
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    seed: u64,
    planned: Vec<Fault>,
    chances: Vec<Chance>,
}

impl Faults {
    /// Creates a plan without faults.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates a plan without faults so far; chances and the details of planned faults (which bit, which
    /// page) follow from the seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Plans a fault. If several are due at one operation, the first planned one strikes.
    ///
    /// # Panics
    /// Panics if this fault cannot strike this operation: see [`FaultKind::can_strike`].
    #[must_use]
    pub fn with(mut self, fault: Fault) -> Self {
        self.plan(fault);
        self
    }

    /// Adds a fault that strikes `per_million` of a million operations of this kind, each by its own chance.
    ///
    /// # Panics
    /// Panics if this fault cannot strike this operation, or if the chances of one kind exceed a million.
    #[must_use]
    pub fn with_chance(mut self, on: FaultOn, kind: FaultKind, per_million: u32) -> Self {
        assert!(kind.can_strike(on), "{kind:?} cannot strike a {on:?}");
        self.chances.push(Chance { on, kind, per_million });
        let of_sort = self.chances.iter().filter(|chance| chance.on == on);
        let total: u64 = of_sort.map(|chance| u64::from(chance.per_million)).sum();
        assert!(total <= MILLION, "chances of a {on:?} add up to {total} in a million");
        self
    }

    fn plan(&mut self, fault: Fault) {
        let Fault { on, kind, .. } = fault;
        assert!(kind.can_strike(on), "{kind:?} cannot strike a {on:?}");
        self.planned.push(fault);
    }

    fn is_empty(&self) -> bool {
        self.planned.is_empty() && self.chances.is_empty()
    }

    /// Returns the fault due at this operation. One random number is drawn whether there are chances or not.
    fn due(&self, on: FaultOn, at: u64, rng: &mut SplitMix64) -> Option<FaultKind> {
        let mut rest = rng.below(MILLION);
        if let Some(fault) = self.planned.iter().find(|fault| fault.is_due(on, at)) {
            return Some(fault.kind);
        }
        for chance in self.chances.iter().filter(|chance| chance.on == on) {
            let rate = u64::from(chance.per_million);
            if rest < rate {
                return Some(chance.kind);
            }
            rest -= rate;
        }
        None
    }
}

/// A fault that has struck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strike {
    /// The kind of operation.
    pub on: FaultOn,
    /// The number of the operation among its kind, counted from 1 since the device was made.
    pub at: u64,
    /// The effect.
    pub kind: FaultKind,
    /// The first affected page; page 0 for a sync or a growth.
    pub page: PageId,
    /// The number of affected pages from there on; 0 for a sync or a growth.
    pub pages: u64,
    /// The first page that a misdirected operation used instead.
    pub instead: Option<PageId>,
    /// The flipped bit of the page.
    pub bit: Option<u32>,
}

/// An operation that a fault may strike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub on: FaultOn,
    pub page: u64,
    pub pages: u64,
}

/// The state of faults: the counts of operations, and the struck ones.
#[derive(Debug, Default)]
pub(crate) struct Injector {
    faults: Faults,
    seen: [u64; 5],
    strikes: Vec<Strike>,
}

impl Injector {
    pub(crate) fn set(&mut self, faults: Faults) {
        self.faults = faults;
    }

    pub(crate) fn arm(&mut self, fault: Fault) {
        self.faults.plan(fault);
    }

    pub(crate) fn disarm(&mut self) {
        self.faults = Faults::seeded(self.faults.seed);
    }

    /// Returns whether stale reads are possible; the image must then keep overwritten content.
    pub(crate) fn needs_previous(&self) -> bool {
        let planned = self.faults.planned.iter().map(|fault| fault.kind);
        planned.chain(self.faults.chances.iter().map(|it| it.kind)).any(|k| k == FaultKind::Stale)
    }

    pub(crate) fn seen(&self, on: FaultOn) -> u64 {
        self.seen[on as usize]
    }

    pub(crate) fn strikes(&self) -> &[Strike] {
        &self.strikes
    }

    /// Counts an operation, and records and returns the fault that strikes it.
    pub(crate) fn strike(&mut self, target: Target, image: &Image) -> Option<Strike> {
        let Target { on, .. } = target;
        self.seen[on as usize] += 1;
        if self.faults.is_empty() {
            return None;
        }
        let at = self.seen[on as usize];
        let mut rng =
            SplitMix64::new(SplitMix64::new(at << 3 | on as u64).next_u64() ^ self.faults.seed);
        let kind = self.faults.due(on, at, &mut rng)?;
        let strike = details(target, at, kind, &mut rng, image)?;
        self.strikes.push(strike);
        Some(strike)
    }
}

/// Chooses the place in the operation that the fault strikes; `None` if there is no place for it.
fn details(
    target: Target,
    at: u64,
    kind: FaultKind,
    rng: &mut SplitMix64,
    image: &Image,
) -> Option<Strike> {
    let Target { on, page, pages } = target;
    let mut strike = Strike { on, at, kind, page: PageId(page), pages, instead: None, bit: None };
    match kind {
        FaultKind::Io | FaultKind::NoSpace | FaultKind::Dropped => {}
        FaultKind::Lost | FaultKind::Slow { .. } => {}
        FaultKind::Short => {
            let kept = rng.below(pages);
            (strike.page, strike.pages) = (PageId(page + kept), pages - kept);
        }
        FaultKind::Flip => {
            (strike.page, strike.pages) = (PageId(page + rng.below(pages)), 1);
            strike.bit = Some((rng.next_u64() % (8 * nandex_device::PAGE_BYTES as u64)) as u32);
        }
        FaultKind::Misdirected => {
            let others = image.page_count() - pages;
            if others == 0 {
                return None;
            }
            // Places from the right one on are shifted by one, so that it is never chosen.
            let instead = rng.below(others);
            strike.instead = Some(PageId(instead + u64::from(instead >= page)));
        }
        FaultKind::Stale => {
            let mut known: Vec<u64> = (page..page + pages).collect();
            known.retain(|page| image.has_previous(*page));
            let chosen = rng.below(known.len().max(1) as u64);
            (strike.page, strike.pages) = (PageId(*known.get(chosen as usize)?), 1);
        }
    }
    Some(strike)
}
