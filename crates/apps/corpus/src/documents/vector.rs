//! Vectors as documents: their numbers in brackets are the text.

use super::Reading;
use crate::{Error, Result};

/// The kind of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Content {
    /// A text.
    #[default]
    Text,
    /// A vector. Its text is a JSON array with the fewest digits that distinguish its numbers from all others of 32
    /// bits, such as `[0.1,-2.0]`, so equal vectors have equal texts.
    Vector {
        /// The number of its numbers; any other number is an error of the document.
        dimensions: usize,
    },
}

impl Content {
    /// Returns the text of a vector, or the reason why it does not fit this content.
    pub(super) fn text_of(self, numbers: &[f32]) -> std::result::Result<String, String> {
        if let Self::Vector { dimensions } = self
            && dimensions != numbers.len()
        {
            let found = numbers.len();
            return Err(format!(
                "expected a vector of {dimensions} numbers, found {found}; leave it out"
            ));
        }
        if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
            return Err(format!("expected numbers of 32 bits, found {number}; leave it out"));
        }
        // Adding zero turns -0 into 0, which it equals.
        let plain: Vec<f32> = numbers.iter().map(|number| number + 0.0).collect();
        serde_json::to_string(&plain).map_err(|error| error.to_string())
    }
}

impl Reading {
    /// Returns the text of a file's or a line's bytes; `document` names it in an error.
    pub(super) fn text(&self, bytes: Vec<u8>, document: impl Fn() -> String) -> Result<String> {
        let text = self.decoding.decode(bytes, &document)?;
        if self.content == Content::Text {
            return Ok(text);
        }
        let numbers = vector_of(&text).and_then(|numbers| self.content.text_of(&numbers));
        numbers.map_err(|reason| Error::Malformed { document: document(), reason })
    }
}

/// Returns the numbers of a vector's text.
///
/// # Errors
/// The expected and the found text, if it is not a JSON array of numbers.
pub fn vector_of(text: &str) -> std::result::Result<Vec<f32>, String> {
    serde_json::from_str(text).map_err(|error| {
        format!("expected numbers in brackets, such as [0.5,2]: {error}; leave it out")
    })
}
