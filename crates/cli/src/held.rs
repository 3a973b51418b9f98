//! A volume that holds a structure of one kind, as the verbs of that kind make it and open it.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use nandex::device::{Access, Geometry, Striping};
use nandex::store::hash::KeyHasher;
use nandex::{Durability, Volume, VolumeOptions};

use crate::console::Console;
use crate::devices::{Devices, VolumeArgs};
use crate::place::open_volume;
use crate::unfinished::Unfinished;

/// The striping over several devices: a megabyte on each in turn.
pub const STRIPING: Striping = Striping::Extent { pages: 256 };

/// A structure that has verbs of its own.
pub trait Held: Sized {
    /// What it is made with.
    type Config: Copy;
    /// How errors speak of it.
    const WORDS: Words;

    /// The size of the log of a new volume, in bytes.
    fn log_bytes(config: &Self::Config, durability: Durability) -> u64;

    /// Makes an empty one.
    ///
    /// # Errors
    /// Sizes that cannot work, no space.
    fn create(volume: &Volume, name: &str, config: Self::Config) -> nandex::Result<Self>;

    /// Opens the one of this name.
    ///
    /// # Errors
    /// None of that name and kind, damage.
    fn open(volume: &Volume, name: &str) -> nandex::Result<Self>;

    /// Saves what is buffered.
    ///
    /// # Errors
    /// A failed write or sync.
    fn close(self) -> nandex::Result<()>;
}

/// The words for a structure in errors.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Its kinds in the catalog.
    pub kinds: &'static [&'static str],
    /// What users call it.
    pub noun: &'static str,
    /// The command that makes one.
    pub make: &'static str,
    /// What reads structures of other kinds.
    pub other: &'static str,
    /// What to do where a volume holds several.
    pub several: &'static str,
}

/// An open volume and the structure.
#[derive(Debug)]
pub struct Opened<S> {
    /// The volume.
    pub volume: Volume,
    /// The structure's name.
    pub name: String,
    /// The structure.
    pub structure: S,
    /// The files that were made for it.
    pub made: Unfinished,
}

impl<S: Held> Opened<S> {
    /// Closes structure and volume, in that order. Returns the files that were made and not published.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(self) -> Result<Unfinished> {
        self.structure.close()?;
        self.volume.checkpoint()?;
        Ok(self.made)
    }
}

/// How a new structure is made.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a, C> {
    /// Its name.
    pub name: &'a str,
    /// Its sizes.
    pub config: C,
    /// How its volume hashes keys.
    pub hasher: KeyHasher,
    /// When an update is durable.
    pub durability: Durability,
    /// The channels of its device, for the volume to keep.
    pub geometry: Option<Geometry>,
}

/// Makes a volume with one empty structure. The new files are removed if this fails, and get their names when they are
/// published.
///
/// # Errors
/// An existing file, sizes that cannot work, no space.
pub fn create<S: Held>(
    args: &VolumeArgs,
    making: Making<'_, S::Config>,
    console: &Console,
) -> Result<Opened<S>> {
    let devices = args.create(STRIPING, console)?;
    create_on(&devices, making)
        .with_context(|| args.cannot("create"))
        .inspect_err(|_| devices.made.remove())
}

fn create_on<S: Held>(devices: &Devices, making: Making<'_, S::Config>) -> Result<Opened<S>> {
    let Making { name, config, hasher, durability, geometry } = making;
    let options = VolumeOptions {
        hash: hasher.kind(),
        hash_key: Some(hasher.key()),
        log_bytes: S::log_bytes(&config, durability),
        log_device: devices.log.clone(),
        durability,
        geometry,
        completion: devices.completion,
        ..VolumeOptions::default()
    };
    let volume = Volume::create(Arc::clone(&devices.volume), options)?;
    let structure = S::create(&volume, name, config)?;
    let made = devices.made.clone().of(&volume);
    Ok(Opened { volume, name: name.to_owned(), structure, made })
}

/// Opens a volume and the named structure, or the only one.
///
/// # Errors
/// A file that does not exist, is not a volume, is in use or damaged; a name that does not exist or is of another kind.
pub fn open<S: Held>(
    args: &VolumeArgs,
    name: Option<&str>,
    durability: Durability,
) -> Result<Opened<S>> {
    open_as(args, name, Access::ReadWrite, durability)
}

/// As `open`, for looking keys up: the volume stays as it is.
///
/// # Errors
/// As `open`.
pub fn open_to_read<S: Held>(args: &VolumeArgs, name: Option<&str>) -> Result<Opened<S>> {
    open_as(args, name, Access::ReadOnly, Durability::default())
}

fn open_as<S: Held>(
    args: &VolumeArgs,
    name: Option<&str>,
    access: Access,
    durability: Durability,
) -> Result<Opened<S>> {
    let (volume, _) = open_volume(args, access, durability)?;
    let name = choose(&volume, name, S::WORDS).with_context(|| args.cannot("open"))?;
    let structure = S::open(&volume, &name)?;
    Ok(Opened { volume, name, structure, made: Unfinished::default() })
}

/// The name of the structure of this kind: the given one, or the only one.
fn choose(volume: &Volume, name: Option<&str>, words: Words) -> Result<String> {
    let Words { kinds, noun, make, other, several } = words;
    let is_ours = |kind: &str| kinds.contains(&kind);
    let structures = volume.structures();
    if let Some(name) = name {
        match structures.iter().find(|it| it.name == name && !is_ours(&it.kind)) {
            Some(found) => bail!("{name:?} is no {noun} but of the kind {:?}; {other}", found.kind),
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
