//! `nandex count merge`: makes one table of several that store keys alike.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use nandex::Durability;
use nandex::counting::Config;
use nandex::store::hash::KeyHasher;
use serde::Serialize;

use super::open::{create, open_to_read};
use crate::console::{Console, aligned};
use crate::devices::VolumeArgs;
use crate::interrupt::Interrupt;
use crate::unfinished;

/// The inputs and the output.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The volume to make
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The volumes to merge; they stay as they are
    #[arg(required = true, num_args = 2..)]
    files: Vec<PathBuf>,
}

/// The result.
#[derive(Debug, Serialize)]
struct Merged {
    path: PathBuf,
    files: usize,
}

/// Merges all files into a new one.
///
/// # Errors
/// Files that do not exist, are in use, or are not alike; an existing output.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let like = survey(&args.files)?;
    let whole = create(&VolumeArgs::single(args.output.clone()), like, Durability::Never, console)?;
    let absorbed = args.files.iter().try_for_each(|path| {
        let part = open_to_read(&VolumeArgs::single(path.clone()))?;
        whole.table.absorb(&part.table)?;
        part.close()?;
        if interrupt.is_set() { bail!("stopped; no file was made") } else { Ok(()) }
    });
    if absorbed.is_err() {
        whole.made.remove();
        return absorbed;
    }
    whole.close()?.publish()?;
    let merged = Merged { path: args.output.clone(), files: args.files.len() };
    console.print(&merged, |merged| {
        aligned(&[("file", format!("{}, of {} files", merged.path.display(), merged.files))])
    })
}

/// Checks all files before anything is made. Returns what the whole is made with: for the keys of the largest.
fn survey(files: &[PathBuf]) -> Result<(Config, KeyHasher)> {
    let mut seen = HashSet::new();
    let mut like: Option<(Config, KeyHasher)> = None;
    for path in files {
        unfinished::refuse_unfinished(&[path])?;
        let shown = path.display();
        if !seen.insert(fs::canonicalize(path).with_context(|| format!("cannot open {shown}"))?) {
            bail!("{shown} is named twice; name each file once");
        }
        let part = open_to_read(&VolumeArgs::single(path.clone()))?;
        let (config, hasher) = (*part.table.config(), part.volume.hasher());
        part.close()?;
        let Some((first, first_hasher)) = &mut like else {
            like = Some((config, hasher));
            continue;
        };
        if first.keys != config.keys {
            bail!(
                "{shown} stores {:?} bytes of keys, {} {:?}; only tables that store keys alike merge: build one again",
                config.keys,
                files[0].display(),
                first.keys
            );
        }
        if first_hasher.kind() != hasher.kind() || first_hasher.key() != hasher.key() {
            bail!("{shown} hashes keys otherwise than {}", files[0].display());
        }
        if config.q > first.q {
            *first = config;
        }
    }
    like.context("no files")
}
