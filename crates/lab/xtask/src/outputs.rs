//! Named outputs have one writer, `nandex_device::output`: any other may replace a device or leave a partial
//! file.

use crate::Violation;
use crate::tokens::{self, PathUse};
use crate::tree::File;

/// Calls that make, replace or rename a file by its name.
const REFUSED: [[&str; 2]; 4] =
    [["fs", "write"], ["fs", "rename"], ["File", "create"], ["File", "create_new"]];

/// The files that may use these calls: the writer and the files of volumes, the kernel's control files, other
/// engines.
const ALLOWED: [&str; 3] =
    ["crates/device/src", "crates/lab/bench/src/cgroup.rs", "crates/lab/peers"];

/// Reports the files that write an output without the writer.
#[must_use]
pub fn check(file: &File) -> Vec<Violation> {
    let is_ours = file.path.starts_with("crates") && file.is("rs") && !file.is_test();
    if !is_ours || ALLOWED.iter().any(|path| file.path.starts_with(path)) {
        return Vec::new();
    }
    match tokens::paths(&file.text) {
        Ok(paths) => paths.iter().filter_map(|path| refuse(file, path)).collect(),
        Err(message) => vec![Violation::new(&file.path, 0, message)],
    }
}

fn refuse(file: &File, path: &PathUse) -> Option<Violation> {
    let is_refused = REFUSED.iter().any(|last| path.segments.ends_with(&last.map(String::from)));
    (is_refused && !path.in_test).then(|| {
        let written = path.segments.join("::");
        let message = format!("{written}: a named output is an OutputFile of the device crate");
        Violation::new(&file.path, path.line, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        check(&File { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn a_file_that_is_made_by_its_name_is_refused_outside_of_tests() {
        let text =
            "fn f() { std::fs::write(a, b); File::create(a); fs::rename(a, b); fs::read(a) }";
        assert_eq!(complaints("crates/cli/src/cmd/sim.rs", text), 3);
        assert_eq!(complaints("crates/device/src/output/mod.rs", text), 0);
        assert_eq!(complaints("crates/cli/tests/suite/sim.rs", text), 0);
        let text = format!("#[cfg(test)] mod tests {{ {text} }}");
        assert_eq!(complaints("crates/cli/src/cmd/sim.rs", &text), 0);
    }
}
