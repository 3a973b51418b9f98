//! BufferHash: RAM buffers, incarnations on flash, bit-sliced filters between them.

pub mod filter;
pub mod model;
