//! Kernel, wall clock and entropy belong to the device: invariant 3.
//!
//! The store and the index must run the same on a simulated device, so they may use neither files nor clocks
//! nor randomness. Their tests may.

use crate::tokens;
use crate::tree::File;
use crate::{Violation, tokens::PathUse};

/// Crates whose behaviour depends only on the device and the seed.
const PURE: [&str; 2] = ["crates/store/src", "crates/index/src"];

/// Prefixes of paths that are refused in such a crate.
const FORBIDDEN: [&[&str]; 10] = [
    &["std", "fs"],
    &["std", "net"],
    &["std", "process"],
    &["std", "os"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
    &["rustix"],
    &["libc"],
    &["rand"],
    &["getrandom"],
];

/// Reports the uses of the kernel, the clock or entropy in a pure crate.
#[must_use]
pub fn check(file: &File) -> Vec<Violation> {
    if !PURE.iter().any(|folder| file.path.starts_with(folder)) || file.is_test() {
        return Vec::new();
    }
    match tokens::paths(&file.text) {
        Ok(paths) => paths.iter().filter_map(|path| refuse(file, path)).collect(),
        Err(message) => vec![Violation::new(&file.path, 0, message)],
    }
}

fn refuse(file: &File, path: &PathUse) -> Option<Violation> {
    let forbidden = FORBIDDEN.iter().any(|start| {
        path.segments.iter().map(String::as_str).take(start.len()).eq(start.iter().copied())
    });
    (forbidden && !path.in_test).then(|| {
        let written = path.segments.join("::");
        Violation::new(
            &file.path,
            path.line,
            format!("{written}: only the device crate may use it"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        check(&File { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn a_clock_in_the_store_is_refused() {
        let text = "use std::time::{Duration, Instant};";
        assert_eq!(complaints("crates/store/src/log.rs", text), 1);
        assert_eq!(complaints("crates/device/src/file.rs", text), 0);
    }

    #[test]
    fn a_file_in_a_test_of_the_index_is_fine() {
        let text = "#[cfg(test)] mod tests { use std::fs::File; }";
        assert_eq!(complaints("crates/index/src/api.rs", text), 0);
        assert_eq!(complaints("crates/index/src/shape/tests.rs", "use std::fs::File;"), 0);
    }
}
