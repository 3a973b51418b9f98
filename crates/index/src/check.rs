//! Proves a volume and every structure in it, offline.
//!
//! The store proves what belongs to the volume; each structure is then read by the code of its
//! kind. Nothing is written, and memory does not grow with the volume.

use std::sync::Arc;

use nandex_device::Device;
use nandex_store::check::{Checker, Report, Subject};

use crate::{Result, registry};

/// How far a check has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckProgress<'a> {
    /// The structure that is being read.
    pub structure: &'a str,
    /// Pages of it that have been read.
    pub pages_done: u64,
    /// Pages of it that are to be read.
    pub pages: u64,
}

/// What is told of a check's progress, about once per incarnation or slicetable.
pub type OnProgress<'a> = dyn FnMut(CheckProgress<'_>) + 'a;

/// Checks a volume: its own pages, the whole log, and every page of every live incarnation, filter,
/// slicetable, run and image of its tables, and of every run of its filters. `log_device` is needed where the
/// volume was created with one.
///
/// Of each entry it proves that its key belongs to that super table, page and bucket, or to that partition
/// and slice, is there once, and passes the incarnation's filter. Of cascade filters it proves that fingerprints
/// ascend and that each run holds as much as the checkpoint says. Of value logs it proves every written
/// page, not that somebody refers to a record. Reads all that is in use once, in I/O chunks of 1 MiB, and the
/// log twice;
/// holds a checkpoint, a chunk, and the filter of one incarnation in memory. Never writes, so a device
/// opened for reading alone will do; nobody else may write to the volume meanwhile.
///
/// ```
/// use std::sync::Arc;
/// use nandex::{Volume, VolumeOptions, device::MemoryDevice};
///
/// let device = Arc::new(MemoryDevice::new());
/// drop(Volume::create(device.clone(), VolumeOptions::tiny())?);
/// let report = nandex::check(device, None, &mut |_| {})?;
/// assert!(report.ok(), "{:?}", report.findings);
/// # Ok::<(), nandex::Error>(())
/// ```
///
/// # Errors
/// What is no volume, one of a newer version, a log device that is missing or not wanted, and a table
/// whose incarnations are on a chip. Damage and
/// failed reads are no errors: they are in the report.
pub fn check(
    device: Arc<dyn Device>,
    log_device: Option<Arc<dyn Device>>,
    progress: &mut OnProgress<'_>,
) -> Result<Report> {
    let (mut checker, contents) = Checker::start(device, log_device)?;
    let Some(contents) = contents else { return Ok(checker.finish()) };
    for entry in &contents.catalog.entries {
        if let Some(row) = registry::find(&entry.kind) {
            (row.check)(&mut checker, &contents, entry, progress)?;
            continue;
        }
        let subject = Subject { structure: Some(&entry.name), what: "structure" };
        let message = format!("this nandex has no reader for its kind, {:?}", entry.kind);
        checker.note(subject, contents.superblock.checkpoint.start, message);
    }
    Ok(checker.finish())
}
