//! Tables, as the verbs open and create them.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use nandex::device::Access;
use nandex::large::{ValuesConfig, table_name};
use nandex::raw::Stated;
use nandex::raw::device::{Geometry, Striping};
use nandex::raw::store::hash::{HashKind, KeyHasher};
use nandex::{AnyTable, Durability, LargeTable, OpenOptions, Prediction, TableOrMap};
use nandex::{Volume, VolumeOptions};

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::field::{Column, FieldFormat, Role};
use crate::held::{Closing, Opened, create_with, open_volume};
use crate::records::Columns;
use crate::refuse;
use crate::size::show_bytes;
use crate::stated::StatedArgs;

/// The table of a volume.
#[derive(Clone, Debug, clap::Args)]
pub struct TableArgs {
    /// Name of the table; not needed if the volume holds one
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    #[command(flatten)]
    pub options: StatedArgs,
}

/// The formats of keys and values.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FieldArgs {
    /// Format of keys; default: hex for fixed widths and text for any size
    #[arg(long, value_name = "FORMAT")]
    pub key_format: Option<FieldFormat>,
    /// Format of values; default: that of keys
    #[arg(long, value_name = "FORMAT")]
    pub value_format: Option<FieldFormat>,
}

impl FieldArgs {
    /// Returns the two columns of a table, in these formats.
    ///
    /// # Errors
    /// A format that does not fit the table's widths.
    pub fn columns(&self, table: &TableOrMap) -> Result<Columns> {
        let widths = table.widths();
        let usual = if widths.is_some() { FieldFormat::Hex } else { FieldFormat::Text };
        let key_format = self.key_format.unwrap_or(usual);
        let value_format = self.value_format.unwrap_or(key_format);
        let key = Column::new(Role::Key, widths.map(|(key, _)| key), key_format);
        let value = Column::new(Role::Value, widths.map(|(_, value)| value), value_format);
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
                return Err(format!(
                    "`{word}` is not a durability; choose always, every:MS or never"
                ));
            }
        };
        Ok(Self(durability))
    }
}

/// An open volume and one of its tables.
pub type OpenedTable = Opened<TableOrMap>;

impl Closing for TableOrMap {
    fn close(self) -> nandex::Result<()> {
        Self::close(self)
    }
}

/// A table to create.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its structure and sizes; those of the index of fingerprints for keys and values of any size.
    pub prediction: &'a Prediction,
    /// The log of keys and values, if they may have any size.
    pub values: Option<ValuesConfig>,
    /// The channels of the device, which the volume stores.
    pub geometry: Option<Geometry>,
    /// The hash function of keys; if `None`, the default hash under a random key.
    pub hasher: Option<KeyHasher>,
}

/// Creates a volume with one empty table. Created files are removed if it fails, and get their names when the volume
/// is closed or they are published.
///
/// # Errors
/// An existing file, invalid sizes, no space.
pub fn create(
    volume: &VolumeArgs,
    striping: Striping,
    plan: Plan<'_>,
    durability: Durability,
    console: &Console,
) -> Result<OpenedTable> {
    let Plan { name, prediction: Prediction { config, options, .. }, values, .. } = plan;
    let volume_options = VolumeOptions {
        durability,
        geometry: plan.geometry,
        hash: plan.hasher.map_or_else(HashKind::default, |hasher| hasher.kind()),
        hash_key: plan.hasher.map(|hasher| hasher.key()),
        ..VolumeOptions::default()
    };
    let volume_options = volume_options.with_growing_log(config.log_bytes_best());
    let make = |volume: &Volume| {
        let Some(values) = values else {
            let table = AnyTable::create_with(volume, name, config, options)?;
            return Ok(TableOrMap::Table(table.with_spare_ram()));
        };
        let index = AnyTable::create_with(volume, &table_name(name), config, options)?;
        Ok(TableOrMap::Map(LargeTable::create(volume, name, index, values)?.with_spare_ram()))
    };
    let (db, structure) = create_with(volume, (striping, volume_options), console, make)?;
    Ok(Opened { db, name: name.to_owned(), structure })
}

/// Opens a volume and the named table, or the only one, read-only or read-write.
///
/// # Errors
/// As `open_volume`, and a table that is missing or not the only one.
pub fn open(volume: &VolumeArgs, args: &TableArgs, access: Access) -> Result<OpenedTable> {
    open_within(volume, args, access, &OpenOptions::default())
}

/// Opens a table as [`open`] does, with the RAM that it may use from now on.
///
/// # Errors
/// As `open`, and a table that does not grow.
pub fn open_within(
    volume: &VolumeArgs,
    args: &TableArgs,
    access: Access,
    options: &OpenOptions,
) -> Result<OpenedTable> {
    let (db, _) = open_volume(volume, access, Durability::default())?;
    let name = match &args.table {
        Some(name) => name.clone(),
        None => only_table(db.volume())?,
    };
    let structure = open_table(db.volume(), &name, options, &args.options.stated())?;
    if options.ram_bytes_max.is_some() && !structure.grows() {
        let kind = structure.index().kind();
        refuse!(
            "--ram: table {name} is a {kind}, which keeps the RAM that it was made with; omit it"
        );
    }
    Ok(Opened { db, name, structure })
}

/// Opens the table of this name, which may use this RAM, with the given parameters.
///
/// # Errors
/// No table of this name, damage; less RAM than the beginning of a growing table takes.
pub fn open_table(
    volume: &Volume,
    name: &str,
    options: &OpenOptions,
    stated: &Stated,
) -> Result<TableOrMap> {
    let table = TableOrMap::open_stated(volume, name, options, stated)?;
    if let Some(stated) = options.ram_bytes_max
        && table.grows()
        && table.entries_capacity() == 0
    {
        let (stated, taken) = (show_bytes(stated), show_bytes(table.stats().ram_bytes));
        refuse!(
            "table {name} takes {taken} of RAM as it is, and --ram {stated} is too little; state more"
        );
    }
    Ok(table)
}

/// Returns the name of the only table of a volume.
///
/// # Errors
/// No table, or several.
pub fn only_table(volume: &Volume) -> Result<String> {
    let mut names = TableOrMap::names(volume);
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        (Some(name), false) => {
            names.push(name);
            refuse!("the volume holds {}; say which with --table", names.join(", "))
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
