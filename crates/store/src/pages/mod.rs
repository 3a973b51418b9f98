//! Pages of one extent that are written once and read front to back, in large chunks.

mod reader;
mod writer;

pub use reader::PageReader;
pub use writer::PageWriter;

use crate::page::{PageKind, PageLabel, StructureId};
use crate::space::Extent;

/// The place of pages, and their labels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PagePlace {
    /// The kind of the pages.
    pub kind: PageKind,
    /// Their structure.
    pub structure: StructureId,
    /// Their extent.
    pub extent: Extent,
    /// The write of the place: a number that the structure issues once, also across crashes.
    pub generation: u64,
}

impl PagePlace {
    /// Returns the label that page number `page` must have.
    #[must_use]
    pub fn label(&self, page: u64) -> PageLabel {
        let Self { kind, structure, extent, generation } = *self;
        PageLabel { kind, structure, generation, page: extent.start.plus(page) }
    }
}
