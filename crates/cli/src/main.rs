//! The `nandex` command. All of it is in the library of this package.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    nandex_cli::run()
}
