//! What can be wrong with what a simulator is asked to be.

/// The result of making a simulated device.
pub type Result<T> = std::result::Result<T, Error>;

/// What can be wrong with what a simulator is asked to be.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A field of a device's description cannot be so.
    #[error("{device}: {field} must be {expected}, found {found}")]
    Spec {
        /// The name in the description.
        device: String,
        /// The field, as the file of a preset names it.
        field: &'static str,
        /// What would do.
        expected: String,
        /// What there is.
        found: String,
    },
}

impl Error {
    /// A field of that device cannot be as it was found.
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
