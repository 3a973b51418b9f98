//! Lock files of the separate workspaces are up to date: cargo refuses outdated ones there, and no build of
//! this workspace finds them.

use std::collections::{BTreeMap, BTreeSet};

use crate::Violation;
use crate::tree::File;

/// Tables of a manifest whose crates are in every lock file that has its package.
const LOCKED: [&str; 2] = ["dependencies", "build-dependencies"];

/// Reports the lock files that have a nandex package without a crate that its manifest depends on.
#[must_use]
pub fn check(files: &[File]) -> Vec<Violation> {
    let named = |name: &'static str| files.iter().filter(move |file| file.path.ends_with(name));
    let manifests: BTreeMap<_, _> = named("Cargo.toml").filter_map(dependencies).collect();
    let of_lock = |lock| missing(lock, &manifests).into_iter();
    named("Cargo.lock").flat_map(of_lock).collect()
}

/// Returns a manifest's package, and the names of the crates that it depends on.
fn dependencies(manifest: &File) -> Option<(String, BTreeSet<String>)> {
    let parsed: toml::Table = manifest.text.parse().ok()?;
    let package = parsed.get("package")?.get("name")?.as_str()?.to_owned();
    let tables = LOCKED.iter().filter_map(|table| parsed.get(*table)?.as_table());
    let name = |(name, value): (&String, &toml::Value)| {
        let renamed = value.get("package").and_then(toml::Value::as_str);
        renamed.unwrap_or(name).to_owned()
    };
    Some((package, tables.flatten().map(name).collect()))
}

fn missing(lock: &File, manifests: &BTreeMap<String, BTreeSet<String>>) -> Vec<Violation> {
    let parsed: toml::Table = lock.text.parse().unwrap_or_default();
    let packages = parsed.get("package").and_then(toml::Value::as_array);
    let mut found = Vec::new();
    for package in packages.into_iter().flatten() {
        let name = package.get("name").and_then(toml::Value::as_str).unwrap_or_default();
        let Some(expected) = manifests.get(name) else { continue };
        let locked = package.get("dependencies").and_then(toml::Value::as_array);
        let locked = locked.into_iter().flatten().filter_map(toml::Value::as_str);
        // A crate with several versions is written with its version.
        let locked: BTreeSet<_> = locked.filter_map(|it| it.split(' ').next()).collect();
        found.extend(expected.iter().filter(|it| !locked.contains(it.as_str())).map(|it| {
            let message = format!("{name} is locked without {it}: run cargo metadata there");
            Violation::new(&lock.path, 0, message)
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(locked: &str) -> Vec<String> {
        let file = |path: &str, text: String| File { path: path.into(), text };
        let manifest = "[package]\nname = \"nandex-a\"\n[dependencies]\nserde = \"1\"\n\
                        short = { package = \"long-name\", version = \"1\" }\n[dev-dependencies]\nrand = \"1\"\n";
        let lock = format!(
            "[[package]]\nname = \"nandex-a\"\ndependencies = [{locked}]\n[[package]]\nname = \"b\"\n"
        );
        let files = [file("a/Cargo.toml", manifest.into()), file("fuzz/Cargo.lock", lock)];
        check(&files).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn a_lock_with_all_dependencies_passes_and_one_without_some_is_refused() {
        assert_eq!(complaints("\"serde 1.0.0\", \"long-name\", \"more\""), [""; 0]);
        let found = complaints("\"serde\"");
        assert_eq!(found, ["nandex-a is locked without long-name: run cargo metadata there"]);
    }
}
