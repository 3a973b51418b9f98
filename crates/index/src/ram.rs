//! RAM that the open structures of a volume share, and the part of it that they do not take.
//!
//! ```text
//!   +-------------------------- RamPool, as many bytes as were stated ---------------------------+
//!   | what structures have | what all of them use  | lent to caches, each as  | free: as much as |
//!   | of their own         | by turns: the largest | much as the others, if   | each of these    |
//!   |                      | ones' parts count     | it can use that          | has              |
//! ```
//!
//! A structure that is opened or grows claims the RAM that it needs. RAM that is lent to caches is back when the claim
//! returns, so the order of opening only decides which structure is rejected when all RAM is needed.

use std::collections::HashSet;
use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use nandex_device::cores;
use nandex_store::Volume;

use crate::model::text::bytes;
use crate::{Error, Result};

/// The bytes that are lent if no limit was stated.
const UNLIMITED_BYTES: u64 = 64 << 20;

/// The number of structures that an error names.
const NAMED: usize = 5;

/// A user of lent RAM.
pub(crate) trait Borrower: Send + Sync + Debug {
    /// Takes at most `bytes` from now on, and returns the rest before this call returns.
    fn keep_at_most(&self, bytes: u64);
}

/// RAM that open structures of a volume share. Growing tables take what they need from it, instead of having separate
/// limits. See [`OpenOptions::ram_pool`](crate::OpenOptions::ram_pool).
pub struct RamPool {
    volume: Volume,
    total: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    claims: Vec<Claim>,
    /// The maximum number of bytes that are lent to each cache.
    lent: u64,
}

/// The RAM of one structure.
struct Claim {
    name: String,
    own: u64,
    /// The bytes that it uses in turn with others.
    shared: u64,
    /// The RAM that it does not take yet, if it grows and has no separate limit.
    spare: Option<Weak<SpareRam>>,
}

impl Claim {
    fn is_open(&self, open: &HashSet<String>) -> bool {
        match &self.spare {
            Some(spare) => spare.strong_count() > 0,
            None => open.contains(&self.name),
        }
    }
}

fn largest<'c>(claims: impl Iterator<Item = &'c Claim>) -> Vec<u64> {
    let mut all: Vec<u64> = claims.map(|it| it.shared).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    all.truncate(cores());
    all
}

impl State {
    /// Returns the largest parts that structures use in turn, one for each background thread.
    fn shared(&self) -> Vec<u64> {
        largest(self.claims.iter())
    }

    fn taken(&self) -> u64 {
        let own: u64 = self.claims.iter().map(|it| it.own).sum();
        own + self.shared().iter().sum::<u64>()
    }

    /// Returns what all structures but `name` leave of the total, and what it can use in turn with them.
    fn free_for(&self, name: &str, total: u64) -> (u64, u64) {
        let others = || self.claims.iter().filter(|it| it.name != name);
        let (own, shared): (u64, _) = (others().map(|it| it.own).sum(), largest(others()));
        let is_served = shared.len() == cores();
        let in_turn = shared.last().filter(|_| is_served).copied().unwrap_or(0);
        (total.saturating_sub(own + shared.iter().sum::<u64>()), in_turn)
    }

    fn borrowers(&self) -> impl Iterator<Item = Arc<SpareRam>> + '_ {
        self.claims.iter().filter_map(|it| it.spare.as_ref()?.upgrade())
    }

    /// Lends the free RAM in equal parts, and keeps one part free. A cache that can use less than its part leaves the
    /// rest to the others. Changes nothing if that makes little difference.
    fn lend(&mut self, free: u64, is_new: bool) {
        let mut most: Vec<u64> = self.borrowers().map(|it| it.useful).collect();
        let each = equal_parts(&mut most, free);
        let is_much = each < self.lent / 4 * 3 || each / 4 * 3 > self.lent;
        let lent: u64 = most.iter().map(|most| self.lent.min(*most)).sum();
        if is_new || is_much || lent > free {
            self.lent = each;
            self.borrowers().for_each(|it| it.lend(each.min(it.useful)));
        }
    }
}

/// Divides `free` into equal parts, one for each borrower and one that stays free, given the most that each borrower
/// can use, and returns the size of a part.
fn equal_parts(most: &mut [u64], mut free: u64) -> u64 {
    most.sort_unstable();
    let mut count = most.len() as u64 + 1;
    for it in most {
        if *it >= free / count {
            break;
        }
        free -= *it;
        count -= 1;
    }
    free / count
}

impl RamPool {
    /// Creates a pool of `bytes` for structures of the volume.
    #[must_use]
    pub fn new(volume: &Volume, bytes: u64) -> Self {
        Self { volume: volume.clone(), total: bytes, state: Mutex::default() }
    }

    /// Returns the size of the pool, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.total
    }

    /// Returns the open structures and the RAM of each, in bytes, including what its cache may take.
    #[must_use]
    pub fn taken(&self) -> Vec<(String, u64)> {
        let state = self.state();
        let spare = |it: &Claim| it.spare.as_ref().and_then(Weak::upgrade);
        let lent = |it: &Claim| spare(it).map_or(0, |spare| state.lent.min(spare.useful));
        state.claims.iter().map(|it| (it.name.clone(), it.own + lent(it))).collect()
    }

    /// Returns the bytes that the structure `name` has claimed for itself.
    #[cfg(test)]
    pub(crate) fn own_of(&self, name: &str) -> u64 {
        self.state().claims.iter().filter(|it| it.name == name).map(|it| it.own).sum()
    }

    /// Returns the bytes that the structure `name` may claim: all that others have not claimed, and what they use in
    /// turn.
    pub(crate) fn most(&self, name: &str) -> u64 {
        let (free, in_turn) = self.state().free_for(name, self.total);
        free + in_turn
    }

    /// Returns the same if nothing was stated: half of the unclaimed RAM, and what others use in turn.
    pub(crate) fn usual(&self, name: &str) -> u64 {
        let (free, in_turn) = self.state().free_for(name, self.total);
        free / 2 + in_turn
    }

    /// Claims all RAM that a structure takes from now on, in place of its earlier claim: it uses `shared` bytes of it
    /// in turn with others. `spare` manages what it does not take yet.
    ///
    /// # Errors
    /// [`Error::TooLittleRam`] if the others leave less. Then nothing changes.
    pub(crate) fn claim(
        &self,
        name: &str,
        (bytes, shared): (u64, u64),
        spare: Option<&Arc<SpareRam>>,
    ) -> Result<()> {
        let mut state = self.state();
        let place = state.claims.iter().position(|it| it.name == name);
        let before = place.map(|place| state.claims.swap_remove(place));
        let own = bytes.saturating_sub(shared);
        let spare = spare.map(Arc::downgrade);
        state.claims.push(Claim { name: name.to_owned(), own, shared, spare });
        let taken = state.taken();
        if taken > self.total {
            state.claims.pop();
            let error = self.refusal(&state, name, own + shared);
            state.claims.extend(before);
            return Err(error);
        }
        state.lend(self.total - taken, before.is_none());
        Ok(())
    }

    fn refusal(&self, state: &State, name: &str, needed: u64) -> Error {
        let free = self.total.saturating_sub(state.taken());
        let reason = format!(
            "{name:?} takes {}, and {} of {} are free ({}); state more with nandex::options().ram(...), ask for \
             less with `ram`, or drop a structure first",
            bytes(needed),
            bytes(free),
            bytes(self.total),
            whose(state)
        );
        Error::TooLittleRam { field: "ram", reason }
    }

    /// Returns the error for a structure that needs `needed` bytes, as its builder states.
    pub(crate) fn refuse(&self, name: &str, needed: u64) -> Error {
        self.refusal(&self.state(), name, needed)
    }

    /// Lists the largest structures and the RAM of each, in a line.
    pub(crate) fn whose(&self) -> String {
        whose(&self.state())
    }

    /// Locks the state, after removing structures that were closed.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().expect("no holder of the pool's lock panics");
        let open = self.volume.open_names();
        state.claims.retain(|it| it.is_open(&open));
        state
    }
}

fn whose(state: &State) -> String {
    if state.claims.is_empty() {
        return "no other structure is open".to_owned();
    }
    let mut claims: Vec<_> = state.claims.iter().map(|it| (it.own, &it.name)).collect();
    claims.sort_unstable_by(|one, other| other.cmp(one));
    let one = |(own, name): &(u64, &String)| format!("{name:?} has {}", bytes(*own));
    let mut parts: Vec<_> = claims.iter().take(NAMED).map(one).collect();
    let others = claims.iter().skip(NAMED).map(|(own, _)| own);
    if others.len() > 0 {
        parts.push(format!("{} others have {}", others.len(), bytes(others.sum())));
    }
    parts.push(format!("all of them use {} by turns", bytes(state.shared().iter().sum())));
    parts.join(", ")
}

impl Debug for RamPool {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("RamPool").field("bytes", &self.total).finish_non_exhaustive()
    }
}

/// The RAM that a growing table leaves of its limit or of a pool, or that another structure may borrow from a pool.
#[derive(Debug)]
pub struct SpareRam {
    bytes: AtomicU64,
    /// The maximum number of bytes that its cache can use.
    useful: u64,
    borrower: Mutex<Option<Weak<dyn Borrower>>>,
    /// The pool, and the table's name in it.
    pool: Option<(Arc<RamPool>, String)>,
}

impl SpareRam {
    /// Creates the spare RAM of the table `name`, in the pool if there is one.
    pub(crate) fn new(name: &str, pool: Option<&Arc<RamPool>>) -> Arc<Self> {
        let pool = pool.map(|pool| (Arc::clone(pool), name.to_owned()));
        Arc::new(Self {
            bytes: AtomicU64::new(0),
            useful: u64::MAX,
            borrower: Mutex::default(),
            pool,
        })
    }

    /// Creates the spare RAM that a cache borrows from a pool, if it can use `useful` bytes.
    pub(crate) fn of_small(useful: u64) -> Arc<Self> {
        let bytes = AtomicU64::new(0);
        Arc::new(Self { bytes, useful, borrower: Mutex::default(), pool: None })
    }

    /// Returns the bytes that are not taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns the most that the table may take in all: its limit, or what the others leave of a pool.
    pub(crate) fn limit(&self, ram_bytes_max: Option<u64>) -> Option<u64> {
        self.pool.as_ref().map(|(pool, name)| pool.most(name)).or(ram_bytes_max)
    }

    /// Notes that the table takes `taken` bytes from now on, `shared` of them in turn with other structures. Lent RAM
    /// that exceeds the remaining limit is back when this returns.
    ///
    /// # Errors
    /// [`Error::TooLittleRam`] if a pool has less. Then nothing changes.
    pub(crate) fn leave(
        self: &Arc<Self>,
        ram_bytes_max: Option<u64>,
        (taken, shared): (u64, u64),
    ) -> Result<()> {
        match &self.pool {
            Some((pool, name)) => pool.claim(name, (taken, shared), Some(self)),
            None => {
                let left = ram_bytes_max.map_or(UNLIMITED_BYTES, |most| most.saturating_sub(taken));
                self.lend(left);
                Ok(())
            }
        }
    }

    fn lend(&self, bytes: u64) {
        let bytes = bytes.min(nandex_device::ram_bytes());
        let borrower = self.borrower.lock().expect("no holder of the borrower's lock panics");
        self.bytes.store(bytes, Relaxed);
        if let Some(borrower) = borrower.as_ref().and_then(Weak::upgrade) {
            borrower.keep_at_most(bytes);
        }
    }

    /// Lends all of it to a borrower, now and later.
    pub(crate) fn lend_to(&self, borrower: &Arc<impl Borrower + 'static>) {
        let mut lent = self.borrower.lock().expect("no holder of the borrower's lock panics");
        borrower.keep_at_most(self.bytes());
        let borrower: Arc<dyn Borrower> = Arc::clone(borrower) as Arc<dyn Borrower>;
        *lent = Some(Arc::downgrade(&borrower));
    }
}

#[cfg(test)]
mod tests {
    use super::equal_parts;

    #[test]
    fn who_can_use_less_than_an_equal_part_leaves_it_to_the_others() {
        assert_eq!(equal_parts(&mut [], 100), 100);
        assert_eq!(equal_parts(&mut [u64::MAX], 100), 50);
        assert_eq!(equal_parts(&mut [u64::MAX, 10], 100), 45);
        assert_eq!(equal_parts(&mut [30, 10, u64::MAX], 100), 30);
        assert_eq!(equal_parts(&mut [10, 20, 30], 100), 40);
        assert_eq!(equal_parts(&mut [5; 3], 8), 2);
    }
}
