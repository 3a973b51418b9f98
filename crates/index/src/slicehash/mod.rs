//! SliceHash (ANCS'14): one page read per lookup, found or not, at half a byte of RAM per entry.

pub mod model;
