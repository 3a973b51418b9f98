//! `nandex create`: a volume with one empty table.

use std::path::PathBuf;

use anyhow::Result;
use nandex::Table;
use serde::Serialize;

use crate::devices::{StripeArg, VolumeArgs};
use crate::place::{DurabilityArg, PolicyArg, TableWish, create};
use crate::size::{self, show_bytes, show_count};
use crate::talk::{Talk, aligned};

/// Where, and how large.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// How the volume lies on several devices: SIZE for runs of so many bytes on each in turn, or
    /// partition:SIZE for so many bytes of the volume on each
    #[arg(long, value_name = "STRIPING", default_value = "1MiB", requires = "members")]
    stripe: StripeArg,
    /// The table's name
    #[arg(long, default_value = "main")]
    table: String,
    /// Entries the table must hold
    #[arg(long, value_name = "COUNT", value_parser = size::parse)]
    entries: u64,
    /// Bytes of a key: 8 to 32
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "8")]
    key_bytes: u64,
    /// Bytes of a value: 0 to 64
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "8")]
    value_bytes: u64,
    /// RAM that the table may take; without it, what it needs
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    ram: Option<u64>,
    /// What happens when flash is full
    #[arg(long, default_value = "reject")]
    policy: PolicyArg,
    /// When an acknowledged update is durable; a word for this run, chosen anew at each opening
    #[arg(long, default_value = "every:100")]
    durability: DurabilityArg,
}

/// What was made.
#[derive(Debug, Serialize)]
struct Created {
    path: PathBuf,
    table: String,
    entries_capacity: u64,
    key_bytes: usize,
    value_bytes: usize,
    policy: String,
    ram_bytes: u64,
    flash_bytes: u64,
}

/// Makes the volume and the table.
///
/// # Errors
/// A file that holds a volume already, sizes that cannot work, no space.
pub fn run(args: &Args, talk: &Talk) -> Result<()> {
    let wish = TableWish {
        name: args.table.clone(),
        entries: args.entries,
        key_bytes: args.key_bytes.try_into()?,
        value_bytes: args.value_bytes.try_into()?,
        ram_bytes: args.ram,
        policy: args.policy.0,
        durability: args.durability.0,
    };
    let made = create(&args.volume, args.stripe.0, &wish)?;
    let stats = made.table.stats();
    let created = Created {
        path: args.volume.file.clone(),
        table: args.table.clone(),
        entries_capacity: wish.advice()?.entries_capacity,
        key_bytes: made.table.key_bytes(),
        value_bytes: made.table.value_bytes(),
        policy: args.policy.to_string(),
        ram_bytes: stats.ram_bytes,
        flash_bytes: stats.flash_bytes,
    };
    made.close()?;
    talk.print(&created, text)
}

fn text(created: &Created) -> String {
    aligned(&[
        ("volume", created.path.display().to_string()),
        ("table", created.table.clone()),
        ("room for", format!("{} entries", show_count(created.entries_capacity))),
        ("entries", format!("{} + {} bytes", created.key_bytes, created.value_bytes)),
        ("when full", created.policy.clone()),
        ("RAM", show_bytes(created.ram_bytes)),
        ("flash", show_bytes(created.flash_bytes)),
    ])
}
