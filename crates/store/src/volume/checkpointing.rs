//! Taking checkpoints, by a thread or by the callers that update.
//!
//! A checkpoint is a list of steps, and each makes the next one safe. The structures' captures and the maps that refer
//! to them are made durable, then the superblock that refers to the maps. Only then is the log's tail released and are
//! evicted places written again.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::opening::write_superblock;
use super::{Captured, Checkpointed, Inner, Root, Threads, Volume};
use crate::checkpoint::{self, pages_for};
use crate::log::{LogAnchor, Reservation};
use crate::mutants::{Barrier, is_on};
use crate::space::Extent;
use crate::superblock::Superblock;
use crate::{Error, Lsn, PanicGuard, Result, StructureId};

/// The reason why taking the lock of the maintenance thread's requests cannot fail.
const LOCKED: &str = "no holder of the requests' lock panics";

/// The interval at which the log's fill is checked.
const PERIOD: Duration = Duration::from_millis(20);

impl Volume {
    /// Takes a checkpoint now and waits for it. Does nothing on a volume that was opened read-only.
    ///
    /// # Errors
    /// A failed write or sync, which poisons the volume.
    pub fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()
    }

    /// Requests a checkpoint soon: from the background thread, or without one from the next [`reserve`](Self::reserve).
    pub fn request_checkpoint(&self) {
        self.inner.maintenance.request();
    }

    /// Waits until `bytes` more bytes of entries fit the log; see [`Log::wait_for_space`](crate::Log::wait_for_space).
    /// The caller must hold no lock that a checkpoint needs: without background threads, this takes the checkpoints
    /// that are due.
    ///
    /// # Errors
    /// As [`Log::wait_for_space`](crate::Log::wait_for_space), and a checkpoint's failure.
    #[inline]
    pub fn wait_for_space(&self, bytes: u64) -> Result<Option<Reservation<'_>>> {
        self.inner.refuse_read_only()?;
        self.inner.grow_log_for(bytes)?;
        match self.threads() {
            Threads::Background => self.inner.log.wait_for_space(bytes),
            Threads::Inline => self.inner.checkpoint_until_fits(bytes).map(Some),
        }
    }

    /// Like [`wait_for_space`](Self::wait_for_space), but always reserves the space; see
    /// [`Log::reserve`](crate::Log::reserve).
    ///
    /// # Errors
    /// As [`wait_for_space`](Self::wait_for_space).
    pub fn reserve(&self, bytes: u64) -> Result<Reservation<'_>> {
        self.inner.refuse_read_only()?;
        self.inner.grow_log_for(bytes)?;
        match self.threads() {
            Threads::Background => self.inner.log.reserve(bytes),
            Threads::Inline => self.inner.checkpoint_until_fits(bytes),
        }
    }
}

type OpenStructure = (StructureId, Arc<dyn Checkpointed>);

impl Inner {
    pub(super) fn checkpoint(&self) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        let _maintenance = self.lock_maintenance();
        self.poison.check()?;
        let structures = self.open_structures();
        structures.iter().try_for_each(|(_, structure)| structure.prepare())?;
        let captures: Vec<_> =
            structures.iter().map(|(id, structure)| (*id, structure.capture())).collect();
        // Entries that a partial discard put back into buffers must be durable in the log before their old place is
        // overwritten.
        if is_on(Barrier::CheckpointSyncsLog) {
            self.log.sync()?;
        }
        let written = self.write_checkpoint(captures, &structures);
        let tail = if is_on(Barrier::FailedCheckpointPoisons) {
            self.poison.guard(written)?
        } else {
            written?
        };
        self.truncate(tail, &structures);
        Ok(())
    }

    /// Allows overwriting the pages that the durable checkpoint no longer refers to.
    fn truncate(&self, tail: Lsn, structures: &[OpenStructure]) {
        self.log.release(tail);
        structures.iter().for_each(|(_, structure)| structure.committed());
    }

    fn open_structures(&self) -> Vec<OpenStructure> {
        let mut structures: Vec<_> = {
            let structures = self.open();
            structures
                .iter()
                .filter_map(|(id, structure)| Some((*id, structure.upgrade()?)))
                .collect()
        };
        structures.sort_by_key(|(id, _)| *id);
        structures
    }

    /// Writes a checkpoint. One sync makes durable the checkpoint and everything that it refers to, because the
    /// structures' writes have completed. A second one makes the superblock durable.
    fn write_checkpoint(
        &self,
        captures: Vec<(StructureId, Captured)>,
        structures: &[OpenStructure],
    ) -> Result<Lsn> {
        let mut root = self.root();
        root.note(captures);
        root.release_idle(self.log.synced());
        let LogAnchor { tail, synced, epoch, .. } = self.log.anchor(root.tail(self.log.synced()));
        let bytes = root.catalog.encode();
        let extent = root.next_extent(pages_for(bytes.len()));
        self.device.grow(root.space.page_count())?;
        let generation = root.superblock.generation + 1;
        checkpoint::write(&*self.device, extent, generation, &bytes)?;
        if is_on(Barrier::CheckpointSynced) {
            self.device.sync()?;
        }
        if !is_on(Barrier::TruncatedAfterCheckpoint) {
            self.truncate(tail, structures);
        }
        let mut log = root.superblock.log.clone();
        let passed = if is_on(Barrier::LeftLogKept) { tail } else { log.newest.since };
        let gone = log.drop_before(passed);
        let freed = root.superblock.log.freed(&log);
        let mut superblock = Superblock {
            generation,
            log,
            page_count: root.space.page_count(),
            checkpoint: extent,
            checkpoint_bytes: bytes.len() as u64,
            checkpoint_generation: generation,
            log_tail: tail,
            log_synced: synced,
            epoch,
            ..root.superblock.clone()
        };
        let durable = write_superblock(&*self.device, &mut superblock)?;
        self.log.note_superblock(durable);
        root.spare = Some(root.superblock.checkpoint);
        root.superblock = superblock;
        self.mark_gone(&gone)?;
        root.removed.extend(freed);
        root.release_removed();
        root.checkpoints += 1;
        Ok(tail)
    }

    /// Performs the pending work of the background thread. If that is not enough, takes checkpoints until the log has
    /// space.
    fn checkpoint_until_fits(&self, bytes: u64) -> Result<Reservation<'_>> {
        let mut requested = self.maintenance.take_request();
        self.log
            .reserve_with(bytes, &mut |must| self.maintain(std::mem::take(&mut requested) || must))
    }

    /// Performs one round of maintenance. A failure poisons the volume.
    fn maintain(&self, requested: bool) -> Result<()> {
        self.poison.guard(self.checkpoint_if_due(requested))
    }

    /// Takes a checkpoint when the log fills, by the length that it has or is expected to grow to. If that alone does
    /// not help, the log grows, or else the structures flush the updates that pin its tail. Then they do their deferred
    /// work.
    fn checkpoint_if_due(&self, requested: bool) -> Result<()> {
        if self.poison.is_set() {
            return Ok(());
        }
        let capacity = self.log_bytes_expected();
        let grown = self.log.next_lsn().0 - self.maintenance.last.load(Relaxed);
        let used = self.log.used_bytes();
        // A log that is nearly full, or too full for a waiting append, does not advance; then nothing may be postponed.
        let is_stuck = self.log.waiting() > 0 && self.maintenance.stands_still(self.log.next_lsn());
        let log_fills = used > capacity / 4 && grown > capacity / 16 || used > capacity / 4 * 3;
        let log_fills = log_fills || is_stuck;
        if !requested && !log_fills {
            return Ok(());
        }
        self.maintenance.last.store(self.log.next_lsn().0, Relaxed);
        self.checkpoint()?;
        let is_short = is_stuck || self.log.used_bytes() > capacity / 2;
        if is_short && !self.grow_log(2 * self.log.capacity_bytes())? {
            let before = Lsn(self.log.tail().0 + self.log.used_bytes() / 2);
            self.flush_before(before)?;
            self.checkpoint()?;
            self.tell_what_pins_the_log(before);
        }
        self.open_structures().iter().try_for_each(|(_, structure)| structure.run_deferred())
    }

    fn flush_before(&self, before: Lsn) -> Result<()> {
        let _maintenance = self.lock_maintenance();
        self.open_structures().iter().try_for_each(|(_, structure)| structure.flush_before(before))
    }

    /// Reports what pins the log. A structure that is not open cannot flush its updates, so they stay in the log. That
    /// is not an error until a caller waits for their space: the structure may be about to be opened.
    fn tell_what_pins_the_log(&self, before: Lsn) {
        if self.log.waiting() == 0 {
            return;
        }
        let root = self.root();
        let open = self.open();
        let closed = |id| open.get(id).is_none_or(|structure| structure.strong_count() == 0);
        let pinning = root.catalog.entries.iter().find(|e| e.tail < before && closed(&e.id));
        if let Some(entry) = pinning {
            let reason = format!(
                "updates of {:?} are still in it from before a crash; open that structure too",
                entry.name
            );
            self.poison.set(&Error::LogFull { log_bytes: self.log.capacity_bytes(), reason });
        }
    }
}

impl Root {
    fn note(&mut self, captures: Vec<(StructureId, Captured)>) {
        for (id, captured) in captures {
            if let Some(entry) = self.catalog.entries.iter_mut().find(|entry| entry.id == id) {
                entry.state = captured.state;
                // While the structure was idle its tail may have moved past the value it had when it was opened.
                entry.tail = entry.tail.max(captured.tail);
                if let Some(extents) = captured.extents {
                    let before = std::mem::replace(&mut entry.extents, extents);
                    // A structure may have thousands of extents.
                    let named: HashSet<_> = entry.extents.iter().collect();
                    self.removed.extend(before.into_iter().filter(|it| !named.contains(it)));
                }
            }
        }
    }

    /// Moves the tails of structures that need nothing of the log, so that they do not pin it.
    pub(super) fn release_idle(&mut self, synced: Lsn) {
        let idle = &self.idle;
        for entry in self.catalog.entries.iter_mut().filter(|entry| idle.contains(&entry.id)) {
            entry.tail = entry.tail.max(synced);
        }
    }

    /// The oldest place that any structure still needs.
    fn tail(&self, synced: Lsn) -> Lsn {
        let tails = self.catalog.entries.iter().map(|entry| entry.tail);
        let tails = tails.filter(|_| is_on(Barrier::TailKeepsWhatIsNeeded));
        tails.min().unwrap_or(synced).min(synced).max(self.superblock.log_tail)
    }

    /// Frees the pages of removed structures, now that no durable checkpoint refers to them.
    pub(super) fn release_removed(&mut self) {
        for extent in std::mem::take(&mut self.removed) {
            self.space.release(extent);
        }
    }

    fn next_extent(&mut self, pages: u64) -> Extent {
        let valid = self.superblock.checkpoint;
        if !is_on(Barrier::CheckpointsAlternate) && valid.pages >= pages {
            return valid;
        }
        match self.spare.take() {
            Some(extent) if extent.pages >= pages => extent,
            spare => {
                spare.into_iter().for_each(|extent| self.space.release(extent));
                // Spare pages are for growth, so that this is rare.
                self.space.allocate(pages + pages / 2)
            }
        }
    }
}

/// The state that the maintenance thread waits for.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    request: Mutex<Request>,
    woken: Condvar,
    /// The log's place when the last checkpoint was taken because the log was filling.
    last: AtomicU64,
    /// The log's place when a caller was last found waiting.
    seen: AtomicU64,
}

#[derive(Debug, Default)]
struct Request {
    checkpoint: bool,
    stop: bool,
}

impl Maintenance {
    fn lock(&self) -> MutexGuard<'_, Request> {
        self.request.lock().expect(LOCKED)
    }

    fn request(&self) {
        self.lock().checkpoint = true;
        self.woken.notify_all();
    }

    /// Returns whether the log has not moved since a caller was last found waiting. Its place at the last checkpoint
    /// would not show that: a checkpoint closes a block itself, and structures log their moves.
    fn stands_still(&self, now: Lsn) -> bool {
        self.seen.swap(now.0, Relaxed) == now.0
    }

    /// Returns whether a checkpoint was requested since the last call.
    fn take_request(&self) -> bool {
        std::mem::take(&mut self.lock().checkpoint)
    }

    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.woken.notify_all();
    }

    /// Waits for a request or the period; returns `None` when it must stop.
    fn next(&self) -> Option<bool> {
        let request = self.lock();
        let idle = |request: &mut Request| !request.checkpoint && !request.stop;
        let (mut request, _) = self.woken.wait_timeout_while(request, PERIOD, idle).expect(LOCKED);
        (!request.stop).then(|| std::mem::take(&mut request.checkpoint))
    }
}

/// Starts the maintenance thread; it ends with the volume.
pub(super) fn spawn(inner: Weak<Inner>) -> Result<JoinHandle<()>> {
    let run = move || {
        let _guard = inner
            .upgrade()
            .map(|inner| PanicGuard::new(Arc::clone(&inner.poison), "the checkpoint thread"));
        while let Some(inner) = inner.upgrade() {
            let Some(requested) = inner.maintenance.next() else { return };
            inner.workers.help_starving();
            // A failure has poisoned the volume; the next update reports it.
            let _ = inner.maintain(requested);
        }
    };
    Builder::new().name("nandex-checkpoint".into()).spawn(run).map_err(|error| {
        Error::config("threads", format!("the checkpoint thread cannot start: {error}"))
    })
}
