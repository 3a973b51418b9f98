//! The update path: buffer first, then the log, then the acknowledgement; and what happens when a buffer is
//! full.

use std::sync::Arc;
use std::sync::RwLockWriteGuard;
use std::sync::atomic::Ordering::Relaxed;

use nandex_store::Durability;
use nandex_store::log::Reservation;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::run::Entry;

use super::buffer::Updates;
use super::format::{AMOUNT_BYTES, CUT_BYTES, Covered, Cut, put_amount, update};
use super::levels::Goal;
use super::part::{Frozen, Part, State};
use super::{Inner, WhenFull};
use crate::{Error, Result};

/// Keys of a batch that are sorted by part at a time.
const BATCH: usize = 4096;

/// Updates that are applied under one lock, so that lookups wait for no more.
const LOCKED_MAX: usize = 512;

impl Inner {
    /// Applies and acknowledges updates of keys.
    pub(super) fn update_keys(&self, keys: &[&[u8]], is_delete: bool) -> Result<()> {
        let update = |part: usize, fingerprints: &[u64]| {
            let updates = if is_delete {
                Updates::Delete(fingerprints)
            } else {
                Updates::Insert(fingerprints)
            };
            self.update(&self.parts[part], updates)
        };
        if let [key] = keys {
            let (part, fingerprint) = self.place(key);
            update(part, &[fingerprint])?;
            return self.acknowledge();
        }
        for keys in keys.chunks(BATCH) {
            self.by_part(keys.iter().map(|key| self.place(key)), update)?;
        }
        self.acknowledge()
    }

    /// Applies and acknowledges amounts added to keys.
    pub(super) fn add_keys(&self, amounts: &[(&[u8], i64)]) -> Result<()> {
        for amounts in amounts.chunks(BATCH) {
            let entry = |(key, count): &(&[u8], i64)| {
                let (part, fingerprint) = self.place(key);
                (part, Entry { fingerprint, count: *count })
            };
            let entries = amounts.iter().map(entry).filter(|(_, entry)| entry.count != 0);
            self.by_part(entries, |part, entries| {
                self.update(&self.parts[part], Updates::Add(entries))
            })?;
        }
        self.acknowledge()
    }

    fn acknowledge(&self) -> Result<()> {
        Ok(self.volume.log().commit()?)
    }

    /// Hands each part what is for it, so that each is locked once and its buffer stays in the processor's
    /// cache.
    fn by_part<T: Copy + Default>(
        &self,
        items: impl Iterator<Item = (usize, T)>,
        mut visit: impl FnMut(usize, &[T]) -> Result<()>,
    ) -> Result<()> {
        let items: Vec<_> = items.collect();
        let mut starts = vec![0usize; self.parts.len() + 1];
        for (part, _) in &items {
            starts[part + 1] += 1;
        }
        for part in 1..starts.len() {
            starts[part] += starts[part - 1];
        }
        let mut sorted = vec![T::default(); items.len()];
        let mut next = starts.clone();
        for (part, item) in items {
            sorted[next[part]] = item;
            next[part] += 1;
        }
        let mut groups = starts.windows(2).enumerate().filter(|(_, range)| range[0] < range[1]);
        groups.try_for_each(|(part, range)| visit(part, &sorted[range[0]..range[1]]))
    }

    /// Applies updates of one part in order; waits, or merges, when its buffer is full.
    fn update(&self, part: &Part, mut updates: Updates<'_>) -> Result<()> {
        self.volume.poison().check()?;
        while updates.len() > 0 {
            self.pace.keep(&self.work);
            let some = updates.first(updates.len().min(LOCKED_MAX));
            let bytes = (some.len() * self.logged_bytes(some) + CUT_BYTES) as u64;
            let room = self.volume.wait_for_space(bytes)?;
            let mut state = part.write();
            self.check_room(some)?;
            let count = self.apply(part, &mut state, some)?;
            // Whatever a buffer holds, it can be merged; one that is empty takes anything.
            let is_empty = state.active.updates == 0 && state.active.entries() == 0;
            assert!(count > 0 || !is_empty, "an empty buffer takes an update");
            if count < some.len() {
                self.rotate(part, state, room)?;
            }
            updates = updates.after(count);
        }
        Ok(())
    }

    /// Refuses where the filter has as many keys as it was made for and may not grow.
    fn check_room(&self, updates: Updates<'_>) -> Result<()> {
        if self.config.when_full == WhenFull::Grow || matches!(updates, Updates::Delete(_)) {
            return Ok(());
        }
        let entries = self.counters.entries();
        if entries + updates.len() as u64 > self.config.keys {
            return Err(Error::KeysFull { entries, keys: self.config.keys });
        }
        Ok(())
    }

    /// Applies as many updates as the buffer takes, and logs them.
    fn apply(&self, part: &Part, state: &mut State, updates: Updates<'_>) -> Result<usize> {
        let before = state.active.entries();
        let room = usize::try_from(state.active_max.saturating_sub(before)).unwrap_or(usize::MAX);
        let count = state.active.apply(updates.first(updates.len().min(room)))?;
        let applied = updates.first(count);
        self.note_entries(before, state.active.entries());
        let deletes = applied.deletes();
        state.inserts += count as u64 - deletes;
        state.deletes += deletes;
        self.pace.updated(count);
        if count > 0 && self.logs_updates() {
            self.log_updates(part.first, applied)?;
        }
        Ok(count)
    }

    /// Without durability nothing is logged but cuts.
    pub(super) fn logs_updates(&self) -> bool {
        self.volume.durability() != Durability::Never
    }

    fn logged_bytes(&self, updates: Updates<'_>) -> usize {
        match updates {
            Updates::Add(entries)
                if entries.iter().any(|entry| entry.count.unsigned_abs() != 1) =>
            {
                AMOUNT_BYTES
            }
            _ => self.update_bytes,
        }
    }

    /// Logs updates of the part whose first fingerprint is `first`: the log counts from the universe's.
    fn log_updates(&self, first: u64, updates: Updates<'_>) -> Result<()> {
        if let Updates::Insert([fingerprint]) = updates {
            let update = update(first + fingerprint, false);
            self.volume.log().append(self.id, &[&update[..self.update_bytes]])?;
            return Ok(());
        }
        let entry_bytes = self.logged_bytes(updates);
        let mut bytes = Vec::with_capacity(updates.len() * entry_bytes);
        let mut put = |fingerprints: &[u64], is_delete| {
            for fingerprint in fingerprints {
                let update = update(first + fingerprint, is_delete);
                bytes.extend_from_slice(&update[..self.update_bytes]);
            }
        };
        match updates {
            Updates::Insert(fingerprints) => put(fingerprints, false),
            Updates::Delete(fingerprints) => put(fingerprints, true),
            Updates::Add(entries) if entry_bytes == self.update_bytes => {
                entries.iter().for_each(|entry| put(&[entry.fingerprint], entry.count < 0));
            }
            Updates::Add(entries) => {
                let mut put = |it: &Entry| put_amount(&mut bytes, first + it.fingerprint, it.count);
                entries.iter().for_each(&mut put);
            }
        }
        self.volume.log().append_many(self.id, entry_bytes, &bytes)?;
        Ok(())
    }

    /// A part's buffer is full: puts an empty one in its place, or waits for one. The log's room is for the
    /// cut.
    #[cold]
    fn rotate(
        &self,
        part: &Part,
        mut state: RwLockWriteGuard<'_, State>,
        room: Option<Reservation<'_>>,
    ) -> Result<()> {
        self.volume.poison().check()?;
        self.work.report_fault()?;
        let is_frozen = state.frozen.is_none() && self.freeze(part, &mut state, Goal::Merge)?;
        drop((state, room));
        if is_frozen {
            self.pace.full();
            self.work.push(part.number as usize);
        }
        if self.options.merge_threads == 0 {
            self.merge_waiting()
        } else {
            if !is_frozen {
                self.work.wait();
            }
            Ok(())
        }
    }

    /// Takes a part's buffer out of the way of updates, and marks its end in the log, if there is an empty one
    /// for its place. The caller holds the part, so that no update comes to stand on the wrong side of the
    /// mark.
    pub(super) fn freeze(&self, part: &Part, state: &mut State, goal: Goal) -> Result<bool> {
        let Some(empty) = self.spares().pop() else { return Ok(false) };
        let covered = match self.cut(part) {
            Ok(covered) => covered,
            Err(error) => {
                self.spares().push(empty);
                return Err(error);
            }
        };
        let buffer = Arc::new(std::mem::replace(&mut state.active, empty));
        state.active_max = u64::MAX;
        state.frozen = Some(Frozen { buffer, covered, goal });
        Ok(true)
    }

    /// Logs a cut. The caller holds the part.
    pub(super) fn cut(&self, part: &Part) -> Result<Covered> {
        let number = self.next_cut.fetch_add(1, Relaxed);
        let cut = Cut { number, part: part.number };
        let log = self.volume.log();
        let cut_at = if is_on(Barrier::CutIsLogged) {
            log.append(self.id, &[&cut.encode()])?
        } else {
            log.next_lsn()
        };
        Ok(Covered { cut: number, cut_at })
    }
}
