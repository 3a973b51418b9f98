//! Every structure with one damaged page: each call gives the right answer, or an error that names the page.
//!
//! A sweep of a filter once denied keys whose page in a snapshot was damaged, since one of five walks over
//! its parts did not check that the part was whole. So here each page that a structure reads is damaged, one
//! at a time, and every call is made: on a structure that is opened read-only, on one that is opened
//! read-write, and after it is reopened. `check` must name each page whose damage a call meets.

mod answers;
mod filters;
mod large;
mod neighbors;
mod subject;
mod tables;

use nandex_trial::amount::one_in;

use subject::{Kinds, damage_all};

/// Checks that damage of pages of all these kinds was noticed.
fn assert_reached(kinds: &Kinds, expected: &[&str]) {
    let volume = ["superblock", "checkpoint", "log"];
    let missed = volume.iter().chain(expected).filter(|kind| !kinds.contains(*kind));
    assert_eq!(missed.collect::<Vec<_>>(), [&""; 0], "{kinds:?}");
}

#[test]
fn tables_with_a_damaged_page_answer_right_or_name_the_page() {
    let kinds = damage_all(tables::all(one_in(8)));
    assert_reached(&kinds, &["data", "filter", "slice", "records", "image"]);
}

#[test]
fn filters_with_a_damaged_page_answer_right_or_name_the_page() {
    let kinds = damage_all(filters::all(one_in(5)));
    assert_reached(&kinds, &["run", "counts", "slice", "image"]);
}

#[test]
fn indexes_of_neighbours_with_a_damaged_page_answer_right_or_name_the_page() {
    let kinds = damage_all(neighbors::all(one_in(5)));
    // Lookups read without a saved filter that is damaged, as after a crash; so it is no damage to `check` either.
    assert_reached(&kinds, &["slice", "image"]);
}

#[test]
fn maps_with_a_damaged_page_answer_right_or_name_the_page() {
    let kinds = damage_all(large::all());
    assert_reached(&kinds, &["values", "data", "slice", "records", "image"]);
}
