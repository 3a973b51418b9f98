//! Damaged pages, which an iteration past damage leaves out.

use nandex_device::{Error as DeviceError, PageId};
use nandex_store::Error as StoreError;

use crate::Error;

/// A page that cannot be read or verified. Its entries are left out.
#[derive(thiserror::Error, Debug)]
#[error("{page}: {}", self.reason())]
#[non_exhaustive]
pub struct Damage {
    /// The page.
    pub page: PageId,
    /// The maximum number of entries that it may have held.
    pub entries_max: u64,
    /// The reason that it cannot be read or verified.
    #[source]
    pub error: Error,
}

impl Damage {
    pub(crate) fn new(page: PageId, entries_max: usize, error: impl Into<Error>) -> Self {
        Self { page, entries_max: entries_max as u64, error: error.into() }
    }

    /// Returns what was expected of the page and what was found, without the remedies for a whole volume.
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.error {
            Error::Store(StoreError::Corrupt { expected, found, .. }) => {
                format!("expected {expected}, found {found}")
            }
            Error::Device(error) | Error::Store(StoreError::Device(error)) => of_device(error),
            other => other.to_string(),
        }
    }
}

fn of_device(error: &DeviceError) -> String {
    match error {
        DeviceError::Io { operation, source, .. } => format!("{operation} failed: {source}"),
        other => other.to_string(),
    }
}

/// Returns the error for a page of a saved write buffer that was skipped when its structure was opened read-only.
pub(crate) fn lost_page(page: PageId) -> Error {
    let (expected, found) = ("a page that can be proven", "one that cannot");
    StoreError::corrupt("snapshot page", page, expected, found).into()
}

/// Returns the page that an error is about, if it names one.
pub(crate) fn page_of(error: &Error) -> Option<PageId> {
    match error {
        Error::Store(StoreError::Corrupt { page, .. })
        | Error::Device(DeviceError::Io { page, .. })
        | Error::Store(StoreError::Device(DeviceError::Io { page, .. })) => Some(*page),
        _ => None,
    }
}
