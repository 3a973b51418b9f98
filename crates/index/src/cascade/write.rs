//! The update path: buffer first, then the log, then the acknowledgement; and what happens when the buffer
//! is full.

use std::sync::RwLockWriteGuard;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nandex_store::Durability;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::run::Entry;

use super::buffer::Updates;
use super::format::{AMOUNT_BYTES, CUT_BYTES, cut_bytes, put_amount, put_update};
use super::levels::Goal;
use super::{Frozen, Inner, State, WhenFull};
use crate::{Error, Result};

/// Updates that are applied under one lock, so that lookups wait for no more.
const BATCH: usize = 512;

/// How long an update waits at most for a merge that is behind, each time: what it takes to merge a
/// thousand fingerprints or more.
const PACE: Duration = Duration::from_micros(400);

impl Inner {
    /// Applies and acknowledges updates of keys.
    pub(super) fn insert_keys(&self, keys: &[&[u8]], is_delete: bool) -> Result<()> {
        let mut fingerprints = Vec::with_capacity(keys.len().min(BATCH));
        for keys in keys.chunks(BATCH) {
            fingerprints.clear();
            fingerprints.extend(keys.iter().map(|key| self.fingerprint(key)));
            let updates = if is_delete {
                Updates::Delete(&fingerprints)
            } else {
                Updates::Insert(&fingerprints)
            };
            self.update(updates)?;
        }
        self.acknowledge()
    }

    /// Applies and acknowledges amounts added to keys.
    pub(super) fn add_keys(&self, amounts: &[(&[u8], i64)]) -> Result<()> {
        let mut entries = Vec::with_capacity(amounts.len().min(BATCH));
        for amounts in amounts.chunks(BATCH) {
            entries.clear();
            let entry = |(key, count): &(&[u8], i64)| Entry {
                fingerprint: self.fingerprint(key),
                count: *count,
            };
            entries.extend(amounts.iter().map(entry).filter(|entry| entry.count != 0));
            self.update(Updates::Add(&entries))?;
        }
        self.acknowledge()
    }

    pub(super) fn acknowledge(&self) -> Result<()> {
        Ok(self.volume.log().commit()?)
    }

    /// Applies updates in order; waits, or merges, when the buffer is full.
    fn update(&self, mut updates: Updates<'_>) -> Result<()> {
        self.volume.poison().check()?;
        while updates.len() > 0 {
            self.keep_pace();
            let bytes = (updates.len() * self.logged_bytes(updates) + CUT_BYTES) as u64;
            let room = self.volume.wait_for_room(bytes)?;
            let mut state = self.write_state();
            self.check_room(&state, updates)?;
            let count = self.apply(&mut state, updates)?;
            updates = updates.after(count);
            // Whatever the buffer holds, it can be merged; one that is empty takes anything.
            assert!(count > 0 || state.active.updates > 0, "an empty buffer takes an update");
            if updates.len() > 0 {
                drop(room);
                self.rotate(state)?;
            }
        }
        Ok(())
    }

    /// Refuses where the filter has as many keys as it was made for and may not grow.
    fn check_room(&self, state: &State, updates: Updates<'_>) -> Result<()> {
        if self.config.when_full == WhenFull::Grow || matches!(updates, Updates::Delete(_)) {
            return Ok(());
        }
        let entries = state.entries();
        if entries + updates.len() as u64 > self.config.keys {
            return Err(Error::KeysFull { entries, keys: self.config.keys });
        }
        Ok(())
    }

    /// Applies as many updates as the buffer takes, and logs them.
    fn apply(&self, state: &mut State, updates: Updates<'_>) -> Result<usize> {
        let count = state.active.apply(updates)?;
        let applied = updates.first(count);
        self.count_updates(applied);
        self.filled.store(state.active.entries(), Relaxed);
        if count > 0 && self.logs_updates() {
            self.log_updates(applied)?;
        }
        Ok(count)
    }

    /// Without durability nothing is logged but cuts.
    pub(super) fn logs_updates(&self) -> bool {
        self.volume.durability() != Durability::Never
    }

    fn logged_bytes(&self, updates: Updates<'_>) -> usize {
        match updates {
            Updates::Insert(_) | Updates::Delete(_) => self.update_bytes,
            Updates::Add(_) => AMOUNT_BYTES,
        }
    }

    fn log_updates(&self, updates: Updates<'_>) -> Result<()> {
        let entry_bytes = self.logged_bytes(updates);
        let mut bytes = Vec::with_capacity(updates.len() * entry_bytes);
        let mut put = |fingerprints: &[u64], is_delete| {
            for fingerprint in fingerprints {
                put_update(&mut bytes, *fingerprint, is_delete, self.update_bytes);
            }
        };
        match updates {
            Updates::Insert(fingerprints) => put(fingerprints, false),
            Updates::Delete(fingerprints) => put(fingerprints, true),
            Updates::Add(entries) => {
                entries.iter().for_each(|it| put_amount(&mut bytes, it.fingerprint, it.count));
            }
        }
        self.volume.log().append_many(self.id, entry_bytes, &bytes)?;
        Ok(())
    }

    fn count_updates(&self, updates: Updates<'_>) {
        let (inserts, deletes) = match updates {
            Updates::Insert(fingerprints) => (fingerprints.len(), 0),
            Updates::Delete(fingerprints) => (0, fingerprints.len()),
            Updates::Add(entries) => {
                let deletes = entries.iter().filter(|entry| entry.count < 0).count();
                (entries.len() - deletes, deletes)
            }
        };
        self.counters.inserts.fetch_add(inserts as u64, Relaxed);
        self.counters.deletes.fetch_add(deletes as u64, Relaxed);
    }

    /// The buffer is full: puts the other one in its place, or waits for it.
    fn rotate(&self, mut state: RwLockWriteGuard<'_, State>) -> Result<()> {
        self.volume.poison().check()?;
        self.report_fault()?;
        let is_frozen = state.frozen.is_none() && self.freeze(&mut state, Goal::Merge)?;
        drop(state);
        self.changed();
        if self.options.merge_threads == 0 {
            self.merge_and_checkpoint()
        } else if is_frozen {
            Ok(())
        } else {
            self.wait_for_change();
            Ok(())
        }
    }

    /// Takes the buffer out of the way of inserts, and marks its end in the log. The caller holds the lock, so
    /// that no update comes to stand on the wrong side of the mark.
    pub(super) fn freeze(&self, state: &mut State, goal: Goal) -> Result<bool> {
        let Some(empty) = state.spare.take() else { return Ok(false) };
        let (number, at) = match self.cut(state) {
            Ok(cut) => cut,
            Err(error) => {
                state.spare = Some(empty);
                return Err(error);
            }
        };
        let buffer = std::mem::replace(&mut state.active, empty);
        let buffer = std::sync::Arc::new(buffer);
        state.frozen = Some(Frozen { buffer, cut: number, cut_at: at, goal });
        self.filled.store(0, Relaxed);
        self.allowed.store(0, Relaxed);
        Ok(true)
    }

    /// Logs a cut.
    pub(super) fn cut(&self, state: &mut State) -> Result<(u64, nandex_store::Lsn)> {
        let number = state.next_cut;
        let at = if is_on(Barrier::CutIsLogged) {
            self.volume.log().append(self.id, &[&cut_bytes(number)])?
        } else {
            self.volume.log().next_lsn()
        };
        state.next_cut += 1;
        Ok((number, at))
    }

    /// While a buffer is merged, lets the other one fill only as fast as the merge gets on, in waits far
    /// below a millisecond: so that nobody waits for the whole of it in the end.
    fn keep_pace(&self) {
        if self.options.merge_threads > 0
            && self.filled.load(Relaxed) > self.allowed.load(Relaxed).saturating_add(self.lead)
        {
            self.wait_for_progress(PACE);
        }
    }
}
