//! `nandex compact`: a volume in the least space, under its name or another.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use nandex::device::Access;
use nandex::raw::device::output::refuse_existing;
use nandex::raw::store::VolumeDevices;
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::{FileBytes, VolumeArgs};

use super::backup::Target;

/// Which volume; nobody else may have it open.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// Make this file, and leave the volume as it is
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// What it took and takes.
#[derive(Debug, Serialize)]
struct Compacted {
    path: PathBuf,
    before: FileBytes,
    #[serde(flatten)]
    after: FileBytes,
}

/// Makes the short copy, proves it, and puts it in the volume's place.
///
/// # Errors
/// A volume in use, on several devices or damaged; no space. The volume is then as it was.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let file = &args.volume.file;
    let devices = &args.volume.devices;
    if !devices.members.is_empty() || devices.log_device.is_some() {
        return Err(on_several(file));
    }
    let name = name(args)?;
    // Its lock keeps others away until the new file has the name.
    let opened = args.volume.open(Access::ReadWrite)?;
    if !opened.members.is_empty() {
        return Err(on_several(file));
    }
    let before = FileBytes::of([file.as_path()])?;
    let from = VolumeDevices { volume: opened.volume, log: None };
    let mut target = Target::make(&[&name], console)?;
    target.copy(&from).with_context(|| args.volume.cannot("compact"))?;
    target.prove()?.with_context(|| args.volume.cannot("compact"))?;
    match args.to {
        Some(_) => target.made.finish()?,
        None => target.made.replace()?,
    }
    drop(from);
    let after = FileBytes::of([name.as_path()])?;
    let path = args.to.as_ref().unwrap_or(file).clone();
    console.print(&Compacted { path, before, after }, text)
}

/// The name of the new file: of the volume's own file, where a link leads to it.
fn name(args: &Args) -> Result<PathBuf> {
    if let Some(to) = &args.to {
        refuse_existing(&[to])?;
        return Ok(to.clone());
    }
    let file = &args.volume.file;
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        bail!(
            "cannot compact {}: it is no regular file; name a file to make with --to",
            file.display()
        );
    }
    // One that is not there is refused when it is opened.
    Ok(fs::canonicalize(file).unwrap_or_else(|_| file.clone()))
}

fn on_several(file: &Path) -> Error {
    let file = file.display();
    anyhow!("cannot compact {file}: it is on several devices; copy it with `nandex backup`")
}

fn text(it: &Compacted) -> String {
    aligned(&[
        ("volume", it.path.display().to_string()),
        ("before", it.before.shown()),
        ("file", it.after.shown()),
    ])
}
