//! `nandex count merge`: merges several tables that store keys alike into one.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use nandex::counting::Config;
use nandex::raw::Stated;
use nandex::raw::store::hash::KeyHasher;
use nandex::{Counting, Durability, Filter};
use serde::Serialize;

use super::form::KeyForm;
use super::open::{CountsArgs, OpenedCounts, create};
use crate::console::{Console, Meter, aligned};
use crate::devices::{EngineArgs, VolumeArgs};
use crate::interrupt::Interrupt;
use crate::merging;

/// The inputs and the output.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Volume to create
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Volumes to merge; they stay as they are
    #[arg(required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
}

/// The result.
#[derive(Debug, Serialize)]
struct Merged {
    path: PathBuf,
    files: usize,
}

/// Merges all files into a new one. An interrupt is noticed within a file.
///
/// # Errors
/// Files that do not exist, are in use, or are not alike; an existing output.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    merging::refuse_twice(args.files.iter().map(PathBuf::as_path), "file")?;
    let Survey { form, config, hasher, bytes } = survey(&args.files, args.engine)?;
    let output = VolumeArgs::single(args.output.clone(), args.engine);
    let whole =
        create(&output, (form, config, Stated::default()), (hasher, Durability::Never), console)?;
    let meter = console.meter("merging", Some(bytes));
    merging::fill(whole, &interrupt, |whole| {
        let mut before = 0;
        args.files.iter().try_for_each(|path| {
            absorb(whole, (path, args.engine), &mut before, (&meter, &interrupt))
        })
    })?;
    meter.finish();
    let merged = Merged { path: args.output.clone(), files: args.files.len() };
    console.print(&merged, |merged| {
        aligned(&[("file", format!("{}, of {} files", merged.path.display(), merged.files))])
    })
}

/// Adds a file to the whole; its bytes follow the first `before` bytes.
fn absorb(
    whole: &Counting,
    (path, engine): (&Path, EngineArgs),
    before: &mut u64,
    (meter, interrupt): (&Meter, &Interrupt),
) -> Result<()> {
    let part = open_one(path, engine)?;
    let bytes = part.structure.stats().flash_bytes;
    whole.absorb_watched(&part.structure, &|share| {
        meter.at(*before + (share * bytes as f64) as u64);
        if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    *before += bytes;
    part.close().map(drop)
}

fn open_one(path: &Path, engine: EngineArgs) -> Result<OpenedCounts> {
    CountsArgs::of(path, engine).open_to_read()
}

/// The form of the whole, and the bytes of all files.
struct Survey {
    form: KeyForm,
    config: Config,
    hasher: KeyHasher,
    bytes: u64,
}

impl Survey {
    fn of(path: &Path, engine: EngineArgs) -> Result<Self> {
        let part = open_one(path, engine)?;
        let (form, config) = (part.form(), *part.structure.config());
        let (hasher, bytes) = (part.volume().hasher(), part.structure.stats().flash_bytes);
        part.close()?;
        Ok(Self { form, config, hasher, bytes })
    }
}

/// Checks all files before anything is created. The whole is sized for the keys of the largest.
fn survey(files: &[PathBuf], engine: EngineArgs) -> Result<Survey> {
    let first = files[0].as_path();
    let mut whole = Survey::of(first, engine)?;
    for path in &files[1..] {
        let part = Survey::of(path, engine)?;
        if whole.form != part.form {
            bail!(
                "{} stores keys as {:?}, {} as {:?}; only tables that store keys alike merge: build one again",
                path.display(),
                part.form,
                first.display(),
                whole.form
            );
        }
        merging::refuse_other_hash((first, whole.hasher), (path, part.hasher))?;
        whole.bytes += part.bytes;
        if part.config.q > whole.config.q {
            whole.config = part.config;
        }
    }
    Ok(whole)
}
