//! `nandex create`: a volume with one empty table.

use std::path::PathBuf;

use anyhow::{Result, bail};
use nandex::{Policy, Requirements, Table};
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::{StripeArg, VolumeArgs};
use crate::interrupt::Interrupt;
use crate::place::{DurabilityArg, create};
use crate::size::{self, show_bytes, show_count};
use crate::sizing::{self, Choice, RequirementArgs, StructureArg, TableCosts};

/// Where, and how large.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// How the volume is spread over several devices: SIZE for runs of SIZE bytes on each in turn, or
    /// partition:SIZE for SIZE bytes of the volume on each
    #[arg(long, value_name = "STRIPING", default_value = "1MiB", requires = "members")]
    stripe: StripeArg,
    /// The table's name
    #[arg(long, default_value = "main")]
    table: String,
    /// Entries the table must hold
    #[arg(long, value_name = "COUNT", value_parser = size::parse_count)]
    entries: u64,
    /// Bytes of a key: 8 to 32
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "8")]
    key_bytes: u64,
    /// Bytes of a value: 0 to 64
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "8")]
    value_bytes: u64,
    /// Which structure it is
    #[arg(long, value_name = "STRUCTURE", default_value = "auto", value_parser = StructureArg::parser())]
    structure: StructureArg,
    #[command(flatten)]
    requirements: RequirementArgs,
    /// Full buffers of a SliceHash that may wait on flash while inserts come in bursts
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    front_runs: u32,
    /// What happens when flash is full
    #[arg(long, default_value = "reject", value_parser = sizing::policy)]
    policy: Policy,
    /// When an acknowledged update is durable; a word for this run, chosen again at each opening
    #[arg(long, default_value = "every:100")]
    durability: DurabilityArg,
}

/// The new volume.
#[derive(Debug, Serialize)]
struct Created {
    path: PathBuf,
    table: String,
    structure: String,
    reasons: Vec<String>,
    entries_capacity: u64,
    key_bytes: usize,
    value_bytes: usize,
    ram_bytes: u64,
    flash_bytes: u64,
    filter_bytes: u64,
    #[serde(flatten)]
    costs: TableCosts,
}

/// Makes the volume and the table.
///
/// # Errors
/// A file that holds a volume already, sizes that cannot work, no space, an interrupt.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let requirements = Requirements {
        policy: args.policy,
        front_runs: args.front_runs,
        ..args.requirements.of(args.entries, args.key_bytes, args.value_bytes)?
    };
    let Choice { reasons, prediction } = sizing::choose(args.structure, &requirements)?;
    let table = (args.table.as_str(), &prediction);
    let made = create(&args.volume, args.stripe.0, table, args.durability.0, console)?;
    let stats = made.table.stats();
    let created = Created {
        path: args.volume.file.clone(),
        table: args.table.clone(),
        structure: made.table.kind().to_owned(),
        reasons,
        entries_capacity: prediction.entries_capacity,
        key_bytes: made.table.key_bytes(),
        value_bytes: made.table.value_bytes(),
        ram_bytes: stats.ram_bytes,
        flash_bytes: stats.flash_bytes,
        filter_bytes: prediction.optional_filter_bytes,
        costs: TableCosts::of(
            &prediction.config,
            made.table.key_bytes() + made.table.value_bytes(),
        )?,
    };
    if interrupt.is_set() {
        made.made.remove();
        bail!("stopped; no file was made");
    }
    made.close()?;
    console.print(&created, text)
}

fn text(created: &Created) -> String {
    let mut rows = vec![
        ("volume", created.path.display().to_string()),
        ("table", created.table.clone()),
        ("structure", created.structure.clone()),
    ];
    let names = ["  because"].into_iter().chain(std::iter::repeat(""));
    rows.extend(names.zip(created.reasons.iter().cloned()));
    rows.extend([
        ("space for", format!("{} entries", show_count(created.entries_capacity))),
        ("entries", format!("{} + {} bytes", created.key_bytes, created.value_bytes)),
    ]);
    rows.extend(created.costs.rows());
    if created.filter_bytes > 0 {
        let bytes = show_bytes(created.filter_bytes);
        rows.push((
            "filters",
            format!("{bytes} more RAM, where a program opens it with that much"),
        ));
    }
    rows.extend([
        ("RAM", show_bytes(created.ram_bytes)),
        ("flash", show_bytes(created.flash_bytes)),
    ]);
    aligned(&rows)
}
