//! Runs every checker over the repository. A failure lists all violations.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use nandex_xtask::tree::{self, File};
use nandex_xtask::{
    Violation, book, clock, dependencies, form, layers, locks, markdown, names, outputs, pages,
    shape, structures, words,
};

fn repository() -> Vec<File> {
    let files = tree::files(&tree::root()).expect("the repository can be read");
    assert!(files.len() > 20, "only {} files: the walk has lost its way", files.len());
    files
}

fn assert_none(found: &[Violation]) {
    let list: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "{} thing(s) out of order:\n{}", list.len(), list.join("\n"));
}

#[test]
fn layers_point_down() {
    assert_none(&repository().iter().flat_map(layers::check).collect::<Vec<_>>());
}

#[test]
fn no_product_crate_needs_the_lab() {
    assert_none(&layers::check_lab(&repository()));
}

#[test]
fn every_dependency_is_explained() {
    assert_none(&dependencies::check(&repository()));
}

#[test]
fn lock_files_have_what_the_manifests_name() {
    assert_none(&locks::check(&repository()));
}

#[test]
fn structures_do_not_import_one_another() {
    assert_none(&structures::check(&repository()));
}

#[test]
fn a_type_seen_outside_its_module_tells_what_it_is_of() {
    assert_none(&names::check(&repository()));
}

#[test]
fn a_structure_is_its_folder_and_one_row() {
    assert_none(&structures::check_registry(&repository()));
}

#[test]
fn only_the_device_names_the_kernel_the_clock_and_entropy() {
    assert_none(&repository().iter().flat_map(clock::check).collect::<Vec<_>>());
}

#[test]
fn every_named_output_has_the_same_writer() {
    assert_none(&repository().iter().flat_map(outputs::check).collect::<Vec<_>>());
}

#[test]
fn every_rust_file_is_in_shape() {
    assert_none(&repository().iter().flat_map(shape::check).collect::<Vec<_>>());
}

#[test]
fn no_forbidden_word_stands_anywhere() {
    assert_none(&repository().iter().flat_map(words::check).collect::<Vec<_>>());
}

#[test]
fn every_doc_comment_opens_with_a_statement() {
    assert_none(&repository().iter().flat_map(form::check).collect::<Vec<_>>());
}

#[test]
fn every_markdown_page_is_in_order() {
    let files = repository();
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    let check = |file| markdown::check(file, &paths);
    assert_none(&files.iter().flat_map(check).collect::<Vec<_>>());
}

#[test]
fn every_page_is_in_the_book_and_every_anchor_resolves() {
    assert_none(&book::check(&repository()));
}

#[test]
fn every_html_page_loads_nothing_and_has_no_dead_links() {
    assert_none(&pages::check(&repository()));
}

#[test]
fn the_longest_functions_are_listed() {
    let files = repository();
    let named = |file: &File| {
        let path = file.path.display().to_string();
        shape::functions(file)
            .into_iter()
            .map(move |it| (it.lines, format!("{path}:{}", it.line), it.name))
    };
    let mut longest: Vec<_> = files.iter().filter(|file| file.is("rs")).flat_map(named).collect();
    longest.sort();
    println!("the ten longest functions, in lines of code:");
    for (lines, place, name) in longest.iter().rev().take(10) {
        println!("{lines:5}  {name:40} {place}");
    }
    assert!(longest.len() > 20, "only {} functions found", longest.len());
}
