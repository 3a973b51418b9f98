//! The devices of a volume: one or several, perhaps one more for its log, and their engine.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use nandex::device::FileOptions;
use nandex::device::{Access, Create, Device, FileDevice};
use nandex::raw::Completion;
use nandex::raw::device::output::{UnfinishedFiles, refuse_existing, refuse_unfinished};
use nandex::raw::device::{Allocation, ArrayOptions, EngineChoice};
use nandex::raw::device::{LabelledArray, Member, PAGE_BYTES, Striping, growth_bytes};
use nandex::raw::store::{Holds, holds, remove_unfinished};
use serde::Serialize;

use crate::console::Console;
use crate::refuse;
use crate::size::show_bytes;
use crate::unfinished;

/// The number of bytes of the blocks that a file's metadata counts.
const BLOCK_BYTES: u64 = 512;

/// A volume by its paths.
#[derive(Clone, Debug, clap::Args)]
pub struct VolumeArgs {
    /// File or block device of the volume; any one of its devices if there are several
    pub file: PathBuf,
    #[command(flatten)]
    pub devices: DeviceArgs,
}

/// The engine that reads and writes the volumes of a run.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct EngineArgs {
    /// I/O engine
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    engine: EngineArg,
}

impl EngineArgs {
    /// Returns the choice as the library takes it.
    pub fn choice(self) -> EngineChoice {
        self.engine.into()
    }
}

/// The devices of a volume after the one that was named first.
#[derive(Clone, Debug, clap::Args)]
pub struct DeviceArgs {
    /// A further device of a volume on several; once for each, in any order
    #[arg(long = "member", value_name = "PATH")]
    pub members: Vec<PathBuf>,
    /// Device of the log, for a volume that keeps it separately
    #[arg(long, value_name = "PATH")]
    pub log_device: Option<PathBuf>,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Create the volume again on block devices that a stopped run has left unfinished
    #[arg(long)]
    pub force: bool,
    /// Open the state of an older superblock if the drive has lost the newest one; later updates are missing
    #[arg(long)]
    pub older_state: bool,
    /// Allocate space when it is written, not when a file is created or grows; a write may then find none
    #[arg(long)]
    pub sparse: bool,
}

impl DeviceArgs {
    fn options(&self) -> FileOptions {
        let allocation = if self.sparse { Allocation::Sparse } else { Allocation::Whole };
        FileOptions { engine: self.engine.choice(), allocation, ..FileOptions::default() }
    }
}

/// The sizes of the files of a volume; zero for block devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct FileBytes {
    /// Their lengths.
    file_bytes: u64,
    /// The bytes that the file system has allocated.
    allocated_bytes: u64,
}

impl FileBytes {
    /// Returns the current sizes of these files.
    ///
    /// # Errors
    /// A file that cannot be inspected.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<Self> {
        let mut sum = Self { file_bytes: 0, allocated_bytes: 0 };
        for path in paths {
            let found = fs::metadata(path);
            let found = found.with_context(|| format!("cannot look at {}", path.display()))?;
            sum.file_bytes += found.len();
            sum.allocated_bytes += found.blocks() * BLOCK_BYTES;
        }
        Ok(sum)
    }

    /// Formats the sizes for people.
    #[must_use]
    pub fn shown(&self) -> String {
        let bytes = show_bytes(self.file_bytes);
        match self.allocated_bytes < self.file_bytes {
            true => {
                format!("{bytes} long, of which {} are allocated", show_bytes(self.allocated_bytes))
            }
            false => bytes,
        }
    }
}

/// An engine by its name on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum EngineArg {
    /// The best available
    #[default]
    Auto,
    /// io_uring and direct I/O
    Uring,
    /// Threads and direct I/O
    Threads,
    /// Threads and the page cache
    Buffered,
}

impl From<EngineArg> for EngineChoice {
    fn from(word: EngineArg) -> Self {
        match word {
            EngineArg::Auto => Self::Auto,
            EngineArg::Uring => Self::Uring,
            EngineArg::Threads => Self::Threads,
            EngineArg::Buffered => Self::Buffered,
        }
    }
}

/// A striping by its words on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripeArg(pub Striping);

impl FromStr for StripeArg {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (is_partition, size) =
            word.strip_prefix("partition:").map_or((false, word), |size| (true, size));
        let bytes = crate::size::parse(size)?;
        let page_bytes = PAGE_BYTES as u64;
        if bytes == 0 || !bytes.is_multiple_of(page_bytes) {
            return Err(format!("{bytes} bytes are not a positive multiple of {page_bytes}"));
        }
        let pages = bytes / page_bytes;
        Ok(Self(if is_partition {
            Striping::Partition { pages }
        } else {
            Striping::Extent { pages }
        }))
    }
}

/// Open devices.
#[derive(Clone, Debug)]
pub struct Devices {
    /// The device of the volume, or the array.
    pub volume: Arc<dyn Device>,
    /// The device of its log, if that is separate.
    pub log: Option<Arc<dyn Device>>,
    /// The paths of the members in the array's order; none for a volume on one device.
    pub members: Vec<String>,
    /// Files that this call creates.
    pub made: UnfinishedFiles,
    /// The completion of a new volume: on block devices it is marked until it is complete.
    pub completion: Completion,
}

impl Devices {
    fn of(volume: Arc<dyn Device>, log: Option<Arc<dyn Device>>, members: Vec<String>) -> Self {
        let completion = Completion::default();
        Self { volume, log, members, made: UnfinishedFiles::default(), completion }
    }
}

impl VolumeArgs {
    /// Returns a volume on a single file.
    #[must_use]
    pub fn single(file: PathBuf, engine: EngineArgs) -> Self {
        let devices = DeviceArgs {
            members: Vec::new(),
            log_device: None,
            engine,
            force: false,
            older_state: false,
            sparse: false,
        };
        Self { file, devices }
    }

    /// Returns a volume on a single file or block device that grows in steps: a file takes space when it is written.
    #[must_use]
    pub fn sparse(file: &Path, engine: EngineArgs) -> Self {
        let mut volume = Self::single(file.to_owned(), engine);
        volume.devices.sparse = true;
        volume
    }

    /// Opens existing devices. A label identifies the member of an array.
    ///
    /// # Errors
    /// A device that is missing or in use, is named twice, or does not belong to the volume.
    pub fn open(&self, access: Access) -> Result<Devices> {
        self.refuse_twice()?;
        refuse_unfinished(&self.files())?;
        let options = FileOptions { access, ..self.devices.options() };
        let mut members = Vec::new();
        for path in self.paths() {
            members.push(member(path, &options)?);
        }
        let log = match &self.devices.log_device {
            Some(path) => Some(member(path, &options)?.device),
            None => None,
        };
        if let ([one], false) = (&members[..], self.is_labelled(&members)?) {
            self.refuse_marked(&one.device, "open")?;
            return Ok(Devices::of(Arc::clone(&one.device), log, Vec::new()));
        }
        let array = LabelledArray::open(members, access).with_context(|| self.cannot("open"))?;
        let members = array.names().to_vec();
        let array: Arc<dyn Device> = Arc::new(array);
        self.refuse_marked(&array, "open")?;
        Ok(Devices::of(array, log, members))
    }

    /// Rejects a volume that is marked as unfinished. Read errors are reported by the opening.
    fn refuse_marked(&self, device: &Arc<dyn Device>, verb: &str) -> Result<()> {
        match holds(device) {
            Ok(Holds::Unfinished) => Err(unfinished::marked(&self.cannot(verb))),
            _ => Ok(()),
        }
    }

    /// Returns whether there is something to open. A block device always exists: one without content is to be created,
    /// and so is an unfinished one with `--force`.
    pub fn is_made(&self) -> bool {
        if !is_block_device(&self.file) || !self.devices.members.is_empty() {
            return self.file.exists();
        }
        let options = FileOptions { access: Access::ReadOnly, ..self.devices.options() };
        let Ok(member) = member(&self.file, &options) else { return true };
        match holds(&member.device) {
            Ok(Holds::Nothing) => false,
            Ok(Holds::Unfinished) => !self.devices.force,
            Ok(Holds::Volume) | Err(_) => true,
        }
    }

    fn is_labelled(&self, members: &[Member]) -> Result<bool> {
        let first = members.first().map(|first| Member::is_labelled(&*first.device));
        first.unwrap_or(Ok(false)).with_context(|| self.cannot("open"))
    }

    /// Creates files, and opens block devices; several become an array. The files get their names when they are
    /// published.
    ///
    /// # Errors
    /// An existing file, a device that is named twice or has content.
    pub fn create(&self, striping: Striping, console: &Console) -> Result<Devices> {
        self.refuse_twice()?;
        refuse_existing(&self.files())?;
        let mut made = UnfinishedFiles::default();
        self.create_noting(striping, &mut made, console).inspect_err(|_| made.remove())
    }

    fn create_noting(
        &self,
        striping: Striping,
        made: &mut UnfinishedFiles,
        console: &Console,
    ) -> Result<Devices> {
        let mut members = Vec::new();
        for path in self.paths() {
            members.push(self.make(path, made, console)?);
        }
        let log = match &self.devices.log_device {
            Some(path) => Some(self.make(path, made, console)?.device),
            None => None,
        };
        let devices = match (&members[..], self.devices.members.is_empty()) {
            ([one], true) => {
                self.clear_marked(&one.device)?;
                Devices::of(Arc::clone(&one.device), log, Vec::new())
            }
            _ => {
                self.clear_array(&members)?;
                let array = LabelledArray::create(members, &ArrayOptions::new(striping))
                    .with_context(|| self.cannot("create"))?;
                let names = array.names().to_vec();
                Devices::of(Arc::new(array), log, names)
            }
        };
        Ok(Devices { made: made.clone(), completion: self.completion(), ..devices })
    }

    /// Returns the completion of a new volume. Files get their names when they are complete; a volume on a block device
    /// must be marked.
    fn completion(&self) -> Completion {
        if self.paths().any(is_block_device) { Completion::Unfinished } else { Completion::Whole }
    }

    /// Removes an unfinished volume, with `--force`.
    fn clear_marked(&self, device: &Arc<dyn Device>) -> Result<()> {
        if !self.devices.force {
            return self.refuse_marked(device, "create");
        }
        match holds(device)? {
            // The creation of the volume refuses to replace it.
            Holds::Volume => Ok(()),
            Holds::Nothing | Holds::Unfinished => Ok(remove_unfinished(device)?),
        }
    }

    /// Resets an array with an unfinished volume or none, with `--force`. Members of any other array stay as they are,
    /// and are rejected.
    fn clear_array(&self, members: &[Member]) -> Result<()> {
        let open = |access| LabelledArray::open(members.to_vec(), access);
        let Ok(array) = open(Access::ReadOnly) else { return Ok(()) };
        let is_grown = array.label().page_count > 0;
        let array: Arc<dyn Device> = Arc::new(array);
        match (holds(&array)?, self.devices.force) {
            (Holds::Volume, _) => Ok(()),
            (Holds::Nothing, _) if !is_grown => Ok(()),
            (_, false) => Err(unfinished::marked(&self.cannot("create"))),
            (_, true) => {
                let array = Arc::new(open(Access::ReadWrite)?);
                // The volume first, so that an array never claims to be empty while it has a volume.
                remove_unfinished(&(Arc::clone(&array) as Arc<dyn Device>))?;
                Ok(array.reset()?)
            }
        }
    }

    fn make(&self, path: &Path, made: &mut UnfinishedFiles, console: &Console) -> Result<Member> {
        let (create, place) = match is_block_device(path) {
            true => (Create::Open, path.to_owned()),
            false => (Create::New, unfinished::begin(made, path, console)?),
        };
        let options = FileOptions { create, ..self.devices.options() };
        let device =
            FileDevice::open(&place, &options).map_err(|error| cannot("create", path, error))?;
        Ok(Member::new(path.display().to_string(), Arc::new(device)))
    }

    /// Returns all devices except the log's, in the order in which they were named.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.file).chain(&self.devices.members).map(PathBuf::as_path)
    }

    /// Returns the current sizes of its files.
    ///
    /// # Errors
    /// A file that cannot be inspected.
    pub fn file_bytes(&self) -> Result<FileBytes> {
        FileBytes::of(self.files())
    }

    /// Returns by how many bytes its device can grow; `None` if that is unknown, or if it has several.
    pub fn growth_bytes(&self) -> Option<u64> {
        if self.devices.members.is_empty() { growth_bytes(&self.file) } else { None }
    }

    /// Returns all files that are not block devices, including the log's: those that a verb creates under another name.
    fn files(&self) -> Vec<&Path> {
        let all = self.paths().chain(self.devices.log_device.as_deref());
        all.filter(|path| !is_block_device(path)).collect()
    }

    /// Rejects a device that is named twice, because two handles of one file would block each other by the lock.
    fn refuse_twice(&self) -> Result<()> {
        let mut seen = HashSet::new();
        for path in self.paths().chain(self.devices.log_device.as_deref()) {
            let real = fs::canonicalize(path).or_else(|_| std::path::absolute(path))?;
            if !seen.insert(real) {
                refuse!("{} is named twice; name each device once", path.display());
            }
        }
        Ok(())
    }

    /// Returns the prefix of an error of the whole volume.
    #[must_use]
    pub fn cannot(&self, verb: &str) -> String {
        let file = self.file.display();
        match self.devices.members.len() {
            0 => format!("cannot {verb} {file}"),
            more => format!("cannot {verb} {file} and {more} more"),
        }
    }
}

fn member(path: &Path, options: &FileOptions) -> Result<Member> {
    let device = FileDevice::open(path, options).map_err(|error| cannot("open", path, error))?;
    Ok(Member::new(path.display().to_string(), Arc::new(device)))
}

/// Returns whether it is the error of a device that another process has open.
#[must_use]
pub fn is_in_use(error: &anyhow::Error) -> bool {
    let locked = |cause: &nandex::raw::device::Error| {
        matches!(cause, nandex::raw::device::Error::Locked { .. })
    };
    error.chain().any(|cause| cause.downcast_ref().is_some_and(locked))
}

/// Returns an error of one device, with its path once.
fn cannot(verb: &str, path: &Path, error: nandex::raw::device::Error) -> anyhow::Error {
    let error = match error {
        nandex::raw::device::Error::Open { source, .. } => source.into(),
        error => anyhow::Error::from(error),
    };
    error.context(format!("cannot {verb} {}", path.display()))
}

fn is_block_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_striping_is_a_size_with_or_without_the_word_for_partitions() {
        assert_eq!("1MiB".parse(), Ok(StripeArg(Striping::Extent { pages: 256 })));
        assert_eq!("partition:8KiB".parse(), Ok(StripeArg(Striping::Partition { pages: 2 })));
        for word in ["0", "4097", "partition:", "partition:1", "row:4096"] {
            assert!(word.parse::<StripeArg>().is_err(), "{word}");
        }
    }
}
