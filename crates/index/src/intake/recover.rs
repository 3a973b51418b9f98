//! From flash back to memory: the room's maps, the images, then the log.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{Builder, JoinHandle};

use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::buffer::Buffer;
use nandex_store::bytes::Reader;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::KeyHash;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::reads::ReadPool;
use nandex_store::{Captured, Checkpointed, Lsn, Structure, Volume};

use super::format::{Moved, State, decode_log_entry};
use super::image::Images;
use super::partition::Partition;
use super::pool::{BufferPool, ScratchPool, WorkQueue};
use super::stats::Counters;
use super::{Handle, Intake, Options, Room, Shape};
use crate::lookup::Lookups;
use crate::{Error, Result};

/// Refuses a table whose buffers the volume's log could not cover: a log is released only as buffers
/// are flushed, so it must hold at least what all of them hold, and more while it goes on.
pub(crate) fn check_log(volume: &Volume, shape: &Shape) -> Result<()> {
    let entries = shape.partitions as usize * shape.entries_max as usize;
    let bytes = entries * (1 + shape.layout.entry_bytes());
    let log_bytes = volume.log().capacity_bytes();
    if log_bytes < 2 * bytes as u64 {
        let reason = format!(
            "the volume's log of {log_bytes} bytes is too small for buffers of {bytes} bytes; create \
             the volume with a log of at least {} bytes, or the table with fewer or smaller buffers",
            4 * bytes
        );
        return Err(Error::Config { field: "log_bytes", reason });
    }
    Ok(())
}

/// What a room says of itself to be opened.
pub(crate) struct Opening {
    pub shape: Shape,
    pub options: Options,
    /// Where the places for images begin.
    pub images_at: PageId,
    /// Reads the structure's pages for lookups.
    pub reads: ReadPool,
}

/// What each partition has on flash, and beside its lock.
pub(crate) type Levels<R> = Vec<(<R as Room>::Level, <R as Room>::Beside)>;

/// A room on its way from the checkpoint's maps to what it was.
pub(crate) trait Recovery<R: Room> {
    /// Applies the room's bytes of a move that is in the log, in the log's order; tells whether it came
    /// after the checkpoint.
    ///
    /// # Errors
    /// Bytes that say what cannot be.
    fn moved(&mut self, _partition: u32, _bytes: &[u8]) -> Result<bool> {
        Ok(false)
    }

    /// The room, once it knows all moves.
    ///
    /// # Errors
    /// Maps that say what cannot be.
    fn finish(self) -> Result<(R, Levels<R>)>;
}

/// Opens a table: a list of steps. The reader stands behind the room's own maps; `prove` is asked before
/// anything is written.
pub(crate) fn open<R: Room>(
    volume: &Volume,
    structure: &Structure,
    reader: &mut Reader<'_>,
    opening: Opening,
    mut recovery: impl Recovery<R>,
    prove: impl FnOnce(&Intake<R>) -> Result<()>,
) -> Result<Handle<R>> {
    let mut state = restore(structure, &opening.shape, reader)?;
    if R::LOGS_MOVES {
        apply_moves(volume, structure, &mut recovery, &mut state)?;
    }
    let (room, levels) = recovery.finish()?;
    let inner = Arc::new(assemble(volume, structure, opening, (room, levels), &state));
    prove(&inner)?;
    inner.load_images(&state)?;
    let room: Weak<dyn Checkpointed> =
        Arc::downgrade(&(Arc::clone(&inner) as Arc<dyn Checkpointed>));
    volume.register(structure.id, room);
    let threads = start_threads(&inner)?;
    // From here on, dropping the handle ends the threads.
    let handle = Handle { inner, threads, closed: false };
    handle.inner.replay(structure, &state.tails)?;
    R::recovered(&handle.inner);
    Ok(handle)
}

/// Reads the moves that were logged since the checkpoint. A buffer that has moved to flash needs neither
/// its image nor its part of the log: replayed over it, both would be older than what is there.
fn apply_moves<R: Room>(
    volume: &Volume,
    structure: &Structure,
    recovery: &mut impl Recovery<R>,
    state: &mut State,
) -> Result<()> {
    let mut apply = |lsn: Lsn, bytes: &[u8]| -> Result<()> {
        let Some((moved, own)) = Moved::decode(bytes) else { return Ok(()) };
        let index = moved.partition as usize;
        let (Some(tail), Some(image)) = (state.tails.get_mut(index), state.images.get_mut(index))
        else {
            return Err(not_an_entry(lsn, bytes).into());
        };
        let is_news = recovery.moved(moved.partition, own)?;
        let counts = is_news || !is_on(Barrier::MovesMustBeNews);
        if counts && is_on(Barrier::MoveForgetsWhatItTook) {
            *tail = (*tail).max(moved.tail);
            *image = moved.image;
        }
        Ok(())
    };
    Ok(volume.replay(structure, &mut |lsn, bytes| apply(lsn, bytes).map_err(into_store))?)
}

fn not_an_entry(lsn: Lsn, bytes: &[u8]) -> nandex_store::Error {
    let found = format!("{} bytes that begin with {:02x?}", bytes.len(), bytes.first());
    let page = PageId(lsn.0 / PAGE_BYTES as u64);
    nandex_store::Error::corrupt("log entry", page, "a put, a remove or a move", found)
}

/// The buffers' state as the checkpoint knows it; an empty one for a table just created.
fn restore(structure: &Structure, shape: &Shape, reader: &mut Reader<'_>) -> Result<State> {
    let partitions = shape.partitions as usize;
    if structure.state.is_empty() {
        let tails = vec![structure.tail; partitions];
        return Ok(State { next_image: 1, images: vec![None; partitions], tails });
    }
    let state = State::decode(reader)?;
    if state.images.len() != partitions {
        return Err(reader.refuse(partitions, state.images.len()).into());
    }
    Ok(state)
}

fn assemble<R: Room>(
    volume: &Volume,
    structure: &Structure,
    opening: Opening,
    (room, levels): (R, Levels<R>),
    state: &State,
) -> Intake<R> {
    let Opening { shape, options, images_at, reads } = opening;
    let limit = shape.buffer_limit();
    let buffer = || {
        let mut buffer = Buffer::new(shape.layout, shape.buffer_pages as usize);
        buffer.limit(limit);
        buffer
    };
    let stagger = structure.state.is_empty() && shape.stagger;
    let partition = |(index, (level, beside))| {
        let mut active = buffer();
        if stagger {
            active.limit(staggered(limit, index, shape.partitions as usize));
        }
        Partition::new(active, level, beside)
    };
    Intake {
        volume: volume.clone(),
        id: structure.id,
        layout: shape.layout,
        hasher: volume.hasher(),
        partitions: levels.into_iter().enumerate().map(partition).collect(),
        pool: BufferPool::new((0..shape.spare_buffers).map(|_| buffer()).collect()),
        lookups: Lookups::new(reads),
        work: WorkQueue::default(),
        counters: Counters::default(),
        images: Images::new(&shape, images_at, state.next_image),
        scratches: ScratchPool::default(),
        replayed: AtomicU64::new(structure.tail.0),
        ready: AtomicBool::new(false),
        flush_turn: Mutex::default(),
        shape,
        options,
        room,
    }
}

/// The fill at which partition `index` flushes for the first time: all different, from half full to
/// full, so that partitions, which fill alike, take turns ever after.
fn staggered(limit: usize, index: usize, partitions: usize) -> usize {
    (limit / 2 + limit * (index + 1) / (2 * partitions)).max(1)
}

fn start_threads<R: Room>(inner: &Arc<Intake<R>>) -> Result<Vec<JoinHandle<()>>> {
    let start = |number: usize| {
        let inner = Arc::clone(inner);
        let builder = Builder::new().name(format!("nandex-flush-{number}"));
        builder.spawn(move || inner.work()).map_err(|error| Error::Config {
            field: "flush_threads",
            reason: format!("thread {number} cannot start: {error}"),
        })
    };
    let threads: Result<Vec<_>> = (0..inner.options.flush_threads).map(start).collect();
    if threads.is_err() {
        inner.work.stop();
    }
    threads
}

impl<R: Room> Intake<R> {
    /// The log's place before which everything was applied here: its end, or while recovery replays it,
    /// where that reads.
    pub(super) fn log_now(&self) -> Lsn {
        self.volume.log().next_lsn().min(Lsn(self.replayed.load(Acquire)))
    }

    fn load_images(&self, state: &State) -> Result<()> {
        for (index, image) in state.images.iter().enumerate() {
            if let Some(image) = *image {
                let mut partition = self.partitions[index].lock();
                self.load_image(index, image, &mut partition.active)?;
                partition.image = Some(image);
            }
        }
        self.adopt_images(&state.images);
        Ok(())
    }

    /// Applies the log's entries, oldest first, as if they were inserted now, except that they are not
    /// logged again: until a buffer is flushed its entries stay where they are in the log.
    ///
    /// Entries before their partition's own tail are on flash or in its image already.
    fn replay(&self, structure: &Structure, tails: &[Lsn]) -> Result<()> {
        self.volume.replay(structure, &mut |lsn, bytes| {
            self.replayed.store(lsn.0, Release);
            let Some(entry) = decode_log_entry(bytes, self.layout) else {
                let is_move = R::LOGS_MOVES && Moved::decode(bytes).is_some();
                return if is_move { Ok(()) } else { Err(not_an_entry(lsn, bytes)) };
            };
            let hash = self.hasher.hash(entry.key);
            if lsn < tails[self.partition_of(hash)] {
                return Ok(());
            }
            self.replay_entry(lsn, hash, entry).map_err(into_store)
        })?;
        self.replayed.store(u64::MAX, Release);
        self.ready.store(true, Release);
        Ok(())
    }

    fn replay_entry(&self, lsn: Lsn, hash: KeyHash, entry: Entry<'_>) -> Result<()> {
        let index = self.partition_of(hash);
        let mut state = self.partitions[index].lock();
        while state.active.put(&self.hasher, hash, entry).is_err() {
            state = match self.rotate(index, state) {
                // It was acknowledged, when the same entries lay otherwise; who refused it now would refuse
                // the whole table.
                Err(Error::Full { .. }) if R::FORCES_REMOVALS => {
                    let mut state = self.partitions[index].lock();
                    state.active.force(&self.hasher, hash, entry);
                    state.forced += u64::from(entry.state == SlotState::Tombstone);
                    state
                }
                rotated => rotated?,
            };
        }
        state.puts += 1;
        state.user_puts += 1;
        state.since.get_or_insert(lsn);
        Ok(())
    }

    /// Puts every buffered entry on flash: full buffers as the room does, the others as images.
    pub(crate) fn flush_all(&self) -> Result<()> {
        let _turn = self.flush_turn.lock().expect("no holder of the flush turn panics");
        // The tail stops where the open block begins. Were what is now in it replayed, it could not just
        // fill buffers twice: without durability, entries put back from flash are logged and the user's
        // are not, so that a replay would hide newer ones.
        self.volume.log().sync()?;
        self.wish_all_images();
        loop {
            self.volume.poison().check()?;
            self.finish_flushes()?;
            self.volume.checkpoint()?;
            if !self.images_unsaved() {
                return Ok(());
            }
        }
    }

    /// Waits for the flushes that are due, or does them.
    fn finish_flushes(&self) -> Result<()> {
        loop {
            self.catch_up_now()?;
            if self.work.wait_idle() || self.volume.poison().is_set() {
                return Ok(());
            }
        }
    }

    /// What closing does. While recovery has not finished there is nothing to save: it is in the log.
    pub(super) fn save_buffers(&self) -> Result<()> {
        if !self.ready.load(Acquire) {
            return Ok(());
        }
        self.volume.poison().check()?;
        self.flush_all()
    }
}

/// An error of a room as the volume takes it.
pub(crate) fn into_store(error: Error) -> nandex_store::Error {
    match error {
        Error::Store(error) => error,
        Error::Device(error) => error.into(),
        other => nandex_store::Error::config("table", other),
    }
}

impl<R: Room> Checkpointed for Intake<R> {
    fn prepare(&self) -> nandex_store::Result<()> {
        R::prepare(self).map_err(into_store)?;
        self.save_wished_images().map_err(into_store)
    }

    fn capture(&self) -> Captured {
        // The log's place first, the room's maps last: what goes to flash in between is then both there and
        // in the log after the tail, which does no harm; the other way it would be in none.
        let _maps = R::lock_maps(&self.room);
        let now = self.log_now();
        let mut images = Vec::with_capacity(self.partitions.len());
        let mut tails = Vec::with_capacity(self.partitions.len());
        for partition in &self.partitions {
            let state = partition.lock();
            tails.push(state.tail().map_or(now, |since| since.min(now)));
            images.push(state.needed_image());
        }
        let tail = tails.iter().fold(now, |oldest, tail| oldest.min(*tail));
        self.images.capture(&images);
        let mut bytes = R::capture(self, now);
        State { next_image: self.images.next_generation(), images, tails }.encode(&mut bytes);
        Captured { state: bytes, tail, extents: None }
    }

    fn committed(&self) {
        self.images.committed();
        R::committed(self);
    }

    fn flush_before(&self, before: Lsn) -> nandex_store::Result<()> {
        self.wish_images_before(before);
        Ok(())
    }

    fn run_deferred(&self) -> nandex_store::Result<()> {
        self.catch_up_now().map(drop).map_err(into_store)
    }
}
