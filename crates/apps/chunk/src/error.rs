//! The errors of invalid chunkers, averages and hashes.

/// The result of a choice.
pub type Result<T> = std::result::Result<T, Error>;

/// An invalid choice.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An average chunk size that no chunker supports.
    #[error(
        "an average chunk of {found} bytes: it must be a power of two from {min} to {max} bytes",
        min = crate::AVERAGE_BYTES_MIN,
        max = crate::AVERAGE_BYTES_MAX
    )]
    Average {
        /// The requested bytes.
        found: usize,
    },
    /// A word that is not one of the choices.
    #[error("{found:?} is not a {what}: choose one of {choices}")]
    Name {
        /// `chunker` or `hash`.
        what: &'static str,
        /// The word.
        found: String,
        /// The known words.
        choices: &'static str,
    },
}
