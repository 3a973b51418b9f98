//! Options of an opening, the same for a structure of any kind.

use std::fmt;
use std::sync::Arc;

use nandex_device::Device;
use nandex_store::reads::ReadPool;
use nandex_store::schedule::Channels;
use nandex_store::{Threads, Volume};

use crate::model::text;
use crate::ram::RamPool;
use crate::schema::Range;
use crate::{Error, Result, size};

/// The threads that flush full buffers, unless the options say otherwise.
pub const FLUSH_THREADS: usize = 1;
/// The default number of threads for structures whose flushes are merges.
pub(crate) const MERGE_THREADS: usize = 2;
/// The default pages that a merge of slicetables reads or writes at once; each thread holds four chunks in memory.
pub(crate) const IO_CHUNK_PAGES: u32 = 128;
/// The default number of reads in flight in a batch of lookups.
const READ_DEPTH: usize = 32;

/// Returns an entry's priority from its key and value; entries with a higher priority stay longer.
pub type Priority = Arc<dyn Fn(&[u8], &[u8]) -> u64 + Send + Sync>;

/// An option of an opening that can be stated by name, as text.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its name, as errors and reports give it.
    pub name: &'static str,
    /// Its meaning, in the words of the field's documentation.
    pub meaning: &'static str,
    /// The values that it can have.
    pub range: Range,
    /// Its default, as text.
    pub default: &'static str,
    get: fn(&OpenOptions) -> Option<u64>,
    set: fn(&mut OpenOptions, u64),
}

impl OptionSpec {
    /// The values that it can have, as text.
    #[must_use]
    pub fn values(&self) -> String {
        match self.range {
            Range::Within(least, most) => {
                format!("{} to {}", text::count(least), text::count(most))
            }
            _ => "a size, such as 64MiB".to_owned(),
        }
    }

    /// Sets the option from text.
    fn state(&self, options: &mut OpenOptions, value: &str) -> Result<()> {
        let refuse = |found: String| Error::Config {
            field: "parameter",
            reason: format!("{}: {found}; it must be {}", self.name, self.values()),
        };
        let number = size::parse(value).map_err(refuse)?;
        self.range.check(self.name, Some(number)).map_err(|_| refuse(number.to_string()))?;
        (self.set)(options, number);
        Ok(())
    }
}

/// Shows its name, the values that it can have, and its default.
impl fmt::Display for OptionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}; {} unless stated)", self.name, self.values(), self.default)
    }
}

/// A numeric option, which may be left to the structure.
trait OptionNumber: Sized {
    fn stated(&self) -> Option<u64>;

    fn of(number: u64) -> Self;
}

impl<N: Copy + TryInto<u64> + TryFrom<u64>> OptionNumber for Option<N> {
    fn stated(&self) -> Option<u64> {
        self.and_then(|number| number.try_into().ok())
    }

    fn of(number: u64) -> Self {
        number.try_into().ok()
    }
}

/// Zero stands for an unset option.
impl OptionNumber for u64 {
    fn stated(&self) -> Option<u64> {
        Some(*self).filter(|number| *number > 0)
    }

    fn of(number: u64) -> Self {
        number
    }
}

/// Declares the options of an opening: first those that can be stated as text, with the values and the default of each,
/// then those that only a program can set.
macro_rules! open_options {
    (
        $(#[$meta:meta])*
        pub struct OpenOptions;
        stated {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty = $default:literal, in $range:expr;)*
        }
        made {
            $($(#[doc = $other_doc:literal])* $other:ident: $other_type:ty;)*
        }
    ) => {
        $(#[$meta])*
        pub struct OpenOptions {
            $(
                $(#[doc = $doc])*
                #[doc = concat!("Default: ", $default, ".")]
                pub $field: $type,
            )*
            $($(#[doc = $other_doc])* pub $other: $other_type,)*
        }

        impl OpenOptions {
            /// The options that can be stated as text.
            pub const SPECS: &'static [OptionSpec] = &[$(OptionSpec {
                name: stringify!($field),
                meaning: concat!($($doc, "\n"),*),
                range: $range,
                default: $default,
                get: |options| options.$field.stated(),
                set: |options, number| options.$field = OptionNumber::of(number),
            },)*];

            /// Returns these options, with those of `base` where these are unset.
            #[must_use]
            pub(crate) fn over(self, base: Self) -> Self {
                Self {
                    $($field: match self.$field.stated() {
                        Some(_) => self.$field,
                        None => base.$field,
                    },)*
                    $($other: self.$other.or(base.$other),)*
                }
            }
        }
    };
}

open_options! {
    /// Options of an opening. None of them is stored on flash: the next opening may have others.
    ///
    /// They are the same for every kind of structure; a structure ignores options that it does not use. `None` stands
    /// for the structure's default.
    ///
    /// ```
    /// use nandex::OpenOptions;
    ///
    /// let options = OpenOptions { read_depth: Some(64), ..OpenOptions::default() };
    /// assert!(options.validate().is_ok());
    /// assert!(OpenOptions { read_depth: Some(0), ..options }.validate().is_err());
    /// ```
    #[derive(Clone, Default)]
    pub struct OpenOptions;
    stated {
        /// The maximum number of threads of the volume that flush its full buffers and load filters at once. With 0 the
        /// inserting thread does so, when its buffer is full. Each thread has its own I/O chunks. A BufferHash that
        /// evicts nothing has one more thread, which rewrites updated entries.
        flush_threads: Option<usize> = "1, and 2 for the cascade filter and the counting table", in Range::Within(0, 64);
        /// Reads in flight in a batch or stream of lookups.
        read_depth: Option<usize> = "32", in Range::Within(1, 4096);
        /// RAM for a table's cache of entries, in bytes: lookups of the most frequent keys are answered without a read.
        /// A BufferHash with the policy LRU has none, because reading an entry is what keeps it.
        cache_bytes: u64 = "0, and what the table leaves of its RAM in a database", in Range::Any;
        /// The most RAM for filters of the data on flash, in bytes.
        ///
        /// SliceHash: the partitions with the most false-positive reads share it (ANCS'14, section 5.1.2); without it
        /// every lookup that RAM cannot answer reads one page. SliceLSH: lookups of absent buckets read nothing. The
        /// filter takes up to 12 bits for an entry of a full index, in addition to its configuration's RAM, and is
        /// omitted below 4 bits; after an opening it is rebuilt from all slicetables, once lookups have read an eighth
        /// as many pages as these have.
        filter_bytes: u64 = "0, which is none, and what suits the requirements in a database", in Range::Any;
        /// Pages of 4 KiB that a flush or merge reads or writes at once.
        io_chunk_pages: Option<u32> = "128 for SliceHash and SliceLSH, 64 for SliceBloom, and what suits the \
            buffers for the cascade filter (4 to 256) and the counting table (4 to 64)", in Range::Within(1, 65_536);
    }
    made {
        /// The RAM that a growing table may take from this opening on, in bytes, including its cache; `None` for the
        /// limit it was created with. A SliceLSH limits its filter to what this leaves beyond its configuration's RAM.
        ram_bytes_max: Option<u64>;
        /// The way in which reads are spread over the device's channels. By default it follows the device's geometry,
        /// or the order of arrival if the geometry is unknown.
        /// of arrival if it has none.
        channels: Option<Channels>;
        /// The priority function for BufferHash's priority policies. By default the first 8 bytes of the value as a
        /// little-endian number.
        priority: Option<Priority>;
        /// The chip of a BufferHash with [`Placement::Chip`](crate::bufferhash::Placement::Chip); `None` for others. It
        /// must not be used for anything else.
        chip: Option<Arc<dyn Device>>;
        /// The RAM that it shares with other structures, if it grows: its claims come from this pool, and its cache
        /// uses a share of the pool's unclaimed RAM.
        ram_pool: Option<Arc<RamPool>>;
        /// The entries that a new growing table has space for from the start, in one part, so that a lookup searches
        /// one part. Its next part is equally large.
        entries: Option<u64>;
        /// The family of hashes that an index of neighbours must have been made for; `None` accepts any.
        family: Option<Vec<u8>>;
    }
}

impl OpenOptions {
    /// Returns these options without background threads: the calling threads do all the work.
    #[must_use]
    pub fn inline(self) -> Self {
        Self { flush_threads: Some(0), ..self }
    }

    /// Returns the default options for a structure of a volume: without background threads if the volume has none.
    #[must_use]
    pub fn suited_to(volume: &Volume) -> Self {
        match volume.threads() {
            Threads::Inline => Self::default().inline(),
            Threads::Background => Self::default(),
        }
    }

    /// Fails for options that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the option.
    pub fn validate(&self) -> Result<()> {
        Self::SPECS.iter().try_for_each(|it| it.range.check(it.name, (it.get)(self)))
    }

    /// Returns the options with one more, given by its name and value, if it is one of `names`.
    ///
    /// # Errors
    /// [`Error::Config`]: a text that is not a value of it.
    pub(crate) fn with(mut self, names: &[&str], (name, value): (&str, &str)) -> Result<Self> {
        let spec = specs(names).find(|spec| spec.name == name);
        spec.map_or(Ok(()), |spec| spec.state(&mut self, value)).map(|()| self)
    }

    /// The most RAM that a growing table may take: all of a pool, or the stated limit.
    pub(crate) fn ram_limit(&self) -> Option<u64> {
        self.ram_pool.as_ref().map(|pool| pool.bytes()).or(self.ram_bytes_max)
    }

    /// The pool that reads pages of a device for lookups of a structure in the volume.
    pub(crate) fn reads(&self, volume: &Volume, device: &Arc<dyn Device>) -> ReadPool {
        let channels = self.channels.unwrap_or_else(|| Channels::of(&device.geometry()));
        volume.read_pool(device, channels, self.read_depth.unwrap_or(READ_DEPTH))
    }
}

/// The options of these names.
pub(crate) fn specs(names: &[&str]) -> impl Iterator<Item = &'static OptionSpec> {
    OpenOptions::SPECS.iter().filter(move |spec| names.contains(&spec.name))
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
