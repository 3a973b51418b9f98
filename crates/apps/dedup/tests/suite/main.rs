//! Whole runs on trees that are created for them.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its tree must stop")]

mod common;
mod compare;
mod holes;
mod listing;
mod oracle;
mod pipeline;
mod walk;
