//! What is refused: choices that no chunker or hash has.

/// The result of a choice.
pub type Result<T> = std::result::Result<T, Error>;

/// A choice that there is not.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An average chunk size that no chunker takes.
    #[error(
        "an average chunk of {found} bytes: it must be a power of two from {min} to {max} bytes",
        min = crate::AVERAGE_BYTES_MIN,
        max = crate::AVERAGE_BYTES_MAX
    )]
    Average {
        /// Bytes asked for.
        found: usize,
    },
    /// A word that is none of the choices.
    #[error("{found:?} is no {what}: choose one of {choices}")]
    Name {
        /// `chunker` or `hash`.
        what: &'static str,
        /// The word.
        found: String,
        /// The known words.
        choices: &'static str,
    },
}
