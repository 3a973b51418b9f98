//! The handle of a table of groups, and its row in the [`registry`](crate::registry).

use nandex_store::Volume;

use super::check::check;
use super::config::FLUSH_THREADS;
use super::model::advise;
use super::{
    GroupConfig, GroupModel, GroupStructure, Grouped, RuntimeOptions, open, scan::Partitions,
};
use crate::Result;
use crate::any::{
    AnyConfig, AnyEntries, AnyEntriesPastDamage, AnyOptions, AnyTable, Configuration, Description,
    OpenTable,
};
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES};
use crate::registry::{Family, Row, TableRow};
use crate::scan::{Entries, EntriesPastDamage};
use crate::write::{self, Handle};

/// A hash table on flash from fixed-width keys to fixed-width values, whose pages are in groups.
///
/// Lookups and inserts are cheap from any number of threads. Dropping it saves what is buffered, so that the
/// next open finds it.
#[derive(Debug)]
pub struct GroupTable<S: GroupStructure> {
    pub(crate) handle: Handle<Grouped<S>>,
}

write::delegate_table!([S: GroupStructure] GroupTable<S>);

impl<S: GroupStructure> GroupTable<S> {
    /// Creates a table in a volume, with default [`RuntimeOptions`]. It takes pages as it grows.
    ///
    /// # Errors
    /// A configuration that cannot work, a name that is taken, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: S::Config) -> Result<Self> {
        Self::create_with(volume, name, config, RuntimeOptions::default())
    }

    /// Creates a table in a volume.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        volume: &Volume,
        name: &str,
        config: S::Config,
        options: RuntimeOptions,
    ) -> Result<Self> {
        config.check()?;
        options.validate()?;
        let shape = config.common().shape()?;
        write::check_log(volume, &shape)?;
        let pages = write::snapshot_pages(&shape);
        let structure =
            volume.create_structure(name, S::Config::KIND, GroupConfig::encode(&config), pages)?;
        Ok(Self { handle: open::open(volume, &structure, options)? })
    }

    /// Opens a table of a volume, with default [`RuntimeOptions`]. Reads snapshots of buffers and the log's tail; no
    /// record table.
    ///
    /// # Errors
    /// No table of that name, another kind of structure, damage, a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_with(volume, name, RuntimeOptions::default())
    }

    /// Opens a table of a volume.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(volume: &Volume, name: &str, options: RuntimeOptions) -> Result<Self> {
        options.validate()?;
        let structure = volume.open_structure(name, S::Config::KIND)?;
        Ok(Self { handle: open::open(volume, &structure, options)? })
    }

    /// What it was created with; its RAM is that of this opening.
    #[must_use]
    pub fn config(&self) -> &S::Config {
        &self.handle.core.layout.config
    }

    /// All entries, each key once with its newest value, in no order.
    ///
    /// Each partition is seen as it was when the iteration reached it. Reads the whole table once, group by group, and
    /// holds the keys of one partition's buffers in memory.
    #[must_use]
    pub fn iter(&self) -> Entries<'_> {
        Entries::new(Partitions::new(&self.handle.core))
    }

    /// As [`iter`](Self::iter), but a page that cannot be read or proven ends nothing: it is an item, and all other
    /// entries come.
    #[must_use]
    pub fn iter_past_damage(&self) -> EntriesPastDamage<'_> {
        EntriesPastDamage::new(Partitions::new(&self.handle.core))
    }

    /// Its figures now, in the structure's own terms.
    #[must_use]
    pub fn group_stats(&self) -> S::Stats {
        self.handle.core.layout.own.stats(&self.maps())
    }

    /// The map of each partition now.
    #[must_use]
    pub fn maps(&self) -> Vec<std::sync::Arc<S::Map>> {
        let partitions = self.handle.core.partitions.iter();
        partitions.map(|partition| std::sync::Arc::clone(&partition.read().level)).collect()
    }

    /// The row of a structure of this kind, with its name in sentences and its use.
    #[must_use]
    pub const fn row(name: &'static str, good_for: &'static str) -> Row {
        Row {
            kind: S::Config::KIND,
            name,
            good_for,
            family: Family::Table(TableRow {
                grows: true,
                is_baseline: false,
                merges_into: None,
                create: create::<S>,
                open: open_any::<S>,
                advise: advise::<S::Config>,
                tiny: || S::Config::tiny().into(),
                #[cfg(feature = "testing")]
                testing: crate::testing::TableTests::NONE,
            }),
            check: |checker, contents, entry, progress| {
                check::<S>(checker, contents, entry, progress);
                Ok(())
            },
            #[cfg(feature = "testing")]
            decoders: &[],
        }
    }
}

fn create<S: GroupStructure>(
    volume: &Volume,
    name: &str,
    config: &AnyConfig,
    options: &AnyOptions,
) -> Result<AnyTable> {
    let config = *config.of::<S::Config>()?;
    GroupTable::<S>::create_with(volume, name, config, own(options)).map(Into::into)
}

fn open_any<S: GroupStructure>(
    volume: &Volume,
    name: &str,
    options: &AnyOptions,
) -> Result<AnyTable> {
    GroupTable::<S>::open_with(volume, name, own(options)).map(Into::into)
}

/// Options for tables of groups, or default ones.
fn own(options: &AnyOptions) -> RuntimeOptions {
    let default = RuntimeOptions::default();
    let read_depth = options.read_depth.unwrap_or(default.read_depth);
    let flush_threads = options.flush_threads.unwrap_or(default.flush_threads);
    let usual = RuntimeOptions { read_depth, flush_threads, ..default };
    let mut own = options.of().copied().unwrap_or(usual);
    if own.cache_bytes == 0 {
        own.cache_bytes = options.cache_bytes;
    }
    own.ram_bytes_max = own.ram_bytes_max.or(options.ram_bytes_max);
    own
}

impl<C: GroupModel> Configuration for C {
    fn kind(&self) -> &'static str {
        C::KIND
    }

    fn encode(&self) -> Vec<u8> {
        GroupConfig::encode(self)
    }

    fn validate(&self) -> Result<()> {
        self.check()
    }

    fn log_bytes_best(&self) -> u64 {
        self.common().log_bytes_best()
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        self.check()?;
        Ok(super::model::usual_costs(self))
    }

    fn describe(&self) -> Description {
        let common = self.common();
        let buffer = bytes(u64::from(common.buffer_pages) * PAGE_BYTES);
        let within = common
            .ram_bytes_max
            .map_or(String::new(), |most| format!("; all within {}", bytes(most)));
        let shape = self.shape();
        Description {
            when_full: "grow".into(),
            entries_capacity: self.ram().entries_max(FLUSH_THREADS).min(1 << 48),
            parameters: super::model::parameters(self),
            shape: format!(
                "partitions: {}, buffers of {buffer}, {shape}{within}",
                common.partitions
            ),
        }
    }

    fn growth_bytes_per_entry(&self) -> Option<f64> {
        self.common().ram_bytes_max.is_none().then(|| self.flash_bytes_per_entry())
    }
}

impl<S: GroupStructure> OpenTable for GroupTable<S> {
    fn config(&self) -> AnyConfig {
        (*Self::config(self)).into()
    }

    fn iter(&self) -> AnyEntries<'_> {
        Box::new(Self::iter(self))
    }

    fn iter_past_damage(&self) -> AnyEntriesPastDamage<'_> {
        Box::new(Self::iter_past_damage(self))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}
