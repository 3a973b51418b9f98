//! The kind of an index, as its lines show it.

use std::io;

use nandex_corpus::documents::Content;
use nandex_neardup::{Document, Index, Measure};
use serde_json::{Value, json};

/// The kind of its documents, and the measure of nearness.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Texts or vectors.
    pub content: Content,
    /// A similarity or a distance.
    pub measure: Measure,
}

impl Kind {
    /// Returns the kind of an index.
    pub fn of(index: &Index) -> Self {
        Self { content: index.content(), measure: index.measure() }
    }

    /// Returns a document as an object: its id, and its text or its vector.
    ///
    /// # Errors
    /// A vector whose text is invalid; its reader produces no such text.
    pub fn document(self, document: &Document) -> io::Result<Value> {
        let Document { id, text } = document;
        Ok(match self.content {
            Content::Text => json!({"id": id, "text": text}),
            Content::Vector { .. } => {
                let vector: Value = serde_json::from_str(text)?;
                json!({"id": id, "vector": vector})
            }
        })
    }

    /// Formats how near two documents are, for people.
    pub fn shown(self, estimate: f64) -> String {
        match self.measure {
            Measure::Hamming => estimate.to_string(),
            Measure::Jaccard | Measure::Euclidean => format!("{estimate:.4}"),
        }
    }
}
