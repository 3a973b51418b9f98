//! The space of an engine on the disk, in total and for each live key.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

use crate::figures::ratio;
use crate::subject::Status;

/// The bytes in a block of `st_blocks`, whatever the block size of the file system.
const BLOCK_BYTES: u64 = 512;

/// The space of an engine at one moment, as far as it is known.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Space {
    /// Bytes of its files on the disk, logs included. Parts of a sparse file that were never written count
    /// nothing.
    pub file_bytes: Option<u64>,
    /// `file_bytes` for each live key.
    pub file_bytes_per_entry: Option<f64>,
    /// Bytes of flash that the structure reports.
    pub flash_bytes: Option<u64>,
    /// `flash_bytes` for each live key.
    pub flash_bytes_per_entry: Option<f64>,
}

impl Space {
    /// Returns the space of an engine with `entries` live keys, whose files are at `path`.
    #[must_use]
    pub fn of(path: Option<&Path>, status: &Status, entries: u64) -> Self {
        let file_bytes = path.and_then(disk_bytes);
        let flash_bytes = (status.flash_bytes > 0).then_some(status.flash_bytes);
        let per_entry = |bytes: Option<u64>| ratio(bytes? as f64, entries as f64);
        Self {
            file_bytes,
            file_bytes_per_entry: per_entry(file_bytes),
            flash_bytes,
            flash_bytes_per_entry: per_entry(flash_bytes),
        }
    }
}

/// Returns the bytes of the disk that a file takes, or all files below a directory. Files that vanish
/// meanwhile count nothing.
fn disk_bytes(path: &Path) -> Option<u64> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_dir() {
        return Some(found.blocks() * BLOCK_BYTES);
    }
    let below = fs::read_dir(path).ok()?.flatten();
    Some(below.filter_map(|entry| disk_bytes(&entry.path())).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_folders_count_what_they_take_and_holes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(disk_bytes(&dir.path().join("none")), None);
        fs::create_dir(dir.path().join("below")).unwrap();
        fs::write(dir.path().join("below/a"), vec![1; 100_000]).unwrap();
        fs::File::create(dir.path().join("b")).unwrap().set_len(1 << 30).unwrap();
        let status = Status { flash_bytes: 3000, ..Status::default() };
        let space = Space::of(Some(dir.path()), &status, 1000);
        let bytes = space.file_bytes.unwrap();
        assert!((100_000..1 << 20).contains(&bytes), "{bytes}");
        assert_eq!(space.file_bytes_per_entry, Some(bytes as f64 / 1000.0));
        assert_eq!(space.flash_bytes_per_entry, Some(3.0));
        assert_eq!(Space::of(None, &Status::default(), 0), Space::default());
    }
}
