//! The common parts of reports: the frame of a self-contained page, escaped words, pieces of drawings,
//! curves.
//!
//! Such a page loads nothing and runs nothing, so that it can be kept, mailed and opened anywhere, and a name
//! in it can do no harm.
#![forbid(unsafe_code)]

pub mod chart;
pub mod draw;
mod frame;
mod number;
mod words;

pub use frame::{BASE_STYLE, Frame};
pub use number::shown;
pub use words::Escaped;
