//! Drives, as the verbs create and open them in a file, and those that verbs measure.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use nandex::device::Access;
use nandex::raw::{Stated, registry};
use nandex::{Database, Durability, OpenOptions, Prediction, Volume, VolumeOptions};
use nandex_kvssd::{
    Config, DRIVE_NAME, Drive, IndexChoice, IopsParameters, KeyOrder, KeySpace, Timing,
    VALUE_BYTES_MAX,
};

use crate::console::Console;
use crate::devices::{EngineArgs, VolumeArgs};
use crate::held::{STRIPING, create_with, open_volume};
use crate::size;
use crate::stated::StatedArgs;

/// The key space that is created with a drive.
pub const SPACE: &str = "main";

/// The default index of a drive.
const INDEX: &str = "rhik";

/// The default RAM of an index is a thousandth of the capacity, like the 10 MB of a drive of 10 GB in the paper.
const CAPACITY_PER_RAM: u64 = 1000;

/// The least default RAM.
const RAM_BYTES_MIN: u64 = 2 << 20;
/// The RAM that the index of a small drive may have even if its capacity is less. A larger drive could not use more
/// than its capacity.
const RAM_BYTES_USED: u64 = 64 << 20;

/// A drive in a file.
#[derive(Clone, Debug, clap::Args)]
pub struct DriveArgs {
    /// The files of the drive.
    #[command(flatten)]
    pub volume: VolumeArgs,
    #[command(flatten)]
    options: StatedArgs,
}

impl DriveArgs {
    /// Opens the drive, calls `act` with it, and closes it.
    ///
    /// # Errors
    /// A file that does not exist, has no drive, is in use or damaged; parameters of the index that differ from the
    /// given ones; errors of `act`, which precede one of closing.
    pub fn with<T>(&self, access: Access, act: impl FnOnce(&Drive) -> Result<T>) -> Result<T> {
        let opened = open(&self.volume, access, &self.options.stated())?;
        let done = act(&opened.1);
        close(opened, done)
    }
}

/// A key space of a drive in a file.
#[derive(Clone, Debug, clap::Args)]
pub struct SpaceArgs {
    #[command(flatten)]
    drive: DriveArgs,
    /// Name of the key space
    #[arg(long, value_name = "NAME", default_value = SPACE)]
    space: String,
}

impl SpaceArgs {
    /// Opens the drive and the key space, calls `act` with both, and closes them.
    ///
    /// # Errors
    /// As [`DriveArgs::with`]; no such key space.
    pub fn with<T>(
        &self,
        access: Access,
        act: impl FnOnce(&Drive, &KeySpace) -> Result<T>,
    ) -> Result<T> {
        self.drive.with(access, |drive| act(drive, &drive.open_key_space(&self.space)?))
    }
}

/// The limits of a new drive.
#[derive(Clone, Debug, clap::Args)]
pub struct LimitArgs {
    /// Bytes that pairs may take: keys, values, and 38 more for each
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "256MiB")]
    capacity: u64,
    /// Number of pairs to size the index for; default: one for each KiB of the capacity
    #[arg(long, value_name = "COUNT", value_parser = size::parse_some)]
    pairs: Option<u64>,
    /// Kind of the index: any kind of table, such as rhik, the default
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    index: Option<String>,
    /// RAM of the index, the drive's DRAM budget, at most the capacity or 64 MiB of which is used; default: a
    /// thousandth of the capacity, at least 2 MiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes)]
    ram: Option<u64>,
    /// Shortest key in bytes; 4 by the specification
    #[arg(long, value_name = "BYTES", default_value_t = 1)]
    key_min: u16,
    /// Longest key in bytes
    #[arg(long, value_name = "BYTES", default_value_t = nandex_kvssd::KEY_BYTES_MAX)]
    key_max: u16,
    /// Longest value in bytes, up to 2 MiB; 16 of them fit a segment of flash, several of which are kept free
    #[arg(long, value_name = "SIZE", value_parser = longest_value, default_value = "2MiB")]
    value_max: u64,
}

fn longest_value(text: &str) -> Result<u64, String> {
    size::parse_within(text, "values have", 0..=VALUE_BYTES_MAX.into())
}

fn kinds() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(registry::tables().map(|(row, _)| row.kind))
}

impl LimitArgs {
    /// Returns the drive's limits, and its index with the given parameters in place of those that the limits lead to.
    ///
    /// # Errors
    /// Invalid limits, too little RAM, parameters that the index cannot have.
    pub fn choose(&self, stated: &StatedArgs) -> Result<(Config, Prediction)> {
        let of_capacity = Config::of_capacity(self.capacity);
        let config = Config {
            pairs_max: self.pairs.unwrap_or(of_capacity.pairs_max),
            key_bytes_min: self.key_min,
            key_bytes_max: self.key_max,
            value_bytes_max: u32::try_from(self.value_max).unwrap_or(u32::MAX),
            ..of_capacity
        };
        config.validate()?;
        let kind = self.index.as_deref().unwrap_or(INDEX);
        let index = |ram_bytes| IndexChoice { kind, ram_bytes };
        let mut prediction = match self.ram {
            Some(ram) => {
                let used = ram.min(self.capacity.max(RAM_BYTES_USED));
                index(Some(used)).predict(config.pairs_max)?
            }
            None => {
                let budget = (self.capacity / CAPACITY_PER_RAM).max(RAM_BYTES_MIN);
                // A kind that cannot work in the usual budget uses what it needs.
                index(Some(budget))
                    .predict(config.pairs_max)
                    .or_else(|_| index(None).predict(config.pairs_max))?
            }
        };
        let why = "it follows from what the index of a drive is";
        stated.refuse(&["key_bytes", "value_bytes", "policy"], why)?;
        let stated = stated.stated();
        prediction.config = stated.on(&prediction.config).context("--set")?;
        prediction.options = stated.options(kind, prediction.options.clone()).context("--set")?;
        Ok((config, prediction))
    }
}

/// An open drive, and its volume with the files that were created.
pub type Opened = (Database, Drive);

/// Closes a drive and its volume, and gives created files their names.
///
/// # Errors
/// The error in `done`; a failed write or sync.
pub fn close<T>((db, drive): Opened, done: Result<T>) -> Result<T> {
    let closed = drive.close();
    let done = done?;
    closed?;
    db.volume().checkpoint()?;
    db.finish()?;
    Ok(done)
}

/// Creates a drive in new files, with the first key space.
///
/// # Errors
/// An existing file, invalid limits, no space.
pub fn create(
    args: &DriveArgs,
    limits: &LimitArgs,
    durability: Durability,
    console: &Console,
) -> Result<Opened> {
    let (config, index) = limits.choose(&args.options)?;
    let log_bytes = index.config.log_bytes_best();
    let options = VolumeOptions { durability, ..VolumeOptions::default() };
    let options = options.with_growing_log(log_bytes);
    let make = |volume: &_| create_on(volume, config, (&index.config, &index.options));
    create_with(&args.volume, (STRIPING, options), console, make)
}

/// Creates a drive on a volume, with the first key space.
///
/// # Errors
/// Invalid limits, no space.
pub fn create_on(
    volume: &Volume,
    config: Config,
    index: (&nandex::AnyConfig, &OpenOptions),
) -> Result<Drive> {
    let drive = Drive::create_with(volume, DRIVE_NAME, config, index)?;
    drive.create_key_space(SPACE, 0, KeyOrder::None)?;
    Ok(drive)
}

/// Opens the drive in a file.
///
/// # Errors
/// As [`DriveArgs::with`].
fn open(volume: &VolumeArgs, access: Access, stated: &Stated) -> Result<Opened> {
    let (db, _) = open_volume(volume, access, Durability::default())?;
    let drive = Drive::open_stated(db.volume(), DRIVE_NAME, stated);
    let drive = drive.with_context(|| volume.cannot("open"))?;
    Ok((db, drive))
}

/// A drive to measure.
pub trait MeasuredDrive: clap::Args {
    /// Opens or creates the drive, calls `act` with it and its key space, and closes it.
    ///
    /// # Errors
    /// A drive that cannot be opened or created; errors of `act`.
    fn with<T>(&self, act: impl FnOnce(&Drive, &KeySpace) -> Result<T>) -> Result<T>;

    /// Returns the name of the device.
    fn device(&self) -> String;
}

/// The measured key space, and how it is measured.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasureArgs {
    /// Name of the key space
    #[arg(long, value_name = "NAME", default_value = SPACE)]
    space: String,
    /// Parameters of the index, and options of the run.
    #[command(flatten)]
    pub stated: StatedArgs,
    /// Report the time of OpenMPDK's model of operations per second in place of the device's
    #[arg(long)]
    iops_model: bool,
}

impl MeasureArgs {
    /// Calls `act` with an open drive and its key space, and closes the drive.
    ///
    /// # Errors
    /// No such key space; errors of `act`, which precede one of closing.
    pub fn run<T>(
        &self,
        opened: Opened,
        act: impl FnOnce(&Drive, &KeySpace) -> Result<T>,
    ) -> Result<T> {
        if self.iops_model {
            opened.1.set_timing(Timing::Iops(IopsParameters::default()));
        }
        let space = opened.1.open_key_space(&self.space);
        let done = space.map_err(Into::into).and_then(|space| act(&opened.1, &space));
        close(opened, done)
    }
}

/// The drive of a file, to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasuredFile {
    /// File of the drive; `nandex-lab kvssd` measures simulated drives
    file: PathBuf,
    /// Kind of the index, which the drive must have
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    index: Option<String>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

impl MeasuredDrive for MeasuredFile {
    fn with<T>(&self, act: impl FnOnce(&Drive, &KeySpace) -> Result<T>) -> Result<T> {
        let volume = VolumeArgs::single(self.file.clone(), self.engine);
        let opened = open(&volume, Access::ReadWrite, &self.measure.stated.stated())?;
        if let Some(kind) = &self.index {
            opened.1.check_index(kind)?;
        }
        self.measure.run(opened, act)
    }

    fn device(&self) -> String {
        self.file.display().to_string()
    }
}
