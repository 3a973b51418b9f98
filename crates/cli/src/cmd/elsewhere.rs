//! The verbs of `nandex-lab`, which `nandex` only names.

use std::ffi::OsString;

use anyhow::Result;

use crate::refuse;

/// Any words.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

/// Fails like a wrong command line, and names the command that has the verb.
///
/// # Errors
/// Always.
pub fn refuse_verb(verb: &str) -> Result<()> {
    refuse!("`{verb}` is a verb of another command: run `nandex-lab {verb}`")
}
