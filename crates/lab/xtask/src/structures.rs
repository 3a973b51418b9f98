//! Structures never import one another: invariant 1.
//!
//! A structure is a folder right under `crates/index/src/`. What two structures need moves to a common folder
//! or down to the store; the exceptions are listed here by name.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Violation;
use crate::tokens::{self, PathUse};
use crate::tree::File;

const INDEX: &str = "crates/index/src";

/// Folders that are no structures but hold their common parts. They use no structure either, except in their
/// tests.
const COMMON: [&str; 11] = [
    "any",
    "cache",
    "groups",
    "grow",
    "lookup",
    "model",
    "registry",
    "scan",
    "schema",
    "structure",
    "write",
];

/// The modules that may use the inside of a structure, as pairs. The short way to embed is no structure: it
/// is above them.
const ALLOWED: [(&str, &str); 4] =
    [("cascade", "quotient"), ("db", "cascade"), ("db", "counting"), ("db", "large")];

/// Reports the structures of the index that name another structure.
#[must_use]
pub fn check(files: &[File]) -> Vec<Violation> {
    let structures: BTreeSet<String> = files.iter().filter_map(structure_of).collect();
    files
        .iter()
        .filter(|file| file.is("rs"))
        .filter_map(|file| structure_of(file).map(|structure| (file, structure)))
        .flat_map(|(file, structure)| foreign(file, &structure, &structures))
        .collect()
}

/// The made-up structure, its location, and the file outside its folder that may name it: it has its row and
/// its module.
const MADE_UP: &str = "specimen";
const OUTSIDE: &str = "crates/lab/baseline/src";
const REGISTER: &str = "crates/lab/baseline/src/lib.rs";

/// Reports code outside its folder that names the made-up structure: a structure is its folder and one row.
#[must_use]
pub fn check_registry(files: &[File]) -> Vec<Violation> {
    let folder = Path::new(OUTSIDE).join(MADE_UP);
    let is_own = |file: &&File| {
        let may_name = file.path == Path::new(REGISTER);
        may_name || file.path.starts_with(&folder) || file.path.starts_with("crates/lab/xtask")
    };
    let code = files.iter().filter(|file| file.is("rs") || file.is("toml"));
    let others = code.filter(|file| !is_own(file));
    let named = others.filter(|file| file.text.to_lowercase().contains(MADE_UP));
    let message = "names the made-up structure: walk over the registry instead";
    named.map(|file| Violation::new(&file.path, 0, message)).collect()
}

fn structure_of(file: &File) -> Option<String> {
    let inside = file.path.strip_prefix(INDEX).ok()?;
    let mut parts = inside.components();
    let first = parts.next()?.as_os_str().to_str()?.to_owned();
    parts.next().map(|_| first)
}

fn foreign(file: &File, structure: &str, structures: &BTreeSet<String>) -> Vec<Violation> {
    let paths = match tokens::paths(&file.text) {
        Ok(paths) => paths,
        Err(message) => return vec![Violation::new(&file.path, 0, message)],
    };
    let modules = modules_of(&file.path);
    let target = |path: &PathUse| top_module(path, &modules);
    let is_common = COMMON.contains(&structure);
    paths
        .iter()
        .filter(|path| !(is_common && (path.in_test || file.is_test())))
        .filter_map(|path| target(path).map(|found| (path.line, found)))
        .filter(|(_, found)| found != structure && structures.contains(found))
        .filter(|(_, found)| !COMMON.contains(&found.as_str()))
        .filter(|(_, found)| !ALLOWED.contains(&(structure, found.as_str())))
        .map(|(line, found)| {
            let message =
                format!("{structure} uses {found}: move the shared part to a common folder");
            Violation::new(&file.path, line, message)
        })
        .collect()
}

/// Returns the module path of a file, from the crate's root: `bufferhash/mod.rs` is `[bufferhash]`.
fn modules_of(path: &Path) -> Vec<String> {
    let inside = path.strip_prefix(INDEX).unwrap_or(path).with_extension("");
    let parts = inside.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.filter(|part| part != "mod" && part != "lib").collect()
}

/// Returns the module right under the crate's root that a path leads to, if it has one.
fn top_module(path: &PathUse, file_modules: &[String]) -> Option<String> {
    let mut place: Vec<&String> = file_modules.iter().chain(&path.modules).collect();
    let mut rest = path.segments.as_slice();
    match rest.first()?.as_str() {
        "crate" => {
            place.clear();
            rest = &rest[1..];
        }
        "super" | "self" => {
            while let Some(step @ ("super" | "self")) = rest.first().map(String::as_str) {
                if step == "super" {
                    place.pop();
                }
                rest = &rest[1..];
            }
        }
        _ => return None,
    }
    place.into_iter().chain(rest).next().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<Violation> {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        check(&[
            file("crates/index/src/bufferhash/evict.rs", text),
            file("crates/index/src/slicehash/mod.rs", "//! Slices."),
            file("crates/index/src/quotient/mod.rs", "//! Quotients."),
            file("crates/index/src/model/mod.rs", "//! Loads."),
            file("crates/index/src/cascade/mod.rs", "use crate::quotient::Filter;"),
            file("crates/index/src/lib.rs", "use crate::bufferhash::BufferHash;"),
        ])
    }

    #[test]
    fn a_structure_may_use_itself_the_contracts_and_the_allowed_pair() {
        assert_eq!(
            complaints("use super::Config; use crate::api::Table; use crate::bufferhash::x;"),
            []
        );
    }

    #[test]
    fn a_structure_that_uses_another_is_named_with_its_line() {
        let found = complaints("\nuse crate::{api::Table, slicehash::Slice};");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert!(found[0].message.contains("bufferhash uses slicehash"));
    }

    #[test]
    fn what_is_common_is_open_to_all_and_uses_structures_in_tests_alone() {
        assert_eq!(complaints("use crate::model::Load;"), []);
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let found = |text: &str| {
            let slices = file("crates/index/src/slicehash/mod.rs", "//! Slices.");
            check(&[file("crates/index/src/model/mod.rs", text), slices]).len()
        };
        assert_eq!(found("use crate::slicehash::Slice;"), 1);
        assert_eq!(found("#[cfg(test)] mod tests { use crate::slicehash::Slice; }"), 0);
    }

    #[test]
    fn the_made_up_structure_is_named_by_its_folder_and_the_register_alone() {
        let file =
            |path: &str| File { path: path.into(), text: "use crate::specimen::ROW;".into() };
        let own = ["crates/lab/baseline/src/specimen/row.rs", "crates/lab/baseline/src/lib.rs"];
        assert_eq!(check_registry(&own.map(file)), []);
        for other in ["crates/cli/src/cmd/info.rs", "crates/index/src/registry.rs"] {
            assert_eq!(check_registry(&[file(other)]).len(), 1);
        }
    }

    #[test]
    fn going_up_and_down_again_is_seen_through() {
        assert_eq!(complaints("use super::super::slicehash::Slice;").len(), 1);
        assert_eq!(complaints("mod inner { use super::super::super::slicehash::Slice; }").len(), 1);
        assert_eq!(complaints("mod inner { use super::super::format; }"), []);
    }
}
