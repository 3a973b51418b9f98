//! Taking checkpoints, and who does so when it is time: a thread, or those who update.
//!
//! A checkpoint is a list of steps, and each makes the next one safe: what the structures captured and
//! the maps that refer to it are made durable, then the superblock that refers to the maps; only then is
//! the log's tail released and are evicted places written again.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::opening::write_superblock;
use super::{Captured, Checkpointed, Inner, Root, Threads, Volume};
use crate::checkpoint::{self, pages_for};
use crate::log::{LogAnchor, Room as LogRoom};
use crate::mutants::{Barrier, is_on};
use crate::space::Extent;
use crate::superblock::Superblock;
use crate::{Error, Lsn, Poison, Result, StructureId};

/// How often the log's fill is looked at.
const PERIOD: Duration = Duration::from_millis(20);

impl Volume {
    /// Takes a checkpoint now and waits for it.
    ///
    /// # Errors
    /// A failed write or sync, which poisons the volume.
    pub fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()
    }

    /// Asks for a checkpoint soon: of the background, or where there is none by the next
    /// [`reserve_room`](Self::reserve_room).
    pub fn request_checkpoint(&self) {
        self.inner.maintenance.request();
    }

    /// Waits until `bytes` more bytes of entries fit the log; see
    /// [`Log::wait_for_room`](crate::Log::wait_for_room). Hold no lock that a checkpoint needs:
    /// where there are no threads in the background, this takes the checkpoints that are due.
    ///
    /// # Errors
    /// As [`Log::wait_for_room`](crate::Log::wait_for_room), and a checkpoint's failure.
    #[inline]
    pub fn wait_for_room(&self, bytes: u64) -> Result<Option<LogRoom<'_>>> {
        match self.threads() {
            Threads::Background => self.inner.log.wait_for_room(bytes),
            Threads::Inline => self.inner.make_room(bytes).map(Some),
        }
    }

    /// As [`wait_for_room`](Self::wait_for_room), and keeps the room; see
    /// [`Log::reserve_room`](crate::Log::reserve_room).
    ///
    /// # Errors
    /// As [`wait_for_room`](Self::wait_for_room).
    pub fn reserve_room(&self, bytes: u64) -> Result<LogRoom<'_>> {
        match self.threads() {
            Threads::Background => self.inner.log.reserve_room(bytes),
            Threads::Inline => self.inner.make_room(bytes),
        }
    }
}

type Room = (StructureId, Arc<dyn Checkpointed>);

impl Inner {
    pub(super) fn checkpoint(&self) -> Result<()> {
        let _turn = self.turn();
        self.poison.check()?;
        let rooms = self.open_rooms();
        rooms.iter().try_for_each(|(_, room)| room.prepare())?;
        let captures: Vec<_> = rooms.iter().map(|(id, room)| (*id, room.capture())).collect();
        // What a partial discard put back into buffers must be in the log for good before the place it
        // came from is overwritten.
        if is_on(Barrier::CheckpointSyncsLog) {
            self.log.sync()?;
        }
        let written = self.write_checkpoint(captures, &rooms);
        let tail = if is_on(Barrier::FailedCheckpointPoisons) {
            self.poison.guard(written)?
        } else {
            written?
        };
        self.give_up(tail, &rooms);
        Ok(())
    }

    /// Lets what a durable checkpoint no longer refers to be overwritten.
    fn give_up(&self, tail: Lsn, rooms: &[Room]) {
        self.log.release(tail);
        rooms.iter().for_each(|(_, room)| room.committed());
    }

    fn open_rooms(&self) -> Vec<Room> {
        let mut rooms: Vec<_> = {
            let rooms = self.rooms();
            rooms.iter().filter_map(|(id, room)| Some((*id, room.upgrade()?))).collect()
        };
        rooms.sort_by_key(|(id, _)| *id);
        rooms
    }

    /// One sync makes durable the checkpoint and all that it refers to: the structures' writes have
    /// completed. Another one makes the superblock durable.
    fn write_checkpoint(
        &self,
        captures: Vec<(StructureId, Captured)>,
        rooms: &[Room],
    ) -> Result<Lsn> {
        let mut root = self.root();
        root.note(captures);
        root.release_idle(self.log.synced());
        let LogAnchor { tail, synced, epoch } = self.log.anchor(root.tail(self.log.synced()));
        let bytes = root.catalog.encode();
        let extent = root.next_extent(pages_for(bytes.len()));
        self.device.grow(root.space.page_count())?;
        let generation = root.superblock.generation + 1;
        checkpoint::write(&*self.device, extent, generation, &bytes)?;
        if is_on(Barrier::CheckpointSynced) {
            self.device.sync()?;
        }
        if !is_on(Barrier::GivenUpAfterCheckpoint) {
            self.give_up(tail, rooms);
        }
        let superblock = Superblock {
            generation,
            page_count: root.space.page_count(),
            checkpoint: extent,
            checkpoint_bytes: bytes.len() as u64,
            checkpoint_generation: generation,
            log_tail: tail,
            log_synced: synced,
            epoch,
            ..root.superblock.clone()
        };
        write_superblock(&*self.device, &superblock)?;
        root.spare = Some(root.superblock.checkpoint);
        root.superblock = superblock;
        root.release_removed();
        root.checkpoints += 1;
        Ok(tail)
    }

    /// What the background would do by now; then, where that is not enough, checkpoints until there is
    /// room in the log.
    fn make_room(&self, bytes: u64) -> Result<LogRoom<'_>> {
        let mut requested = self.maintenance.take_wish();
        let mut waiting = None;
        loop {
            self.tend(requested)?;
            if let Some(room) = self.log.try_reserve_room(bytes)? {
                return Ok(room);
            }
            if waiting.is_some() {
                // Other threads hold the room, or what pins the tail: they must get on.
                self.log.pause_for_room();
            }
            waiting.get_or_insert_with(|| self.log.wait_in_line());
            requested = true;
        }
    }

    /// One round of maintenance, and of what the structures have put off.
    fn tend(&self, requested: bool) -> Result<()> {
        self.poison.guard(self.maintain(requested))
    }

    /// Takes a checkpoint when the log fills, and makes structures let go of its tail when that alone
    /// does not help.
    fn maintain(&self, requested: bool) -> Result<()> {
        if self.poison.is_set() {
            return Ok(());
        }
        let capacity = self.log.capacity_bytes();
        let grown = self.log.next_lsn().0 - self.maintenance.last.load(Relaxed);
        let used = self.log.used_bytes();
        // Nearly full, or too full for what somebody wants to append at once, it does not grow any more;
        // then nothing may be put off.
        let is_stuck = self.log.waiting() > 0 && self.maintenance.stands_still(self.log.next_lsn());
        let log_fills = used > capacity / 4 && grown > capacity / 16 || used > capacity / 4 * 3;
        let log_fills = log_fills || is_stuck;
        if !requested && !log_fills {
            return Ok(());
        }
        self.maintenance.last.store(self.log.next_lsn().0, Relaxed);
        self.checkpoint()?;
        if is_stuck || self.log.used_bytes() > capacity / 2 {
            let before = Lsn(self.log.tail().0 + self.log.used_bytes() / 2);
            self.relieve(before)?;
            self.checkpoint()?;
            self.tell_what_pins_the_log(before);
        }
        self.open_rooms().iter().try_for_each(|(_, room)| room.catch_up())
    }

    fn relieve(&self, before: Lsn) -> Result<()> {
        let _turn = self.turn();
        self.open_rooms().iter().try_for_each(|(_, room)| room.relieve(before))
    }

    /// A structure that nobody has opened cannot save its updates, so they stay in the log. That is no
    /// fault before somebody waits for their room: it may be about to be opened.
    fn tell_what_pins_the_log(&self, before: Lsn) {
        if self.log.waiting() == 0 {
            return;
        }
        let root = self.root();
        let open = self.rooms();
        let closed = |id| open.get(id).is_none_or(|room| room.strong_count() == 0);
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
                entry.tail = captured.tail;
                if let Some(extents) = captured.extents {
                    let before = std::mem::replace(&mut entry.extents, extents);
                    let given_up = before.into_iter().filter(|it| !entry.extents.contains(it));
                    self.removed.extend(given_up);
                }
            }
        }
    }

    /// Moves the tails of structures that need nothing of the log, so that they do not pin it.
    fn release_idle(&mut self, synced: Lsn) {
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

    /// Gives back the pages of removed structures, now that no durable checkpoint refers to them.
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
                // Room to grow, so that this is rare.
                self.space.allocate(pages + pages / 2)
            }
        }
    }
}

/// What the maintenance thread waits on.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    wish: Mutex<Wish>,
    woken: Condvar,
    /// Where the log was when the last checkpoint was taken for its sake.
    last: AtomicU64,
    /// Where it was when somebody was last seen waiting for its room.
    seen: AtomicU64,
}

#[derive(Debug, Default)]
struct Wish {
    checkpoint: bool,
    stop: bool,
}

impl Maintenance {
    fn request(&self) {
        self.wish.lock().expect("no holder of the wish panics").checkpoint = true;
        self.woken.notify_all();
    }

    /// Is the log where it was when somebody was last seen waiting? Not compared with its last checkpoint:
    /// that closes a block itself, and rooms log what they move, after which nothing may come any more.
    fn stands_still(&self, now: Lsn) -> bool {
        self.seen.swap(now.0, Relaxed) == now.0
    }

    /// Has somebody asked for a checkpoint since the last time?
    fn take_wish(&self) -> bool {
        std::mem::take(&mut self.wish.lock().expect("no holder of the wish panics").checkpoint)
    }

    pub(super) fn stop(&self) {
        self.wish.lock().expect("no holder of the wish panics").stop = true;
        self.woken.notify_all();
    }

    /// Waits for a wish or the period; gives nothing when it is time to stop.
    fn next(&self) -> Option<bool> {
        let wish = self.wish.lock().expect("no holder of the wish panics");
        let idle = |wish: &mut Wish| !wish.checkpoint && !wish.stop;
        let (mut wish, _) = self
            .woken
            .wait_timeout_while(wish, PERIOD, idle)
            .expect("no holder of the wish panics");
        (!wish.stop).then(|| std::mem::take(&mut wish.checkpoint))
    }
}

/// Starts the maintenance thread; it ends with the volume.
pub(super) fn spawn(inner: Weak<Inner>) -> Result<JoinHandle<()>> {
    let run = move || {
        let _alarm = inner.upgrade().map(|inner| Alarm(Arc::clone(&inner.poison)));
        while let Some(inner) = inner.upgrade() {
            let Some(requested) = inner.maintenance.next() else { return };
            // A failure has poisoned the volume; the next update reports it.
            let _ = inner.tend(requested);
        }
    };
    Builder::new().name("nandex-checkpoint".into()).spawn(run).map_err(|error| {
        Error::config("threads", format!("the checkpoint thread cannot start: {error}"))
    })
}

/// Poisons the volume when the thread that holds it panics: nobody takes checkpoints any more.
struct Alarm(Arc<Poison>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set(&"the checkpoint thread panicked");
        }
    }
}
