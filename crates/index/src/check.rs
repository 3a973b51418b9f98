//! Checks a volume and every structure in it, offline.
//!
//! The store checks what belongs to the volume. The code of each structure's kind then checks the structure. Nothing is
//! written, and the memory does not depend on the size of the volume.

use std::sync::Arc;

use nandex_device::Device;
use nandex_store::UNFINISHED_KIND;
use nandex_store::check::{Checker, Report, Subject};

use crate::{Result, registry};

/// The progress of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckProgress<'a> {
    /// The structure that is being read.
    pub structure: &'a str,
    /// The pages of it that have been read.
    pub pages_done: u64,
    /// The pages of it to read.
    pub pages: u64,
}

/// Receives the progress of a check, about once per incarnation or slicetable.
pub type OnProgress<'a> = dyn FnMut(CheckProgress<'_>) + 'a;

/// Checks a volume: its own pages, the whole log, and every page of every live incarnation, filter, slicetable, run and
/// snapshot. `log_device` is required if the volume was created with one.
///
/// It verifies that each entry's key belongs to its super table, page and bucket, or to its partition and slice, that
/// the key occurs there once, and that it passes the incarnation's filter. For cascade filters it verifies that
/// fingerprints ascend and that each run has as many as the checkpoint says. For value logs it verifies every written
/// page, including those that only the log's references to newer records lead to, but not that a reference to each
/// record exists. It reads everything in use once, in I/O chunks of 1 MiB, and the log twice. It holds a checkpoint, a
/// chunk, and the filter of one incarnation in memory. It never writes, so a read-only device is enough; no other
/// process may write to the volume meanwhile.
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
/// Not a volume, a volume of a newer version, a log device that is missing or unexpected, and a table whose
/// incarnations are on a chip. Damage and failed reads are not errors: they are in the report.
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
        let place = contents.superblock.checkpoint.start;
        if entry.kind == UNFINISHED_KIND {
            let why =
                "it is unfinished: whoever makes it has failed or was stopped, or has not ended";
            checker.note(Subject::of_volume("volume"), place, why);
            continue;
        }
        let subject = Subject { structure: Some(&entry.name), what: "structure" };
        let message = format!("this build of nandex does not have its kind, {:?}", entry.kind);
        checker.note(subject, place, message);
    }
    Ok(checker.finish())
}
