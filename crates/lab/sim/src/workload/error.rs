//! Errors in the description of a workload.

/// A workload that cannot be made.
#[derive(thiserror::Error, Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A field that is outside its limits.
    #[error("the workload's {field} is {found}, expected {expected}; {remedy}")]
    Field {
        /// The field.
        field: &'static str,
        /// The found value.
        found: String,
        /// The expected values.
        expected: String,
        /// The remedy.
        remedy: &'static str,
    },
}
