//! Every dependency has a line in ARCHITECTURE.md with the reason for it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Violation;
use crate::layers::TABLES;
use crate::tree::File;

/// The page with the table of dependencies.
const PAGE: &str = "ARCHITECTURE.md";

/// Workspaces whose dependencies are other engines, which are described where they are measured.
const ELSEWHERE: [&str; 1] = ["crates/lab/peers"];

/// Reports third-party dependencies of manifests that the table does not explain, and lines of the table for
/// crates that no manifest names.
#[must_use]
pub fn check(files: &[File]) -> Vec<Violation> {
    let explained = files.iter().find(|file| file.path == Path::new(PAGE)).map(rows);
    let explained = explained.unwrap_or_default();
    let manifests = files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    let manifests = manifests.filter(|file| !ELSEWHERE.iter().any(|it| file.path.starts_with(it)));
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for file in manifests {
        let names = names(file);
        let missing = names.iter().filter(|name| !explained.contains(*name));
        found.extend(missing.map(|name| {
            let message = format!("{name} has no line in the table of {PAGE}: say why we need it");
            Violation::new(&file.path, 0, message)
        }));
        used.extend(names);
    }
    let idle = explained.iter().filter(|name| !used.contains(*name));
    found.extend(idle.map(|name| {
        Violation::new(Path::new(PAGE), 0, format!("{name} is explained, but no manifest names it"))
    }));
    found
}

/// Returns the crates that the table explains: first cells of its rows, several separated by commas.
fn rows(page: &File) -> BTreeSet<String> {
    let table = page.text.split("## Dependencies").nth(1).unwrap_or_default();
    let table = table.split("\n## ").next().unwrap_or_default();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let names = cells.flat_map(|cell| cell.split(", ")).filter(|name| *name != "crate");
    names.map(str::to_owned).collect()
}

/// Returns the third-party crates that a manifest names. The layer check reports a manifest that cannot be
/// read.
fn names(manifest: &File) -> BTreeSet<String> {
    let parsed: toml::Table = manifest.text.parse().unwrap_or_default();
    let tables = TABLES.iter().filter_map(|table| parsed.get(*table)?.as_table());
    let names = tables.flat_map(|table| table.keys());
    names.filter(|name| !name.starts_with("nandex")).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(table: &str, dependency: &str) -> Vec<String> {
        let file = |path: &str, text: String| File { path: path.into(), text };
        let page = format!(
            "# A\n## Dependencies\n| crate | why |\n|---|---|\n{table}\n## Next\n| x | y |\n"
        );
        let manifest = format!("[dependencies]\n{dependency} = \"1\"\nnandex-store = \"1\"\n");
        let files = [file(PAGE, page), file("crates/a/Cargo.toml", manifest)];
        check(&files).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn a_dependency_with_a_line_passes() {
        assert_eq!(complaints("| serde, toml | text |\n| a | b |", "serde").len(), 2);
        assert_eq!(complaints("| serde | text |", "serde"), [""; 0]);
    }

    #[test]
    fn one_without_a_line_and_a_line_without_one_are_refused() {
        let found = complaints("| serde | text |", "rand");
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("rand has no line"));
        assert!(found[1].contains("serde is explained, but"));
    }
}
