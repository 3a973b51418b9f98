//! The errors of a device, each with the place and the remedy.

use std::io;
use std::path::PathBuf;

use crate::{LabelFault, PageId};

/// The result of a device operation.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a device.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused or failed an operation on these pages.
    #[error(
        "{operation} of {pages} page(s) at {page} failed: {source}; fix the cause (the kernel's \
         log may name it) and try again"
    )]
    Io {
        /// `read`, `write`, `sync`, `grow` or `discard`.
        operation: &'static str,
        /// The first page of the operation.
        page: PageId,
        /// Its length in pages.
        pages: u64,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The operation reaches past the end of the device.
    #[error("{page} + {pages} page(s) is past the end: the device has {page_count} pages")]
    OutOfRange {
        /// The first page of the request.
        page: PageId,
        /// Its number of pages.
        pages: u64,
        /// Pages of the device.
        page_count: u64,
    },
    /// The medium cannot do that: for example, a raw flash chip cannot write a page twice.
    #[error("{operation} of {pages} page(s) at {page} was refused: {reason}")]
    Refused {
        /// `read`, `write` or `discard`.
        operation: &'static str,
        /// The first page of the operation.
        page: PageId,
        /// Its length in pages.
        pages: u64,
        /// The fault of the operation, and the remedy.
        reason: String,
    },
    /// A buffer's length is not a positive multiple of the page size.
    #[error("a buffer of {bytes} bytes is not a positive multiple of a page of {page_bytes} bytes")]
    Unaligned {
        /// The buffer's length.
        bytes: usize,
        /// The device's page.
        page_bytes: usize,
    },
    /// A queue was pushed past the depth it was opened with.
    #[error("the queue holds {depth} operations already; wait for one before the next push")]
    QueueFull {
        /// The depth asked for at `queue`.
        depth: usize,
    },
    /// The file could not be opened or created.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The path as given.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A name that cannot be created, opened or used as the caller wants, because of existing files.
    #[error("cannot {action} {path}: {reason}")]
    Name {
        /// `create`, `open`, `rename` or `remove`.
        action: &'static str,
        /// The name.
        path: PathBuf,
        /// The existing file or other obstacle, and the remedy.
        reason: String,
    },
    /// Another process, or another handle of this one, has the file open for writing.
    #[error(
        "{path} is in use by {}; close it there first, or open read-only when that one is read-only too",
        user(*owner)
    )]
    Locked {
        /// The path as given.
        path: PathBuf,
        /// The process that has the file open, if the kernel reports it.
        owner: Option<u32>,
    },
    /// The handle was opened before a fork and belongs to the parent process.
    #[error(
        "this handle was opened by process {opener} and is used in its child {user}; open the volume in the child, after the parent has closed it"
    )]
    Forked {
        /// The process that opened the device.
        opener: u32,
        /// The process that uses it.
        user: u32,
    },
    /// A write to a device that was opened for reading.
    #[error("{path} was opened read-only; open it read-write to change it")]
    ReadOnly {
        /// The path as given.
        path: PathBuf,
    },
    /// The device or its file system has no space for this number of pages.
    #[error(
        "no space for {wanted_bytes} bytes in {place}: {reason}; free some space, or ask for a smaller table"
    )]
    NoSpace {
        /// Bytes of the grown device.
        wanted_bytes: u64,
        /// The path, or a description of the device.
        place: String,
        /// The kernel's answer, or the size of the block device.
        reason: String,
    },
    /// The requested engine cannot run here.
    #[error("the {engine} engine cannot run here: {reason}")]
    Engine {
        /// `uring`, `threads` or `buffered`.
        engine: &'static str,
        /// The reason, in the kernel's words if it gave any.
        reason: String,
    },
    /// One member of an array failed or refused.
    #[error("member {member} of the array{}: {source}", called(name))]
    Member {
        /// Its index in the list of members, from zero.
        member: usize,
        /// Its name, such as its path; empty if none was given.
        name: String,
        /// Its error.
        source: Box<Error>,
    },
    /// A region that is too small to probe.
    #[error(
        "a region of {pages} page(s) is too small to probe: it takes at least {pages_min}; name a \
         larger one"
    )]
    Region {
        /// Pages of the region.
        pages: u64,
        /// The fewest pages that are enough.
        pages_min: u64,
    },
    /// An impossible geometry.
    #[error("a geometry with {field} of {found}: expected {expected}; correct it, or leave it out")]
    Geometry {
        /// The field of [`Geometry`](crate::Geometry).
        field: &'static str,
        /// The expected values.
        expected: String,
        /// The value found.
        found: u64,
    },
    /// The kernel gave no random bytes.
    #[error("the kernel gives no random bytes: {source}; seed explicitly, or allow getrandom")]
    Entropy {
        /// The kernel's answer.
        source: io::Error,
    },
    /// The members of an array do not fit together.
    #[error("array of {members} device(s): {reason}")]
    Array {
        /// The number of members.
        members: usize,
        /// The misfit.
        reason: String,
    },
    /// The label of a member shows that it must not be used, or not in this way.
    #[error("{name}: {fault}")]
    Label {
        /// The member's name, such as its path.
        name: String,
        /// The fault.
        fault: Box<LabelFault>,
    },
}

fn user(owner: Option<u32>) -> String {
    match owner {
        Some(pid) if pid == std::process::id() => "another handle of this process".to_owned(),
        Some(pid) => format!("process {pid}"),
        None => "another process (or another handle of this one, or a mount)".to_owned(),
    }
}

/// Returns a name in brackets, if there is one.
fn called(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}
