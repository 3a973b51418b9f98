//! Layers point down, and no product crate needs the lab: invariant 1, read from the manifests.
//!
//! A crate that is not a dependency cannot be imported, so the manifests are the complete truth.

use std::path::Path;

use crate::Violation;
use crate::tree::File;

/// The ranks of crates. A crate may depend on crates of lower ranks, never on its equals.
const RANKS: [(&str, u8); 25] = [
    ("nandex-html", 0),
    ("nandex-device", 0),
    ("nandex-sim", 1),
    ("nandex-disksim", 2),
    ("nandex-store", 2),
    ("nandex", 3),
    ("nandex-chunk", 3),
    ("nandex-baseline", 4),
    ("nandex-corpus", 4),
    ("nandex-dedup", 5),
    ("nandex-kvssd", 5),
    ("nandex-neardup", 5),
    ("nandex-tfidf", 5),
    ("nandex-wan", 5),
    ("nandex-kvapi", 6),
    ("nandex-wanproxy", 6),
    ("nandex-reproduce", 6),
    ("nandex-cli", 7),
    ("nandex-python", 7),
    ("nandex-trial", 7),
    ("nandex-lab-cli", 8),
    ("nandex-bench", 8),
    ("nandex-xtask", 9),
    ("nandex-peers", 9),
    ("nandex-fuzz", 9),
];

/// Higher crates that integration tests may use: a crate, and the crate that its tests use.
const IN_TESTS: [(&str, &str); 1] = [("nandex", "nandex-baseline")];

/// The folder of the crates that only measure, simulate and reproduce.
const LAB: &str = "crates/lab";

/// The folder of the product crates and the lab.
const CRATES: &str = "crates";

/// Tables of a manifest that name dependencies.
pub const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Reports the manifests of nandex crates that depend on a crate of no lower rank.
#[must_use]
pub fn check(file: &File) -> Vec<Violation> {
    if file.path.file_name().is_none_or(|name| name != "Cargo.toml") {
        return Vec::new();
    }
    let complain = |message: String| Violation::new(&file.path, 0, message);
    let manifest: toml::Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(e) => return vec![complain(format!("cannot be read: {e}"))],
    };
    let Some(name) = package_name(&manifest) else { return Vec::new() };
    let Some(rank) = rank(name) else {
        return vec![complain(format!("{name} has no layer: give it a rank in the tidy test"))];
    };
    our_dependencies(&manifest)
        .into_iter()
        // A crate is its own dev-dependency if its own tests need a feature.
        .filter(|below| *below != name)
        .filter(|below| self::rank(below).is_none_or(|below| below >= rank))
        .filter(|below| !is_for_tests(&manifest, (name, below)))
        .map(|below| complain(format!("{name} depends on {below}, which does not stand below it")))
        .collect()
}

/// Reports the product crates that depend on a crate of the lab, except as a dev-dependency.
#[must_use]
pub fn check_lab(files: &[File]) -> Vec<Violation> {
    let manifests: Vec<(&Path, toml::Table)> = files
        .iter()
        .filter(|file| file.path.starts_with(CRATES) && file.path.ends_with("Cargo.toml"))
        .filter_map(|file| Some((file.path.as_path(), file.text.parse().ok()?)))
        .collect();
    let (lab, product): (Vec<_>, Vec<_>) =
        manifests.iter().partition(|(path, _)| path.starts_with(LAB));
    let lab: Vec<&str> = lab.iter().filter_map(|(_, manifest)| package_name(manifest)).collect();
    let mut found = Vec::new();
    for (path, manifest) in product {
        let linked = linked_dependencies(manifest).into_iter().filter(|name| lab.contains(name));
        found.extend(linked.map(|name| {
            let message = format!("{name} is of {LAB}: a product crate needs it in tests alone");
            Violation::new(path, 0, message)
        }));
    }
    found
}

/// Returns the nandex crates that are linked into what a manifest builds, or run while it is built.
fn linked_dependencies(manifest: &toml::Table) -> Vec<&str> {
    dependencies(manifest, &["dependencies", "build-dependencies"])
}

fn package_name(manifest: &toml::Table) -> Option<&str> {
    manifest.get("package")?.get("name")?.as_str()
}

fn our_dependencies(manifest: &toml::Table) -> Vec<&str> {
    dependencies(manifest, &TABLES)
}

fn dependencies<'a>(manifest: &'a toml::Table, tables: &[&str]) -> Vec<&'a str> {
    tables
        .iter()
        .filter_map(|table| manifest.get(*table)?.as_table())
        .flat_map(|table| table.keys())
        .map(String::as_str)
        .filter(|name| *name == "nandex" || name.starts_with("nandex-"))
        .collect()
}

/// Returns whether only a crate's integration tests may have this dependency.
fn is_for_tests(manifest: &toml::Table, pair: (&str, &str)) -> bool {
    let is_in = |table: &str| manifest.get(table).is_some_and(|it| it.get(pair.1).is_some());
    IN_TESTS.contains(&pair) && TABLES.iter().all(|it| is_in(it) == (*it == "dev-dependencies"))
}

fn rank(name: &str) -> Option<u8> {
    RANKS.iter().find(|(known, _)| *known == name).map(|(_, rank)| *rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let file = File { path: "crates/some/Cargo.toml".into(), text: text.into() };
        check(&file).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn a_dependency_on_a_lower_layer_is_fine() {
        let text = "[package]\nname = \"nandex\"\n[dependencies]\nnandex-store.workspace = true\n";
        assert!(complaints(text).is_empty());
    }

    #[test]
    fn a_dependency_on_a_higher_layer_is_refused_in_every_table() {
        for table in TABLES {
            let text =
                format!("[package]\nname = \"nandex-store\"\n[{table}.nandex]\npath = \"x\"\n");
            assert_eq!(complaints(&text).len(), 1, "in [{table}]");
        }
    }

    #[test]
    fn integration_tests_alone_use_what_stands_above_where_that_is_listed() {
        let text = |table: &str| {
            format!("[package]\nname = \"nandex\"\n[{table}.nandex-baseline]\npath = \"x\"\n")
        };
        assert!(complaints(&text("dev-dependencies")).is_empty());
        assert_eq!(complaints(&text("dependencies")).len(), 1);
        let both = text("dependencies") + "[dev-dependencies.nandex-baseline]\npath = \"x\"\n";
        assert!(!complaints(&both).is_empty());
    }

    #[test]
    fn a_product_crate_needs_the_lab_in_its_tests_alone() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let found = |path: &str, table: &str| {
            let text = format!("[package]\nname = \"nandex-cli\"\n[{table}]\nnandex-sim = \"1\"\n");
            let sim = file("crates/lab/sim/Cargo.toml", "[package]\nname = \"nandex-sim\"\n");
            check_lab(&[file(path, &text), sim]).len()
        };
        for table in ["dependencies", "build-dependencies"] {
            assert_eq!(found("crates/cli/Cargo.toml", table), 1, "in [{table}]");
            assert_eq!(found("crates/lab/cli/Cargo.toml", table), 0, "in [{table}]");
        }
        assert_eq!(found("crates/cli/Cargo.toml", "dev-dependencies"), 0);
    }

    #[test]
    fn a_crate_without_a_layer_is_refused() {
        assert_eq!(complaints("[package]\nname = \"nandex-new\"\n").len(), 1);
    }
}
