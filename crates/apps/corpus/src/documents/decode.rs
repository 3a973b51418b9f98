//! Decoding of bytes to text, by Python's rules for decoding errors.

use crate::{Error, Result};

/// The handling of bytes that are not UTF-8: Python's `errors` of `bytes.decode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Decoding {
    /// Fail with an error that names the document and the byte.
    #[default]
    Strict,
    /// Replace each unreadable part by U+FFFD, which separates tokens.
    Replace,
    /// Leave them out, which joins the text around them.
    Ignore,
}

impl Decoding {
    /// Returns the text of `bytes`; `document` names it in an error.
    ///
    /// # Errors
    /// [`Error::Utf8`] if it is strict.
    pub fn decode(self, bytes: Vec<u8>, document: impl FnOnce() -> String) -> Result<String> {
        let error = match String::from_utf8(bytes) {
            Ok(text) => return Ok(text),
            Err(error) => error,
        };
        let bytes = error.as_bytes();
        match self {
            Self::Strict => {
                let offset = error.utf8_error().valid_up_to();
                let byte = bytes.get(offset).copied().unwrap_or_default();
                Err(Error::Utf8 { document: document(), offset, byte })
            }
            Self::Replace => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Self::Ignore => Ok(bytes.utf8_chunks().map(|chunk| chunk.valid()).collect()),
        }
    }
}
