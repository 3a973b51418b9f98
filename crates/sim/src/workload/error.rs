//! What can be wrong with the description of a workload.

/// A workload that cannot be made.
#[derive(thiserror::Error, Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A field is outside its limits.
    #[error("the workload's {field} is {found}, expected {expected}; {remedy}")]
    Field {
        /// The field.
        field: &'static str,
        /// What it was.
        found: String,
        /// What it may be.
        expected: String,
        /// What to do.
        remedy: &'static str,
    },
}
