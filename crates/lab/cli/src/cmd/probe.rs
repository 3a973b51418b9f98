//! `nandex-lab probe`: finds the chunk size, the channels and the mapping of a simulated device by timing.

use anyhow::Result;
use nandex::device::Device;
use nandex::raw::device::probe::Writes;
use nandex_cli::console::Console;
use nandex_cli::probe::ProbingArgs;
use nandex_sim::preset::Preset;
use nandex_sim::{Fill, SimDevice};

/// The device to probe.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Simulated device, by the name of its preset
    #[arg(long, value_name = "NAME", value_parser = Preset::names().collect::<Vec<_>>())]
    preset: String,
    #[command(flatten)]
    probing: ProbingArgs,
}

/// Probes a new device and prints the findings.
///
/// # Errors
/// A size that is too small or larger than the device.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let model = Preset::named(&args.preset)?.build(Fill::Empty)?;
    let pages = args.probing.pages().min(model.page_count());
    let device = SimDevice::with_model(model);
    device.grow(pages)?;
    let (findings, bytes) = args.probing.probe(&device, Writes::Allowed)?;
    args.probing.show(console, format!("{}, simulated", args.preset), &findings, bytes)
}
