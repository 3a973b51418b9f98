//! Section 8: a WAN optimizer whose index of fingerprints is BufferHash, or an index that uses the drive for
//! every operation.
//!
//! The optimizer is the paper's, as it describes it, in virtual time. It takes one object after another,
//! looks up the fingerprints of all its chunks, passes the compressed object to the link, and then inserts
//! the fingerprints. Chunks and fingerprints were computed before, and the link has its nominal speed: both
//! are the paper's own simplifications. The content cache is not part of it: it is on a disk of its own and
//! written in order.
//!
//! ```text
//!   objects -> lookups, inserts -> tape -> model of a drive -> time of each object in the index --+
//!           -> bytes that are left for the link --------------------------------------------------+-> improvement
//! ```
//!
//! The paper's traces are not published. It prints that 50 % and 15 % of their bytes are redundant; a chunk's
//! length follows from section 3. The rest is chosen, and each figure states its choices.

mod figure_10;
mod figure_9;
mod index;
mod link;
mod objects;

pub use figure_9::{BERKELEY_WAN_NS, Figure9};
pub use figure_10::Figure10;
