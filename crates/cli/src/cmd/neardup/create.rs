//! An index that documents are added to: a new one, one that a stopped run has left, or one that is there.

use std::fs;
use std::mem::take;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nandex::VolumeOptions;
use nandex::raw::Stated;
use nandex_neardup::{Index, IndexConfig, NearOptions};

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::geometry::{self, GeometryArg};
use crate::held::{STRIPING, create_with};
use crate::left::Left;
use crate::size::{self, show_count};
use crate::unfinished::Unfinished;

use super::hints::explained;
use super::near::NearArgs;
use super::opened::NearIndexArgs;

/// How a new index is made.
#[derive(Clone, Debug, clap::Args)]
pub struct MakeArgs {
    /// Documents with different texts that a new index is for; it refuses more
    #[arg(long, value_name = "N", value_parser = size::parse_count, default_value = "1M")]
    documents: u64,
    /// The channels of a new index's device, over which its tables are spread: probe to find them first, a file with
    /// the output of `nandex probe --json`, or none
    #[arg(long, value_name = "SOURCE", default_value = "none")]
    geometry: GeometryArg,
    /// Go on where an earlier run that made this index was stopped, and leave out the documents that it has
    #[arg(long)]
    resume: bool,
    /// Make the index again on a block device that a run which was stopped has left unfinished
    #[arg(long, conflicts_with = "resume")]
    force: bool,
}

impl MakeArgs {
    /// Where the index is, or is made.
    fn volume(&self, name: &Path) -> VolumeArgs {
        let mut volume = VolumeArgs::sparse(name);
        volume.devices.force = self.force;
        volume
    }
}

/// An index to add to.
pub struct Target {
    /// The index.
    pub index: Index,
    /// Where it is.
    pub place: PathBuf,
    /// Is it the rest of a stopped run, of which some documents are there?
    pub is_resumed: bool,
    /// Is it not whole before this run has ended?
    is_new: bool,
    /// What gives it its name in the end.
    made: Unfinished,
    name: PathBuf,
}

impl Target {
    /// Opens the index, or makes it where there is none.
    ///
    /// # Errors
    /// A file that is no index, other options than its own, options that cannot work, no space.
    pub fn find(
        args: &NearIndexArgs,
        (near, make): (&NearArgs, &MakeArgs),
        console: &Console,
    ) -> Result<Self> {
        let name = args.file.as_path();
        let config = IndexConfig { documents: make.documents, ..args.config()? };
        config.validate().map_err(explained)?;
        let stated = args.stated();
        let is_device = fs::metadata(name).is_ok_and(|it| it.file_type().is_block_device());
        let target = if make.resume
            && (is_device || !name.exists())
            && let Some(left) = Left::find(name)?
        {
            Self::resumed(left, name, (config, &stated), console)?
        } else if make.volume(name).is_made() {
            Self::there(args)?
        } else {
            return Self::create(name, (&near.options()?, &stated), config, (make, console));
        };
        if make.geometry != GeometryArg::None {
            let shown = target.place.display();
            bail!(
                "--geometry: {shown} is there, and keeps the channels that it was made with; omit it"
            );
        }
        near.check(&target.index)
            .with_context(|| format!("cannot add to {}", target.place.display()))?;
        Ok(target)
    }

    fn there(args: &NearIndexArgs) -> Result<Self> {
        Ok(Self {
            index: args.open()?,
            place: args.file.clone(),
            is_resumed: false,
            is_new: false,
            made: Unfinished::default(),
            name: args.file.clone(),
        })
    }

    fn resumed(
        left: Left,
        name: &Path,
        (config, stated): (IndexConfig, &Stated),
        console: &Console,
    ) -> Result<Self> {
        let Left { db, place } = left;
        let index = Index::open_stated(db.volume(), config, stated)
            .map_err(explained)
            .context("--resume: the run was stopped before it had any document; omit it")?;
        let documents = show_count(index.documents());
        console.note(&format!("{} is resumed: it has {documents} documents", place.display()));
        Ok(Self {
            index,
            place,
            is_resumed: true,
            is_new: true,
            made: Unfinished::of(db),
            name: name.into(),
        })
    }

    fn create(
        name: &Path,
        options: (&NearOptions, &Stated),
        config: IndexConfig,
        (make, console): (&MakeArgs, &Console),
    ) -> Result<Self> {
        let log_bytes = Index::log_bytes_stated(options, config).map_err(explained)?;
        let volume = make.volume(name);
        let device = make.geometry.find(&volume, console)?;
        let geometry = geometry::of_volume(device, &volume, STRIPING)?;
        let volume_options = VolumeOptions { log_bytes, geometry, ..VolumeOptions::default() };
        let make = |volume: &_| Index::create_stated(volume, options, config).map_err(explained);
        let (db, index) = create_with(&volume, (STRIPING, volume_options), console, make)?;
        let made = Unfinished::of(db);
        let place = made.path_of(name);
        Ok(Self { index, place, is_resumed: false, is_new: true, made, name: name.into() })
    }
}

/// What is left of a target when its index is closed.
pub struct Closed {
    /// Where the index is.
    pub place: PathBuf,
    /// Is it not whole before it is published?
    pub is_new: bool,
    made: Unfinished,
    name: PathBuf,
}

impl Target {
    /// The index, and what gives it its name.
    pub fn split(self) -> (Index, Closed) {
        let Self { index, place, is_new, made, name, .. } = self;
        (index, Closed { place, is_new, made, name })
    }
}

impl Closed {
    /// Gives a new index its name, and takes the mark of one on a block device away.
    ///
    /// # Errors
    /// A file that has got that name meanwhile.
    pub fn publish(&mut self) -> Result<()> {
        take(&mut self.made).finish()?;
        self.place = self.name.clone();
        Ok(())
    }
}
