//! `nandex kvssd space`: key spaces are made, deleted and listed.

use anyhow::Result;
use clap::Subcommand;
use nandex::device::Access;
use nandex_kvssd::{KeyOrder, SpaceInfo};

use super::place::DriveArgs;
use crate::console::Console;
use crate::size::{self, show_bytes, show_count};

/// What can be done with key spaces.
#[derive(Debug, Subcommand)]
pub enum SpaceVerb {
    /// Make a key space
    Create(NewSpaceArgs),
    /// Delete a key space with all its pairs
    Delete(NamedArgs),
    /// List the key spaces with what they hold
    List(DriveArgs),
}

/// A key space to make.
#[derive(Debug, clap::Args)]
pub struct NewSpaceArgs {
    #[command(flatten)]
    drive: DriveArgs,
    /// Its name
    name: String,
    /// Bytes of keys and values that it may hold; without it, what the drive has
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "0")]
    limit: u64,
}

/// A key space.
#[derive(Debug, clap::Args)]
pub struct NamedArgs {
    #[command(flatten)]
    drive: DriveArgs,
    /// Its name
    name: String,
}

/// Runs the verb.
///
/// # Errors
/// A name that is taken or that nobody has, a limit that the drive has no space for.
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
