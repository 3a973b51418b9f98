//! Volumes and tables, as the verbs open and create them.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use nandex::device::{Access, Device, Geometry, Overlay, Striping};
use nandex::large::{ValuesConfig, table_name};
use nandex::store::hash::{HashKind, KeyHasher};
use nandex::{AnyTable, Durability, LargeTable, Prediction, StaleSuperblock, VolumeOpenOptions};
use nandex::{Volume, VolumeOptions};

use crate::console::Console;
use crate::devices::{Devices, VolumeArgs};
use crate::field::{Column, FieldFormat, Role};
use crate::records::Columns;
use crate::table::{self, Keyed, Memory};
use crate::unfinished::Unfinished;

/// Which table of a volume.
#[derive(Clone, Debug, clap::Args)]
pub struct TableArgs {
    /// The table's name; not needed where the volume holds one
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
}

/// How keys and values are written.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FieldArgs {
    /// How keys are written; without it, hex for fixed widths and text for any size
    #[arg(long, value_name = "FORMAT")]
    pub key_format: Option<FieldFormat>,
    /// How values are written; as keys, when not given
    #[arg(long, value_name = "FORMAT")]
    pub value_format: Option<FieldFormat>,
}

impl FieldArgs {
    /// The two columns of a table, written in these ways.
    ///
    /// # Errors
    /// A format that does not fit the table's widths.
    pub fn columns(&self, table: &Keyed) -> Result<Columns> {
        let widths = table.widths();
        let usual = if widths.is_some() { FieldFormat::Hex } else { FieldFormat::Text };
        let key_format = self.key_format.unwrap_or(usual);
        let value_format = self.value_format.unwrap_or(key_format);
        let key = Column::new(Role::Key, widths.map(|it| it.key_bytes), key_format);
        let value = Column::new(Role::Value, widths.map(|it| it.value_bytes), value_format);
        Ok(Columns {
            key: key.map_err(|why| anyhow!(why))?,
            value: value.map_err(|why| anyhow!(why))?,
        })
    }
}

/// A durability by its word on the command line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DurabilityArg(pub Durability);

impl FromStr for DurabilityArg {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let every = word.strip_prefix("every:").map(|ms| ms.trim_end_matches("ms"));
        let durability = match (word, every.map(crate::size::parse_count).transpose()?) {
            ("always", None) => Durability::Always,
            ("never", None) => Durability::Never,
            (_, Some(ms)) => Durability::Every(Duration::from_millis(ms)),
            _ => {
                return Err(format!("`{word}` is no durability; choose always, every:MS or never"));
            }
        };
        Ok(Self(durability))
    }
}

/// An open volume and one of its tables.
#[derive(Debug)]
pub struct Opened {
    /// The volume.
    pub volume: Volume,
    /// The table's name.
    pub name: String,
    /// The table.
    pub table: Keyed,
    /// The files that were made for it.
    pub made: Unfinished,
}

impl Opened {
    /// Closes table and volume, in that order, and gives files that were made their names.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(mut self) -> Result<()> {
        self.table.close()?;
        self.volume.checkpoint()?;
        self.made.publish()
    }
}

/// A table to make.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its structure and sizes; those of the index of fingerprints for keys and values of any size.
    pub prediction: &'a Prediction,
    /// Where keys and values are, if they may have any size.
    pub values: Option<ValuesConfig>,
    /// The channels of the device, for the volume to keep.
    pub geometry: Option<Geometry>,
    /// How keys are hashed; if `None`, by the usual hash under a random key.
    pub hasher: Option<KeyHasher>,
}

/// Creates a volume with one empty table. Created files are removed if it fails, and get their names when the volume
/// is closed or they are published.
///
/// # Errors
/// A file that exists already, sizes that cannot work, no space.
pub fn create(
    volume: &VolumeArgs,
    striping: Striping,
    plan: Plan<'_>,
    durability: Durability,
    console: &Console,
) -> Result<Opened> {
    let devices = volume.create(striping, console)?;
    let options = VolumeOptions {
        log_bytes: plan.prediction.config.log_bytes_best(),
        log_device: devices.log.clone(),
        durability,
        geometry: plan.geometry,
        hash: plan.hasher.map_or_else(HashKind::default, |hasher| hasher.kind()),
        hash_key: plan.hasher.map(|hasher| hasher.key()),
        completion: devices.completion,
        ..VolumeOptions::default()
    };
    fill(&devices, options, plan)
        .with_context(|| volume.cannot("create"))
        .inspect_err(|_| devices.made.remove())
}

fn fill(devices: &Devices, options: VolumeOptions, plan: Plan<'_>) -> Result<Opened> {
    let Plan { name, prediction: Prediction { config, options: own, .. }, values, .. } = plan;
    let volume = Volume::create(Arc::clone(&devices.volume), options)?;
    let table = match values {
        None => Keyed::Fixed(AnyTable::create_with(&volume, name, config, own)?),
        Some(values) => {
            let index = AnyTable::create_with(&volume, &table_name(name), config, own)?;
            Keyed::AnySize(LargeTable::create(&volume, name, index, values)?)
        }
    };
    let made = devices.made.clone().of(&volume);
    Ok(Opened { volume, name: name.to_owned(), table, made })
}

/// Opens a volume, and returns its devices. One that is opened to be read stays as it is: what an opening writes stays
/// in memory, and several may read it at a time.
///
/// # Errors
/// No such file, a file that is no volume, one that is in use, a wrong member, damage.
pub fn open_volume(
    volume: &VolumeArgs,
    access: Access,
    durability: Durability,
) -> Result<(Volume, Devices)> {
    let mut devices = volume.open(access)?;
    if access == Access::ReadOnly {
        let over = |device: &Arc<dyn Device>| {
            Arc::new(Overlay::new(Arc::clone(device))) as Arc<dyn Device>
        };
        (devices.volume, devices.log) = (over(&devices.volume), devices.log.as_ref().map(over));
    }
    let log_device = devices.log.clone();
    let stale = match volume.devices.older_state {
        true => StaleSuperblock::Open,
        false => StaleSuperblock::Refuse,
    };
    let options =
        VolumeOpenOptions { access, stale, durability, log_device, ..VolumeOpenOptions::default() };
    let opened = Volume::open(Arc::clone(&devices.volume), options);
    Ok((opened.with_context(|| volume.cannot("open"))?, devices))
}

/// Opens a volume and the named table, or the only one, to be read or to be written.
///
/// # Errors
/// As `open_volume`, and a table that is missing or not the only one.
pub fn open(volume: &VolumeArgs, args: &TableArgs, access: Access) -> Result<Opened> {
    open_within(volume, args, access, Memory::default())
}

/// The same with the RAM that the table may take from now on.
///
/// # Errors
/// As `open`, and a table that does not grow.
pub fn open_within(
    volume: &VolumeArgs,
    args: &TableArgs,
    access: Access,
    memory: Memory,
) -> Result<Opened> {
    let (volume, _) = open_volume(volume, access, Durability::default())?;
    let name = match &args.table {
        Some(name) => name.clone(),
        None => only_table(&volume)?,
    };
    let table = Keyed::open_within(&volume, &name, memory)?;
    if memory.ram_bytes_max.is_some() && !table.grows() {
        let kind = table.index().kind();
        bail!(
            "--ram: table {name} is a {kind}, which keeps the RAM that it was made with; omit it"
        );
    }
    Ok(Opened { volume, name, table, made: Unfinished::default() })
}

/// The name of the only table of a volume.
///
/// # Errors
/// None, or several.
pub fn only_table(volume: &Volume) -> Result<String> {
    let mut names = table::names(volume);
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        (Some(name), false) => {
            names.push(name);
            bail!("the volume holds {}; say which with --table", names.join(", "))
        }
        (None, _) => bail!("the volume holds no table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_durability_is_refused_with_the_choices() {
        assert!("sometimes".parse::<DurabilityArg>().unwrap_err().contains("always, every:MS"));
        assert_eq!(
            "every:50".parse(),
            Ok(DurabilityArg(Durability::Every(Duration::from_millis(50))))
        );
    }
}
