//! The verbs of `nandex-lab`, which `nandex` only names.

use std::ffi::OsString;

use clap::error::ErrorKind;

/// Any words.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

/// Ends the process like a wrong command line, and names the command that has the verb.
pub fn refuse(verb: &str) -> ! {
    let text = format!("`{verb}` is a verb of another command: run `nandex-lab {verb}`\n");
    clap::Error::raw(ErrorKind::InvalidSubcommand, text).exit()
}
