//! Results of experiments in files, so that an interrupted run of all papers can continue.
//!
//! They are in the report's folder, one file each, and are removed when the report is complete. A file counts only for
//! the same program, scale and seed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex::raw::device::output::write_output;
use nandex::raw::store::hash::{HashKind, KeyHasher};
use nandex_reproduce::{Paper, Part, Ran, Scale};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The folder's name in that of the report.
const FOLDER: &str = "unfinished";

/// An experiment that has run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    run: Run,
    /// The part of the pages.
    pub part: Part,
    /// Its outcome, for `--json`.
    pub data: Box<RawValue>,
}

/// The inputs that determine the outcome of an experiment: equal runs give equal bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// A hash of the program.
    program: String,
    times: u32,
    seed: u64,
}

impl Run {
    /// Returns the run of this program at a scale.
    ///
    /// # Errors
    /// A program that cannot be read.
    pub fn of(scale: Scale) -> Result<Self> {
        let path = std::env::current_exe().context("cannot find the program's own file")?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let hash = KeyHasher::new(HashKind::Xxh3, 0).hash(&bytes);
        let program = format!("{:016x}{:016x}", hash.place, hash.filter);
        Ok(Self { program, times: scale.times(), seed: scale.seed() })
    }
}

/// The folder of experiments that have run.
#[derive(Debug)]
pub struct KeptFolder {
    folder: PathBuf,
    run: Run,
}

impl KeptFolder {
    /// Opens the folder of a report; creates it if it is missing.
    ///
    /// # Errors
    /// A folder that cannot be created.
    pub fn open(report: &Path, run: Run) -> Result<Self> {
        let folder = report.join(FOLDER);
        let made = fs::create_dir_all(&folder);
        made.with_context(|| format!("cannot create the folder {}", folder.display()))?;
        Ok(Self { folder, run })
    }

    /// Returns the result of an experiment that an earlier run with the same outcome has left. A result of another run,
    /// or a damaged one, is ignored: the experiment runs again.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn load(&self, paper: Paper, name: &str) -> Result<Option<Kept>> {
        let path = self.path(paper, name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidData => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let kept: Option<Kept> = serde_json::from_str(&text).ok();
        let is_it = |kept: &Kept| {
            kept.run == self.run && kept.part.paper == paper && kept.part.name == name
        };
        Ok(kept.filter(is_it))
    }

    /// Saves an experiment that has run. A run that is killed meanwhile leaves no partial file.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self, part: Part, ran: &Ran) -> Result<Kept> {
        let data = serde_json::value::to_raw_value(ran)?;
        let kept = Kept { run: self.run.clone(), part, data };
        let path = self.path(kept.part.paper, &kept.part.name);
        let written = write_output(&path, serde_json::to_string(&kept)?);
        written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(kept)
    }

    /// Removes the folder, because the report is complete.
    ///
    /// # Errors
    /// A folder that cannot be removed.
    pub fn remove(self) -> Result<()> {
        let removed = fs::remove_dir_all(&self.folder);
        removed.with_context(|| format!("cannot remove {}", self.folder.display()))
    }

    fn path(&self, paper: Paper, name: &str) -> PathBuf {
        self.folder.join(format!("{}.{name}.json", paper.structure()))
    }
}

#[cfg(test)]
mod tests {
    use nandex_reproduce::Outcome;

    use super::*;

    #[test]
    fn only_what_the_same_program_made_at_the_same_scale_and_seed_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let scale = |times, seed| Scale::new(times, seed).unwrap();
        let open = |scale| KeptFolder::open(folder.path(), Run::of(scale).unwrap()).unwrap();
        let first = open(scale(1024, 1));
        let outcome = Outcome::default();
        let ran = Ran { name: "figure-1", title: "T", reference: "section 1", outcome };
        let part = Part::of(Paper::Rhik, &ran, scale(1024, 1));
        let saved = first.save(part, &ran).unwrap();
        let found = |folder: &KeptFolder, name| folder.load(Paper::Rhik, name).unwrap();
        let again = found(&open(scale(1024, 1)), "figure-1").unwrap();
        assert_eq!((again.part, again.data.get()), (saved.part, saved.data.get()));
        assert!(found(&first, "figure-2").is_none());
        assert!(first.load(Paper::Cascade, "figure-1").unwrap().is_none());
        assert!(found(&open(scale(1024, 2)), "figure-1").is_none());
        assert!(found(&open(scale(512, 1)), "figure-1").is_none());
        let mut other = Run::of(scale(1024, 1)).unwrap();
        other.program.push('0');
        assert!(found(&KeptFolder::open(folder.path(), other).unwrap(), "figure-1").is_none());
        first.remove().unwrap();
        assert!(found(&open(scale(1024, 1)), "figure-1").is_none());
    }
}
