//! Configurations of a structure of any kind.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use nandex_store::schedule::Channels;

use crate::model::{OperationCosts, Parameter};
use crate::schema::ParameterSpec;
use crate::{Error, Result};

/// The interface of every structure's configuration.
pub trait Configuration: Any + fmt::Debug + Send + Sync {
    /// The kind of structure, as the volume's catalog names it.
    fn kind(&self) -> &'static str;

    /// Encodes it as the catalog stores it.
    fn encode(&self) -> Vec<u8>;

    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    fn validate(&self) -> Result<()>;

    /// The specifications of its parameters, in the order of their bytes on flash.
    fn specs(&self) -> &'static [ParameterSpec];

    /// The names and values of its parameters, as [`with`](Self::with) takes them. The parts of a parameter with parts
    /// are listed one by one, such as `filter.bits`.
    fn values(&self) -> Vec<(String, String)>;

    /// Returns the configuration with another value of one parameter. [`validate`](Self::validate) checks whether all
    /// values work together.
    ///
    /// # Errors
    /// [`Error::Config`]: no such parameter, with a list of all; a text that is not a value of it.
    fn with(&self, name: &str, value: &str) -> Result<AnyConfig>;

    /// The length in bytes of a log that seldom forces this structure to flush early.
    fn log_bytes_best(&self) -> u64;

    /// The device operations that each of its operations costs once it is full, by the cost model.
    ///
    /// # Errors
    /// [`Error::Config`] for a configuration that cannot work.
    fn operation_costs(&self) -> Result<OperationCosts>;

    /// The RAM of a table that holds `entries`, in bytes, by its cost model; `None` if it is not a table.
    fn ram_bytes_with(&self, _entries: u64) -> Option<u64> {
        None
    }

    /// The part of its RAM that structures of a volume share, in bytes: the log's buffers, pages that lookups read, and
    /// memory that flushes reuse.
    fn shared_ram_bytes(&self) -> u64 {
        0
    }

    /// Describes the configuration, for people and programs.
    fn describe(&self) -> Description;

    /// Returns the configuration with pages aligned to the first of these channels, so that a page's number determines
    /// its channel; `None` if that makes no difference.
    fn aligned_to(&self, _channels: &Channels) -> Option<AnyConfig> {
        None
    }

    /// The bytes of flash that a growing table takes for each further entry, if only the device limits it.
    fn growth_bytes_per_entry(&self) -> Option<f64> {
        None
    }

    /// The flash of a growing table that was created for `entries`, in bytes; `None` for other structures.
    fn flash_bytes_with(&self, _entries: u64) -> Option<u64> {
        None
    }
}

/// A description of a configuration, for people and programs.
#[derive(Clone, PartialEq, Debug)]
pub struct Description {
    /// The policy of a full structure, in a word such as `fifo`.
    pub when_full: String,
    /// The entries with different keys that it is guaranteed to hold before that happens.
    pub entries_capacity: u64,
    /// The structure's parameters, by name.
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

    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.0.validate()
    }

    /// The specifications of its parameters, in the order of their bytes on flash.
    #[must_use]
    pub fn specs(&self) -> &'static [ParameterSpec] {
        self.0.specs()
    }

    /// The names and values of its parameters; see [`Configuration::values`].
    #[must_use]
    pub fn values(&self) -> Vec<(String, String)> {
        self.0.values()
    }

    /// Returns the configuration with other values of parameters, given by name, such as `("filter.bits", "14")`.
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
    /// [`Error::Config`]: no such parameter, with a list of all; a text that is not a value of it; values that do not
    /// work together.
    pub fn with<'v>(&self, values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Result<Self> {
        let set = |config: Self, (name, value)| config.0.with(name, value);
        let config = values.into_iter().try_fold(self.clone(), set)?;
        config.validate().map(|()| config)
    }

    /// The length in bytes of a log that seldom forces this structure to flush early.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        self.0.log_bytes_best()
    }

    /// The device operations that each of its operations costs once it is full, by the cost model.
    ///
    /// # Errors
    /// [`Error::Config`] for a configuration that cannot work.
    pub fn operation_costs(&self) -> Result<OperationCosts> {
        self.0.operation_costs()
    }

    /// The RAM of a table that holds `entries`, in bytes, by its cost model: without a cache of entries, and without
    /// filters that are optional at each opening. `None` if it is not a table.
    #[must_use]
    pub fn ram_bytes_with(&self, entries: u64) -> Option<u64> {
        self.0.ram_bytes_with(entries)
    }

    /// The part of its RAM that structures of a volume share, in bytes: the log's buffers, pages that lookups read, and
    /// memory that flushes reuse. Only as many structures as the volume has background threads take it at once.
    #[must_use]
    pub fn shared_ram_bytes(&self) -> u64 {
        self.0.shared_ram_bytes()
    }

    /// Describes the configuration, for people and programs.
    #[must_use]
    pub fn describe(&self) -> Description {
        self.0.describe()
    }

    /// The bytes of flash that a growing table takes for each further entry, if only the device limits it.
    #[must_use]
    pub fn growth_bytes_per_entry(&self) -> Option<f64> {
        self.0.growth_bytes_per_entry()
    }

    /// The flash of a growing table that was created for `entries` ([`OpenOptions::entries`]), in bytes by its cost
    /// model; `None` for a structure with a fixed amount of flash.
    ///
    /// [`OpenOptions::entries`]: crate::OpenOptions::entries
    #[must_use]
    pub fn flash_bytes_with(&self, entries: u64) -> Option<u64> {
        self.0.flash_bytes_with(entries)
    }

    /// Returns the configuration with pages aligned to the first of these channels, so that a page's number determines
    /// its channel: slicetables in whole rounds (ANCS'14, section 5.2). `None` if that makes no difference.
    #[must_use]
    pub fn aligned_to(&self, channels: &Channels) -> Option<Self> {
        self.0.aligned_to(channels)
    }

    /// Returns the configuration as its concrete type.
    ///
    /// # Errors
    /// [`Error::Config`] if it belongs to another structure.
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
