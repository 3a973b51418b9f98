//! Opening and creating a database: in a file, or on devices of the caller.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nandex_device::output::{UnfinishedFiles, refuse_unfinished};
use nandex_device::{
    Access, Allocation, Create, Device, EngineChoice, Error as OpenError, FileDevice, FileOptions,
    Overlay, PAGE_BYTES,
};
use nandex_store::{
    Durability, Holds, StaleSuperblock, Volume, VolumeDevices, VolumeOpenOptions, VolumeOptions,
    holds,
};

use super::advice::RecentAdvice;
use super::{Database, Quantity};
use crate::Result;
use crate::ram::RamPool;

/// The default RAM of all structures together, in bytes.
const RAM_BYTES: u64 = 64 << 20;

/// The least length that a log may grow to, in bytes.
const LOG_BYTES_MIN: u64 = 32 << 20;

/// Options for opening a database; see [`options`](super::options).
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    ram: Quantity,
    log: Option<Quantity>,
    access: Access,
    create: Create,
    allocation: Allocation,
    engine: EngineChoice,
    stale: StaleSuperblock,
    /// The options of a new volume; the length of its log is in `log`.
    volume: VolumeOptions,
    naming: Naming,
    /// Files of the caller that do not have their final names yet.
    unfinished: UnfinishedFiles,
}

/// The name under which a new file is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Naming {
    /// Its final name.
    AtOnce,
    /// The name of an unfinished file. A file that an earlier run left there is replaced.
    WhenWhole,
    /// The name of an unfinished file. A file that an earlier run left there is opened.
    Resumed,
}

impl DatabaseOptions {
    pub(super) fn new() -> Self {
        Self {
            ram: RAM_BYTES.into(),
            log: None,
            access: Access::ReadWrite,
            create: Create::OpenOrCreate,
            allocation: Allocation::default(),
            engine: EngineChoice::default(),
            stale: StaleSuperblock::default(),
            volume: VolumeOptions::default(),
            naming: Naming::AtOnce,
            unfinished: UnfinishedFiles::default(),
        }
    }

    /// Limits the RAM that all structures together may take, such as `"256MiB"`.
    #[must_use]
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = bytes.into();
        self
    }

    /// Fixes the length of the write-ahead log of a new file; ignored for an existing file. Without it the log grows
    /// with the buffers of the structures.
    #[must_use]
    pub fn log(mut self, bytes: impl Into<Quantity>) -> Self {
        self.log = Some(bytes.into());
        self.volume.log_bytes_max = None;
        self
    }

    /// Sets when an acknowledged update is durable: always, periodically, or only at `sync`.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.volume.durability = durability;
        self
    }

    /// Opens an existing file read-only: any number of processes may do so as long as none writes to it. Creating
    /// structures and updates fail.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        (self.access, self.create) = (Access::ReadOnly, Create::Open);
        self
    }

    /// Requires that the file exists, or that it is new. By default it may be either.
    #[must_use]
    pub fn create(mut self, create: Create) -> Self {
        self.create = create;
        self
    }

    /// Sets the key of the hash function of a new file, random by default; ignored for an existing file. Filters and
    /// counting tables of two files can be merged if the files have the same key. Anyone who knows the key can choose
    /// keys that collide, so keep it secret where untrusted users choose keys.
    #[must_use]
    pub fn hash_key(mut self, key: u128) -> Self {
        self.volume.hash_key = Some(key);
        self
    }

    /// Sets all options of a new volume, including the length of its log, in place of what was stated before. For an
    /// existing file only the durability and the threads apply. The device of a log is passed to
    /// [`open_on`](Self::open_on).
    #[must_use]
    pub fn volume(mut self, options: VolumeOptions) -> Self {
        self.log = Some(options.log_bytes.into());
        self.volume = options;
        self
    }

    /// Allocates space of the file system when it is written, not when the file is created or grows; a write may then
    /// fail for lack of space.
    #[must_use]
    pub fn sparse(mut self) -> Self {
        self.allocation = Allocation::Sparse;
        self
    }

    /// Sets the I/O engine of the file; by default the best available.
    #[must_use]
    pub fn engine(mut self, engine: EngineChoice) -> Self {
        self.engine = engine;
        self
    }

    /// Sets what to do if the drive has lost the newest superblock; opening fails by default.
    #[must_use]
    pub fn stale(mut self, stale: StaleSuperblock) -> Self {
        self.stale = stale;
        self
    }

    /// Creates a new file `NAME` as `NAME.unfinished`, which is renamed at [`Database::finish`], and replaces a file
    /// that an earlier run has left there. A file that exists under its name is opened as it is.
    ///
    /// ```
    /// use nandex::Table;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("all.nandex");
    /// let db = nandex::options().unfinished().open(&path)?;
    /// let table = db.table("all").entries(1000).create_or_open()?;
    /// table.insert_u64(7, 42)?;
    /// table.close()?;
    /// assert!(!path.exists());
    /// db.finish()?;
    /// assert!(path.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn unfinished(mut self) -> Self {
        self.naming = Naming::WhenWhole;
        self
    }

    /// Like [`unfinished`](Self::unfinished), but continues with a file that an earlier run has left.
    #[must_use]
    pub fn resume(mut self) -> Self {
        self.naming = Naming::Resumed;
        self
    }

    /// Adds files that the caller has created for the devices of [`open_on`](Self::open_on), and that get their names
    /// at [`Database::finish`].
    #[must_use]
    pub fn unfinished_files(mut self, files: UnfinishedFiles) -> Self {
        self.unfinished = files;
        self
    }

    /// Opens the database at `path`, and creates it if the file does not exist or is empty.
    ///
    /// # Errors
    /// As [`open`](super::open); text that is not a size; a file that exists but must be new; a file that must exist
    /// but does not, or exists only unfinished.
    pub fn open(mut self, path: impl AsRef<Path>) -> Result<Database> {
        // Impossible options are rejected before a file is created.
        let volume = self.volume_options()?;
        volume.validate()?;
        let place = self.place(path.as_ref())?;
        let Self { access, create, allocation, engine, .. } = self;
        let options = FileOptions { access, create, allocation, engine, ..FileOptions::default() };
        let device = FileDevice::open(place, &options).map_err(with_remedy)?;
        let is_new = access == Access::ReadWrite && device.is_empty_file()?;
        let devices = VolumeDevices { volume: Arc::new(device), log: None };
        self.open_or_make(volume, devices, is_new)
    }

    /// Opens the database on devices that the caller has opened: an array, a simulated drive, a separate log device.
    /// Creates it if the device is empty.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(self, devices: VolumeDevices) -> Result<Database> {
        let is_new = match (self.access, self.create) {
            (Access::ReadWrite, Create::New) => true,
            (Access::ReadWrite, Create::OpenOrCreate) => holds(&devices.volume)? == Holds::Nothing,
            _ => false,
        };
        let volume = self.volume_options()?;
        self.open_or_make(volume, devices, is_new)
    }

    /// Returns the path at which the file of this name is opened or created.
    fn place(&mut self, name: &Path) -> Result<PathBuf> {
        if self.create == Create::Open && self.naming != Naming::Resumed {
            refuse_unfinished(&[name])?;
        }
        // A dangling name is a new file; an existing one is opened, or rejected.
        if self.naming == Naming::AtOnce || name.symlink_metadata().is_ok() {
            return Ok(name.to_owned());
        }
        let left = match self.naming {
            Naming::Resumed => self.unfinished.resume(name),
            _ => None,
        };
        match left {
            Some(left) => {
                self.create = Create::Open;
                Ok(left)
            }
            None if self.create == Create::Open => Ok(name.to_owned()),
            None => Ok(self.unfinished.begin(name)?),
        }
    }

    fn open_or_make(
        self,
        create: VolumeOptions,
        devices: VolumeDevices,
        is_new: bool,
    ) -> Result<Database> {
        let ram_bytes = self.ram.bytes("ram")?;
        let devices = match self.access {
            Access::ReadWrite => devices,
            // Writes of an opening stay in RAM.
            _ => VolumeDevices { volume: kept(devices.volume), log: devices.log.map(kept) },
        };
        let VolumeDevices { volume: device, log: log_device } = devices;
        let volume = if is_new {
            let create = match (&log_device, create.log_bytes_max) {
                // A log on its own device has its full length from the start.
                (Some(_), Some(log_bytes)) => {
                    VolumeOptions { log_bytes, log_bytes_max: None, ..create }
                }
                _ => create,
            };
            Volume::create(device, VolumeOptions { log_device, ..create })?
        } else {
            let (access, stale) = (self.access, self.stale);
            let VolumeOptions { durability, threads, .. } = create;
            let log_bytes_max = Some(log_bytes_max(ram_bytes));
            let options =
                VolumeOpenOptions { access, stale, durability, log_bytes_max, log_device, threads };
            let volume = Volume::open(device, options)?;
            if self.access == Access::ReadWrite {
                volume.drop_replacements()?;
            }
            volume
        };
        let ram = Arc::new(RamPool::new(&volume, ram_bytes));
        let (opening, unfinished) = (Mutex::default(), Mutex::new(self.unfinished));
        let advice = RecentAdvice::default();
        Ok(Database { volume, ram, opening, unfinished, advice })
    }

    /// Returns the options of a new volume, with the length of its log.
    fn volume_options(&self) -> Result<VolumeOptions> {
        let options = self.volume.clone();
        match &self.log {
            Some(log) => Ok(VolumeOptions { log_bytes: log.bytes("log")?, ..options }),
            None => Ok(options.with_growing_log(log_bytes_max(self.ram.bytes("ram")?))),
        }
    }
}

/// Returns the length that the log may grow to with `ram_bytes` of RAM, in bytes.
fn log_bytes_max(ram_bytes: u64) -> u64 {
    let twice = ram_bytes.saturating_mul(2);
    twice.checked_next_multiple_of(PAGE_BYTES as u64).unwrap_or(u64::MAX).max(LOG_BYTES_MIN)
}

/// Adds the remedy to the error of a file that exists but must be new.
fn with_remedy(error: OpenError) -> OpenError {
    match error {
        OpenError::Open { path, source } if source.kind() == ErrorKind::AlreadyExists => {
            let reason = format!("{source}; open it, remove it or choose another name");
            OpenError::Open { path, source: io::Error::new(ErrorKind::AlreadyExists, reason) }
        }
        other => other,
    }
}

/// Wraps a device so that it is never modified.
fn kept(device: Arc<dyn Device>) -> Arc<dyn Device> {
    Arc::new(Overlay::new(device))
}
