//! The index that documents are added to: a new one, one that a stopped run has left, or an existing one.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{Context, Result};
use nandex::VolumeOptions;
use nandex::raw::Stated;
use nandex_neardup::{Index, IndexConfig, NearOptions};

use crate::cmd::document_index::{IndexArgs, ResumeArgs, Target};
use crate::console::Console;
use crate::devices::EngineArgs;
use crate::geometry::{self, GeometryArg};
use crate::held::{STRIPING, create_with};
use crate::left::Left;
use crate::refuse;
use crate::size;

use super::hints::explained;
use super::near::NearArgs;

/// The options of a new index.
#[derive(Clone, Debug, clap::Args)]
pub struct MakeArgs {
    /// Number of documents with different texts that a new index is sized for; it refuses more
    #[arg(long, value_name = "N", value_parser = size::parse_some, default_value = "1M")]
    documents: u64,
    /// Channels of a new index's device, over which its tables are spread: probe to find them first, a file with the
    /// output of `nandex probe --json`, or none
    #[arg(long, value_name = "SOURCE", default_value = "none")]
    geometry: GeometryArg,
    #[command(flatten)]
    resume: ResumeArgs,
}

/// Opens the index to add to, or creates it if there is none.
///
/// # Errors
/// A file that is not an index, options that differ from its own, invalid options, no space.
pub fn find(
    args: &IndexArgs,
    (near, make): (&NearArgs, &MakeArgs),
    console: &Console,
) -> Result<Target<Index>> {
    let name = args.file.as_path();
    let (ram_bytes, documents) = (args.ram, make.documents);
    let config = IndexConfig { ram_bytes, documents, ..IndexConfig::default() };
    config.validate().map_err(explained)?;
    let stated = args.stated();
    let is_device = fs::metadata(name).is_ok_and(|it| it.file_type().is_block_device());
    let target = if make.resume.resume
        && (is_device || !name.exists())
        && let Some(left) = Left::find(args.place())?
    {
        Target::resumed(left, name, (ram_bytes, &stated))?
    } else if make.resume.volume(args.place()).is_made() {
        Target::there(args.open::<Index>()?, name)
    } else {
        return create(args.place(), (&near.options()?, &stated), config, (make, console));
    };
    target.tell_resumed(console);
    let shown = target.file.place.display();
    if make.geometry != GeometryArg::None {
        refuse!(
            "--geometry: {shown} is there, and keeps the channels that it was made with; omit it"
        );
    }
    near.check(&target.index).with_context(|| format!("cannot add to {shown}"))?;
    Ok(target)
}

fn create(
    place: (&Path, EngineArgs),
    options: (&NearOptions, &Stated),
    config: IndexConfig,
    (make, console): (&MakeArgs, &Console),
) -> Result<Target<Index>> {
    let log_bytes = Index::log_bytes_stated(options, config).map_err(explained)?;
    let volume = make.resume.volume(place);
    let device = make.geometry.find(&volume, console)?;
    let geometry = geometry::of_volume(device, &volume, STRIPING)?;
    let volume_options = VolumeOptions { geometry, ..VolumeOptions::default() };
    let volume_options = volume_options.with_growing_log(log_bytes);
    let make = |volume: &_| Index::create_stated(volume, options, config).map_err(explained);
    let made = create_with(&volume, (STRIPING, volume_options), console, make)?;
    Ok(Target::made(made, place.0))
}
