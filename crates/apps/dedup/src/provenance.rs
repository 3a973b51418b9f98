//! The origin of a report, with which it can be created again and compared with a later one.

use serde::Serialize;

/// The command, the program and the time of a run, which the caller of the run provides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The command line, quoted for a shell.
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// The time when the run began, in UTC, as in `2026-11-22T16:25:18Z`.
    pub date: String,
}
