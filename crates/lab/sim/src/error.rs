//! Errors in the description of a simulated device.

/// The result of making a simulated device.
pub type Result<T> = std::result::Result<T, Error>;

/// An error in the description of a simulated device.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A field of a device's description is impossible.
    #[error("{device}: {field} must be {expected}, found {found}")]
    Spec {
        /// The name in the description.
        device: String,
        /// The field, as the file of a preset names it.
        field: &'static str,
        /// The expected values.
        expected: String,
        /// The found value.
        found: String,
    },
}

impl Error {
    /// Creates the error for an impossible field of this device.
    #[must_use]
    pub fn spec(
        device: &str,
        field: &'static str,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Self {
        let (device, expected, found) = (device.into(), expected.into(), found.to_string());
        Self::Spec { device, field, expected, found }
    }
}
