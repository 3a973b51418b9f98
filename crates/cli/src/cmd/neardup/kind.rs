//! What an index is of, as its lines show it.

use std::io;

use nandex_corpus::documents::Content;
use nandex_neardup::{Document, Index, Measure};
use serde_json::{Value, json};

/// What its documents are, and what says how near they are.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Texts or vectors.
    pub content: Content,
    /// A similarity or a distance.
    pub measure: Measure,
}

impl Kind {
    /// That of an index.
    pub fn of(index: &Index) -> Self {
        Self { content: index.content(), measure: index.measure() }
    }

    /// A document as an object: its id, and its text or its vector.
    ///
    /// # Errors
    /// A vector whose text is none; its reader makes no such text.
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

    /// How near two documents are, for people.
    pub fn shown(self, estimate: f64) -> String {
        match self.measure {
            Measure::Hamming => estimate.to_string(),
            Measure::Jaccard | Measure::Euclidean => format!("{estimate:.4}"),
        }
    }
}
