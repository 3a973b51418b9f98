//! Updates before they reach the table: their records become durable first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nandex_store::entries::KeyState;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::values::ValueRef;
use nandex_store::{Durability, Threads};

use super::cache::Now;
use super::changes::Changes;
use super::format::Fingerprint;
use super::{Inner, lock};
use crate::Result;
use crate::api::Table;

/// The updates that may wait for the table, whatever the size of their records.
const UPDATES_MAX: usize = 4096;

/// The new place of a fingerprint's record; `None` when it was removed.
pub(super) type Update = Option<ValueRef>;

/// Updates in sorted order, so that the same calls give the same bytes.
type Batch = BTreeMap<Fingerprint, Update>;

/// Updates that the table does not have yet.
#[derive(Debug, Default)]
pub(super) struct Updates {
    open: Batch,
    /// The updates being published; after a failure they are tried again.
    closing: Arc<Batch>,
    /// The number of updates ever, the number when `closing` was taken, and the number that the table has.
    noted: u64,
    closed: u64,
    published: u64,
    /// The number of updates ever that may have changed the number of keys: all but those that moved a record.
    changed: u64,
    /// Whether publishing `closing` failed.
    is_stuck: bool,
    /// Fingerprints that batches looked up ahead and whose records were not replaced since, by the batch's number.
    ahead: BTreeMap<u64, BTreeSet<Fingerprint>>,
    batches_ahead: u64,
    /// The changes while segments are cleaned whose live records were determined before.
    changes: Changes,
}

/// The updates that the table does not have.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Records that were put.
    put: u64,
    /// Fingerprints that were removed.
    removed: u64,
}

impl Updates {
    /// The pending update of a fingerprint, if the table does not have it yet.
    pub(super) fn find(&self, fingerprint: &Fingerprint) -> KeyState<ValueRef> {
        let update = self.open.get(fingerprint).or_else(|| self.closing.get(fingerprint));
        update.map_or(KeyState::Unknown, |update| (*update).into())
    }

    /// Returns the number of updates that the table does not have, by kind.
    fn waiting(&self) -> Waiting {
        let all = self.open.values().chain(self.closing.values());
        all.fold(Waiting::default(), |mut waiting, update| {
            let count = if update.is_some() { &mut waiting.put } else { &mut waiting.removed };
            *count += 1;
            waiting
        })
    }

    /// Returns the number of updates ever.
    pub(super) fn noted(&self) -> u64 {
        self.noted
    }

    /// Returns the number of updates ever that may have changed the number of keys.
    pub(super) fn changed(&self) -> u64 {
        self.changed
    }

    /// Returns whether there was never an update.
    pub(super) fn is_unused(&self) -> bool {
        self.noted == 0
    }

    /// Notes that a batch looks up these fingerprints, and numbers it.
    pub(super) fn note_ahead(&mut self, fingerprints: &[Fingerprint]) -> u64 {
        self.batches_ahead += 1;
        self.ahead.insert(self.batches_ahead, fingerprints.iter().copied().collect());
        self.batches_ahead
    }

    /// Returns whether no thread has replaced the record of this fingerprint since the batch was noted.
    pub(super) fn is_ahead(&self, batch: u64, fingerprint: &Fingerprint) -> bool {
        self.ahead.get(&batch).is_some_and(|batch| batch.contains(fingerprint))
    }

    pub(super) fn forget_ahead(&mut self, batch: u64) {
        self.ahead.remove(&batch);
    }

    /// The changes of updates.
    pub(super) fn changes(&mut self) -> &mut Changes {
        &mut self.changes
    }

    /// Notes an update. If a record has only moved, what is known of the older ones remains valid.
    fn note(&mut self, fingerprint: Fingerprint, update: Update, is_moved: bool) {
        self.ahead.values_mut().for_each(|batch| _ = batch.remove(&fingerprint));
        if !is_moved {
            self.changes.note(&fingerprint);
            self.changed += 1;
        }
        self.open.insert(fingerprint, update);
        self.noted += 1;
    }

    /// Returns the approximate bytes of RAM.
    pub(super) fn ram_bytes(&self) -> usize {
        let entry = size_of::<Fingerprint>() + size_of::<Update>();
        // Nodes of the trees are at least half full.
        let ahead = self.ahead.values().map(BTreeSet::len).sum::<usize>();
        2 * (entry * (self.open.len() + self.closing.len()) + size_of::<Fingerprint>() * ahead)
            + self.changes.ram_bytes()
    }
}

impl<T: Table> Inner<T> {
    /// Notes an update whose record, if any, was appended; the caller holds the stripe.
    pub(super) fn note(&self, fingerprint: Fingerprint, now: Now<'_>, replaced: Update) {
        let update = now.reference();
        replaced.into_iter().for_each(|reference| self.values.note_dead(reference));
        let is_moved = matches!(now, Now::Moved(_));
        let note = || lock(&self.updates).note(fingerprint, update, is_moved);
        match self.cache.get() {
            Some(cache) => cache.update(&fingerprint, now, note),
            None => note(),
        }
    }

    /// Returns the place of a record that is replaced unread, as far as RAM knows it without the table.
    pub(super) fn known_place(&self, fingerprint: &Fingerprint) -> KeyState<ValueRef> {
        if let Some(known) = self.cached_place(fingerprint) {
            return known.into();
        }
        self.count_unknown(1);
        let waiting = lock(&self.updates).find(fingerprint);
        if !waiting.is_known() {
            self.has_unread.store(true, Relaxed);
        }
        waiting
    }

    /// Returns the places of the records of fingerprints, as far as RAM knows them without the table.
    pub(super) fn places_in_ram(&self, prints: &[Fingerprint]) -> Vec<KeyState<ValueRef>> {
        let cached = self.cache.get().map(|cache| cache.places(prints));
        let cached = cached.unwrap_or_else(|| vec![None; prints.len()]);
        let of = |(print, cached): (&Fingerprint, Option<Option<ValueRef>>)| {
            cached.map_or_else(|| lock(&self.updates).find(print), KeyState::from)
        };
        prints.iter().zip(cached).map(of).collect()
    }

    /// Returns the place of a fingerprint's record, if the cache knows it.
    fn cached_place(&self, fingerprint: &Fingerprint) -> Option<Option<ValueRef>> {
        self.cache.get()?.place(fingerprint)
    }

    /// Returns the place of a fingerprint's record. Costs a lookup of the table, unless the cache knows it.
    pub(super) fn locate(&self, fingerprint: &Fingerprint) -> Result<Option<ValueRef>> {
        match self.cached_place(fingerprint) {
            Some(known) => Ok(known),
            None => self.locate_in_table(fingerprint),
        }
    }

    /// Returns the place of a fingerprint's record, without asking the cache.
    pub(super) fn locate_in_table(&self, fingerprint: &Fingerprint) -> Result<Option<ValueRef>> {
        let waiting = lock(&self.updates).find(fingerprint);
        if waiting.is_known() {
            return Ok(waiting.value());
        }
        self.table.get(fingerprint)?.map(|value| self.decode(&value)).transpose()
    }

    pub(super) fn decode(&self, value: &[u8]) -> Result<ValueRef> {
        ValueRef::decode(value).ok_or(crate::Error::Width {
            what: "value",
            expected: super::TABLE_VALUE_BYTES,
            found: value.len(),
        })
    }

    /// Fails for updates of a read-only volume, and while acknowledged updates cannot be published, so that others do
    /// not pile up behind them. The caller holds no stripe.
    pub(super) fn check_flow(&self) -> Result<()> {
        if self.volume.is_read_only() {
            return Err(nandex_store::Error::ReadOnly.into());
        }
        self.volume.poison().check()?;
        let is_stuck = lock(&self.updates).is_stuck;
        if is_stuck { self.publish_all() } else { Ok(()) }
    }

    /// Publishes and syncs as the durability mode requires before an acknowledgement. The caller holds no stripe.
    pub(super) fn acknowledge(&self) -> Result<()> {
        self.cleaning.pace.wait();
        match self.volume.durability() {
            Durability::Always => self.publish_all(),
            Durability::Every(period) if self.volume.threads() == Threads::Inline => {
                self.sync_if_due(period.max(Duration::from_millis(1)))
            }
            Durability::Every(_) | Durability::Never => self.publish_if_full(),
        }
    }

    /// Publishes once the limit of waiting updates is reached.
    pub(super) fn publish_if_full(&self) -> Result<()> {
        let many = lock(&self.updates).open.len() >= UPDATES_MAX;
        let is_full = self.values.unwritten_bytes() >= self.batches.bytes();
        if many || is_full {
            self.publish_all()?;
            self.batches.was_full();
            return Ok(());
        }
        self.volume.poison().check()?;
        Ok(())
    }

    /// Publishes if a record of this many bytes would exceed an I/O chunk, so that chunks are full and seldom followed
    /// by a short one.
    pub(super) fn publish_before(&self, record_bytes: u64) -> Result<()> {
        let unwritten = self.values.unwritten_bytes() as u64;
        if unwritten > 0 && unwritten + record_bytes > self.batches.bytes() as u64 {
            self.publish_all()?;
            self.batches.was_full();
        }
        Ok(())
    }

    /// Performs the timer's work if there is no timer, according to the device's clock.
    fn sync_if_due(&self, period: Duration) -> Result<()> {
        let now_ns = self.volume.device().now();
        let past_ns = now_ns.saturating_sub(self.period_start_ns.load(Relaxed));
        if u128::from(past_ns) < period.as_nanos() {
            return self.publish_if_full();
        }
        self.period_start_ns.store(now_ns, Relaxed);
        self.publish_all()?;
        self.table.sync()
    }

    /// Passes all updates noted before this call to the table, after making their records durable. With
    /// `Durability::Always` they are durable then. Concurrent callers share the work.
    pub(super) fn publish_all(&self) -> Result<()> {
        let wanted = lock(&self.updates).noted;
        let _lock = lock(&self.publisher);
        while let Some((batch, closed)) = self.next_batch(wanted) {
            let published = self.commit_and_publish(&batch);
            let mut updates = lock(&self.updates);
            updates.is_stuck = published.is_err();
            published?;
            updates.closing = Arc::default();
            updates.published = closed;
        }
        self.tell_live();
        Ok(())
    }

    /// Tells the value log once per segment how many records are live, if puts do not know what they replace, and has
    /// it cleaned if it runs short.
    fn tell_live(&self) {
        let last = self.values.last_segment();
        if self.told.swap(last, Relaxed) != last {
            self.tell_live_now();
            self.ask_for_cleaning();
        }
    }

    pub(super) fn tell_live_now(&self) {
        if self.has_unread.load(Relaxed) {
            let Waiting { put, removed } = lock(&self.updates).waiting();
            let entries = self.table.stats().entries.saturating_sub(removed);
            self.values.note_live_at_most(entries + put);
        }
    }

    /// Returns the updates to publish next, those that failed first; the caller holds the publisher's lock.
    fn next_batch(&self, wanted: u64) -> Option<(Arc<Batch>, u64)> {
        let mut updates = lock(&self.updates);
        if updates.published >= wanted {
            return None;
        }
        if updates.closing.is_empty() {
            updates.closing = Arc::new(std::mem::take(&mut updates.open));
            updates.closed = updates.noted;
        }
        Some((Arc::clone(&updates.closing), updates.closed))
    }

    fn commit_and_publish(&self, batch: &Batch) -> Result<()> {
        if is_on(Barrier::ValuesBeforeReferences) {
            self.values.commit()?;
        }
        self.publish(batch)
    }

    /// Removals come first: the table never has more keys than the map had or has.
    fn publish(&self, batch: &Batch) -> Result<()> {
        let removed = batch.iter().filter(|(_, update)| update.is_none());
        removed.map(|(fingerprint, _)| fingerprint).try_for_each(|key| self.table.remove(key))?;
        let encoded: Vec<_> = batch
            .iter()
            .filter_map(|(fingerprint, update)| Some((fingerprint, (*update)?.encode())))
            .collect();
        let pairs: Vec<_> = encoded.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        if pairs.is_empty() { Ok(()) } else { self.table.insert_many(&pairs) }
    }
}
