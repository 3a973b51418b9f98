//! The index of fingerprints: opened as it was created, or created for its expected content.

use std::env;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use nandex::device::Access;
use nandex::raw::device::Striping;
use nandex::raw::{Sizing, registry};
use nandex::{Durability, OpenOptions, Policy, Prediction, Requirements, TableOrMap, Volume};
use nandex_dedup::{Chunker, Chunking, Hash, IndexSettings, Survey};
use tempfile::TempDir;

use crate::console::Console;
use crate::devices::{DeviceArgs, EngineArgs, VolumeArgs};
use crate::held::{Opened, open_volume};
use crate::place::{OpenedTable, Plan, create, open_table};
use crate::refuse;
use crate::size::{self, show_bytes, show_count};
use crate::sizing::StructureArg;
use crate::stated::StatedArgs;

/// The structure of an index that grows.
const GROWING: &str = nandex::raw::bufferhash::growing::KIND;
/// The structure of an index whose RAM suffices for less than expected.
const FORGETTING: &str = nandex::bufferhash::KIND;
/// The fewest fingerprints that an index is sized for.
const ENTRIES_MIN: u64 = 100_000;
/// The distribution of an index over several devices: a megabyte on each in turn.
const STRIPING: Striping = Striping::Extent { pages: 256 };

/// The place, the size and the settings of the index.
#[derive(Debug, clap::Args)]
pub struct IndexArgs {
    /// Keep the index in this volume, and continue with it if it exists
    #[arg(long = "index", value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    devices: DeviceArgs,
    /// Most RAM for the index
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "64MiB")]
    ram: u64,
    /// Least size of a new index: a number of chunks such as 10M, or bytes of files such as 2TiB
    #[arg(long, value_name = "N")]
    expect: Option<Expected>,
    /// Structure of a new index: growing adds fingerprints until --ram is used up; bufferhash and slicehash keep their
    /// size and forget the oldest; slicehash holds more fingerprints in the same RAM, reads a page for each chunk, and
    /// writes more; auto chooses between these two by the size
    #[arg(
        long,
        value_name = "STRUCTURE",
        default_value = GROWING,
        value_parser = StructureArg::parser(),
        hide_possible_values = true
    )]
    structure: StructureArg,
    /// Chunking of files: fastcdc, rabin or fixed; default: that of the index, and fastcdc for a new one
    #[arg(long)]
    chunker: Option<Chunker>,
    /// Average chunk, a power of two; default: that of the index, and 8KiB for a new one
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes)]
    avg: Option<u64>,
    /// Hash that names chunks: sha1 or blake3; default: that of the index, and blake3 for a new one
    #[arg(long)]
    hash: Option<Hash>,
    #[command(flatten)]
    stated: StatedArgs,
}

/// The expected content of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// A number of different chunks.
    Entries(u64),
    /// A number of bytes of files.
    Bytes(u64),
}

impl FromStr for Expected {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let entries = size::parse_count(word).map(Self::Entries);
        entries.or_else(|_| size::parse(word).map(Self::Bytes)).map_err(|why| {
            format!("{why}; give chunks, such as 10M, or bytes of files, such as 2TiB")
        })
    }
}

impl Expected {
    fn entries(self, settings: IndexSettings) -> u64 {
        match self {
            Self::Entries(entries) => entries,
            Self::Bytes(bytes) => bytes / settings.chunking.average_bytes() as u64,
        }
    }
}

impl IndexArgs {
    /// Returns the volume of an index that is kept.
    fn volume(&self) -> Result<Option<VolumeArgs>> {
        let devices = self.devices.clone();
        if self.file.is_none() && (!devices.members.is_empty() || devices.log_device.is_some()) {
            refuse!(
                "--member and --log-device are for an index that is kept; name it with --index"
            );
        }
        Ok(self.file.clone().map(|file| VolumeArgs { file, devices }))
    }

    /// Reports the size of the file of an index that is kept.
    ///
    /// # Errors
    /// A file that was removed.
    pub fn tell_size(&self, console: &Console) -> Result<()> {
        if let Some(volume) = self.volume()? {
            let (file, taken) = (volume.file.display(), volume.file_bytes()?.shown());
            console.note(&format!("index: {file}, {taken}"));
        }
        Ok(())
    }

    /// Returns the requested settings, with defaults for the rest.
    fn settings(&self) -> Result<IndexSettings> {
        let usual = IndexSettings::default();
        let average = self.avg.map(usize::try_from).transpose()?;
        let average = average.unwrap_or(usual.chunking.average_bytes());
        let chunker = self.chunker.unwrap_or(usual.chunking.chunker());
        let chunking = Chunking::new(chunker, average)?;
        Ok(IndexSettings { chunking, hash: self.hash.unwrap_or(usual.hash) })
    }

    /// Replaces the results of the survey by the given parameters.
    ///
    /// # Errors
    /// An unknown parameter, an invalid value, or a parameter that follows from the index of fingerprints.
    fn state(&self, mut sizing: Sizing) -> Result<Prediction> {
        let why = "it follows from what an index of fingerprints is; --structure states what it does when full";
        self.stated.refuse(&["key_bytes", "value_bytes", "policy"], why)?;
        let stated = self.stated.stated();
        sizing.state(&stated).context("--set")?;
        let Prediction { config, options, .. } = &mut sizing.prediction;
        *options = stated.options(config.kind(), options.clone()).context("--set")?;
        Ok(sizing.prediction)
    }

    /// Fails if the index was created with other settings.
    fn refuse_others(&self, kept: IndexSettings, file: &str) -> Result<()> {
        let chunking = kept.chunking;
        refuse_other(file, "--chunker", self.chunker, chunking.chunker())?;
        let average = chunking.average_bytes() as u64;
        refuse_other(file, "--avg", self.avg.map(Bytes), Bytes(average))?;
        refuse_other(file, "--hash", self.hash, kept.hash)
    }
}

/// A size as an option accepts it.
#[derive(PartialEq)]
struct Bytes(u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            whole if whole.is_multiple_of(1024) => write!(f, "{}KiB", whole / 1024),
            bytes => write!(f, "{bytes}"),
        }
    }
}

fn refuse_other<T: Display + PartialEq>(
    file: &str,
    option: &str,
    asked: Option<T>,
    kept: T,
) -> Result<()> {
    let Some(asked) = asked.filter(|asked| *asked != kept) else { return Ok(()) };
    refuse!(
        "cannot use {file} as the index: it was made with {option} {kept}, and {option} {asked} is asked for, whose \
         chunks it would never find; leave {option} out, or name another file for an index with {option} {asked}"
    )
}

/// Opens or creates the index, with values of `value_bytes` bytes, and reports its settings.
///
/// # Errors
/// Settings that are not those of the index, a file that is not a volume, no space.
pub fn open_or_make(
    args: &IndexArgs,
    (survey, value_bytes): (&Survey, usize),
    console: &Console,
) -> Result<(OpenedTable, IndexSettings)> {
    let volume = args.volume()?;
    let settings = args.settings()?;
    if let Some(volume) = volume.as_ref().filter(|volume| volume.is_made()) {
        return open(args, volume, survey, console);
    }
    let durability = if args.file.is_some() { Durability::default() } else { Durability::Never };
    let prediction = args.state(plan(args, settings, (survey, value_bytes), console)?)?;
    let name = settings.table_name();
    let plan =
        Plan { name: &name, prediction: &prediction, values: None, geometry: None, hasher: None };
    let made = |volume: &VolumeArgs| create(volume, STRIPING, plan, durability, console);
    let opened = match &volume {
        Some(volume) => {
            let opened = made(volume)?;
            // From here on it is an index of what was read, however little that is.
            opened.db.finish()?;
            opened
        }
        None => in_scratch(("--index", args.devices.engine), made)?,
    };
    Ok((opened, settings))
}

fn open(
    args: &IndexArgs,
    place: &VolumeArgs,
    survey: &Survey,
    console: &Console,
) -> Result<(OpenedTable, IndexSettings)> {
    let (db, _) = open_volume(place, Access::ReadWrite, Durability::default())?;
    let file = place.file.display().to_string();
    let (name, settings) = match named(db.volume()) {
        Some((name, kept)) => {
            args.refuse_others(kept, &file)?;
            (name, kept)
        }
        None => (IndexSettings::UNNAMED.to_owned(), args.settings()?),
    };
    let options = OpenOptions { ram_bytes_max: Some(args.ram), ..OpenOptions::default() };
    let structure = open_table(db.volume(), &name, &options, &args.stated.stated())?;
    if name == IndexSettings::UNNAMED {
        console.note(&format!(
            "{file} does not say what it was made with: it is used with --chunker {} --avg {}, which find nothing in it \
             if it was made with others",
            settings.chunking.chunker(),
            Bytes(settings.chunking.average_bytes() as u64)
        ));
    }
    let opened = Opened { db, name, structure };
    tell_if_small(args, (&opened, settings), survey, console);
    Ok((opened, settings))
}

/// Returns the table of an index in a volume, and the settings in its name.
fn named(volume: &Volume) -> Option<(String, IndexSettings)> {
    let mut names = TableOrMap::names(volume).into_iter();
    names.find_map(|name| IndexSettings::of_table(&name).map(|settings| (name, settings)))
}

/// Warns before the run if an index that is kept is too small for it.
fn tell_if_small(
    args: &IndexArgs,
    (opened, settings): (&OpenedTable, IndexSettings),
    survey: &Survey,
    console: &Console,
) {
    let expected = args.expect.map_or(0, |expected| expected.entries(settings));
    let wanted = chunks(survey, settings).max(expected);
    let capacity = opened.structure.entries_capacity();
    if wanted <= capacity {
        return;
    }
    let (capacity, wanted) = (show_count(capacity), show_count(wanted));
    console.note(&if registry::grows(opened.structure.index().kind()) {
        format!(
            "in {} of RAM the index grows to {capacity} fingerprints, and about {wanted} are expected: the run stops where \
             it cannot grow; more --ram avoids it",
            show_bytes(args.ram)
        )
    } else {
        format!(
            "the index was made for {capacity} fingerprints, and about {wanted} are expected: what does not fit pushes out \
             the oldest; a new index is as large as --expect says",
        )
    });
}

/// Estimates the number of chunks of the surveyed files.
fn chunks(survey: &Survey, settings: IndexSettings) -> u64 {
    survey.bytes / (settings.chunking.average_bytes() as u64) + survey.files
}

/// Creates a temporary volume: in `$TMPDIR` if that is set, else in the current folder, because the system's default is
/// often in memory. `option` names the option for a permanent place. The file loses its name once it is open, so
/// nothing of it remains however the command ends.
///
/// # Errors
/// A folder that cannot be written to, and errors of `make`.
pub fn in_scratch<T>(
    (option, engine): (&str, EngineArgs),
    make: impl FnOnce(&VolumeArgs) -> Result<T>,
) -> Result<T> {
    let folder = scratch_folder(option)?;
    let made = make(&VolumeArgs::single(folder.path().join("scratch.nandex"), engine))?;
    folder.close().context("cannot remove the name of the scratch file")?;
    Ok(made)
}

fn scratch_folder(option: &str) -> Result<TempDir> {
    let place = env::var_os("TMPDIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let builder = || tempfile::Builder::new().prefix(".nandex-").tempdir_in(&place);
    builder().with_context(|| {
        format!(
            "cannot create a folder for the index in {}; set TMPDIR, or name a place with {option}",
            place.display()
        )
    })
}

/// Plans a table for the chunks that the survey predicts, and half as many more, or for the expected number if that is
/// more; or for as many as the RAM allows, with a note.
fn plan(
    args: &IndexArgs,
    settings: IndexSettings,
    (survey, value_bytes): (&Survey, usize),
    console: &Console,
) -> Result<Sizing> {
    let chunks = chunks(survey, settings);
    let expected = args.expect.map_or(ENTRIES_MIN, |expected| expected.entries(settings));
    let wanted = (chunks + chunks / 2).max(expected).max(ENTRIES_MIN);
    let key_bytes = u32::try_from(settings.hash.key_bytes())?;
    let requirements = Requirements::new(wanted, key_bytes, u32::try_from(value_bytes)?);
    let requirements = requirements.ram(args.ram);
    let mut structure = args.structure;
    if structure.0.is_some_and(registry::grows) {
        let grows = Requirements { policy: Policy::Grow, ..requirements.clone() };
        let holds = |it: &Sizing| it.prediction.config.describe().entries_capacity >= wanted;
        if let Some(sizing) = grows.size(structure.0).ok().filter(holds) {
            return Ok(sizing);
        }
        structure = StructureArg(Some(FORGETTING));
    }
    let sizing = requirements.size_within(structure.0).context("the index")?;
    let entries = sizing.prediction.requirements.entries;
    if entries < wanted {
        console.note(&format!(
            "{} of RAM index {} of about {} fingerprints; past that the oldest are forgotten and \
             some duplicates are missed (more --ram or a larger --avg avoids it)",
            show_bytes(args.ram),
            show_count(entries),
            show_count(wanted),
        ));
    }
    Ok(sizing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_chunks_or_bytes_by_its_unit() {
        assert_eq!("10M".parse(), Ok(Expected::Entries(10_000_000)));
        assert_eq!("2TiB".parse(), Ok(Expected::Bytes(2 << 40)));
        assert_eq!(Expected::Bytes(1 << 20).entries(IndexSettings::default()), 128);
        assert!("much".parse::<Expected>().unwrap_err().contains("10M"));
    }
}
