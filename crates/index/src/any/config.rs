//! Configurations of a structure of any kind.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use nandex_store::schedule::Channels;

use crate::model::{OperationCosts, Parameter};
use crate::schema::ParameterSpec;
use crate::{Error, Result};

/// What every structure's configuration offers, whatever its kind.
pub trait Configuration: Any + fmt::Debug + Send + Sync {
    /// The kind of structure, as the volume's catalog names it.
    fn kind(&self) -> &'static str;

    /// Its bytes, as the catalog keeps them.
    fn encode(&self) -> Vec<u8>;

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    fn validate(&self) -> Result<()>;

    /// What its parameters are, in the order of their bytes on flash.
    fn specs(&self) -> &'static [ParameterSpec];

    /// Its parameters' names and values, as [`with`](Self::with) takes them. The parts of one that has parts come by
    /// themselves, such as `filter.bits`.
    fn values(&self) -> Vec<(String, String)>;

    /// The same with another value of a parameter, by its name. Whether all values work together is
    /// [`validate`](Self::validate)'s to say.
    ///
    /// # Errors
    /// [`Error::Config`]: no such parameter, with those that there are; a text that is no value of it.
    fn with(&self, name: &str, value: &str) -> Result<AnyConfig>;

    /// The length in bytes of a log that seldom makes this structure flush early.
    fn log_bytes_best(&self) -> u64;

    /// The device operations of its operations once it is full, by the cost model.
    ///
    /// # Errors
    /// [`Error::Config`] for a configuration that cannot work.
    fn operation_costs(&self) -> Result<OperationCosts>;

    /// RAM of a table that holds `entries`, in bytes, by its cost model; `None` for what is no table.
    fn ram_bytes_with(&self, _entries: u64) -> Option<u64> {
        None
    }

    /// The part of its RAM that structures of a volume share, in bytes: the log's buffers, pages that lookups read, and
    /// what flushes reuse.
    fn shared_ram_bytes(&self) -> u64 {
        0
    }

    /// What it is, for people and programs.
    fn describe(&self) -> Description;

    /// The same with pages that begin with the first of these channels wherever that tells a page's channel; `None`
    /// where it makes no difference.
    fn aligned_to(&self, _channels: &Channels) -> Option<AnyConfig> {
        None
    }

    /// Bytes of flash for each entry that a table grows by, if nothing but the device limits it.
    fn growth_bytes_per_entry(&self) -> Option<f64> {
        None
    }

    /// Flash of a table that grows when it was made for that many entries, in bytes; `None` for others.
    fn flash_bytes_with(&self, _entries: u64) -> Option<u64> {
        None
    }
}

/// A configuration, for people and programs.
#[derive(Clone, PartialEq, Debug)]
pub struct Description {
    /// What happens when the structure is full, in a word such as `fifo`.
    pub when_full: String,
    /// Entries that it surely holds, each of another key, before that happens.
    pub entries_capacity: u64,
    /// The structure's own parameters, by their names.
    pub parameters: Vec<Parameter>,
    /// The parameters in a line.
    pub shape: String,
}

/// The configuration of a structure of any kind: what [`AnyTable::create`](crate::AnyTable::create) takes.
///
/// ```
/// use nandex::{AnyConfig, slicehash};
///
/// let config = AnyConfig::from(slicehash::Config::tiny());
/// assert_eq!(config.kind(), "slicehash");
/// assert!(config.of::<slicehash::Config>().is_ok());
/// ```
#[derive(Clone)]
pub struct AnyConfig(Arc<dyn Configuration>);

impl AnyConfig {
    /// The kind of structure, as the volume's catalog names it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.0.validate()
    }

    /// What its parameters are, in the order of their bytes on flash.
    #[must_use]
    pub fn specs(&self) -> &'static [ParameterSpec] {
        self.0.specs()
    }

    /// Its parameters' names and values; see [`Configuration::values`].
    #[must_use]
    pub fn values(&self) -> Vec<(String, String)> {
        self.0.values()
    }

    /// The same with other values of parameters, by their names, such as `("filter.bits", "14")`.
    ///
    /// ```
    /// use nandex::{AnyConfig, slicehash};
    ///
    /// let config = AnyConfig::from(slicehash::Config::tiny());
    /// let rejecting = config.with([("policy", "reject"), ("partitions", "8")])?;
    /// assert_eq!(rejecting.of::<slicehash::Config>()?.partitions, 8);
    /// assert!(config.with([("partitions", "7")]).unwrap_err().to_string().contains("power of two"));
    /// # Ok::<(), nandex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`]: no such parameter, with those that there are; a text that is no value of it; values that do
    /// not work together.
    pub fn with<'v>(&self, values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Result<Self> {
        let set = |config: Self, (name, value)| config.0.with(name, value);
        let config = values.into_iter().try_fold(self.clone(), set)?;
        config.validate().map(|()| config)
    }

    /// The length in bytes of a log that seldom makes this structure flush early.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        self.0.log_bytes_best()
    }

    /// The device operations of its operations once it is full, by the cost model.
    ///
    /// # Errors
    /// [`Error::Config`] for a configuration that cannot work.
    pub fn operation_costs(&self) -> Result<OperationCosts> {
        self.0.operation_costs()
    }

    /// RAM of a table that holds `entries`, in bytes, by its cost model: without a cache of entries, and
    /// without the filters that only some openings ask for. `None` for what is no table.
    #[must_use]
    pub fn ram_bytes_with(&self, entries: u64) -> Option<u64> {
        self.0.ram_bytes_with(entries)
    }

    /// The part of its RAM that structures of a volume share, in bytes: the log's buffers, pages that lookups read, and
    /// what flushes reuse. Only as many structures as the volume has background threads take it at once.
    #[must_use]
    pub fn shared_ram_bytes(&self) -> u64 {
        self.0.shared_ram_bytes()
    }

    /// What it is, for people and programs.
    #[must_use]
    pub fn describe(&self) -> Description {
        self.0.describe()
    }

    /// Bytes of flash for each entry that a table grows by, if nothing but the device limits it.
    #[must_use]
    pub fn growth_bytes_per_entry(&self) -> Option<f64> {
        self.0.growth_bytes_per_entry()
    }

    /// Flash that a table which grows takes when it was made for that many entries ([`OpenOptions::entries`]), in bytes
    /// by its cost model; `None` for a structure that has the flash that it was made with.
    ///
    /// [`OpenOptions::entries`]: crate::OpenOptions::entries
    #[must_use]
    pub fn flash_bytes_with(&self, entries: u64) -> Option<u64> {
        self.0.flash_bytes_with(entries)
    }

    /// The same with pages that begin with the first of these channels wherever that tells a page's channel:
    /// slicetables in whole rounds (ANCS'14, section 5.2). `None` where it makes no difference.
    #[must_use]
    pub fn aligned_to(&self, channels: &Channels) -> Option<Self> {
        self.0.aligned_to(channels)
    }

    /// The configuration as its own type.
    ///
    /// # Errors
    /// [`Error::Config`] if it is another structure's.
    pub fn of<C: Configuration>(&self) -> Result<&C> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref().ok_or_else(|| Error::Config {
            field: "configuration",
            reason: format!("it is one of a {}, which another structure cannot use", self.kind()),
        })
    }
}

impl<C: Configuration> From<C> for AnyConfig {
    fn from(config: C) -> Self {
        Self(Arc::new(config))
    }
}

impl fmt::Debug for AnyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Two configurations are equal when they make the same kind from the same bytes.
impl PartialEq for AnyConfig {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.0.encode() == other.0.encode()
    }
}
