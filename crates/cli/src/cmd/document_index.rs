//! Indexes of documents, as the verbs of `tfidf` and `neardup` create, resume and open them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};
use nandex::device::Access;
use nandex::raw::Stated;
use nandex::{Database, Volume};

use crate::console::Console;
use crate::devices::{EngineArgs, VolumeArgs};
use crate::held::open_index;
use crate::left::Left;
use crate::size::{self, show_count};
use crate::stated::StatedArgs;
use crate::unfinished::Unfinished;

/// An index of documents that has verbs of its own.
pub trait DocumentIndex: Sized {
    /// Its name in errors, with the command that creates it.
    const WHAT: &'static str;

    /// Opens the index of a volume within this RAM.
    ///
    /// # Errors
    /// A volume without one, damage, too little RAM or too much, parameters that differ from the given ones.
    fn open_in(volume: &Volume, ram_bytes: u64, stated: &Stated) -> Result<Self>;

    /// The number of documents.
    fn documents(&self) -> u64;
}

/// The index, and its RAM.
#[derive(Debug, clap::Args)]
pub struct IndexArgs {
    /// File of the index, or its block device
    #[arg(value_name = "INDEX")]
    pub file: PathBuf,
    /// RAM for the index's tables and for the documents at hand, at least 64 MiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "256MiB")]
    pub ram: u64,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    stated: StatedArgs,
}

impl IndexArgs {
    /// The file, and the engine that reads and writes it.
    pub fn place(&self) -> (&Path, EngineArgs) {
        (&self.file, self.engine)
    }

    /// The parameters that were given by name.
    pub fn stated(&self) -> Stated {
        self.stated.stated()
    }

    /// Opens the index to change it.
    ///
    /// # Errors
    /// No such file, a file that is not an index or is in use, damage.
    pub fn open<I: DocumentIndex>(&self) -> Result<I> {
        open(self.place(), Access::ReadWrite, (self.ram, &self.stated()))
    }

    /// Opens the index read-only; several processes may do so at a time.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_to_read<I: DocumentIndex>(&self) -> Result<I> {
        open(self.place(), Access::ReadOnly, (self.ram, &self.stated()))
    }
}

/// Opens the index of a file.
///
/// # Errors
/// As [`IndexArgs::open`].
pub fn open<I: DocumentIndex>(
    place: (&Path, EngineArgs),
    access: Access,
    (ram_bytes, stated): (u64, &Stated),
) -> Result<I> {
    open_index(place, access, I::WHAT, |volume| I::open_in(volume, ram_bytes, stated))
}

/// The handling of an index that an earlier run may have begun.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ResumeArgs {
    /// Continue an index whose earlier run was stopped, and leave out the documents that it has
    #[arg(long)]
    pub resume: bool,
    /// Create the index again on a block device that a stopped run has left unfinished
    #[arg(long, conflicts_with = "resume")]
    force: bool,
}

impl ResumeArgs {
    /// Returns the volume of the index.
    pub fn volume(&self, (name, engine): (&Path, EngineArgs)) -> VolumeArgs {
        let mut volume = VolumeArgs::sparse(name, engine);
        volume.devices.force = self.force;
        volume
    }
}

/// An index that documents are added to.
pub struct Target<I> {
    /// The index.
    pub index: I,
    /// Its current place, and its final name.
    pub file: TargetFile,
    /// Whether a stopped run has left it, with some of the documents.
    pub is_resumed: bool,
}

/// The file or block device of such an index.
pub struct TargetFile {
    /// The current place.
    pub place: PathBuf,
    /// Whether it is incomplete until this run has ended.
    is_new: bool,
    made: Unfinished,
    name: PathBuf,
}

impl<I: DocumentIndex> Target<I> {
    /// Returns an existing index as a target.
    pub fn there(index: I, name: &Path) -> Self {
        let (name, place) = (name.to_owned(), name.to_owned());
        let file = TargetFile { place, is_new: false, made: Unfinished::default(), name };
        Self { index, file, is_resumed: false }
    }

    /// Returns an index that was just created as a target.
    pub fn made((db, index): (Database, I), name: &Path) -> Self {
        let made = Unfinished::of(db);
        let file = TargetFile { place: made.path_of(name), is_new: true, made, name: name.into() };
        Self { index, file, is_resumed: false }
    }

    /// Returns an index that a stopped run has left as a target.
    ///
    /// # Errors
    /// As [`DocumentIndex::open_in`], if the run was stopped before it had created the index.
    pub fn resumed(
        Left { db, place }: Left,
        name: &Path,
        (ram_bytes, stated): (u64, &Stated),
    ) -> Result<Self> {
        let index = I::open_in(db.volume(), ram_bytes, stated)
            .context("--resume: the run was stopped before it had any document; omit it")?;
        let made = Unfinished::of(db);
        let file = TargetFile { place, is_new: true, made, name: name.into() };
        Ok(Self { index, file, is_resumed: true })
    }

    /// Reports the number of documents, if it is resumed.
    pub fn tell_resumed(&self, console: &Console) {
        if self.is_resumed {
            let (shown, documents) =
                (self.file.place.display(), show_count(self.index.documents()));
            console.note(&format!("{shown} is resumed: it has {documents} documents"));
        }
    }
}

impl TargetFile {
    /// Gives a new index its name, and removes the mark of one on a block device; reports how to continue if the run
    /// was interrupted. Returns its place after that.
    ///
    /// # Errors
    /// A file that has got this name meanwhile.
    pub fn end(self, is_interrupted: bool, console: &Console) -> Result<PathBuf> {
        if !is_interrupted {
            self.made.finish()?;
            return Ok(self.name);
        }
        if self.is_new {
            let shown = self.place.display();
            console.note(&format!(
                "stopped; {shown} has what was read: the same command with --resume adds the rest"
            ));
        }
        Ok(self.place)
    }
}

/// Adds the option that solves an error, if there is one.
pub fn with_hint<E: std::error::Error + Send + Sync + 'static>(
    error: E,
    hint: Option<&'static str>,
) -> Error {
    let Some(hint) = hint else { return error.into() };
    let said = format!("{error} ({hint})");
    Error::from(error).context(said)
}
