//! Options of an opening, the same for a structure of any kind.

use std::fmt;
use std::sync::Arc;

use nandex_device::Device;
use nandex_store::reads::ReadPool;
use nandex_store::schedule::Channels;
use nandex_store::{Threads, Volume};

use crate::{Error, Result};

/// The most threads that put full buffers on flash.
const FLUSH_THREADS_MAX: usize = 64;
/// Threads that put full buffers on flash, unless the options say otherwise.
pub const FLUSH_THREADS: usize = 1;
/// The same for structures whose flushes are merges.
pub(crate) const MERGE_THREADS: usize = 2;
/// Pages that a merge of slicetables reads or writes at once, unless the options say otherwise; four chunks are in
/// memory for each thread.
pub(crate) const IO_CHUNK_PAGES: u32 = 128;
/// Reads in flight in a batch of lookups, unless the options say otherwise.
const READ_DEPTH: usize = 32;
/// The most reads in flight.
const READ_DEPTH_MAX: usize = 4096;
/// The most pages of an I/O chunk.
const IO_CHUNK_PAGES_MAX: u32 = 65_536;

/// Returns an entry's priority from its key and value; higher stays longer.
pub type Priority = Arc<dyn Fn(&[u8], &[u8]) -> u64 + Send + Sync>;

/// Options of an opening. None of them is kept on flash: the next opening may have others.
///
/// They are the same for every kind of structure; one that has no use for an option ignores it. `None` stands for the
/// structure's own default.
///
/// ```
/// use nandex::OpenOptions;
///
/// let options = OpenOptions { read_depth: Some(64), ..OpenOptions::default() };
/// assert!(options.validate().is_ok());
/// assert!(OpenOptions { read_depth: Some(0), ..options }.validate().is_err());
/// ```
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// Threads that put full buffers on flash and load filters, 0 to 64. With 0 the inserting thread does, at the
    /// moment its buffer is full. Default 1, and 2 for the cascade filter and the counting table. Each thread has I/O
    /// chunks of its own.
    pub flush_threads: Option<usize>,
    /// Reads in flight in a batch or stream of lookups: 1 to 4096. Default 32.
    pub read_depth: Option<usize>,
    /// RAM for a table's cache of entries, in bytes: the keys that are looked up most are answered without a read.
    /// Default 0. A BufferHash with the policy LRU has none, because an entry stays by being read.
    pub cache_bytes: u64,
    /// RAM for filters of what is on flash, in bytes at most. Default 0, which is none.
    ///
    /// SliceHash: the partitions with the most false-positive reads share it (ANCS'14, section 5.1.2); without it every
    /// lookup that RAM cannot answer reads one page. SliceLSH: lookups of buckets that are not there read nothing. It
    /// takes up to 12 bits for an entry of a full index, in addition to its configuration's RAM, and is left out below
    /// 4; after an opening it is made again from all slicetables, once lookups have read an eighth as many pages as
    /// these have.
    pub filter_bytes: u64,
    /// RAM that a table which grows may take from this opening on, in bytes, its cache included; `None` for what it
    /// was created with. A SliceLSH takes no more for its filter than this leaves in addition to its configuration's
    /// RAM.
    pub ram_bytes_max: Option<u64>,
    /// Pages of 4 KiB that a flush or merge reads or writes at once: 1 to 65,536. Default 128 for SliceHash and
    /// SliceLSH, 64 for SliceBloom, and what suits the buffers for the cascade filter (4 to 256) and the counting table
    /// (4 to 64).
    pub io_chunk_pages: Option<u32>,
    /// How reads are spread over the device's channels. Default: by the device's geometry, and in order of arrival if
    /// it has none.
    pub channels: Option<Channels>,
    /// An entry's priority, for BufferHash's priority policies. Default: the first 8 bytes of its value as a
    /// little-endian number.
    pub priority: Option<Priority>,
    /// The chip of a BufferHash with [`Placement::Chip`](crate::bufferhash::Placement::Chip); `None` for others.
    /// Nothing else may be on it.
    pub chip: Option<Arc<dyn Device>>,
    /// The family of hashes that an index of neighbours must have been made for; `None` for whichever it has.
    pub family: Option<Vec<u8>>,
}

impl OpenOptions {
    /// The same without threads in the background: the calling threads do all the work.
    #[must_use]
    pub fn inline(self) -> Self {
        Self { flush_threads: Some(0), ..self }
    }

    /// The default options for a structure of a volume: no threads in the background if the volume has none.
    #[must_use]
    pub fn suited_to(volume: &Volume) -> Self {
        match volume.threads() {
            Threads::Inline => Self::default().inline(),
            Threads::Background => Self::default(),
        }
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the option.
    pub fn validate(&self) -> Result<()> {
        let refuse = |field, found: u64, range: &str| {
            Err(Error::Config { field, reason: format!("{found}; it must be {range}") })
        };
        match *self {
            Self { flush_threads: Some(threads), .. } if threads > FLUSH_THREADS_MAX => {
                refuse("flush_threads", threads as u64, "0 to 64")
            }
            Self { read_depth: Some(depth), .. } if !(1..=READ_DEPTH_MAX).contains(&depth) => {
                refuse("read_depth", depth as u64, "1 to 4096")
            }
            Self { io_chunk_pages: Some(pages), .. }
                if !(1..=IO_CHUNK_PAGES_MAX).contains(&pages) =>
            {
                refuse("io_chunk_pages", pages.into(), "1 to 65,536")
            }
            _ => Ok(()),
        }
    }

    /// What reads pages of a device for lookups.
    pub(crate) fn reads(&self, device: &Arc<dyn Device>) -> ReadPool {
        let channels = self.channels.unwrap_or_else(|| Channels::of(&device.geometry()));
        ReadPool::new(Arc::clone(device), channels, self.read_depth.unwrap_or(READ_DEPTH))
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("OpenOptions");
        out.field("flush_threads", &self.flush_threads).field("read_depth", &self.read_depth);
        out.field("cache_bytes", &self.cache_bytes).field("filter_bytes", &self.filter_bytes);
        out.field("ram_bytes_max", &self.ram_bytes_max);
        out.field("io_chunk_pages", &self.io_chunk_pages).field("channels", &self.channels);
        out.field("chip", &self.chip).field("family", &self.family);
        out.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let usual = OpenOptions::default;
        for (options, field) in [
            (OpenOptions { flush_threads: Some(65), ..usual() }, "flush_threads"),
            (OpenOptions { read_depth: Some(0), ..usual() }, "read_depth"),
            (OpenOptions { read_depth: Some(4097), ..usual() }, "read_depth"),
            (OpenOptions { io_chunk_pages: Some(0), ..usual() }, "io_chunk_pages"),
            (OpenOptions { io_chunk_pages: Some(1 << 17), ..usual() }, "io_chunk_pages"),
        ] {
            let error = options.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{field}: {error}");
        }
        usual().inline().validate().unwrap();
    }
}
