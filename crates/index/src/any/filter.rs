//! A filter of any kind, opened by its name in a volume.

use std::any::Any;
use std::fmt;
use std::ops::Deref;

use nandex_store::Volume;

use super::AnyConfig;
use crate::registry::{self, Family, FilterRow};
use crate::{Counter, Error, Filter, OpenOptions, Result};

/// The methods that an open filter of any kind adds to [`Filter`].
pub trait OpenFilter: Filter + Any + fmt::Debug {
    /// Its configuration.
    fn config(&self) -> AnyConfig;

    /// The filter as a counter, if it can count.
    fn counter(&self) -> Option<&(dyn Counter + 'static)>;

    /// Compacts its contents into the least space, so that a lookup reads the fewest pages. Does nothing to a filter of
    /// fixed size.
    ///
    /// # Errors
    /// A failed read or write, damage, no space.
    fn compact(&self) -> Result<()>;

    /// Saves buffered updates and ends the background threads.
    ///
    /// # Errors
    /// A failed write or sync. Updates acknowledged as durable are in the log nevertheless.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A filter of any kind; it can be used as a [`Filter`].
///
/// ```
/// use std::sync::Arc;
/// use nandex::{AnyFilter, OpenOptions, Filter, Volume, VolumeOptions, cascade, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let seen = AnyFilter::create(&volume, "seen", &cascade::Config::tiny().into())?;
/// seen.insert(b"a page's address")?;
/// seen.close()?;
/// let seen = AnyFilter::open(&volume, "seen", &OpenOptions::default())?;
/// assert!(seen.contains(b"a page's address")?);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct AnyFilter(Box<dyn OpenFilter>);

impl AnyFilter {
    /// Creates a filter in a volume, of the kind that the configuration is for, with default options.
    ///
    /// # Errors
    /// As the kind's own `create`; a configuration that is not a filter's.
    pub fn create(volume: &Volume, name: &str, config: &AnyConfig) -> Result<Self> {
        Self::create_with(volume, name, config, &OpenOptions::default())
    }

    /// Creates a filter in a volume, of the kind that the configuration is for.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        volume: &Volume,
        name: &str,
        config: &AnyConfig,
        options: &OpenOptions,
    ) -> Result<Self> {
        (filter_row(name, config.kind())?.create)(volume, name, config, options)
    }

    /// Opens a filter of a volume by its name, whatever its kind.
    ///
    /// # Errors
    /// No structure of that name, one that is not a filter, and the errors of the kind's own opening.
    pub fn open(volume: &Volume, name: &str, options: &OpenOptions) -> Result<Self> {
        let kind = registry::kind_in(volume, name)?;
        (filter_row(name, &kind)?.open)(volume, name, options)
    }

    /// Returns the filter as its concrete type, if it is of that type.
    #[must_use]
    pub fn of<F: OpenFilter>(&self) -> Option<&F> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }

    /// Saves buffered updates and ends the background threads. Dropping does the same, and ignores
    /// failures.
    ///
    /// # Errors
    /// A failed write or sync. Updates acknowledged as durable are in the log nevertheless.
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

fn filter_row(name: &str, kind: &str) -> Result<&'static FilterRow> {
    match registry::find(kind).map(|row| &row.family) {
        Some(Family::Filter(filter)) => Ok(filter),
        _ => Err(Error::Config {
            field: "filter",
            reason: format!("{name:?} is of the kind {kind:?}, which is not a filter"),
        }),
    }
}

impl Deref for AnyFilter {
    type Target = dyn OpenFilter;

    fn deref(&self) -> &dyn OpenFilter {
        &*self.0
    }
}

impl<F: OpenFilter> From<F> for AnyFilter {
    fn from(filter: F) -> Self {
        Self(Box::new(filter))
    }
}
