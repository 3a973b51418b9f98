//! `nandex check`: reads every page of a volume and checks it.
use crate::talk::Talk;
use anyhow::Result;
use std::path::PathBuf;
/// Which volume.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The volume
    file: PathBuf,
}
pub fn run(_args: &Args, _talk: &Talk) -> Result<()> {
    Ok(())
}
