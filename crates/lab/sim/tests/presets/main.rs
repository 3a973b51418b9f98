//! Presets: files and their errors, and measured against stated figures.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod figure_2a;
mod files;
mod fits;
mod measure;
mod stated;
