//! Volumes as the verbs create and open them, and structures of one kind, as the verbs of that kind do.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use nandex::device::{Access, Create};
use nandex::raw::device::{Geometry, Striping};
use nandex::raw::store::VolumeDevices;
use nandex::raw::store::hash::KeyHasher;
use nandex::raw::{StaleSuperblock, Stated};
use nandex::{Database, Durability, Volume, VolumeOptions};

use crate::console::Console;
use crate::devices::{Devices, EngineArgs, VolumeArgs};
use crate::unfinished::Unfinished;

/// The striping over several devices: a megabyte on each in turn.
pub const STRIPING: Striping = Striping::Extent { pages: 256 };

/// A structure that has verbs of its own.
pub trait Held: Closing {
    /// The configuration that it is created with.
    type Config: Copy;
    /// The words for it in errors.
    const WORDS: Words;

    /// The most bytes that the log of a new volume may grow to.
    fn log_bytes(config: &Self::Config, durability: Durability) -> u64;

    /// Creates an empty one.
    ///
    /// # Errors
    /// Invalid sizes, no space.
    fn create(
        volume: &Volume,
        name: &str,
        config: Self::Config,
        stated: &Stated,
    ) -> nandex::Result<Self>;

    /// Opens the one of this name.
    ///
    /// # Errors
    /// None of this name and kind, damage, parameters that differ from the given ones.
    fn open(volume: &Volume, name: &str, stated: &Stated) -> nandex::Result<Self>;
}

/// The words for a structure in errors.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Its kinds in the catalog.
    pub kinds: &'static [&'static str],
    /// The user's word for it.
    pub noun: &'static str,
    /// The command that creates one.
    pub make: &'static str,
    /// The commands for structures of other kinds.
    pub other: &'static str,
    /// The remedy if a volume holds several.
    pub several: &'static str,
}

/// A structure that can be closed.
pub trait Closing: Sized {
    /// Saves what is buffered.
    ///
    /// # Errors
    /// A failed write or sync.
    fn close(self) -> nandex::Result<()>;
}

/// An open volume and one of its structures.
#[derive(Debug)]
pub struct Opened<S> {
    /// The volume, and its files if it is new.
    pub db: Database,
    /// The structure's name.
    pub name: String,
    /// The structure.
    pub structure: S,
}

impl<S> Opened<S> {
    /// The volume.
    pub fn volume(&self) -> &Volume {
        self.db.volume()
    }
}

impl<S: Closing> Opened<S> {
    /// Closes structure and volume, in that order. Returns the remaining work for a new volume.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(self) -> Result<Unfinished> {
        self.structure.close()?;
        self.db.volume().checkpoint()?;
        Ok(Unfinished::of(self.db))
    }
}

/// Creates a volume, and what `make` creates in it. The new files are removed if this fails, and get their names when
/// the volume is finished.
///
/// # Errors
/// An existing file, a device with content, no space, errors of `make`.
pub fn create_with<T>(
    args: &VolumeArgs,
    (striping, options): (Striping, VolumeOptions),
    console: &Console,
    make: impl FnOnce(&Volume) -> Result<T>,
) -> Result<(Database, T)> {
    let Devices { volume, log, made, completion, .. } = args.create(striping, console)?;
    let options = nandex::options()
        .volume(VolumeOptions { completion, ..options })
        .create(Create::New)
        .unfinished_files(made.clone());
    let filled = || {
        let db = options.open_on(VolumeDevices { volume, log })?;
        let filled = make(db.volume())?;
        anyhow::Ok((db, filled))
    };
    filled().with_context(|| args.cannot("create")).inspect_err(|_| made.remove())
}

/// Opens a volume, and returns its devices. A volume that is opened read-only stays as it is: what an opening writes
/// stays in memory, and several processes may read it at a time.
///
/// # Errors
/// No such file, a file that is not a volume, one that is in use, a wrong member, damage.
pub fn open_volume(
    args: &VolumeArgs,
    access: Access,
    durability: Durability,
) -> Result<(Database, Devices)> {
    let devices = args.open(access)?;
    let stale = match args.devices.older_state {
        true => StaleSuperblock::Open,
        false => StaleSuperblock::Refuse,
    };
    let options = nandex::options().create(Create::Open).durability(durability).stale(stale);
    let options = if access == Access::ReadOnly { options.read_only() } else { options };
    let (volume, log) = (Arc::clone(&devices.volume), devices.log.clone());
    let opened = options.open_on(VolumeDevices { volume, log });
    Ok((opened.with_context(|| args.cannot("open"))?, devices))
}

/// Opens `what` an application stores in the volume of a file.
///
/// # Errors
/// As `open_volume`, and errors of `open`.
pub fn open_index<T>(
    (file, engine): (&Path, EngineArgs),
    access: Access,
    what: &str,
    open: impl FnOnce(&Volume) -> Result<T>,
) -> Result<T> {
    let (db, _) = open_volume(&VolumeArgs::sparse(file, engine), access, Durability::default())?;
    open(db.volume()).with_context(|| format!("cannot open {} as {what}", file.display()))
}

/// The properties of a new structure.
#[derive(Clone, Debug)]
pub struct Making<'a, C> {
    /// Its name.
    pub name: &'a str,
    /// Its sizes.
    pub config: C,
    /// The hash function of its volume.
    pub hasher: KeyHasher,
    /// The time at which an update is durable.
    pub durability: Durability,
    /// The channels of its device, which the volume stores.
    pub geometry: Option<Geometry>,
    /// Options of this run.
    pub stated: Stated,
}

/// Creates a volume with one empty structure. The new files are removed if this fails, and get their names when they
/// are published.
///
/// # Errors
/// An existing file, invalid sizes, no space.
pub fn create<S: Held>(
    args: &VolumeArgs,
    making: Making<'_, S::Config>,
    console: &Console,
) -> Result<Opened<S>> {
    let Making { name, config, hasher, durability, geometry, stated } = making;
    let options = VolumeOptions {
        hash: hasher.kind(),
        hash_key: Some(hasher.key()),
        durability,
        geometry,
        ..VolumeOptions::default()
    };
    let options = options.with_growing_log(S::log_bytes(&config, durability));
    let make = |volume: &Volume| Ok(S::create(volume, name, config, &stated)?);
    let (db, structure) = create_with(args, (STRIPING, options), console, make)?;
    Ok(Opened { db, name: name.to_owned(), structure })
}

/// Opens a volume and the named structure, or the only one.
///
/// # Errors
/// A file that does not exist, is not a volume, is in use or damaged; a name that does not exist or is of another kind.
pub fn open<S: Held>(
    args: &VolumeArgs,
    name: Option<&str>,
    stated: &Stated,
    durability: Durability,
) -> Result<Opened<S>> {
    open_as(args, (name, stated), Access::ReadWrite, durability)
}

/// Like `open`, for looking keys up: the volume stays as it is.
///
/// # Errors
/// As `open`.
pub fn open_to_read<S: Held>(
    args: &VolumeArgs,
    name: Option<&str>,
    stated: &Stated,
) -> Result<Opened<S>> {
    open_as(args, (name, stated), Access::ReadOnly, Durability::default())
}

fn open_as<S: Held>(
    args: &VolumeArgs,
    (name, stated): (Option<&str>, &Stated),
    access: Access,
    durability: Durability,
) -> Result<Opened<S>> {
    let (db, _) = open_volume(args, access, durability)?;
    let name = choose(db.volume(), name, S::WORDS).with_context(|| args.cannot("open"))?;
    let structure = S::open(db.volume(), &name, stated)?;
    Ok(Opened { db, name, structure })
}

/// Returns the name of the structure of this kind: the given one, or the only one.
fn choose(volume: &Volume, name: Option<&str>, words: Words) -> Result<String> {
    let Words { kinds, noun, make, other, several } = words;
    let is_ours = |kind: &str| kinds.contains(&kind);
    let structures = volume.structures();
    if let Some(name) = name {
        match structures.iter().find(|it| it.name == name && !is_ours(&it.kind)) {
            Some(found) => bail!("{name:?} is not a {noun}: its kind is {:?}; {other}", found.kind),
            None => return Ok(name.to_owned()),
        }
    }
    let ours: Vec<_> = structures.iter().filter(|it| is_ours(&it.kind)).collect();
    match (&ours[..], structures.first()) {
        ([one], _) => Ok(one.name.clone()),
        ([], Some(found)) => bail!(
            "the volume holds no {noun}; it holds {:?} of the kind {:?}: {other}",
            found.name,
            found.kind
        ),
        ([], None) => bail!("the volume holds no {noun}; make one with `{make}`"),
        (all, _) => {
            let names: Vec<_> = all.iter().map(|it| it.name.as_str()).collect();
            bail!("the volume holds {}; {several}", names.join(", "))
        }
    }
}
