//! SliceBloom as a [`Structure`].

use super::format::SliceLayout;
use nandex_store::IoChunks;
use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::shadow::Shadow;
use nandex_store::{Structure as Entry, Volume};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use nandex_store::schedule::Channels;

use super::{Config, Inner, KIND, check, recover};
use crate::any::{AnyConfig, Configuration, Description};
use crate::api::FilterStats;
use crate::check::OnProgress;
use crate::model::text::count;
use crate::model::{FilterRequirements, OperationCosts, ParameterValue};
use crate::structure::Structure;
use crate::structure::filter::FilterStructure;
use crate::write::Handle;
use crate::{Error, OpenOptions, Result};

/// SliceBloom's layout: a slicetable of bits for each partition.
#[derive(Debug)]
pub struct BloomSlicetables {
    pub(super) config: Config,
    pub(super) slices: SliceLayout,
    pub(super) shadow: Shadow,
    /// The I/O of a flush.
    pub(super) chunks: IoChunks,
    /// Held while a partition's buffer and slicetable change together, or all of them are captured.
    pub(super) maps: Mutex<()>,
    /// The map updates in the last capture.
    pub(super) captured: AtomicU64,
    /// Bytes that flushes have read.
    pub(super) bytes_read: AtomicU64,
}

impl Structure for BloomSlicetables {
    const KIND: &'static str = KIND;
    const NAME: &'static str = "SliceBloom";
    const GOOD_FOR: &'static str = "A sliding window of recent keys on flash, in a tenth of a bit of RAM each. It deletes nothing; for sets a \
               cascade filter is better.";
    const OPTIONS: &'static [&'static str] = &["flush_threads", "read_depth", "io_chunk_pages"];
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder] = super::testing::DECODERS;

    type Config = Config;

    fn admit(volume: &Volume, config: &Config, _options: &OpenOptions) -> Result<u64> {
        Inner::check_log(volume, config).map(|()| config.pages())
    }

    fn restore(volume: &Volume, entry: &Entry, options: OpenOptions) -> Result<Handle<Self>> {
        recover::open(volume, entry, options)
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn check(
        checker: &mut Checker,
        contents: &Contents,
        entry: &CatalogEntry,
        progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        check(checker, contents, entry, progress);
        Ok(())
    }

    fn tiny() -> Config {
        Config::tiny()
    }
}

impl FilterStructure for BloomSlicetables {
    const DELETES: bool = false;
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::FilterTests = super::testing::TESTS;

    fn advise(requirements: &FilterRequirements) -> Result<AnyConfig> {
        Config::advised(requirements).map(Into::into)
    }

    fn add(core: &Inner, key: &[u8], _amount: i64) -> Result<()> {
        core.add_key(key)
    }

    fn add_many<'k>(core: &Inner, amounts: impl Iterator<Item = (&'k [u8], i64)>) -> Result<()> {
        core.add_keys(amounts.map(|(key, _)| key))
    }

    fn add_absent(core: &Inner, keys: &[&[u8]]) -> Result<Vec<bool>> {
        core.add_absent(keys)
    }

    fn contains(core: &Inner, key: &[u8]) -> Result<bool> {
        core.contains(key)
    }

    fn contains_many(core: &Inner, keys: &[&[u8]]) -> Result<Vec<bool>> {
        core.contains_many(keys)
    }

    fn filter_stats(core: &Inner) -> FilterStats {
        core.stats()
    }

    fn no_deletes() -> Error {
        Error::NoDeletes {
            structure: Self::NAME,
            reason: "one bit stands for many keys, and a key goes when it is older than the window; take a cascade \
                     filter to delete keys",
        }
    }
}

impl Configuration for Config {
    crate::schema::configuration!(KIND);

    fn log_bytes_best(&self) -> u64 {
        Self::log_bytes_best(self)
    }

    fn shared_ram_bytes(&self) -> u64 {
        Self::shared_ram_bytes(self)
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        self.validate()?;
        Ok(self.usual_costs())
    }

    fn aligned_to(&self, channels: &Channels) -> Option<AnyConfig> {
        (channels.count() > 1).then(|| Self::aligned_to(*self, channels).into())
    }

    fn describe(&self) -> Description {
        let number = |value: u32| ParameterValue::Count(value.into());
        Description {
            when_full: "forget the oldest keys".into(),
            entries_capacity: self.window_keys(),
            parameters: vec![
                ("partitions", number(self.partitions)),
                ("buffer_keys", number(self.buffer_keys)),
                ("bits_per_key", number(self.bits_per_key)),
                ("hashes", number(self.hashes)),
                ("incarnations", number(self.incarnations)),
            ],
            shape: format!(
                "a window of {} keys: partitions: {}, buffers of {} keys, {} incarnations, {} bits and {} reads a key",
                count(self.window_keys()),
                self.partitions,
                count(self.buffer_keys.into()),
                self.incarnations,
                self.bits_per_key,
                self.hashes
            ),
        }
    }
}
