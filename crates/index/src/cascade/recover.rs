//! From flash back to memory: the list of runs, the log from the cut on, and the image of the buffer.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, RwLock, Weak};
use std::thread::{Builder, JoinHandle};

use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::bytes::Reader;
use nandex_store::fingerprint::Universe;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::run::{Entry, Run};
use nandex_store::schedule::Channels;
use nandex_store::{Captured, Checkpointed, Lsn, Structure, StructureId, Volume};

use super::buffer::{Buffer, Updates};
use super::format::{Head, LogEntry};
use super::levels::{Goal, Levels};
use super::{Cascade, Config, Frozen, Inner, RuntimeOptions, Signal, State};
use crate::intake::pool::LanePool;
use crate::{Error, Result};

/// Refuses a filter whose buffers the volume's log could not cover.
pub(super) fn check_log(volume: &Volume, config: &Config) -> Result<()> {
    let update_bytes = Config::update_bytes(config.universe()?) as u64;
    let bytes = config.buffer_entries.saturating_mul(update_bytes);
    let log_bytes = volume.log().capacity_bytes();
    if log_bytes < bytes.saturating_mul(2) {
        let reason = format!(
            "the volume's log of {log_bytes} bytes is too small for buffers of {} fingerprints; create the \
             volume with a log of at least {} bytes, or the filter with smaller buffers",
            config.buffer_entries,
            bytes.saturating_mul(4)
        );
        return Err(Error::Config { field: "log_bytes", reason });
    }
    Ok(())
}

/// The configuration of a filter that is in a volume.
pub(super) fn config_of(structure: &Structure) -> Result<Config> {
    Config::decode(&mut Reader::new(&structure.config, "cascade configuration", PageId(0)))
}

/// Opens a filter: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    options: RuntimeOptions,
) -> Result<Cascade> {
    let config = config_of(structure)?;
    let (head, levels) = restore(structure, config.universe()?)?;
    let inner = Arc::new(assemble(volume, structure, (config, options), head, levels)?);
    if inner.replay(structure, head)? {
        // The runs hold some of what is behind the cut, which so has to move behind all of it.
        inner.freeze_for(Goal::Save)?;
        inner.move_cut()?;
    }
    inner.load_image()?;
    let room: Weak<dyn Checkpointed> =
        Arc::downgrade(&(Arc::clone(&inner) as Arc<dyn Checkpointed>));
    volume.register(structure.id, room);
    let thread = start_thread(&inner)?;
    Ok(Cascade { inner, thread, closed: false })
}

/// The state of a checkpoint: the head, then the image, then the levels.
pub(super) fn restore(structure: &Structure, universe: Universe) -> Result<(Head, Levels)> {
    if structure.state.is_empty() {
        let head = Head { next_run: 1, ..Head::default() };
        return Ok((head, Levels::default()));
    }
    let mut reader = Reader::new(&structure.state, "cascade state", PageId(0));
    let head = Head::decode(&mut reader)?;
    let levels = decode_levels(structure.id, universe, &mut reader)?;
    let extents = levels.extents();
    if let Some(lost) = extents.iter().find(|extent| !structure.extents.contains(extent)) {
        let expected = "runs on extents of the filter's own";
        return Err(reader.refuse(expected, format!("{lost:?}")).into());
    }
    if reader.left() > 0 {
        return Err(reader.refuse("the end of the state", reader.left()).into());
    }
    Ok((head, levels))
}

fn encode_levels(levels: &Levels, out: &mut Vec<u8>) {
    let count = u32::try_from(levels.runs.len()).expect("there are a few dozen levels at most");
    out.extend_from_slice(&count.to_le_bytes());
    for run in std::iter::once(&levels.image).chain(&levels.runs) {
        out.push(u8::from(run.is_some()));
        run.iter().for_each(|run| run.encode(out));
    }
}

fn decode_levels(id: StructureId, universe: Universe, reader: &mut Reader<'_>) -> Result<Levels> {
    let count = reader.count(1)?;
    let mut run = || -> Result<Option<Arc<Run>>> {
        match reader.u8()? {
            0 => Ok(None),
            1 => Ok(Some(Arc::new(Run::decode(id, universe, reader)?))),
            other => Err(reader.refuse("0 or 1 run", other).into()),
        }
    };
    let image = run()?;
    let runs = (0..count).map(|_| run()).collect::<Result<_>>()?;
    Ok(Levels { image, image_is_loaded: false, runs })
}

fn assemble(
    volume: &Volume,
    structure: &Structure,
    (config, options): (Config, RuntimeOptions),
    head: Head,
    levels: Levels,
) -> Result<Inner> {
    let universe = config.universe()?;
    let shape = config.buffer_shape()?;
    let device = Arc::clone(volume.device());
    let state = State {
        active: Buffer::new(shape),
        frozen: None,
        spare: Some(Buffer::new(shape)),
        levels: Arc::new(levels),
        head,
        next_cut: head.cut + 1,
    };
    Ok(Inner {
        volume: volume.clone(),
        id: structure.id,
        universe,
        hasher: volume.hasher(),
        channels: options.channels.unwrap_or_else(|| Channels::of(&device.geometry())),
        device,
        update_bytes: Config::update_bytes(universe),
        tail: structure.tail,
        state: RwLock::new(state),
        merge_turn: Mutex::default(),
        retired: Mutex::default(),
        fault: Mutex::default(),
        signal: Signal { stop: Mutex::new(false), changed: Condvar::new() },
        filled: AtomicU64::new(0),
        allowed: AtomicU64::new(u64::MAX),
        lead: config.buffer_entries / 8,
        lanes: LanePool::default(),
        counters: super::stats::Counters::default(),
        config,
        options,
    })
}

fn start_thread(inner: &Arc<Inner>) -> Result<Option<JoinHandle<()>>> {
    if inner.options.merge_threads == 0 {
        return Ok(None);
    }
    let run = {
        let inner = Arc::clone(inner);
        move || {
            let _alarm = Alarm(&inner);
            inner.run_merges();
        }
    };
    let thread = Builder::new().name("nandex-merge".into()).spawn(run);
    thread.map(Some).map_err(|error| Error::Config {
        field: "merge_threads",
        reason: format!("the thread cannot start: {error}"),
    })
}

/// Poisons the volume when the merging thread panics: nobody merges any more.
struct Alarm<'i>(&'i Inner);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.volume.poison().set(&"the merging thread of a filter panicked");
            self.0.changed();
        }
    }
}

impl Inner {
    /// Applies the log's updates behind the cut, oldest first; tells whether the buffer had to be merged on
    /// the way. That is not in the log, so nothing may be captured before the cut has moved.
    fn replay(&self, structure: &Structure, head: Head) -> Result<bool> {
        // Where the log's tail has passed the cut, all that is left comes after it.
        let mut is_covered = head.cut > 0 && structure.tail <= head.cut_at;
        is_covered &= is_on(Barrier::ReplaySkipsToCut);
        let mut has_merged = false;
        let mut visit = |lsn: Lsn, bytes: &[u8]| -> Result<()> {
            match LogEntry::decode(bytes, self.universe, self.update_bytes) {
                None => return Err(not_an_entry(lsn, bytes).into()),
                Some(LogEntry::Cut(number)) => {
                    is_covered &= number != head.cut;
                    let mut state = self.write_state();
                    state.next_cut = state.next_cut.max(number + 1);
                }
                Some(LogEntry::Add { fingerprint, count }) if !is_covered => {
                    has_merged |= self.replay_update(Entry { fingerprint, count })?;
                }
                Some(LogEntry::Add { .. }) => {}
            }
            Ok(())
        };
        let into_store = crate::intake::into_store;
        self.volume.replay(structure, &mut |lsn, bytes| visit(lsn, bytes).map_err(into_store))?;
        Ok(has_merged)
    }

    /// Applies an update; merges the buffer first where it is full, and tells so.
    fn replay_update(&self, entry: Entry) -> Result<bool> {
        let mut has_merged = false;
        loop {
            let mut state = self.write_state();
            if state.active.apply(Updates::Add(&[entry]))? == 1 {
                return Ok(has_merged);
            }
            let empty = state.spare.take().expect("no buffer is frozen between two merges");
            let buffer = Arc::new(std::mem::replace(&mut state.active, empty));
            let Head { cut, cut_at, .. } = state.head;
            state.frozen = Some(Frozen { buffer, cut, cut_at, goal: Goal::Merge });
            drop(state);
            has_merged |= self.merge_frozen()?;
        }
    }

    /// Brings the image back into the buffer where both fit, so that lookups do not read it.
    fn load_image(&self) -> Result<()> {
        let mut state = self.write_state();
        let Some(image) = state.levels.image.clone() else { return Ok(()) };
        if image.entries() + state.active.entries() > self.config.buffer_entries {
            return Ok(());
        }
        state.active.load(&mut self.reader(&image)?)?;
        state.active.has_deletes |= image.tombstones() > 0;
        let levels = Levels { image_is_loaded: true, ..Levels::clone(&state.levels) };
        state.levels = Arc::new(levels);
        Ok(())
    }

    /// Moves the cut to the log's end where nothing is buffered that it would have to keep.
    fn move_cut(&self) -> Result<()> {
        let mut state = self.write_state();
        if state.active.updates == 0 && state.frozen.is_none() {
            let (number, at) = self.cut(&mut state)?;
            (state.head.cut, state.head.cut_at) = (number, at);
        }
        Ok(())
    }
}

fn not_an_entry(lsn: Lsn, bytes: &[u8]) -> nandex_store::Error {
    let found = format!("{} bytes that begin with {:02x?}", bytes.len(), bytes.first());
    let page = PageId(lsn.0 / PAGE_BYTES as u64);
    nandex_store::Error::corrupt("log entry", page, "an update or a cut of the filter", found)
}

impl Checkpointed for Inner {
    fn prepare(&self) -> nandex_store::Result<()> {
        Ok(())
    }

    fn capture(&self) -> Captured {
        let state = self.read_state();
        let mut bytes = Vec::new();
        state.head.encode(&mut bytes);
        encode_levels(&state.levels, &mut bytes);
        let tail = if state.head.cut > 0 { state.head.cut_at.max(self.tail) } else { self.tail };
        Captured { state: bytes, tail, extents: Some(self.extents(&state)) }
    }

    fn committed(&self) {}

    fn relieve(&self, before: Lsn) -> nandex_store::Result<()> {
        let into_store = crate::intake::into_store;
        if self.read_state().head.cut_at.max(self.tail) >= before {
            return Ok(());
        }
        self.freeze_for(Goal::Save).map_err(into_store)?;
        self.move_cut().map_err(into_store)
    }

    fn catch_up(&self) -> nandex_store::Result<()> {
        Ok(())
    }
}
