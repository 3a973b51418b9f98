//! `nandex-lab kvssd`: measures a key-value SSD on a simulated device that exists only for the run.

use std::sync::Arc;

use anyhow::Result;
use clap::Subcommand;
use nandex::device::Device;
use nandex::{Durability, Threads, VolumeOptions};
use nandex_cli::console::Console;
use nandex_cli::kvssd::place::{LimitArgs, MeasureArgs, MeasuredDrive, Opened, create_on};
use nandex_cli::kvssd::{bench, replay};
use nandex_kvssd::{Drive, KeySpace, without_threads};
use nandex_sim::preset::Preset;
use nandex_sim::{Fill, SimDevice};

/// The measurements.
#[derive(Debug, Subcommand)]
pub enum DriveVerb {
    /// Store, overwrite and read pairs at a queue depth, and measure the performance
    Bench(bench::Args<SimulatedDrive>),
    /// Replay a trace of key-value requests, and measure the performance
    Replay(replay::Args<SimulatedDrive>),
}

/// Runs the verb.
///
/// # Errors
/// The error of the verb; the exit code follows from it.
pub fn run(verb: &DriveVerb, console: &Console) -> Result<()> {
    match verb {
        DriveVerb::Bench(args) => bench::run(args, console),
        DriveVerb::Replay(args) => replay::run(args, console),
    }
}

/// A new drive on a simulated device. It does all work on the calling thread, so that runs repeat.
#[derive(Clone, Debug, clap::Args)]
pub struct SimulatedDrive {
    /// Name of the simulated device, as listed by `nandex-lab sim --list`
    #[arg(long, value_name = "NAME", default_value = "pm983")]
    preset: String,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

impl MeasuredDrive for SimulatedDrive {
    fn with<T>(&self, act: impl FnOnce(&Drive, &KeySpace) -> Result<T>) -> Result<T> {
        self.measure.run(self.create()?, act)
    }

    fn device(&self) -> String {
        self.preset.clone()
    }
}

impl SimulatedDrive {
    fn create(&self) -> Result<Opened> {
        let (config, index) = self.limits.choose(&self.measure.stated)?;
        let model = Preset::named(&self.preset)?.build(Fill::Empty)?;
        let device: Arc<dyn Device> = Arc::new(SimDevice::with_model(model));
        let options = VolumeOptions {
            hash_key: Some(1),
            volume_id: Some(1),
            log_bytes: index.config.log_bytes_best(),
            durability: Durability::Never,
            threads: Threads::Inline,
            ..VolumeOptions::default()
        };
        let db = nandex::options().volume(options).open_on(device.into())?;
        let stated = self.measure.stated.stated();
        let threads = stated.options(index.config.kind(), without_threads())?;
        let drive = create_on(db.volume(), config, (&index.config, &threads))?;
        Ok((db, drive))
    }
}
