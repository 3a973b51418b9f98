//! `nandex kvssd`: a key-value SSD, emulated on a file. One file per verb; `place` and `shown` are shared. `nandex-lab`
//! has `bench` and `replay` too, on simulated flash.

pub mod bench;
mod create;
mod info;
mod list;
mod pairs;
pub mod place;
pub mod replay;
mod shown;
mod spaces;

use anyhow::Result;
use clap::Subcommand;

use self::place::MeasuredFile;
use crate::console::Console;

/// The verbs of drives.
#[derive(Debug, Subcommand)]
pub enum DriveVerb {
    /// Create a drive in a new file, with one key space
    Create(create::Args),
    /// Store a value under a key
    Put(pairs::PutArgs),
    /// Write a value, or a part of it, to stdout; exits with 1 if its key is absent
    Get(pairs::GetArgs),
    /// Delete pairs, by their keys or by a prefix; exits with 1 if a key is absent
    Rm(pairs::RemoveArgs),
    /// Print whether each key is present; exits with 1 if one is absent
    Exist(pairs::ExistArgs),
    /// Print the keys of a key space, or those with a prefix
    List(list::Args),
    /// Create, delete or list key spaces
    #[command(subcommand)]
    Space(spaces::SpaceVerb),
    /// Show a drive's limits, use and costs
    Info(info::Args),
    /// Store, overwrite and read pairs at a queue depth, and measure the performance
    Bench(bench::Args<MeasuredFile>),
    /// Replay a trace of key-value requests, and measure the performance
    Replay(replay::Args<MeasuredFile>),
}

/// Runs the verb.
///
/// # Errors
/// The error of the verb; the exit code follows from it.
pub fn run(verb: &DriveVerb, console: &Console) -> Result<()> {
    match verb {
        DriveVerb::Create(args) => create::run(args, console),
        DriveVerb::Put(args) => pairs::put(args, console),
        DriveVerb::Get(args) => pairs::get(args, console),
        DriveVerb::Rm(args) => pairs::remove(args, console),
        DriveVerb::Exist(args) => pairs::exist(args, console),
        DriveVerb::List(args) => list::run(args, console),
        DriveVerb::Space(args) => spaces::run(args, console),
        DriveVerb::Info(args) => info::run(args, console),
        DriveVerb::Bench(args) => bench::run(args, console),
        DriveVerb::Replay(args) => replay::run(args, console),
    }
}
