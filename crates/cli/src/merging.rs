//! Merging files: the common part of the verbs of filters, of counts and of TF-IDF.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use nandex::raw::device::output::refuse_unfinished;
use nandex::raw::store::hash::KeyHasher;

use crate::held::{Held, Opened};
use crate::interrupt::Interrupt;
use crate::refuse;

/// Rejects a file named twice, whose content would count twice, and one that is unfinished. `noun` is its kind.
///
/// # Errors
/// Such a file; a missing file.
pub fn refuse_twice<'p>(files: impl IntoIterator<Item = &'p Path>, noun: &str) -> Result<()> {
    let mut seen = HashSet::new();
    for path in files {
        refuse_unfinished(&[path])?;
        let real =
            fs::canonicalize(path).with_context(|| format!("cannot open {}", path.display()))?;
        if !seen.insert(real) {
            refuse!("{} is named twice; name each {noun} once", path.display());
        }
    }
    Ok(())
}

/// Rejects files that hash keys differently.
///
/// # Errors
/// Another hash, or another key, with the options that make them alike.
pub fn refuse_other_hash(
    (first, ours): (&Path, KeyHasher),
    (path, theirs): (&Path, KeyHasher),
) -> Result<()> {
    if ours.kind() == theirs.kind() && ours.key() == theirs.key() {
        return Ok(());
    }
    bail!(
        "{} hashes keys by {}, {} by {}, or under another key; build both with the same --hash and --hash-key",
        path.display(),
        crate::hashing::hash_name(theirs.kind()),
        first.display(),
        crate::hashing::hash_name(ours.kind())
    )
}

/// Lets `absorb` fill the new structure, and gives it its name; removes it if that fails or the user wants to stop.
/// Returns what `absorb` returns.
///
/// # Errors
/// An error of `absorb`; an interrupt; a failed write.
pub fn fill<S: Held, T>(
    whole: Opened<S>,
    interrupt: &Interrupt,
    absorb: impl FnOnce(&S) -> Result<T>,
) -> Result<T> {
    let files = whole.db.unfinished();
    let absorbed = absorb(&whole.structure).and_then(|absorbed| {
        if interrupt.is_set() {
            bail!("stopped");
        }
        whole.close()?.finish()?;
        Ok(absorbed)
    });
    interrupt.check(absorbed, "no file was made").inspect_err(|_| files.remove())
}
