//! Opens and makes filters for the verbs.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use nandex::cascade::{self, Config};
use nandex::device::{Access, Striping};
use nandex::store::hash::KeyHasher;
use nandex::{Cascade, Counter, Durability, Filter, Volume, VolumeOptions};

use crate::console::Console;
use crate::devices::{Devices, VolumeArgs};
use crate::place::open_volume;
use crate::unfinished::Unfinished;

/// A filter's striping over several devices: a megabyte on each in turn.
const STRIPING: Striping = Striping::Extent { pages: 256 };

/// Which filter of a volume.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NameArgs {
    /// The filter's name; not needed if the volume holds one
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// An open volume and one of its filters.
#[derive(Debug)]
pub struct Opened {
    /// The volume.
    pub volume: Volume,
    /// The filter's name.
    pub name: String,
    /// The filter.
    pub filter: Cascade,
    /// The files that were made for it.
    pub made: Unfinished,
}

impl Opened {
    /// How often each key is there; unless `counted`, at least 1 for those that are. Many keys at once are
    /// looked up by reading the filter from front to back, few by reading a page for each.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn look_up(&self, keys: &[&[u8]], counted: bool) -> Result<Vec<u64>> {
        let pages: u64 = self.filter.stats().levels.iter().map(|level| level.pages).sum();
        if keys.len() as u64 > pages / 2 {
            return Ok(self.filter.sweep(keys)?);
        }
        if counted {
            return Ok(self.filter.count_many(keys)?);
        }
        Ok(self.filter.contains_many(keys)?.into_iter().map(u64::from).collect())
    }

    /// Closes filter and volume, in that order. Returns the files that were made and not published.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(self) -> Result<Unfinished> {
        self.filter.close()?;
        self.volume.checkpoint()?;
        Ok(self.made)
    }
}

/// How a new filter is made.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its sizes.
    pub config: Config,
    /// How its volume hashes keys.
    pub hasher: KeyHasher,
    /// When an update is durable.
    pub durability: Durability,
}

/// Makes a volume with one empty filter. The new files are removed if this fails, and get their names when
/// they are published.
///
/// # Errors
/// An existing file, sizes that cannot work, no space.
pub fn create(args: &VolumeArgs, making: Making<'_>, console: &Console) -> Result<Opened> {
    let devices = args.create(STRIPING, console)?;
    create_on(&devices, making)
        .with_context(|| args.cannot("create"))
        .inspect_err(|_| devices.made.remove())
}

fn create_on(devices: &Devices, making: Making<'_>) -> Result<Opened> {
    let Making { name, config, hasher, durability } = making;
    let options = VolumeOptions {
        hash: hasher.kind(),
        hash_key: Some(hasher.key()),
        log_bytes: match durability {
            Durability::Never => Config::LOG_BYTES_MIN,
            _ => config.log_bytes_best(),
        },
        log_device: devices.log.clone(),
        durability,
        completion: devices.completion,
        ..VolumeOptions::default()
    };
    let volume = Volume::create(Arc::clone(&devices.volume), options)?;
    let filter = Cascade::create(&volume, name, config)?;
    let made = devices.made.clone().of(&volume);
    Ok(Opened { volume, name: name.to_owned(), filter, made })
}

/// Opens a volume and the named filter, or the only one.
///
/// # Errors
/// A file that does not exist, is not a volume, is in use or damaged; a name that does not exist or is a
/// table's.
pub fn open(args: &VolumeArgs, name: &NameArgs, durability: Durability) -> Result<Opened> {
    open_as(args, name, Access::ReadWrite, durability)
}

/// As `open`, for looking keys up: the volume stays as it is.
///
/// # Errors
/// As `open`.
pub fn open_to_read(args: &VolumeArgs, name: &NameArgs) -> Result<Opened> {
    open_as(args, name, Access::ReadOnly, Durability::default())
}

fn open_as(
    args: &VolumeArgs,
    name: &NameArgs,
    access: Access,
    durability: Durability,
) -> Result<Opened> {
    let (volume, _) = open_volume(args, access, durability)?;
    let name = choose(&volume, name.name.as_deref()).with_context(|| args.cannot("open"))?;
    let filter = Cascade::open(&volume, &name)?;
    Ok(Opened { volume, name, filter, made: Unfinished::default() })
}

fn choose(volume: &Volume, name: Option<&str>) -> Result<String> {
    let structures = volume.structures();
    if let Some(name) = name {
        if let Some(other) =
            structures.iter().find(|it| it.name == name && it.kind != cascade::KIND)
        {
            bail!(
                "{name:?} is no filter but of the kind {:?}; look keys up with `nandex get`",
                other.kind
            );
        }
        return Ok(name.to_owned());
    }
    let filters: Vec<_> = structures.iter().filter(|it| it.kind == cascade::KIND).collect();
    match &filters[..] {
        [filter] => Ok(filter.name.clone()),
        [] => match structures.first() {
            Some(other) => bail!(
                "the volume holds no filter; it holds {:?} of the kind {:?}: look keys up with `nandex get`",
                other.name,
                other.kind
            ),
            None => bail!("the volume holds no filter; make one with `nandex filter build`"),
        },
        several => {
            let names: Vec<_> = several.iter().map(|it| it.name.as_str()).collect();
            bail!("the volume holds {}; say which with --name", names.join(", "))
        }
    }
}
