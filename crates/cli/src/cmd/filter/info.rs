//! `nandex filter info`: shows a filter's keys, rate of false positives, RAM and flash.

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::VolumeArgs;

use super::figures::FilterFigures;
use super::open::{NameArgs, open_to_read};

/// The filter.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    name: NameArgs,
}

/// A filter, for people and programs.
#[derive(Debug, Serialize)]
struct Info {
    path: PathBuf,
    name: String,
    #[serde(flatten)]
    figures: FilterFigures,
}

/// Prints the figures.
///
/// # Errors
/// As for opening; silently, after the figures are printed, if damaged pages are missing from them.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let opened = open_to_read(&args.volume, &args.name)?;
    let figures = FilterFigures::of(opened.structure.filter(), opened.volume().hasher());
    let info = Info { path: args.volume.file.clone(), name: opened.name.clone(), figures };
    opened.close()?;
    console.print(&info, |info| {
        let mut rows = vec![("filter", format!("{} in {}", info.name, info.path.display()))];
        rows.extend(info.figures.rows());
        aligned(&rows)
    })?;
    info.figures.lost_pages().result()
}
