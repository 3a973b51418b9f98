//! `nandex dedup`: the duplicate chunks of files and directories.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use nandex::device::{Access, Striping};
use nandex::{Durability, Prediction, Requirements};
use nandex_dedup::{Chunker, Chunking, Hash, Options, Summary, Survey, VALUE_BYTES};
use tempfile::TempDir;

use crate::chunk_list::{ChunkList, Watching};
use crate::console::Console;
use crate::devices::{DeviceArgs, VolumeArgs};
use crate::exit::{FAILURE, Quiet, UNREADABLE};
use crate::interrupt::Interrupt;
use crate::place::{Opened, Plan, TableArgs, create, open};
use crate::provenance;
use crate::size::{self, show_bytes, show_count};
use crate::sizing::{self, StructureArg};

/// The fewest fingerprints that the index can hold.
const ENTRIES_MIN: u64 = 100_000;
/// The name of the table in an index.
const TABLE: &str = "fingerprints";
/// How an index is spread over several devices: a megabyte on each in turn.
const STRIPING: Striping = Striping::Extent { pages: 256 };

/// What to read, and how.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files and directories to read
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Keep the index in this volume, and go on with it where it is there already
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
    #[command(flatten)]
    devices: DeviceArgs,
    /// RAM that the index may take
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "64MiB")]
    ram: u64,
    /// Which structure a new index is: bufferhash is the faster one; slicehash takes more fingerprints into
    /// the same RAM, reads a page for each chunk, and writes more; auto is what suits the size
    #[arg(
        long,
        value_name = "STRUCTURE",
        default_value = "bufferhash",
        value_parser = StructureArg::parser(),
        hide_possible_values = true
    )]
    structure: StructureArg,
    /// How files are cut into chunks: fastcdc, rabin or fixed
    #[arg(long, default_value = "fastcdc")]
    chunker: Chunker,
    /// The average chunk, a power of two
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "8KiB")]
    avg: u64,
    /// How chunks are named: sha1 or blake3
    #[arg(long, default_value = "blake3")]
    hash: Hash,
    /// Write a report to this HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write every chunk and where it is to this file, a line for each
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
}

impl Args {
    /// The volume of an index that is kept.
    fn volume(&self) -> Result<Option<VolumeArgs>> {
        let devices = self.devices.clone();
        if self.index.is_none() && (!devices.members.is_empty() || devices.log_device.is_some()) {
            bail!("--member and --log-device are for an index that is kept; name it with --index");
        }
        Ok(self.index.clone().map(|file| VolumeArgs { file, devices }))
    }
}

/// Reads all paths and prints the duplicates.
///
/// # Errors
/// A missing path, an index of another hash, no space; quietly, after the result, an interrupt or unreadable files.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let provenance = provenance::now();
    let mut options = options(args)?;
    let list = ChunkList::create(args.list.as_deref())?;
    options.leave_out.extend(args.list.clone());
    let survey = nandex_dedup::survey(&args.paths)?;
    let index = index(args, &survey, console)?;
    let meter = console.meter("reading", Some(survey.bytes));
    let progress = Watching { meter: &meter, list: &list };
    let summary = nandex_dedup::dedup(index.table.fixed()?, &options, &progress, interrupt.flag());
    meter.finish();
    let summary = Summary { provenance: Some(provenance), ..summary? };
    index.close()?;
    list.finish()?;
    if let Some(path) = &args.report {
        fs::write(path, nandex_dedup::html(&summary))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    console.print(&summary, nandex_dedup::text)?;
    tell(args, &summary, console);
    match (summary.interrupted, summary.unreadable_count) {
        (true, _) => Err(Quiet(FAILURE).into()),
        (false, 0) => Ok(()),
        (false, _) => Err(Quiet(UNREADABLE).into()),
    }
}

fn options(args: &Args) -> Result<Options> {
    let mut options = Options::new(&args.paths);
    options.chunking = Chunking::new(args.chunker, args.avg.try_into()?)?;
    options.hash = args.hash;
    Ok(options)
}

fn tell(args: &Args, summary: &Summary, console: &Console) {
    if let Some(path) = &args.report {
        console.note(&format!("report: {}", path.display()));
    }
    if summary.forgotten_entries > 0 {
        console.note(&format!(
            "the index is full: it forgot {} fingerprints in this run, and their chunks count as unique when they come \
             again; make a new index for all trees, with more --ram or a larger --avg",
            show_count(summary.forgotten_entries)
        ));
    }
    if summary.unreadable_count > 0 {
        console.note(&format!(
            "{} files and directories could not be read, and the figures are without them; they are listed: run it as \
             a user who may read them",
            show_count(summary.unreadable_count)
        ));
    }
    if let (true, Some(path)) = (summary.interrupted, &args.index) {
        console.note(&format!("stopped; the same command goes on with {}", path.display()));
    }
}

/// Opens or makes the index.
fn index(args: &Args, survey: &Survey, console: &Console) -> Result<Opened> {
    let volume = args.volume()?;
    if let Some(volume) = volume.as_ref().filter(|volume| volume.file.exists()) {
        let table = TableArgs { table: Some(TABLE.into()) };
        return open(volume, &table, Access::ReadWrite);
    }
    let durability = if args.index.is_some() { Durability::default() } else { Durability::Never };
    let prediction = plan(args, survey, console)?;
    let plan = Plan { name: TABLE, prediction: &prediction, values: None };
    let made = |volume: &VolumeArgs| create(volume, STRIPING, plan, durability, console);
    if let Some(volume) = &volume {
        let mut opened = made(volume)?;
        // From here on it is an index of what was read, however little that is.
        opened.made.publish()?;
        return Ok(opened);
    }
    in_scratch("--index", |volume| {
        let mut opened = made(volume)?;
        opened.made.forget();
        Ok(opened)
    })
}

/// Makes a temporary volume: in `$TMPDIR` if that is set, else here, because the system's default is often kept in
/// memory. `option` is the one that names a permanent place. The file loses its name once it is open, so nothing of it
/// is left however the command ends.
///
/// # Errors
/// A folder that cannot be written to, and those of `make`.
pub fn in_scratch<T>(option: &str, make: impl FnOnce(&VolumeArgs) -> Result<T>) -> Result<T> {
    let folder = scratch_folder(option)?;
    let made = make(&VolumeArgs::single(folder.path().join("scratch.nandex")))?;
    folder.close().context("cannot remove the name of the scratch file")?;
    Ok(made)
}

fn scratch_folder(option: &str) -> Result<TempDir> {
    let place = env::var_os("TMPDIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let builder = || tempfile::Builder::new().prefix(".nandex-").tempdir_in(&place);
    builder().with_context(|| {
        format!(
            "cannot make a folder for the index in {}; set TMPDIR, or say where with {option}",
            place.display()
        )
    })
}

/// A table for the chunks that the survey predicts, and half as many more; or for as many as the RAM allows,
/// with a note.
fn plan(args: &Args, survey: &Survey, console: &Console) -> Result<Prediction> {
    let chunks = survey.bytes / args.avg.max(1) + survey.files;
    let wanted = (chunks + chunks / 2).max(ENTRIES_MIN);
    let key_bytes = u32::try_from(args.hash.key_bytes())?;
    let requirements = Requirements::new(wanted, key_bytes, u32::try_from(VALUE_BYTES)?);
    let (entries, plan) = most_that_fit(args.structure, requirements.ram(args.ram))?;
    if entries < wanted {
        console.note(&format!(
            "{} of RAM index {} of about {} fingerprints; past that the oldest are forgotten and \
             some duplicates are missed (more --ram or a larger --avg avoids it)",
            show_bytes(args.ram),
            show_count(entries),
            show_count(wanted),
        ));
    }
    Ok(plan)
}

/// The most entries, up to those required, that fit the RAM.
fn most_that_fit(structure: StructureArg, required: Requirements) -> Result<(u64, Prediction)> {
    let fits = |entries| {
        let requirements = Requirements { entries, ..required.clone() };
        sizing::choose(structure, &requirements).map(|choice| choice.prediction)
    };
    if let Ok(plan) = fits(required.entries) {
        return Ok((required.entries, plan));
    }
    let (mut low, mut high) = (1, required.entries);
    let mut best = fits(low).context("the index")?;
    // Close enough: within one part in 64.
    while high - low > high / 64 + 1 {
        let middle = low + (high - low) / 2;
        match fits(middle) {
            Ok(plan) => (low, best) = (middle, plan),
            Err(_) => high = middle,
        }
    }
    Ok((low, best))
}
