//! A type that is seen outside its module has a specific name: `SegmentState`, not one of eleven `State`s.
//!
//! The rule: one crate defines a name at most twice. Names that every module may define, because they are
//! used with the module's name (`bufferhash::Config`), are listed here.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Attribute, Ident, Visibility};

use crate::Violation;
use crate::tree::File;

/// The maximum number of definitions of a name in one crate.
const DEFINITIONS_MAX: usize = 2;

/// Names that are used together with their module's name.
const COMMON: [&str; 9] =
    ["Advice", "Args", "Config", "Error", "Format", "Iter", "Options", "Policy", "Result"];

/// The folder of a crate and a name, and the places of its definitions.
type Definitions<'f> = BTreeMap<(String, String), Vec<(&'f File, usize)>>;

/// Reports names that one crate defines too often.
#[must_use]
pub fn check(files: &[File]) -> Vec<Violation> {
    let mut definitions = Definitions::new();
    for file in files.iter().filter(|file| file.is("rs") && !file.is_test()) {
        let Some(folder) = crate_of(file) else { continue };
        for (name, line) in types(&file.text) {
            definitions.entry((folder.clone(), name)).or_default().push((file, line));
        }
    }
    definitions.retain(|(_, name), places| {
        places.len() > DEFINITIONS_MAX && !COMMON.contains(&name.as_str())
    });
    definitions.iter().flat_map(|((_, name), places)| too_many(name, places)).collect()
}

fn too_many(name: &str, places: &[(&File, usize)]) -> Vec<Violation> {
    let message =
        format!("one of {} types `{name}` of this crate: say what it is of", places.len());
    let complain = |(file, line): &(&File, usize)| Violation::new(&file.path, *line, &*message);
    places.iter().map(complain).collect()
}

/// Returns the folder of a file's crate: the part of the path before `src`.
fn crate_of(file: &File) -> Option<String> {
    let path = file.path.to_str()?;
    path.split_once("/src/").map(|(folder, _)| folder.to_owned())
}

/// Returns the types of a file that are visible outside their module, except those of tests.
fn types(text: &str) -> Vec<(String, usize)> {
    let mut visitor = Types::default();
    // Other checks report files that are not Rust.
    if let Ok(parsed) = syn::parse_file(text) {
        visitor.visit_file(&parsed);
    }
    visitor.0
}

#[derive(Default)]
struct Types(Vec<(String, usize)>);

impl Types {
    fn add(&mut self, visibility: &Visibility, name: &Ident) {
        if !matches!(visibility, Visibility::Inherited) {
            self.0.push((name.to_string(), name.span().start().line));
        }
    }
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.vis, &item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.vis, &item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.vis, &item.ident);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, item);
        }
    }
}

fn is_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<Ident>().is_ok_and(|what| what == "test")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(texts: &[&str]) -> usize {
        let file = |(number, text): (usize, &&str)| File {
            path: format!("crates/some/src/file{number}.rs").into(),
            text: (*text).into(),
        };
        check(&texts.iter().enumerate().map(file).collect::<Vec<_>>()).len()
    }

    #[test]
    fn a_name_that_a_crate_defines_three_times_is_refused_in_each_place() {
        let texts = ["pub struct State;", "pub(super) enum State { A }", "pub trait State {}"];
        assert_eq!(complaints(&texts), 3);
        assert_eq!(complaints(&texts[..2]), 0);
    }

    #[test]
    fn private_types_those_of_tests_and_names_that_go_with_the_modules_are_free() {
        let open = "pub struct State;";
        assert_eq!(complaints(&[open, open, "struct State;"]), 0);
        assert_eq!(complaints(&[open, open, "#[cfg(test)] mod tests { pub struct State; }"]), 0);
        assert_eq!(complaints(&["pub struct Config;"; 4]), 0);
    }
}
