//! Evicts files from the page cache, so that a memory limit applies to their pages too.
//!
//! The kernel charges a cached page to the group that read it first and lets all others use it for free. So
//! pages that a load left in the cache would serve later lookups for free, however small their limit.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};

/// Writes back and drops from the page cache every file under `dir`. No process may have them mapped.
///
/// # Errors
/// Returns the file system's error, with the file.
pub fn evict(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            evict(&path)?;
        } else if path.is_file() {
            evict_file(&path).with_context(|| format!("cannot evict {}", path.display()))?;
        }
    }
    Ok(())
}

fn evict_file(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    // Only clean pages are dropped.
    file.sync_data()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_tree_are_evicted_and_stay_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), [7; 10_000]).unwrap();
        evict(dir.path()).unwrap();
        assert_eq!(fs::read(inner.join("file")).unwrap(), [7; 10_000]);
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = evict(Path::new("/absent/directory")).unwrap_err();
        assert!(error.to_string().contains("/absent/directory"), "{error}");
    }
}
