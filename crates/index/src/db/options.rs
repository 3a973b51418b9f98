//! How a database is opened or made: in a file, or on devices of the caller's.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nandex_device::output::{UnfinishedFiles, refuse_unfinished};
use nandex_device::{
    Access, Allocation, Create, Device, Error as OpenError, FileDevice, FileOptions, Overlay,
    PAGE_BYTES,
};
use nandex_store::{
    Durability, Holds, StaleSuperblock, Volume, VolumeDevices, VolumeOpenOptions, VolumeOptions,
    holds,
};

use super::advice::RecentAdvice;
use super::{Database, Quantity};
use crate::Result;
use crate::ram::RamPool;

/// The default RAM of all structures, in bytes.
const RAM_BYTES: u64 = 64 << 20;

/// What a log may grow to at least, in bytes.
const LOG_BYTES_MIN: u64 = 32 << 20;

/// Options for opening a database; see [`options`](super::options).
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    ram: Quantity,
    log: Option<Quantity>,
    access: Access,
    create: Create,
    allocation: Allocation,
    stale: StaleSuperblock,
    /// What a new volume is made with; the length of its log is `log`.
    volume: VolumeOptions,
    naming: Naming,
    /// Files of the caller's that have no names yet.
    unfinished: UnfinishedFiles,
}

/// The name under which a new file is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Naming {
    /// Its own.
    AtOnce,
    /// One that says that it is unfinished. A file that an earlier run left there is replaced.
    WhenWhole,
    /// The same. A file that an earlier run left there is opened.
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
            stale: StaleSuperblock::default(),
            volume: VolumeOptions::default(),
            naming: Naming::AtOnce,
            unfinished: UnfinishedFiles::default(),
        }
    }

    /// RAM that all structures may take together, such as `"256MiB"`.
    #[must_use]
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = bytes.into();
        self
    }

    /// Length of the write-ahead log of a new file, for good; ignored for an existing file. Without it the log grows
    /// with the buffers of the structures.
    #[must_use]
    pub fn log(mut self, bytes: impl Into<Quantity>) -> Self {
        self.log = Some(bytes.into());
        self.volume.log_bytes_max = None;
        self
    }

    /// When an acknowledged update is durable: always, periodically, or only at `sync`.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.volume.durability = durability;
        self
    }

    /// Opens a file that exists to be read only: any number of processes may, as long as none writes to it.
    /// Structures that it does not have cannot be made, and updates are refused.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        (self.access, self.create) = (Access::ReadOnly, Create::Open);
        self
    }

    /// Must the file exist, or be new? By default it may be either.
    #[must_use]
    pub fn create(mut self, create: Create) -> Self {
        self.create = create;
        self
    }

    /// The key of the hash function of a new file, random by default; ignored for an existing file. Filters and
    /// counting tables of two files can be merged if the files have one key. Whoever knows it can choose keys that
    /// share a place, so do not let it be known where strangers choose keys.
    #[must_use]
    pub fn hash_key(mut self, key: u128) -> Self {
        self.volume.hash_key = Some(key);
        self
    }

    /// All options of a new volume, the length of its log included, in place of what was stated before. For an
    /// existing file only its durability and its threads count. The device of a log is stated with
    /// [`open_on`](Self::open_on).
    #[must_use]
    pub fn volume(mut self, options: VolumeOptions) -> Self {
        self.log = Some(options.log_bytes.into());
        self.volume = options;
        self
    }

    /// Takes space of the file system when it is written, not when the file is made or grows; a write may find none
    /// then.
    #[must_use]
    pub fn sparse(mut self) -> Self {
        self.allocation = Allocation::Sparse;
        self
    }

    /// What to do if the drive has lost the newest superblock; it is refused by default.
    #[must_use]
    pub fn stale(mut self, stale: StaleSuperblock) -> Self {
        self.stale = stale;
        self
    }

    /// Makes a new file `NAME` as `NAME.unfinished`, which gets its name at [`Database::finish`], and replaces a file
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

    /// As [`unfinished`](Self::unfinished), but goes on with a file that an earlier run has left.
    #[must_use]
    pub fn resume(mut self) -> Self {
        self.naming = Naming::Resumed;
        self
    }

    /// States files that the caller has made for the devices of [`open_on`](Self::open_on), and that get their names
    /// at [`Database::finish`].
    #[must_use]
    pub fn unfinished_files(mut self, files: UnfinishedFiles) -> Self {
        self.unfinished = files;
        self
    }

    /// Opens the database at `path`, and makes it if the file does not exist or is empty.
    ///
    /// # Errors
    /// As [`open`](super::open); text that is not a size; a file that exists and must be new, or does not and must.
    /// A file that must exist and is there unfinished.
    pub fn open(mut self, path: impl AsRef<Path>) -> Result<Database> {
        // What cannot be made is refused before there is a file.
        let volume = self.volume_options()?;
        volume.validate()?;
        let place = self.place(path.as_ref())?;
        let Self { access, create, allocation, .. } = self;
        let options = FileOptions { access, create, allocation, ..FileOptions::default() };
        let device = FileDevice::open(place, &options).map_err(with_remedy)?;
        let is_new = access == Access::ReadWrite && device.is_empty_file()?;
        let devices = VolumeDevices { volume: Arc::new(device), log: None };
        self.open_or_make(volume, devices, is_new)
    }

    /// Opens the database on devices that the caller has opened: an array, a simulated drive, a log of its own. Makes
    /// it if the device holds nothing.
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

    /// Where the file of this name is opened or made.
    fn place(&mut self, name: &Path) -> Result<PathBuf> {
        if self.create == Create::Open && self.naming != Naming::Resumed {
            refuse_unfinished(&[name])?;
        }
        // A name that leads nowhere is a new file; what has the name is opened, or refused.
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
            // What an opening writes stays in RAM.
            _ => VolumeDevices { volume: kept(devices.volume), log: devices.log.map(kept) },
        };
        let VolumeDevices { volume: device, log: log_device } = devices;
        let volume = if is_new {
            let create = match (&log_device, create.log_bytes_max) {
                // On a device of its own it has its length from the start.
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

    /// The options of a new volume, with the length of its log.
    fn volume_options(&self) -> Result<VolumeOptions> {
        let options = self.volume.clone();
        match &self.log {
            Some(log) => Ok(VolumeOptions { log_bytes: log.bytes("log")?, ..options }),
            None => Ok(options.with_growing_log(log_bytes_max(self.ram.bytes("ram")?))),
        }
    }
}

/// What the log may grow to with that much RAM, in bytes.
fn log_bytes_max(ram_bytes: u64) -> u64 {
    let twice = ram_bytes.saturating_mul(2);
    twice.checked_next_multiple_of(PAGE_BYTES as u64).unwrap_or(u64::MAX).max(LOG_BYTES_MIN)
}

/// Adds what to do if a file exists that must be new.
fn with_remedy(error: OpenError) -> OpenError {
    match error {
        OpenError::Open { path, source } if source.kind() == ErrorKind::AlreadyExists => {
            let reason = format!("{source}; open it, remove it or choose another name");
            OpenError::Open { path, source: io::Error::new(ErrorKind::AlreadyExists, reason) }
        }
        other => other,
    }
}

/// A device that stays as it is.
fn kept(device: Arc<dyn Device>) -> Arc<dyn Device> {
    Arc::new(Overlay::new(device))
}
