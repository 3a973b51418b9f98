//! The cache: content of earlier streams on flash, and the places of its chunks.
//!
//! ```text
//!   new containers --> recent (RAM) --commit, then publish--> names:   chunk's key -> container, index   (BufferHash)
//!        |                                                    anchors: anchor      -> container          (BufferHash)
//!        v
//!   content: ring of segments with numbers | 7 | 8 | 9 | 4 | 5 |       the oldest is overwritten         (value log)
//! ```
//!
//! Invariants
//! 1. The tables get a place only when its container is durable. So after a crash a place leads to a whole container,
//!    or into a segment that was overwritten, which the segment's number shows.
//! 2. The tables give hints. A container is verified by the digest of its table, and a chunk by its fingerprint.
//! 3. Until and during publication, places are found in RAM: no lookup waits for flash writes.
//! 4. All three are bounded and forget the oldest first. A missing entry in one is not an error in another.
//!
//! | act | flash reads | flash writes |
//! |---|---|---|
//! | find chunks | the tables', about one page for each that exists | 0 |
//! | find chunks that recur in the same order | a page for one in eight, and one or two for each container | 0 |
//! | load a container | one operation, of its pages; none while it is in RAM | 0 |
//! | insert a container | a lookup of its name | its bytes, unless it exists; 78 for each chunk, 24 for each anchor |
//! | publish | 0 | a commit of the value log; the tables' log |

mod config;
mod limits;
mod loaded;
mod ordered;
mod place;
mod recent;
mod view;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nandex::device::{Create, Device};
use nandex::raw::Stated;
use nandex::raw::device::PageId;
use nandex::raw::store;
use nandex::raw::store::values::{Purpose, ValueLog, ValueRef};
use nandex::{AnyTable, OpenOptions, Table, TableStats, Volume, VolumeOptions, bufferhash};
use serde::Serialize;

pub use config::{CACHE_BYTES_MIN, CacheConfig};
use limits::Limits;
pub(crate) use limits::{PREFIX_BYTES_MAX, StreamLimits, WINDOW_SEGMENTS};
pub(crate) use place::Place;
pub(crate) use view::View;

use crate::container::{Container, Key, Name, keys_of};
use crate::owner::{Owner, Tag};
use crate::{Error, Result};
use config::{ANCHORS, CONTENT, NAMES};
use loaded::Loaded;
use place::{key_of_name, place_of_container};
use recent::{Places, Recent};

/// A container's owner, its name, and the keys of its chunks.
type Keys = (Tag, Name, Vec<Key>);

/// The bytes read from the beginning of a record for its table: longer tables are not worth it.
const TABLE_BYTES_MAX: usize = 2048;

/// The content and the counters of a cache since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct CacheStats {
    /// The bytes of containers that it can hold.
    pub content_bytes_max: u64,
    /// The number of containers added.
    pub containers_added: u64,
    /// Their bytes.
    pub bytes_added: u64,
    /// The number of segments of the ring that were overwritten.
    pub recycled_segments: u64,
    /// The number of keys of chunks and names of containers in the index, including recycled ones.
    pub index_entries: u64,
    /// The number of anchors in the index, including recycled ones.
    pub anchor_entries: u64,
    /// Bytes of RAM of its tables and buffers.
    pub ram_bytes: u64,
    /// Bytes of flash.
    pub flash_bytes: u64,
    /// The number of lookups of chunks, containers and anchors in the index that were successful; not counting those
    /// answered from RAM.
    pub index_hits: u64,
    /// The number of unsuccessful lookups in the index.
    pub index_misses: u64,
    /// The number of reads of flash: pages of the index, and containers.
    pub flash_reads: u64,
}

/// A cache of content on flash.
///
/// Any number of encoders and decoders of one process may use it concurrently. Dropping it saves it;
/// [`close`](Self::close) also reports failures.
pub struct Cache {
    volume: Volume,
    content: ValueLog,
    names: AnyTable,
    anchors: AnyTable,
    recent: Mutex<Recent>,
    /// Held while recent places move to the tables, by one thread at a time.
    publishing: Mutex<()>,
    loaded: Mutex<Loaded>,
    limits: Limits,
    /// The number of containers read from flash.
    content_reads: AtomicU64,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Cache {
    /// Creates a cache in a new file.
    ///
    /// # Errors
    /// Invalid sizes, an existing file, no space, a failed write.
    pub fn create_file(path: impl AsRef<Path>, config: CacheConfig) -> Result<Self> {
        let volume = VolumeOptions::default().with_growing_log(config.log_bytes()?);
        let db = nandex::options().create(Create::New).sparse().volume(volume).open(path)?;
        Self::create_in(db.volume(), config)
    }

    /// Opens the cache of a file.
    ///
    /// # Errors
    /// A file that is not a cache or is in use, damage, a failed read.
    pub fn open_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_in(nandex::options().create(Create::Open).sparse().open(path)?.volume())
    }

    /// Creates a cache on an empty device.
    ///
    /// # Errors
    /// As [`create_file`](Self::create_file).
    pub fn create(device: Arc<dyn Device>, config: CacheConfig) -> Result<Self> {
        let volume = VolumeOptions::default().with_growing_log(config.log_bytes()?);
        let options = nandex::options().create(Create::New).volume(volume);
        Self::create_in(options.open_on(device.into())?.volume(), config)
    }

    /// Opens the cache of a device.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    pub fn open(device: Arc<dyn Device>) -> Result<Self> {
        Self::open_in(nandex::options().create(Create::Open).open_on(device.into())?.volume())
    }

    /// Creates a cache in a volume that has none, and whose log may grow to the bytes of [`CacheConfig::log_bytes`].
    ///
    /// # Errors
    /// As [`create_file`](Self::create_file); a volume with such structures.
    pub fn create_in(volume: &Volume, config: CacheConfig) -> Result<Self> {
        Self::create_stated(volume, config, &Stated::default())
    }

    /// Creates the same with stated parameters of its index of chunks in place of the configured ones, and with options
    /// of both tables for this opening. The log may grow to the bytes of [`CacheConfig::log_bytes_stated`].
    ///
    /// # Errors
    /// As [`create_in`](Self::create_in); parameters that this index cannot have.
    pub fn create_stated(volume: &Volume, config: CacheConfig, stated: &Stated) -> Result<Self> {
        let (tables, options) = (config.tables(stated)?, options(volume, stated)?);
        let names = AnyTable::create_with(volume, NAMES, &tables.names, &options)?;
        let anchors = AnyTable::create_with(volume, ANCHORS, &tables.anchors, &options)?;
        let content = ValueLog::create(volume, CONTENT, tables.content)?;
        let cache = Self::over(volume, content, (names, anchors));
        match config.ram_bytes {
            Some(ram_bytes) => cache.within(ram_bytes),
            None => Ok(cache),
        }
    }

    /// Opens the cache of a volume.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    pub fn open_in(volume: &Volume) -> Result<Self> {
        Self::open_stated(volume, &Stated::default())
    }

    /// Opens the same with stated options of both tables; the index of chunks must have the stated parameters.
    ///
    /// # Errors
    /// As [`open_in`](Self::open_in) and [`Stated::check`].
    pub fn open_stated(volume: &Volume, stated: &Stated) -> Result<Self> {
        let options = options(volume, stated)?;
        let names = AnyTable::open_with(volume, NAMES, &options)?;
        stated.check(NAMES, &names.config())?;
        let anchors = AnyTable::open_with(volume, ANCHORS, &options)?;
        let content = ValueLog::open(volume, CONTENT)?;
        config::check_widths(&names, &anchors)?;
        Ok(Self::over(volume, content, (names, anchors)))
    }

    fn over(volume: &Volume, content: ValueLog, (names, anchors): (AnyTable, AnyTable)) -> Self {
        Self {
            volume: volume.clone(),
            content,
            names,
            anchors,
            recent: Mutex::default(),
            publishing: Mutex::default(),
            loaded: Mutex::new(Loaded::new(Limits::default().loaded_bytes)),
            limits: Limits::default(),
            content_reads: AtomicU64::new(0),
        }
    }

    /// Limits the RAM of this opening, in bytes: of the cache and of one stream that is encoded against it. Segments
    /// and prefixes become shorter if there is little. A stream that is decoded takes what its encoder has chosen.
    ///
    /// # Errors
    /// [`Error::Options`] if that is too little for the tables, with the least.
    pub fn within(mut self, ram_bytes: u64) -> Result<Self> {
        let tables = [&self.names.config(), &self.anchors.config()];
        self.limits = Limits::within(ram_bytes, (self.content.config(), tables))?;
        self.loaded = Mutex::new(Loaded::new(self.limits.loaded_bytes));
        Ok(self)
    }

    /// Returns the limits of a stream that is encoded.
    pub(crate) fn stream_limits(&self) -> StreamLimits {
        self.limits.stream
    }

    /// Returns the places of chunks whose content still exists.
    fn find(&self, keys: &[Key]) -> Result<Vec<Option<Place>>> {
        let mut places: Vec<Option<Place>> = {
            let recent = self.recent();
            keys.iter().map(|key| recent.place(key)).collect()
        };
        let asked: Vec<usize> = (0..keys.len()).filter(|at| places[*at].is_none()).collect();
        let of_asked: Vec<&[u8]> = asked.iter().map(|at| &keys[*at][..]).collect();
        for (at, value) in asked.iter().zip(self.names.get_many(&of_asked)?) {
            places[*at] = value.and_then(|value| Place::decode(&value));
        }
        let is_there = |place: &Place| self.content.holds(place.reference);
        Ok(places.into_iter().map(|place| place.filter(is_there)).collect())
    }

    /// Returns the places of the existing containers with these anchors.
    fn find_anchors(&self, anchors: &[u64]) -> Result<Vec<Option<ValueRef>>> {
        let mut places: Vec<Option<ValueRef>> = {
            let recent = self.recent();
            anchors.iter().map(|anchor| recent.anchor(*anchor)).collect()
        };
        let asked: Vec<usize> = (0..anchors.len()).filter(|at| places[*at].is_none()).collect();
        let keys: Vec<[u8; 8]> = asked.iter().map(|at| anchors[*at].to_le_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        for (at, value) in asked.iter().zip(self.anchors.get_many(&keys)?) {
            places[*at] = value.and_then(|value| ValueRef::decode(&value));
        }
        let is_there = |place: &ValueRef| self.content.holds(*place);
        Ok(places.into_iter().map(|place| place.filter(is_there)).collect())
    }

    /// Returns the container in a place; `None` if it was recycled or is damaged.
    fn load(&self, reference: ValueRef) -> Result<Option<Arc<Container>>> {
        if let Some(found) = self.loaded().get(&reference) {
            return Ok(Some(found));
        }
        self.content_reads.fetch_add(1, Relaxed);
        let record = match self.content.read(reference) {
            Ok(record) => record,
            // The content is added again, in another place.
            Err(store::Error::Corrupt { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let found = record.and_then(|record| Container::proven(&record)).map(Arc::new);
        if let Some(found) = &found {
            self.loaded().insert(reference, found);
        }
        Ok(found)
    }

    /// Returns the tables of the containers in these places, verified only against their names; `None` for those that
    /// were recycled, are damaged or have a long table.
    fn keys_in(&self, references: &[ValueRef]) -> Result<Vec<Option<Keys>>> {
        let mut found: Vec<Option<Keys>> = {
            let mut loaded = self.loaded();
            let of = |it: Arc<Container>| {
                let keys = it.chunks().iter().map(|chunk| chunk.key).collect();
                (it.tag(), it.name(), keys)
            };
            references.iter().map(|reference| loaded.get(reference).map(of)).collect()
        };
        let missing = (0..references.len()).filter(|at| found[*at].is_none());
        let missing: Vec<usize> = missing.collect();
        self.content_reads.fetch_add(missing.len() as u64, Relaxed);
        let starts: Vec<_> = missing.iter().map(|at| (references[*at], TABLE_BYTES_MAX)).collect();
        match self.content.read_starts(&starts) {
            Ok(read) => {
                for (at, beginning) in missing.into_iter().zip(read) {
                    found[at] = beginning.and_then(|beginning| keys_of(&beginning));
                }
            }
            // They are looked up individually then.
            Err(store::Error::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(found)
    }

    /// Adds a container with the keys of its anchors. If it exists, all its keys lead to it again: the other side has
    /// this container now, and may lack other containers with the same chunks.
    fn insert(&self, owner: &Owner, container: Container, anchors: &[u64]) -> Result<()> {
        let name = container.name();
        let found = self.find(&[owner.key(&key_of_name(&name))])?[0];
        let reference = match found {
            Some(place) => place.reference,
            None => self.append(&container)?,
        };
        let is_full = {
            let mut recent = self.recent();
            recent.note_appended(u64::from(found.is_none()));
            recent.add(place_of_container(reference, name), (owner, &container), anchors);
            recent.bytes() >= self.limits.recent_bytes
        };
        self.loaded().insert(reference, &Arc::new(container));
        if is_full { self.publish() } else { Ok(()) }
    }

    fn append(&self, container: &Container) -> Result<ValueRef> {
        let head = container.record_head();
        let parts = [&head[..], container.content()];
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        loop {
            if let Some(reference) = self.content.append(Purpose::Put, &parts)? {
                return Ok(reference);
            }
            if !self.content.make_space(bytes)? {
                let reason = format!("a container of {bytes} bytes finds no space in its ring");
                return Err(Error::Options { field: "cache", reason });
            }
        }
    }

    /// Makes recent containers durable, and then adds their places to the tables.
    ///
    /// Lookups continue during that, and find these places in RAM until the tables have them.
    fn publish(&self) -> Result<()> {
        let _one_at_a_time = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(leaving) = self.recent().begin_to_publish() else { return Ok(()) };
        let published = self.publish_all(&leaving);
        self.recent().end_publishing(published.is_ok());
        published
    }

    fn publish_all(&self, leaving: &Places) -> Result<()> {
        self.content.commit()?;
        let (names, anchors) = leaving.entries();
        let pairs: Vec<(&[u8], &[u8])> =
            names.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        self.names.insert_many(&pairs)?;
        let pairs: Vec<(&[u8], &[u8])> =
            anchors.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        self.anchors.insert_many(&pairs)?;
        Ok(())
    }

    /// Makes all added content durable.
    ///
    /// # Errors
    /// A failed write or sync, after which the cache must be opened again.
    pub fn sync(&self) -> Result<()> {
        self.publish()?;
        self.names.sync()?;
        Ok(self.anchors.sync()?)
    }

    /// Saves the cache.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn close(self) -> Result<()> {
        self.sync()
    }

    /// Returns its figures.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let content = self.content.stats();
        let (names, anchors) = (self.names.stats(), self.anchors.stats());
        let (added, recent_bytes) = {
            let recent = self.recent();
            (recent.added(), recent.ram_bytes())
        };
        let loaded_bytes = self.loaded().ram_bytes() as u64;
        CacheStats {
            content_bytes_max: content.flash_bytes,
            containers_added: added,
            bytes_added: content.appended_bytes,
            recycled_segments: content.overwritten_segments_life,
            index_entries: names.entries,
            anchor_entries: anchors.entries,
            ram_bytes: content.ram_bytes
                + names.ram_bytes
                + anchors.ram_bytes
                + loaded_bytes
                + recent_bytes as u64,
            flash_bytes: content.flash_bytes + names.flash_bytes + anchors.flash_bytes,
            index_hits: names.hits + anchors.hits,
            index_misses: names.misses + anchors.misses,
            flash_reads: reads(&names) + reads(&anchors) + self.content_reads.load(Relaxed),
        }
    }

    /// Returns the damaged pages of the index's saved buffers, in a cache that was opened read-only. Its figures do not
    /// count the entries in them.
    #[must_use]
    pub fn lost_pages(&self) -> Vec<PageId> {
        let (names, anchors) = (self.names.stats(), self.anchors.stats());
        names.lost_pages.into_iter().chain(anchors.lost_pages).collect()
    }

    /// Returns the volume of the cache.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // This error cannot be returned; only hints are lost, and they will be added again.
        let _ = self.publish();
    }
}

/// Returns the options of both tables.
fn options(volume: &Volume, stated: &Stated) -> Result<OpenOptions> {
    Ok(stated.options(bufferhash::KIND, OpenOptions::suited_to(volume))?)
}

fn reads(table: &TableStats) -> u64 {
    table.hit_reads + table.miss_reads
}

#[cfg(test)]
mod tests;
