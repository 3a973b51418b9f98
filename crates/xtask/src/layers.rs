//! Layers point down: invariant 1, read from the manifests.
//!
//! A crate that is no dependency cannot be imported, so the manifests say all there is to say.

use crate::Violation;
use crate::tree::File;

/// How high a crate stands. It may depend on crates that stand lower, never on its equals.
const RANKS: [(&str, u8); 23] = [
    ("nandex-html", 0),
    ("nandex-device", 0),
    ("nandex-sim", 1),
    ("nandex-disksim", 2),
    ("nandex-store", 2),
    ("nandex", 3),
    ("nandex-chunk", 3),
    ("nandex-corpus", 3),
    ("nandex-dedup", 4),
    ("nandex-kvssd", 4),
    ("nandex-neardup", 4),
    ("nandex-tfidf", 4),
    ("nandex-wan", 4),
    ("nandex-kvapi", 5),
    ("nandex-wanproxy", 5),
    ("nandex-reproduce", 5),
    ("nandex-cli", 6),
    ("nandex-python", 6),
    ("nandex-trial", 6),
    ("nandex-bench", 7),
    ("nandex-xtask", 8),
    ("nandex-peers", 8),
    ("nandex-fuzz", 8),
];

/// Tables of a manifest that name dependencies.
pub const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Where the manifest of one of our crates depends on one that does not stand below it.
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
        // A crate names itself among its dev-dependencies to have a feature on in its own tests.
        .filter(|below| *below != name)
        .filter(|below| self::rank(below).is_none_or(|below| below >= rank))
        .map(|below| complain(format!("{name} depends on {below}, which does not stand below it")))
        .collect()
}

fn package_name(manifest: &toml::Table) -> Option<&str> {
    manifest.get("package")?.get("name")?.as_str()
}

fn our_dependencies(manifest: &toml::Table) -> Vec<&str> {
    TABLES
        .iter()
        .filter_map(|table| manifest.get(*table)?.as_table())
        .flat_map(|table| table.keys())
        .map(String::as_str)
        .filter(|name| *name == "nandex" || name.starts_with("nandex-"))
        .collect()
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
    fn a_crate_without_a_layer_is_refused() {
        assert_eq!(complaints("[package]\nname = \"nandex-new\"\n").len(), 1);
    }
}
