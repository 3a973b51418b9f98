//! From flash back to memory: the list of runs, the log from the cut on, and the image of the buffer.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, Weak};
use std::thread::{Builder, JoinHandle};

use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::bytes::Reader;
use nandex_store::fingerprint::Universe;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::reads::ReadPool;
use nandex_store::run::{Entry, Run};
use nandex_store::schedule::Channels;
use nandex_store::{Captured, Checkpointed, Durability, Lsn, Structure, StructureId, Volume};

use super::buffer::{Buffer, Sizes, Updates};
use super::config::SPARE_BUFFERS;
use super::format::{Covered, Head, LogEntry};
use super::levels::{Goal, Levels};
use super::part::{Frozen, Part, State};
use super::work::{Pace, Work};
use super::{Cascade, Config, Inner, RuntimeOptions};
use crate::lookup::Lookups;
use crate::{Error, Result};

/// Refuses a filter whose buffers the volume's log could not cover. Without durability it has not to: opened
/// with it later, the filter saves its buffers before they are full.
pub(super) fn check_log(volume: &Volume, config: &Config) -> Result<()> {
    if volume.durability() == Durability::Never {
        return Ok(());
    }
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
    let (head, parts) = restore(structure, &config)?;
    let inner = Arc::new(assemble(volume, structure, (config, options), head, parts)?);
    for part in inner.replay(structure)? {
        // Its runs hold some of what is behind its cut, which so has to move behind all of it.
        inner.empty_buffer(part, Goal::Save)?;
        inner.move_cut(part)?;
    }
    inner.parts.iter().try_for_each(|part| inner.load_image(part))?;
    let room: Weak<dyn Checkpointed> =
        Arc::downgrade(&(Arc::clone(&inner) as Arc<dyn Checkpointed>));
    volume.register(structure.id, room);
    let thread = start_thread(&inner)?;
    Ok(Cascade { inner, thread, closed: false })
}

/// The state of a checkpoint: the head, then each part.
pub(super) fn restore(
    structure: &Structure,
    config: &Config,
) -> Result<(Head, Vec<(Covered, Levels)>)> {
    let parts = config.split()?.quotients();
    if structure.state.is_empty() {
        let head = Head { next_run: 1, ..Head::default() };
        return Ok((head, (0..parts).map(|_| Default::default()).collect()));
    }
    let mut reader = Reader::new(&structure.state, "cascade state", PageId(0));
    let head = Head::decode(&mut reader)?;
    let universe = config.part_universe()?;
    let mut restored = Vec::new();
    for _ in 0..parts {
        let covered = Covered::decode(&mut reader)?;
        let levels = decode_levels(structure.id, universe, &mut reader)?;
        let lost = levels.extents().into_iter().find(|it| !structure.extents.contains(it));
        if let Some(lost) = lost {
            let expected = "runs on extents of the filter's own";
            return Err(reader.refuse(expected, format!("{lost:?}")).into());
        }
        restored.push((covered, levels));
    }
    if reader.left() > 0 {
        return Err(reader.refuse("the end of the state", reader.left()).into());
    }
    Ok((head, restored))
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
    restored: Vec<(Covered, Levels)>,
) -> Result<Inner> {
    let (universe, split) = (config.universe()?, config.split()?);
    let sizes = Arc::new(Sizes::new(config.buffer_shapes()?, config.buffer_bytes_max()?));
    let device = Arc::clone(volume.device());
    let channels = options.channels.unwrap_or_else(|| Channels::of(&device.geometry()));
    let reads = ReadPool::new(Arc::clone(&device), channels, options.read_depth);
    let is_new = structure.state.is_empty();
    let next_cut = restored.iter().map(|(covered, _)| covered.cut + 1).max().unwrap_or(1);
    let part = |(number, (covered, levels)): (u32, (Covered, Levels))| {
        let active_max = if is_new { staggered(&config, number) } else { u64::MAX };
        let (active, levels) = (Buffer::new(&sizes), Arc::new(levels));
        let (inserts, deletes) = (0, 0);
        let state = State { active, active_max, frozen: None, levels, covered, inserts, deletes };
        Part::new(number, split.first(number.into()), state)
    };
    let inner = Inner {
        volume: volume.clone(),
        id: structure.id,
        universe,
        split,
        part_universe: config.part_universe()?,
        hasher: volume.hasher(),
        update_bytes: Config::update_bytes(universe),
        tail: structure.tail,
        parts: (0..).zip(restored).map(part).collect(),
        spares: Mutex::new((0..SPARE_BUFFERS).map(|_| Buffer::new(&sizes)).collect()),
        next_cut: AtomicU64::new(next_cut),
        next_run: AtomicU64::new(head.next_run),
        unmatched: AtomicU64::new(head.unmatched),
        retired: Mutex::default(),
        work: Work::default(),
        pace: Pace::new(config.part_entries()),
        lookups: Lookups::new(reads),
        counters: super::stats::Counters::default(),
        device,
        config,
        options,
    };
    let entries = inner.parts.iter().map(|part| part.levels().entries()).sum();
    inner.note_entries(0, entries);
    Ok(inner)
}

/// The fill at which the buffer of a part is full for the first time: all different, so that parts, which
/// fill alike, take turns ever after.
fn staggered(config: &Config, number: u32) -> u64 {
    let parts = u64::from(config.parts);
    (config.part_entries() * (u64::from(number) + 1) / parts).max(1)
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
            self.0.work.changed();
        }
    }
}

impl Inner {
    /// Applies the log's updates behind their part's cut, oldest first; gives the parts whose buffers had to
    /// be merged on the way. That is not in the log, so nothing may be captured before their cuts have moved.
    fn replay(&self, structure: &Structure) -> Result<Vec<&Part>> {
        // Where the log's tail has passed a cut, all that is left comes after it.
        let is_before = |covered: Covered| covered.cut > 0 && structure.tail <= covered.cut_at;
        let skips = is_on(Barrier::ReplaySkipsToCut);
        let covered: Vec<_> = self.parts.iter().map(|part| part.read().covered).collect();
        let mut is_covered: Vec<_> = covered.iter().map(|it| skips && is_before(*it)).collect();
        let mut has_merged = vec![false; self.parts.len()];
        let mut visit = |lsn: Lsn, bytes: &[u8]| -> Result<()> {
            match LogEntry::decode(bytes, self.universe, self.update_bytes) {
                Some(LogEntry::Cut(cut)) if (cut.part as usize) < self.parts.len() => {
                    let part = cut.part as usize;
                    is_covered[part] &= cut.number != covered[part].cut;
                    self.next_cut.fetch_max(cut.number.saturating_add(1), Relaxed);
                }
                Some(LogEntry::Add { fingerprint, count }) => {
                    let number = self.split.quotient(fingerprint) as usize;
                    if !is_covered[number] {
                        let part = &self.parts[number];
                        let entry = Entry { fingerprint: fingerprint - part.first, count };
                        has_merged[number] |= self.replay_update(part, entry)?;
                    }
                }
                _ => return Err(not_an_entry(lsn, bytes).into()),
            }
            Ok(())
        };
        let into_store = crate::intake::into_store;
        self.volume.replay(structure, &mut |lsn, bytes| visit(lsn, bytes).map_err(into_store))?;
        let merged = self.parts.iter().zip(has_merged).filter(|(_, has_merged)| *has_merged);
        Ok(merged.map(|(part, _)| part).collect())
    }

    /// Applies an update; merges the part's buffer first where it is full, and tells so.
    fn replay_update(&self, part: &Part, entry: Entry) -> Result<bool> {
        let mut has_merged = false;
        loop {
            let mut state = part.write();
            let before = state.active.entries();
            let count = state.active.apply(Updates::Add(&[entry]))?;
            self.note_entries(before, state.active.entries());
            if count == 1 {
                return Ok(has_merged);
            }
            let empty = self.spares().pop().expect("nothing is frozen between two merges");
            let buffer = Arc::new(std::mem::replace(&mut state.active, empty));
            state.frozen = Some(Frozen { buffer, covered: state.covered, goal: Goal::Merge });
            drop(state);
            has_merged |= self.merge_frozen(part)?;
        }
    }

    /// Brings a part's image back into its buffer where both fit, so that lookups do not read it.
    fn load_image(&self, part: &Part) -> Result<()> {
        let mut state = part.write();
        let Some(image) = state.levels.image.clone() else { return Ok(()) };
        if !state.active.has_room_for(&mut self.reader(&image)?)? {
            return Ok(());
        }
        let before = state.active.entries();
        state.active.load(&mut self.reader(&image)?)?;
        state.active.has_deletes |= image.tombstones() > 0;
        let levels = Levels { image_is_loaded: true, ..Levels::clone(&state.levels) };
        state.levels = Arc::new(levels);
        self.note_entries(before + image.entries(), state.active.entries());
        Ok(())
    }

    /// Moves a part's cut to the log's end where nothing is buffered that it would have to keep.
    fn move_cut(&self, part: &Part) -> Result<()> {
        let mut state = part.write();
        if state.active.updates == 0 && state.frozen.is_none() {
            state.covered = self.cut(part)?;
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
        let mut state = Vec::new();
        let (next_run, unmatched) = (self.next_run.load(Relaxed), self.unmatched.load(Relaxed));
        Head { next_run, unmatched }.encode(&mut state);
        let (mut tail, mut extents) = (self.volume.log().next_lsn(), Vec::new());
        for part in &self.parts {
            let part = part.read();
            part.covered.encode(&mut state);
            encode_levels(&part.levels, &mut state);
            extents.extend(part.levels.extents());
            tail = tail.min(part.tail(self.tail));
        }
        Captured { state, tail, extents: Some(self.extents(extents)) }
    }

    fn committed(&self) {}

    fn flush_before(&self, before: Lsn) -> nandex_store::Result<()> {
        let flush = |part: &Part| -> Result<()> {
            if part.read().tail(self.tail) >= before {
                return Ok(());
            }
            self.empty_buffer(part, Goal::Save)?;
            self.move_cut(part)
        };
        self.parts.iter().try_for_each(flush).map_err(crate::intake::into_store)
    }

    fn run_deferred(&self) -> nandex_store::Result<()> {
        Ok(())
    }
}
