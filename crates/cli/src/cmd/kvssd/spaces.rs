//! `nandex kvssd space`: creates, deletes and lists key spaces.

use anyhow::Result;
use clap::Subcommand;
use nandex::device::Access;
use nandex_kvssd::{KeyOrder, SpaceInfo};

use super::place::DriveArgs;
use crate::console::Console;
use crate::size::{self, show_bytes, show_count};

/// The verbs of key spaces.
#[derive(Debug, Subcommand)]
pub enum SpaceVerb {
    /// Create a key space
    Create(NewSpaceArgs),
    /// Delete a key space with all its pairs
    Delete(NamedArgs),
    /// List the key spaces and their content
    List(DriveArgs),
}

/// A key space to create.
#[derive(Debug, clap::Args)]
pub struct NewSpaceArgs {
    #[command(flatten)]
    drive: DriveArgs,
    /// Name of the key space
    name: String,
    /// Most bytes of keys and values in it; default: no limit but the drive's
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "0")]
    limit: u64,
}

/// A key space.
#[derive(Debug, clap::Args)]
pub struct NamedArgs {
    #[command(flatten)]
    drive: DriveArgs,
    /// Name of the key space
    name: String,
}

/// Runs the verb.
///
/// # Errors
/// A name that is in use or unknown, a limit that the drive has no space for.
pub fn run(verb: &SpaceVerb, console: &Console) -> Result<()> {
    match verb {
        SpaceVerb::Create(args) => args.drive.with(Access::ReadWrite, |drive| {
            Ok(drive.create_key_space(&args.name, args.limit, KeyOrder::None)?)
        }),
        SpaceVerb::Delete(args) => {
            args.drive.with(Access::ReadWrite, |drive| Ok(drive.delete_key_space(&args.name)?))
        }
        SpaceVerb::List(args) => list(args, console),
    }
}

fn list(drive: &DriveArgs, console: &Console) -> Result<()> {
    let infos = drive.with(Access::ReadOnly, |drive| {
        let names = drive.list_key_spaces(0)?;
        let infos = names.iter().map(|name| drive.space_info(name));
        Ok(infos.collect::<nandex_kvssd::Result<Vec<_>>>()?)
    })?;
    console.print(&infos, |infos| infos.iter().map(line).collect())
}

fn line(info: &SpaceInfo) -> String {
    let bytes = show_bytes(info.key_bytes + info.value_bytes);
    let limit = match info.limit_bytes {
        0 => String::new(),
        limit => format!(" of {}", show_bytes(limit)),
    };
    format!("{}\t{} pairs\t{bytes}{limit}\n", info.name, show_count(info.pairs))
}
