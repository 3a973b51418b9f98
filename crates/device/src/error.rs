//! What can go wrong on a device, with the place and the remedy.

use std::io;
use std::path::PathBuf;

use crate::{LabelFault, PageId};

/// The result of a device operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong on a device.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused or failed an operation on these pages.
    #[error(
        "{operation} of {pages} page(s) at {page} failed: {source}; mend the cause, which the kernel's \
         log may tell, and try again"
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
    /// The medium cannot do that: for example a raw flash chip cannot write a page twice.
    #[error("{operation} of {pages} page(s) at {page} was refused: {reason}")]
    Refused {
        /// `read`, `write` or `discard`.
        operation: &'static str,
        /// The first page of the operation.
        page: PageId,
        /// Its length in pages.
        pages: u64,
        /// What is wrong with it, and what to do instead.
        reason: String,
    },
    /// A buffer's length is no positive multiple of the page.
    #[error("a buffer of {bytes} bytes is no positive multiple of the page of {page_bytes} bytes")]
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
    /// A name that cannot be made, opened or given as the caller wants, because of the files that are there.
    #[error("cannot {action} {path}: {reason}")]
    Name {
        /// `create`, `open`, `rename` or `remove`.
        action: &'static str,
        /// The name.
        path: PathBuf,
        /// What is there, and what to do.
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
        /// The process that holds it, where the kernel tells.
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
    /// The device or its file system has no space for that many pages.
    #[error(
        "no space for {wanted_bytes} bytes in {place}: {reason}; free some space, or ask for a smaller table"
    )]
    NoSpace {
        /// Bytes of the grown device.
        wanted_bytes: u64,
        /// Where.
        place: String,
        /// The kernel's answer, or the size of the block device.
        reason: String,
    },
    /// The requested engine cannot run here.
    #[error("the {engine} engine cannot run here: {reason}")]
    Engine {
        /// `uring`, `threads` or `buffered`.
        engine: &'static str,
        /// Why, in the kernel's words if it gave any.
        reason: String,
    },
    /// One member of an array failed or refused.
    #[error("member {member} of the array{}: {source}", called(name))]
    Member {
        /// Its place in the list of members, from zero.
        member: usize,
        /// Its name, such as its path; empty if none was given.
        name: String,
        /// Its error.
        source: Box<Error>,
    },
    /// A region that is too small to be probed.
    #[error(
        "a region of {pages} page(s) is too small to be probed: it takes at least {pages_min}; name a \
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
        /// What is expected.
        expected: String,
        /// What it was.
        found: u64,
    },
    /// The kernel gave no random bytes.
    #[error("the kernel gives no random bytes: {source}; seed explicitly, or allow getrandom")]
    Entropy {
        /// The kernel's answer.
        source: io::Error,
    },
    /// Members of an array do not fit together.
    #[error("array of {members} device(s): {reason}")]
    Array {
        /// How many members there are.
        members: usize,
        /// What does not fit.
        reason: String,
    },
    /// The label of a member says that it must not be used, or not in this way.
    #[error("{name}: {fault}")]
    Label {
        /// The member's name, such as its path.
        name: String,
        /// What is wrong with it.
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

/// A name in brackets, if there is one.
fn called(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}
