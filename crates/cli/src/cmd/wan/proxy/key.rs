//! `nandex wan proxy key`: creates a new key in a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use nandex_wanproxy::SharedKey;

/// The file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File to create, which only its owner may read
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Creates the file.
///
/// # Errors
/// An existing file or one that cannot be written, a system without random numbers.
pub fn run(args: &Args) -> Result<()> {
    let key = SharedKey::generate()?;
    let shown = args.file.display();
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&args.file);
    let mut file = file.with_context(|| format!("cannot create {shown}"))?;
    let written = file.write_all(key.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Best effort: the first error counts.
        let _ = std::fs::remove_file(&args.file);
    }
    written.with_context(|| format!("cannot write {shown}"))
}
