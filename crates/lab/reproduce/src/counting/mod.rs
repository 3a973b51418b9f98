//! The experiments of "Hash in a Flash" (Clemons et al., BigData 2013): tables that count tokens on flash.
//!
//! The three designs run here as the paper states them, down to the page and the block that each operation
//! reads or writes; counts themselves are not kept, since no operation depends on them. Tokens are drawn by a
//! law that is fitted to the paper's numbers of tokens, or are those of a corpus of the user. Operations are
//! played against models of its SSDs, one after another.
//!
//! ```text
//!   law -> tokens -> RAM buffer --stage--> MB:    each data block read and rewritten
//!                    (a slot for           MDB:   pages of a change block for each k data blocks -merge->
//!                     each block)          MDB-L: pages of one log, ranges for each slot         -merge->
//! ```
//!
//! 1. A key's block in the data segment is its slot in the RAM buffer, `s(x) = g(x) div r`.
//! 2. A RAM buffer is full when it has its number of different keys; it is then staged, or merged, as a whole.
//! 3. A partly filled page of the change segment is filled up by the next stage, and so written again.
//! 4. At the end all is staged and merged.

mod corpus;
mod design;
mod figure_3;
mod figure_4;
mod figure_5;
mod fills;
mod lab;
mod law;
mod mb;
mod mdb;
mod mdb_l;
mod no_buffer;
mod on_corpus;
mod ram;
mod record;
mod segment;
mod shape;
mod table_2;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::Arc;

use crate::Experiment;

pub use corpus::Corpus;
pub(crate) use lab::LARGER_TIMES;

/// Returns all experiments, in the paper's order.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    let fills = Arc::new(fills::Fills::default());
    vec![
        Box::new(tokens::TokenLaw(Arc::clone(&fills))),
        Box::new(figure_3::Figure3),
        Box::new(figure_4::Figure4(Arc::clone(&fills))),
        Box::new(no_buffer::NoBuffer(Arc::clone(&fills))),
        Box::new(table_2::Table2(Arc::clone(&fills))),
        Box::new(figure_5::Cleans(fills)),
    ]
}

/// Returns Table 2 and the figures on a corpus, whose rows are measured; the paper's numbers are those of
/// Wiki.
#[must_use]
pub fn on_corpus(corpus: Corpus) -> Box<dyn Experiment> {
    Box::new(on_corpus::OnCorpus(corpus))
}
