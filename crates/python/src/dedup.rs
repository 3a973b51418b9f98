//! Duplicate chunks of files and folders: `Database.dedup`.

use std::path::PathBuf;

use nandex::{Database as Db, Policy};
use nandex_dedup::{Chunker, Chunking, Error, Hash, IndexSettings, Options, Summary};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{Raised, raise, raise_io};
use crate::handle::Handle;
use crate::number::{integer, optional, size};
use crate::stats;
use crate::words;

/// The number of fingerprints that an index is made for; it grows.
const ENTRIES: u64 = 100_000;

/// The paths to read, and the options.
pub struct How {
    options: Options,
}

/// The average chunk, the chunker and the hash, as given.
type Given<'a, 'py> = [Option<&'a Bound<'py, PyAny>>; 3];

impl How {
    /// Reads the options.
    ///
    /// # Errors
    /// Fails for an unknown chunker or hash, an impossible average, and no paths.
    pub fn new<'py>(
        paths: &Bound<'py, PyAny>,
        [average, chunker, hash]: Given<'_, 'py>,
        compare: bool,
        workers: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let refuse = |field, reason: String| Raised::Config.new(format!("{field}: {reason}"));
        let usual = IndexSettings::default();
        let chunker = optional(chunker, "chunker", words::text)?;
        let chunker = chunker.map(|word| word.parse::<Chunker>()).transpose();
        let chunker = chunker.map_err(|error| refuse("chunker", error.to_string()))?;
        let chunker = chunker.unwrap_or(usual.chunking.chunker());
        let average = match average {
            Some(average) => usize::try_from(size(average, "average")?).unwrap_or(usize::MAX),
            None => usual.chunking.average_bytes(),
        };
        let chunking = Chunking::new(chunker, average)
            .map_err(|error| refuse("average", error.to_string()))?;
        let hash = optional(hash, "hash", words::text)?;
        let hash = hash.map(|word| word.parse::<Hash>()).transpose();
        let hash = hash.map_err(|error| refuse("hash", error.to_string()))?.unwrap_or(usual.hash);
        let usual = Options::new(paths_of(paths)?);
        let within =
            |workers: &Bound<'_, PyAny>, name: &str| integer(workers, name, 1..=usize::MAX);
        let workers = optional(workers, "workers", within)?.unwrap_or(usual.workers);
        Ok(Self { options: Options { chunking, hash, compare, workers, ..usual } })
    }
}

impl How {
    /// Returns the options with a file excluded, wherever it is.
    pub fn leaving_out(mut self, path: PathBuf) -> Self {
        self.options.leave_out.push(path);
        self
    }
}

/// Reads one path, or a list of paths.
fn paths_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    let path = |given: &Bound<'_, PyAny>| words::path(given, "paths");
    if given.cast::<PyList>().is_ok() || given.cast::<PyTuple>().is_ok() {
        return given.try_iter()?.map(|given| path(&given?)).collect();
    }
    Ok(vec![path(given)?])
}

/// Reads the paths, with an index in a table of the database that is named after its settings.
///
/// # Errors
/// Fails for a path that cannot be examined, on a failure of the index, and on a signal: everything read so
/// far is in the index.
pub fn run<'py>(
    py: Python<'py>,
    handle: &Handle<Db>,
    How { options }: How,
) -> PyResult<Bound<'py, PyAny>> {
    let found = handle.call_watched(py, |db, stop| {
        let settings = IndexSettings { chunking: options.chunking, hash: options.hash };
        let (key_bytes, value_bytes) = (options.hash.key_bytes(), options.value_bytes());
        let name = match options.compare {
            true => format!("{}-of-{}", settings.table_name(), options.paths.len()),
            false => settings.table_name(),
        };
        let table = db
            .table(name)
            .entries(ENTRIES)
            .widths(key_bytes as u32, value_bytes as u32)
            .policy(Policy::Grow)
            .create_or_open()?;
        let summary = nandex_dedup::dedup(&table, &options, &(), stop);
        table.close()?;
        Ok(summary)
    })?;
    let summary = found.map_err(explain)?;
    let figures =
        serde_json::to_string(&summary).map_err(|error| Raised::Internal.new(error.to_string()))?;
    let figures = py.import("json")?.call_method1("loads", (figures,))?;
    stats::shown(figures.cast_into()?, &title(&summary))
}

fn title(summary: &Summary) -> String {
    format!("duplicates of {} files", summary.files)
}

fn explain(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Index(error) => raise(error),
        Error::Path { source, .. } => raise_io(&source, Raised::Missing, message),
        _ => Raised::Config.new(message),
    }
}
