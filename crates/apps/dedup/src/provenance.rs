//! What made a report: with it the report can be made again, and compared with a later one.

use serde::Serialize;

/// The command, the program and the time of a run. Whoever starts the run knows these, not the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The command line, quoted for a shell.
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// When the run began, in UTC, as in `2026-11-22T16:25:18Z`.
    pub date: String,
}
