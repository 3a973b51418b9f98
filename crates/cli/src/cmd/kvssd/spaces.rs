//! `nandex kvssd space`: key spaces are made, deleted and listed.

use anyhow::Result;
use clap::Subcommand;
use nandex::device::Access;
use nandex_kvssd::{KeyOrder, SpaceInfo};

use super::place::DriveArgs;
use crate::console::Console;
use crate::size::{self, show_bytes, show_count};

/// Which verb.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: SpaceVerb,
}

/// What can be done with key spaces.
#[derive(Debug, Subcommand)]
enum SpaceVerb {
    /// Make a key space
    Create(NewSpaceArgs),
    /// Delete a key space with all its pairs
    Delete(NamedArgs),
    /// List the key spaces with what they hold
    List(ListArgs),
}

/// A key space to make.
#[derive(Debug, clap::Args)]
struct NewSpaceArgs {
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
struct NamedArgs {
    #[command(flatten)]
    drive: DriveArgs,
    /// Its name
    name: String,
}

/// A drive.
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    drive: DriveArgs,
}

/// Runs the verb.
///
/// # Errors
/// A name that is taken or that nobody has, a limit that the drive has no space for.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    match &args.verb {
        SpaceVerb::Create(args) => {
            let opened = args.drive.open(Access::ReadWrite)?;
            opened.drive.create_key_space(&args.name, args.limit, KeyOrder::None)?;
            opened.close()
        }
        SpaceVerb::Delete(args) => {
            let opened = args.drive.open(Access::ReadWrite)?;
            opened.drive.delete_key_space(&args.name)?;
            opened.close()
        }
        SpaceVerb::List(args) => list(args, console),
    }
}

fn list(args: &ListArgs, console: &Console) -> Result<()> {
    let opened = args.drive.open(Access::ReadOnly)?;
    let names = opened.drive.list_key_spaces(0)?;
    let infos = names.iter().map(|name| opened.drive.space_info(name));
    let infos = infos.collect::<nandex_kvssd::Result<Vec<_>>>()?;
    opened.close()?;
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
