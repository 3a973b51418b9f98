//! `nandex compact`: rewrites a volume in the least space, under its name or another.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use nandex::device::{Access, Create};
use nandex::raw::device::output::refuse_existing;
use nandex::raw::store::VolumeDevices;
use nandex::{Durability, TableOrMap};
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::{FileBytes, VolumeArgs};
use crate::interrupt::Interrupt;
use crate::refuse;
use crate::size::{self, show_bytes, show_count};

use super::backup::Target;

/// The number of steps of the progress bar.
const SHARE_PARTS: u64 = 1000;

/// The volume, which no other process may have open.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// Create this file, and leave the volume as it is
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// RAM for the structures that are rewritten; default: as much as they need
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes)]
    ram: Option<u64>,
}

/// The sizes before and after.
#[derive(Debug, Serialize)]
struct Compacted {
    path: PathBuf,
    before: FileBytes,
    #[serde(flatten)]
    after: FileBytes,
    /// Structures that were rewritten.
    rewritten: Vec<Rewritten>,
}

/// A structure that takes less space than before.
#[derive(Debug, Serialize)]
struct Rewritten {
    name: String,
    entries: u64,
    flash_bytes_before: u64,
    flash_bytes: u64,
}

/// Rewrites structures that have more space than they need, creates a short copy, verifies it, and puts it in the
/// volume's place.
///
/// # Errors
/// A volume in use, on several devices or damaged; no space; an interrupt. The volume is then unchanged in content.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let file = &args.volume.file;
    let devices = &args.volume.devices;
    if !devices.members.is_empty() || devices.log_device.is_some() {
        return Err(on_several(file));
    }
    let name = name(args)?;
    // Its lock keeps other processes away until the new file has the name.
    let opened = args.volume.open(Access::ReadWrite)?;
    if !opened.members.is_empty() {
        return Err(on_several(file));
    }
    let before = FileBytes::of([file.as_path()])?;
    let from = VolumeDevices { volume: opened.volume, log: None };
    let cannot = || args.volume.cannot("compact");
    let interrupt = Interrupt::listen()?;
    let rewritten;
    let mut target;
    if args.to.is_some() {
        // The volume stays as it is: the rewritten one is a copy, from which a shorter one is made.
        let whole = Target::make(&[&with_suffix(&name, ".whole")], console)?;
        let short = whole.copy(&from).with_context(cannot).and_then(|_| {
            let rewritten = rewrite(whole.devices(), args, &interrupt, console)?;
            Ok((rewritten, copy(whole.devices(), &name, args, (&interrupt, console))?))
        });
        whole.made.remove();
        (rewritten, target) = interrupt.check(short, "no file was made")?;
        target.made.finish()?;
    } else {
        let done = rewrite(&from, args, &interrupt, console);
        let done = done.and_then(|rewritten| {
            Ok((rewritten, copy(&from, &name, args, (&interrupt, console))?))
        });
        (rewritten, target) = interrupt.check(done, "the volume has all that it had")?;
        target.made.replace()?;
    }
    drop(from);
    let after = FileBytes::of([name.as_path()])?;
    let path = args.to.as_ref().unwrap_or(file).clone();
    console.print(&Compacted { path, before, after, rewritten }, text)
}

/// Creates a copy without free pages, verified, that has no name yet.
fn copy(
    from: &VolumeDevices,
    name: &Path,
    args: &Args,
    (interrupt, console): (&Interrupt, &Console),
) -> Result<Target> {
    let target = Target::make(&[name], console)?;
    target.copy(from).with_context(|| args.volume.cannot("compact"))?;
    target.prove()?.with_context(|| args.volume.cannot("compact"))?;
    if interrupt.is_set() {
        target.made.remove();
        bail!("stopped");
    }
    Ok(target)
}

fn with_suffix(name: &Path, suffix: &str) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Rewrites the structures of a volume that have more space than they need.
fn rewrite(
    volume: &VolumeDevices,
    args: &Args,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Vec<Rewritten>> {
    let cannot = || args.volume.cannot("compact");
    // The rewritten structure is durable when it takes the old one's place.
    let options = nandex::options().create(Create::Open).durability(Durability::Never);
    let options = options.ram(args.ram.unwrap_or_else(nandex::raw::device::ram_bytes));
    let db = options.open_on(volume.clone()).with_context(cannot)?;
    let mut rewritten = Vec::new();
    for name in TableOrMap::names(db.volume()) {
        if !db.is_compacted(&name) {
            continue;
        }
        let meter = console.meter("rewriting", Some(SHARE_PARTS));
        let watch = |share: f64| {
            meter.at_share(share);
            if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let compacted = db.compact(&name, &watch);
        meter.finish();
        let it = compacted.with_context(|| format!("{name}: {}", cannot()))?;
        if it.flash_bytes < it.flash_bytes_before {
            let nandex::db::Compacted { entries, flash_bytes_before, flash_bytes, .. } = it;
            rewritten.push(Rewritten { name, entries, flash_bytes_before, flash_bytes });
        }
    }
    Ok(rewritten)
}

/// Returns the name of the new file: that of the volume's own file, if a link leads to it.
fn name(args: &Args) -> Result<PathBuf> {
    if let Some(to) = &args.to {
        refuse_existing(&[to])?;
        return Ok(to.clone());
    }
    let file = &args.volume.file;
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        refuse!(
            "cannot compact {}: it is not a regular file; name a file to create with --to",
            file.display()
        );
    }
    // A missing file is reported when it is opened.
    Ok(fs::canonicalize(file).unwrap_or_else(|_| file.clone()))
}

fn on_several(file: &Path) -> Error {
    let file = file.display();
    anyhow!("cannot compact {file}: it is on several devices; copy it with `nandex backup`")
}

fn text(it: &Compacted) -> String {
    let mut rows = vec![("volume", it.path.display().to_string()), ("before", it.before.shown())];
    for Rewritten { name, entries, flash_bytes_before, flash_bytes } in &it.rewritten {
        let (before, after) = (show_bytes(*flash_bytes_before), show_bytes(*flash_bytes));
        let entries = show_count(*entries);
        rows.push(("rewritten", format!("{name}, {entries} entries: {after} of {before}")));
    }
    rows.push(("file", it.after.shown()));
    aligned(&rows)
}
