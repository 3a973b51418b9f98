//! `nandex backup`: a verified copy of a volume, which another process may have open for writing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use nandex::device::{Access, Create, Device, FileDevice, FileOptions};
use nandex::raw::device::Allocation;
use nandex::raw::device::output::{UnfinishedFiles, refuse_existing};
use nandex::raw::store::{VolumeDevices, copy_closed};
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::{FileBytes, VolumeArgs, is_in_use};
use crate::refuse;
use crate::unfinished;

/// The most copies that are tried while another process writes.
const TRIES: u32 = 20;

/// The source and the target.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// File to create for the copy
    to: PathBuf,
    /// File to create for the log, if that is on a device of its own
    #[arg(long, value_name = "FILE", requires = "log_device")]
    log_to: Option<PathBuf>,
}

/// The copy.
#[derive(Debug, Serialize)]
struct Copied {
    path: PathBuf,
    /// The number of copies that were discarded because the volume changed meanwhile.
    retries: u32,
    #[serde(flatten)]
    files: FileBytes,
}

/// Creates the copy, verifies it and gives it its name.
///
/// # Errors
/// An existing file, a volume that is damaged or changes too fast, no space. The partial copy is then marked unfinished
/// or removed.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let names: Vec<&Path> =
        [&args.to].into_iter().chain(&args.log_to).map(|it| it.as_path()).collect();
    refuse_existing(&names)?;
    if args.volume.devices.log_device.is_some() && args.log_to.is_none() {
        refuse!("the log of the volume is on a device of its own: name its copy with --log-to");
    }
    let (made, retries) = match args.volume.open(Access::ReadOnly) {
        Ok(devices) => {
            let from = VolumeDevices { volume: devices.volume, log: devices.log };
            let target = Target::make(&names, console)?;
            target.copy(&from).with_context(|| args.volume.cannot("copy"))?;
            target.prove()?.with_context(|| args.volume.cannot("copy"))?;
            (target.made, 0)
        }
        Err(error) if is_in_use(&error) => copy_live(args, &names, console, &error)?,
        Err(error) => return Err(error),
    };
    let mut made = made;
    made.finish()?;
    let files = FileBytes::of(names.iter().copied())?;
    console.print(&Copied { path: args.to.clone(), retries, files }, text)
}

fn text(copied: &Copied) -> String {
    let mut rows =
        vec![("copy", copied.path.display().to_string()), ("file", copied.files.shown())];
    if copied.retries > 0 {
        rows.push(("retries", format!("{}: the volume changed meanwhile", copied.retries)));
    }
    aligned(&rows)
}

/// Copies while another process writes: until no checkpoint was taken during the copy and the copy is valid.
fn copy_live(
    args: &Args,
    names: &[&Path],
    console: &Console,
    in_use: &anyhow::Error,
) -> Result<(UnfinishedFiles, u32)> {
    let mut why = String::new();
    for retries in 0..TRIES {
        let devices = args.volume.open(Access::ReadUnlocked)?;
        let from = VolumeDevices { volume: devices.volume, log: devices.log };
        let target = Target::make(names, console)?;
        match target.copy_unchanged(&from) {
            Ok(()) => return Ok((target.made, retries)),
            Err(error) => why = format!("{error:#}"),
        }
        target.made.remove();
    }
    bail!(
        "{in_use:#}; and it changes faster than it can be copied: {TRIES} copies were not of one state, the last one \
         because {why}; copy it with Volume::backup in that program, or when it is closed or writes less"
    )
}

/// The files that become the copy.
pub struct Target {
    /// Their names.
    pub made: UnfinishedFiles,
    devices: VolumeDevices,
}

impl Target {
    /// Creates empty files under unfinished names, the volume's first.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub fn make(names: &[&Path], console: &Console) -> Result<Self> {
        let mut made = UnfinishedFiles::default();
        let mut devices = Vec::new();
        for name in names {
            let place = unfinished::begin(&mut made, name, console)?;
            let options = FileOptions {
                create: Create::New,
                allocation: Allocation::Sparse,
                ..FileOptions::default()
            };
            let device = FileDevice::open(&place, &options)
                .with_context(|| format!("cannot create {}", name.display()))?;
            devices.push(Arc::new(device) as Arc<dyn Device>);
        }
        let mut devices = devices.into_iter();
        let volume = devices.next().context("a volume has a file")?;
        Ok(Self { made, devices: VolumeDevices { volume, log: devices.next() } })
    }

    /// The devices of the files.
    pub fn devices(&self) -> &VolumeDevices {
        &self.devices
    }

    /// Copies the volume; removes the files if that fails.
    ///
    /// # Errors
    /// Damage, a failed read or write, no space.
    pub fn copy(&self, from: &VolumeDevices) -> Result<u64> {
        Ok(copy_closed(from, &self.devices).inspect_err(|_| self.made.remove())?)
    }

    /// Reads and verifies the whole copy; removes the files if it is not whole.
    ///
    /// # Errors
    /// A copy that cannot be read; the inner error for damage in it.
    pub fn prove(&self) -> Result<Result<()>> {
        let VolumeDevices { volume, log } = self.devices.clone();
        let report = nandex::check(volume, log, &mut |_| {})?;
        let Some(finding) = report.findings.first() else { return Ok(Ok(())) };
        self.made.remove();
        Ok(Err(anyhow::anyhow!("{finding}; see `nandex check`")))
    }

    /// Copies a volume that another process may be writing; fails if it changed meanwhile.
    fn copy_unchanged(&self, from: &VolumeDevices) -> Result<()> {
        let copied = self.copy(from)?;
        let now = nandex::raw::store::superblock_generation(&*from.volume)?;
        if now != copied {
            bail!("a checkpoint came between");
        }
        self.prove()?
    }
}
