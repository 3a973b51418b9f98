//! The common handle of all structures.
//!
//! A [`Structure`] is a layout of pages with its parameters. [`Handle`] creates, opens and closes any of them. The
//! operations are implemented once for each family: a [`TableStructure`](table::TableStructure) makes its handle a
//! [`Table`](crate::Table), a [`FilterStructure`](filter::FilterStructure) a [`Filter`](crate::Filter). `BufferHash`,
//! `SliceHash` and the others are type aliases of handles.
#![expect(private_bounds, reason = "only this crate implements the seams of the engine")]

pub(crate) mod filter;
pub(crate) mod table;

use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::{Structure as Entry, Volume};

use crate::any::Configuration;
use crate::check::OnProgress;
use crate::write::{Checkpoints, Handle};
use crate::{OpenOptions, Result};

/// A kind of structure: where its full buffers go, and what it is created from.
pub trait Structure: Checkpoints {
    /// Its name in the volume's catalog, such as `bufferhash`; also its word on command lines.
    const KIND: &'static str;
    /// Its name in sentences, such as `BufferHash`.
    const NAME: &'static str;
    /// Its use, in a sentence.
    const GOOD_FOR: &'static str;
    /// The options of an opening that it uses, by their names in [`OpenOptions`].
    const OPTIONS: &'static [&'static str];

    /// The configuration that one is created with.
    type Config: Configuration + Clone;

    /// Checks that a volume can hold a structure of this configuration, and returns the pages that it takes at once.
    ///
    /// # Errors
    /// A configuration that cannot work, in this volume or at all.
    fn admit(volume: &Volume, config: &Self::Config, options: &OpenOptions) -> Result<u64>;

    /// Opens a structure from its entry in the catalog: a list of steps.
    ///
    /// # Errors
    /// Damage, a failed read, options that cannot work.
    fn restore(volume: &Volume, entry: &Entry, options: OpenOptions) -> Result<Handle<Self>>;

    /// The configuration that it was created with; its RAM limit is that of this opening.
    fn config(&self) -> &Self::Config;

    /// Verifies a structure offline and notes damage in the checker.
    ///
    /// # Errors
    /// The check is impossible.
    fn check(
        checker: &mut Checker,
        contents: &Contents,
        entry: &CatalogEntry,
        progress: &mut OnProgress<'_>,
    ) -> Result<()>;

    /// The smallest limits that work.
    fn tiny() -> Self::Config;

    /// The decoders of its own bytes, for fuzzing.
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder];
}

impl<S: Structure> Handle<S> {
    /// Creates a structure in a volume, with default [`OpenOptions`].
    ///
    /// # Errors
    /// A configuration that cannot work, a name that is taken, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: S::Config) -> Result<Self> {
        Self::create_with(volume, name, config, OpenOptions::default())
    }

    /// Creates a structure in a volume.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    #[expect(clippy::needless_pass_by_value, reason = "callers have no more use for it")]
    pub fn create_with(
        volume: &Volume,
        name: &str,
        config: S::Config,
        options: OpenOptions,
    ) -> Result<Self> {
        let create = |config, pages| Ok(volume.create_structure(name, S::KIND, config, pages)?);
        let entry = Self::enter(volume, create, &config, &options)?;
        S::restore(volume, &entry, options)
    }

    /// Enters a structure in the catalog, as `create` does, from its configuration and number of pages.
    pub(crate) fn enter(
        volume: &Volume,
        create: impl FnOnce(Vec<u8>, u64) -> Result<Entry>,
        config: &S::Config,
        options: &OpenOptions,
    ) -> Result<Entry> {
        config.validate()?;
        options.validate()?;
        let pages = S::admit(volume, config, options)?;
        create(config.encode(), pages)
    }

    /// Opens a structure of a volume by name, with default [`OpenOptions`]. Reads snapshots of buffers and the log's
    /// tail.
    ///
    /// # Errors
    /// No structure of that name and kind, one that is open already, damage, a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_with(volume, name, OpenOptions::default())
    }

    /// Opens a structure of a volume by name.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(volume: &Volume, name: &str, options: OpenOptions) -> Result<Self> {
        Self::open_as(volume, (name, S::KIND), options)
    }

    /// Opens a structure whose entry in the catalog has another kind.
    pub(crate) fn open_as(
        volume: &Volume,
        (name, kind): (&str, &str),
        options: OpenOptions,
    ) -> Result<Self> {
        options.validate()?;
        let handle = S::restore(volume, &volume.open_structure(name, kind)?, options)?;
        volume.let_log_grow(handle.config().log_bytes_best())?;
        Ok(handle)
    }

    /// The configuration that it was created with; its RAM limit is that of this opening.
    #[must_use]
    pub fn config(&self) -> &S::Config {
        self.core.layout.config()
    }

    /// Saves buffered updates and ends the background threads. Dropping does the same, and ignores failures.
    ///
    /// # Errors
    /// A failed write or sync. Updates acknowledged as durable are in the log nevertheless.
    pub fn close(mut self) -> Result<()> {
        self.shut_down()
    }
}
