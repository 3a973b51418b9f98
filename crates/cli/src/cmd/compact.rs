//! `nandex compact`: a volume in the least space, under its name or another.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nandex::device::Access;
use nandex::store::VolumeDevices;
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::{FileBytes, VolumeArgs};
use crate::unfinished;

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
    let VolumeArgs { file, devices } = &args.volume;
    if !devices.members.is_empty() || devices.log_device.is_some() {
        bail!(
            "cannot compact {}: it is on several devices; copy it with `nandex backup`",
            file.display()
        );
    }
    let name: &Path = args.to.as_deref().unwrap_or(file);
    if args.to.is_some() {
        unfinished::refuse_existing(&[name])?;
    }
    // Its lock keeps others away until the new file has the name.
    let opened = args.volume.open(Access::ReadWrite)?;
    if !opened.members.is_empty() {
        bail!(
            "cannot compact {}: it is on several devices; copy it with `nandex backup`",
            file.display()
        );
    }
    let before = FileBytes::of([file.as_path()])?;
    let from = VolumeDevices { volume: opened.volume, log: None };
    let mut target = Target::make(&[name], console)?;
    target.copy(&from).with_context(|| args.volume.cannot("compact"))?;
    target.prove()?.with_context(|| args.volume.cannot("compact"))?;
    match args.to {
        Some(_) => target.made.publish()?,
        None => target.made.replace()?,
    }
    drop(from);
    let after = FileBytes::of([name])?;
    console.print(&Compacted { path: name.to_owned(), before, after }, text)
}

fn text(it: &Compacted) -> String {
    aligned(&[
        ("volume", it.path.display().to_string()),
        ("before", it.before.shown()),
        ("file", it.after.shown()),
    ])
}
