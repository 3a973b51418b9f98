//! `nandex filter merge`: merges several filters with the same configuration into one.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nandex::raw::Stated;
use nandex::raw::store::fingerprint::Universe;
use nandex::raw::store::hash::KeyHasher;
use nandex::{Cascade, Durability, cascade};
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::{EngineArgs, VolumeArgs};
use crate::held::{Making, create};
use crate::interrupt::Interrupt;
use crate::merging;

use super::figures::{FilterFigures, percent};
use super::kind::{FilterConfig, KeyFilter};
use super::open::{NameArgs, Opened, open_to_read};

/// The reason why a window does not merge.
const ONLY_SETS: &str = "only sets merge; build it without --window";

/// The number of files that are open at once, for one pass over all of them.
const GROUP: usize = 8;

/// The help on the merging of filters.
const ALIKE: &str = "Filters merge when they were made for the same keys at the same rate \
    (build --keys, --rate) and hash alike. The files stay as they are. Where the sum holds more \
    keys than one was made for, it errs more often: make parts for as many keys as the whole.";

/// The inputs and the output.
#[derive(Debug, clap::Args)]
#[command(after_help = ALIKE)]
pub struct Args {
    /// Volume to create
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Volumes to merge, with one filter each
    #[arg(required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Name of the new filter
    #[arg(long, default_value = "filter")]
    name: String,
}

/// The result.
#[derive(Debug, Serialize)]
struct Merged {
    path: PathBuf,
    name: String,
    files: usize,
    elapsed_s: f64,
    #[serde(flatten)]
    figures: FilterFigures,
}

/// Merges all files into a new one.
///
/// # Errors
/// Files that do not exist, are in use, or are not alike; an existing output.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let start = Instant::now();
    merging::refuse_twice(args.files.iter().map(PathBuf::as_path), "file")?;
    let like = survey(&args.files, args.engine)?;
    let making = Making {
        name: &args.name,
        config: FilterConfig::Set(like.config),
        hasher: like.hasher,
        durability: Durability::Never,
        geometry: None,
        stated: Stated::default(),
    };
    let whole = create(&VolumeArgs::single(args.output.clone(), args.engine), making, console)?;
    let merged = merging::fill(whole, &interrupt, |whole: &KeyFilter| {
        let set = whole.set(ONLY_SETS)?;
        args.files.chunks(GROUP).try_for_each(|group| {
            absorb(set, group, args.engine)?;
            if interrupt.is_set() { bail!("stopped") } else { Ok(()) }
        })?;
        Ok(Merged {
            path: args.output.clone(),
            name: args.name.clone(),
            files: args.files.len(),
            elapsed_s: start.elapsed().as_secs_f64(),
            figures: FilterFigures::of(set, like.hasher),
        })
    })?;
    console.print(&merged, text)
}

fn text(merged: &Merged) -> String {
    let name = format!("{} in {}, of {} files", merged.name, merged.path.display(), merged.files);
    let mut rows = vec![("filter", name)];
    rows.extend(merged.figures.rows());
    aligned(&rows)
}

/// The properties that must be the same for filters to merge.
struct CommonSizes {
    config: cascade::Config,
    universe: Universe,
    hasher: KeyHasher,
}

/// Checks all files before anything is created, and returns what they have in common.
fn survey(files: &[PathBuf], engine: EngineArgs) -> Result<CommonSizes> {
    let mut first: Option<CommonSizes> = None;
    for path in files {
        let opened = open_one(path, engine)?;
        let set = opened.structure.set(ONLY_SETS);
        let set = set.with_context(|| format!("cannot merge {}", path.display()))?;
        let like = CommonSizes {
            config: *set.config(),
            universe: set.universe(),
            hasher: opened.volume().hasher(),
        };
        opened.close()?;
        match &first {
            Some(first) => refuse_unlike((&files[0], first), (path, &like))?,
            None => first = Some(like),
        }
    }
    first.context("no files")
}

fn refuse_unlike(
    (first, one): (&Path, &CommonSizes),
    (path, other): (&Path, &CommonSizes),
) -> Result<()> {
    if one.universe != other.universe {
        let (first, path) = (first.display(), path.display());
        let made = |like: &CommonSizes| {
            let shown = crate::size::show_count(like.config.keys);
            format!("{shown} keys at {}", percent(like.config.rate))
        };
        bail!(
            "{path} was made for {}, {first} for {}; only filters made for the same merge: build one again",
            made(other),
            made(one)
        );
    }
    merging::refuse_other_hash((first, one.hasher), (path, other.hasher))
}

fn open_one(path: &Path, engine: EngineArgs) -> Result<Opened> {
    open_to_read(&VolumeArgs::single(path.to_owned(), engine), &NameArgs::default())
}

fn absorb(whole: &Cascade, files: &[PathBuf], engine: EngineArgs) -> Result<()> {
    let parts: Vec<Opened> =
        files.iter().map(|path| open_one(path, engine)).collect::<Result<_>>()?;
    let sets = parts.iter().map(|part| part.structure.set(ONLY_SETS));
    let filters: Vec<&Cascade> = sets.collect::<Result<_>>()?;
    whole.absorb_all(&filters)?;
    parts.into_iter().try_for_each(|part| part.close().map(drop))
}
