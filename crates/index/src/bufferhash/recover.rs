//! From flash back to memory: the state, the images, then the log.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{Builder, JoinHandle};

use nandex_device::{PAGE_BYTES, PageBuf, PageId};
use nandex_store::buffer::Buffer;
use nandex_store::bytes::Reader;
use nandex_store::entries::Entry;
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::ring::SegmentId;
use nandex_store::{Captured, Checkpointed, Lsn, Structure, Volume};

use super::filter::{Filter, FilterKind, Window};
use super::format::{State, decode_filter, decode_log_entry};
use super::image::Images;
use super::pool::{BufferPool, Job, LanePool, ScratchPool, WorkQueue};
use super::rings::Rings;
use super::stats::Counters;
use super::table::{Incarnation, SuperTable};
use super::{BufferHash, Config, Inner, Policy, RuntimeOptions};
use crate::{Error, Result};

/// Columns of Bloom filters that are reset together: the paper's w, a byte of each slice.
const BLOOM_GROUP: usize = 8;

/// Refuses a table whose buffers the volume's log could not cover: a log is released only as buffers
/// are flushed, so it must hold at least what all of them hold, and more while it goes on.
pub(super) fn check_log(volume: &Volume, config: &Config) -> Result<()> {
    let entries = config.super_tables as usize * config.filter.entries_max() as usize;
    let bytes = entries * (1 + config.key_bytes + config.value_bytes);
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

/// Opens a table: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: Structure,
    options: RuntimeOptions,
) -> Result<BufferHash> {
    let place = structure.extent.start;
    let mut reader = Reader::new(&structure.config, "bufferhash configuration", place);
    let config = Config::decode(&mut reader)?;
    let (rings, state) = restore(volume, &structure, &config, &options)?;
    let inner = Arc::new(assemble(volume, &structure, config, options, rings, &state)?);
    inner.place_incarnations(place)?;
    inner.prove_chip()?;
    inner.load_images(&state)?;
    let room: Weak<dyn Checkpointed> =
        Arc::downgrade(&(Arc::clone(&inner) as Arc<dyn Checkpointed>));
    volume.register(structure.id, room);
    let threads = start_threads(&inner)?;
    // From here on, dropping the handle ends the threads.
    let table = BufferHash { inner, threads, closed: false };
    table.inner.replay(&structure, &state.tails)?;
    table.inner.queue_filter_loads();
    Ok(table)
}

/// The rings and the images as the checkpoint knows them; empty ones for a table just created.
fn restore(
    volume: &Volume,
    structure: &Structure,
    config: &Config,
    options: &RuntimeOptions,
) -> Result<(Rings, State)> {
    let mut reader = Reader::new(&structure.state, "bufferhash state", structure.extent.start);
    let rings = Rings::restore(volume, structure, config, options, &mut reader)?;
    if structure.state.is_empty() {
        let images = vec![None; config.super_tables as usize];
        let tails = vec![structure.tail; config.super_tables as usize];
        return Ok((rings, State { next_image: 1, images, tails }));
    }
    let state = State::decode(&mut reader)?;
    if state.images.len() != config.super_tables as usize {
        return Err(reader.refuse(config.super_tables, state.images.len()).into());
    }
    Ok((rings, state))
}

fn assemble(
    volume: &Volume,
    structure: &Structure,
    config: Config,
    options: RuntimeOptions,
    rings: Rings,
    state: &State,
) -> Result<Inner> {
    let layout = config.layout()?;
    let filter = Filter::new(config.filter);
    let limit = config.filter.entries_max() as usize + nandex_store::buffer::STASH_LEN_MAX;
    let buffer = || {
        let mut buffer = Buffer::new(layout, config.buffer_pages as usize);
        buffer.limit(limit);
        buffer
    };
    let fresh = structure.state.is_empty();
    let mut tables = Vec::with_capacity(config.super_tables as usize);
    for index in 0..config.super_tables as usize {
        let mut active = buffer();
        if fresh && config.stagger {
            active.limit(staggered(limit, index, config.super_tables as usize));
        }
        tables.push(SuperTable::new(active, window(&config)?, &filter));
    }
    let threshold = if let Policy::Threshold(priority) = config.policy { priority } else { 0 };
    Ok(Inner {
        volume: volume.clone(),
        id: structure.id,
        layout,
        hasher: volume.hasher(),
        filter,
        images: Images::new(&config, layout, structure.extent, state.next_image),
        rings,
        tables,
        pool: BufferPool::new((0..config.spare_buffers).map(|_| buffer()).collect()),
        lanes: LanePool::default(),
        scratches: ScratchPool::default(),
        work: WorkQueue::default(),
        counters: Counters::default(),
        cascade_credit: AtomicU64::new(u64::from(config.cascade_limit) * 1000),
        threshold: AtomicU64::new(threshold),
        replayed: AtomicU64::new(structure.tail.0),
        ready: AtomicBool::new(false),
        flush_turn: Mutex::default(),
        config,
        options,
    })
}

fn window(config: &Config) -> Result<Window> {
    let (k, columns) = (config.incarnations_max as usize, 64 * config.filter.words() as usize);
    match config.filter.kind() {
        FilterKind::Fuse => Window::new(k, columns),
        FilterKind::Bloom => Window::sliding(k, columns, BLOOM_GROUP),
    }
}

/// The fill at which super table `index` flushes for the first time: all different, from half full to
/// full, so that super tables, which fill alike, take turns ever after.
fn staggered(limit: usize, index: usize, tables: usize) -> usize {
    (limit / 2 + limit * (index + 1) / (2 * tables)).max(1)
}

fn start_threads(inner: &Arc<Inner>) -> Result<Vec<JoinHandle<()>>> {
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

impl Inner {
    /// Gives each super table its incarnations, in the order of the ring.
    fn place_incarnations(&self, place: PageId) -> Result<()> {
        let refuse = |found: String| {
            let expected = format!("segments of {} super tables", self.config.super_tables);
            nandex_store::Error::corrupt("bufferhash state", place, expected, found)
        };
        let segments = self.rings.segments();
        for (id, tag) in segments.ok_or_else(|| refuse("one in another's ring".into()))? {
            let Some(table) = self.tables.get(tag.owner as usize) else {
                return Err(refuse(format!("one of super table {}", tag.owner)).into());
            };
            let mut state = table.lock();
            if state.window.is_full() {
                return Err(refuse(format!("too many of super table {}", tag.owner)).into());
            }
            let column = state.window.push();
            state.incarnations[column] = Incarnation { id, entries: tag.entries };
            state.filters_loaded = false;
            self.counters.flushed_entries.fetch_add(u64::from(tag.entries), Relaxed);
        }
        Ok(())
    }

    fn load_images(&self, state: &State) -> Result<()> {
        for (index, image) in state.images.iter().enumerate() {
            if let Some(image) = *image {
                let mut table = self.tables[index].lock();
                self.load_image(index, image, &mut table.active)?;
                table.image = Some(image);
            }
        }
        self.adopt_images(&state.images);
        Ok(())
    }

    /// Applies the log's entries, oldest first, as if they were inserted now, except that they are not
    /// logged again: until a buffer is flushed its entries stay where they are in the log.
    ///
    /// Entries before their super table's own tail are in its incarnations or its image already.
    fn replay(&self, structure: &Structure, tails: &[Lsn]) -> Result<()> {
        self.volume.replay(structure, &mut |lsn, bytes| {
            self.replayed.store(lsn.0, Release);
            let Some(entry) = decode_log_entry(bytes, self.layout) else {
                let found = format!("{} bytes that begin with {:02x?}", bytes.len(), bytes.first());
                let page = PageId(lsn.0 / PAGE_BYTES as u64);
                return Err(nandex_store::Error::corrupt(
                    "log entry",
                    page,
                    "a put or remove",
                    found,
                ));
            };
            let hash = self.hasher.hash(entry.key);
            if lsn < tails[self.table_of(hash)] {
                return Ok(());
            }
            self.replay_entry(lsn, hash, entry).map_err(into_store)
        })?;
        self.replayed.store(u64::MAX, Release);
        self.ready.store(true, Release);
        Ok(())
    }

    fn replay_entry(&self, lsn: Lsn, hash: KeyHash, entry: Entry<'_>) -> Result<()> {
        let index = self.table_of(hash);
        let mut state = self.tables[index].lock();
        while state.active.put(&self.hasher, hash, entry).is_err() {
            state = self.rotate(index, state)?;
        }
        state.puts += 1;
        state.user_puts += 1;
        state.since.get_or_insert(lsn);
        Ok(())
    }

    /// Has the filters loaded in the background; without that, lookups load what they need.
    fn queue_filter_loads(&self) {
        if self.options.flush_threads == 0 {
            return;
        }
        for index in 0..self.tables.len() {
            if !self.tables[index].lock().filters_loaded {
                self.work.push(Job::LoadFilters(index));
            }
        }
    }

    /// Loads the filters of the incarnations that were there at open, once.
    pub(super) fn load_filters(&self, index: usize) -> Result<()> {
        let table = &self.tables[index];
        if table.lock().filters_loaded {
            return Ok(());
        }
        let _turn = table.take_turn();
        let wanted = {
            let state = table.lock();
            if state.filters_loaded {
                return Ok(());
            }
            state.newest_first()
        };
        let mut columns = Vec::with_capacity(wanted.len());
        for (column, incarnation) in wanted {
            columns.push((column, self.read_filter(index, incarnation.id)?));
        }
        let columns: Vec<_> = columns.iter().map(|(column, bits)| (*column, &bits[..])).collect();
        table.slices.load_columns(&columns);
        table.lock().filters_loaded = true;
        Ok(())
    }

    fn read_filter(&self, index: usize, id: SegmentId) -> Result<Vec<u64>> {
        let (first, count) = (u64::from(self.config.buffer_pages), self.config.filter_pages());
        let pages = PageBuf::zeroed(count as usize);
        let ring = self.rings.of(index);
        let pages = self.rings.device().read(ring.page(id, first), pages)?;
        for page in 0..pages.pages() {
            let label = ring.label(id, first + page as u64, PageKind::Filter);
            RawPage::new(pages.page(page)).check(label)?;
        }
        Ok(decode_filter(&pages, self.config.filter.column_words()))
    }

    /// Puts every buffered entry on flash: full buffers as incarnations, the others as images.
    pub(super) fn flush_all(&self) -> Result<()> {
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

fn into_store(error: Error) -> nandex_store::Error {
    match error {
        Error::Store(error) => error,
        Error::Device(error) => error.into(),
        other => nandex_store::Error::config("table", other),
    }
}

impl Checkpointed for Inner {
    fn prepare(&self) -> nandex_store::Result<()> {
        self.evict_ahead().map_err(into_store)?;
        self.save_wished_images().map_err(into_store)
    }

    fn capture(&self) -> Captured {
        // The log's place first, the ring last: what becomes an incarnation in between is then both in
        // the ring and in the log after the tail, which does no harm; the other way it would be in none.
        let now = self.volume.log().next_lsn().min(Lsn(self.replayed.load(Acquire)));
        let mut images = Vec::with_capacity(self.tables.len());
        let mut tails = Vec::with_capacity(self.tables.len());
        for table in &self.tables {
            let state = table.lock();
            tails.push(state.tail().map_or(now, |since| since.min(now)));
            images.push(state.needed_image());
        }
        let tail = tails.iter().fold(now, |oldest, tail| oldest.min(*tail));
        self.images.capture(&images);
        let mut bytes = self.rings.capture();
        State { next_image: self.images.next_generation(), images, tails }.encode(&mut bytes);
        Captured { state: bytes, tail }
    }

    fn committed(&self) {
        self.images.committed();
        self.rings.committed();
    }

    fn relieve(&self, before: Lsn) -> nandex_store::Result<()> {
        self.wish_images_before(before);
        Ok(())
    }

    fn catch_up(&self) -> nandex_store::Result<()> {
        self.catch_up_now().map(drop).map_err(into_store)
    }
}
