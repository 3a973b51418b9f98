//! An index of neighbours of any kind, opened by name in a volume.

use std::any::Any;
use std::fmt;
use std::ops::Deref;

use nandex_store::Volume;

use super::AnyConfig;
use crate::registry::{self, Family, NeighborsRow};
use crate::{Error, Neighbors, OpenOptions, Result};

/// The methods that an open index of neighbours of any kind adds to [`Neighbors`].
pub trait OpenNeighbors: Neighbors + Any + fmt::Debug {
    /// Its configuration.
    fn config(&self) -> AnyConfig;

    /// The family of hashes that makes its bucket keys, as the bytes that it was created with.
    fn family(&self) -> &[u8];

    /// Saves buffered updates and ends the background threads.
    ///
    /// # Errors
    /// A failed write or sync. Updates acknowledged as durable are in the log nevertheless.
    fn close(self: Box<Self>) -> Result<()>;
}

/// An index of neighbours of any kind; it can be used as a [`Neighbors`].
///
/// ```
/// use std::sync::Arc;
/// use nandex::{AnyNeighbors, OpenOptions, Neighbors, Volume, VolumeOptions, device::MemoryDevice, slicelsh};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let alike = AnyNeighbors::create(&volume, "alike", &slicelsh::Config::tiny().into())?;
/// alike.insert(17, &[1, 2, 3])?;
/// alike.close()?;
/// let alike = AnyNeighbors::open(&volume, "alike", &OpenOptions::default())?;
/// assert_eq!(alike.candidates(&[9, 2, 9])?, [17]);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct AnyNeighbors(Box<dyn OpenNeighbors>);

impl AnyNeighbors {
    /// Creates an index in a volume, of the kind that the configuration is for, with default options.
    ///
    /// # Errors
    /// As the kind's own `create`; a configuration of another structure.
    pub fn create(volume: &Volume, name: &str, config: &AnyConfig) -> Result<Self> {
        Self::create_with(volume, name, config, &OpenOptions::default())
    }

    /// Creates an index in a volume, of the kind that the configuration is for.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        volume: &Volume,
        name: &str,
        config: &AnyConfig,
        options: &OpenOptions,
    ) -> Result<Self> {
        (neighbors_row(name, config.kind())?.create)(volume, name, config, options)
    }

    /// Opens an index of a volume by its name, whatever its kind.
    ///
    /// # Errors
    /// No structure of that name, one that is not an index of neighbours, and the errors of the kind's opening.
    pub fn open(volume: &Volume, name: &str, options: &OpenOptions) -> Result<Self> {
        let kind = registry::kind_in(volume, name)?;
        (neighbors_row(name, &kind)?.open)(volume, name, options)
    }

    /// Returns the index as its concrete type, if it is of that type.
    #[must_use]
    pub fn of<N: OpenNeighbors>(&self) -> Option<&N> {
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

fn neighbors_row(name: &str, kind: &str) -> Result<&'static NeighborsRow> {
    match registry::find(kind).map(|row| &row.family) {
        Some(Family::Neighbors(neighbors)) => Ok(neighbors),
        _ => Err(Error::Config {
            field: "neighbors",
            reason: format!("{name:?} is of the kind {kind:?}, which is no index of neighbours"),
        }),
    }
}

impl Deref for AnyNeighbors {
    type Target = dyn OpenNeighbors;

    fn deref(&self) -> &dyn OpenNeighbors {
        &*self.0
    }
}

impl<N: OpenNeighbors> From<N> for AnyNeighbors {
    fn from(neighbors: N) -> Self {
        Self(Box::new(neighbors))
    }
}
