//! The RAM that the process of a verb takes next to what was stated for it, seen from outside.
//!
//! Each case prepares its input, runs the command with `--ram`, and compares the peak of its resident memory with the
//! stated RAM, a constant, and what a process takes that does nothing. `make ram` runs all cases on more data and
//! prints the table of [the page on RAM](../../../../docs/explanation/ram.md); the tests run them on less.
#![forbid(unsafe_code)]

mod cases;
mod input;
mod measure;
mod table;

use cases::CASES;
use measure::{CONSTANT_BYTES, Peak, Scale, idle_bytes, measure, says_least};

/// Runs a case with each size of RAM; fails if one takes more than stated.
#[track_caller]
fn assert_kept(name: &str) {
    let case = CASES.iter().find(|it| it.name == name).expect("a case has this name");
    for ram_mib in case.sizes_mib {
        let Peak { stated_bytes, resident_bytes, told_bytes, refusal, .. } =
            measure(case, ram_mib, Scale::Test);
        let most = stated_bytes + CONSTANT_BYTES + idle_bytes();
        if let Some(refusal) = refusal {
            assert!(says_least(&refusal), "{name} with {ram_mib} MiB: {refusal}");
            continue;
        }
        assert!(resident_bytes > 1 << 20, "{name}: {resident_bytes} bytes were seen");
        let told = told_bytes.unwrap_or(0);
        assert!(told <= stated_bytes, "{name} with {ram_mib} MiB says that it takes {told} bytes");
        assert!(
            resident_bytes <= most,
            "{name} with {ram_mib} MiB took {resident_bytes} bytes, at most {most} are expected"
        );
    }
}

#[test]
fn a_load_takes_the_ram_of_its_table() {
    ["load bufferhash", "load slicehash", "load rhik"].into_iter().for_each(assert_kept);
}

#[test]
fn deduplication_takes_the_stated_ram() {
    assert_kept("dedup");
}

#[test]
fn a_benchmark_of_a_drive_takes_the_ram_of_its_index() {
    assert_kept("kvssd bench");
}

#[test]
fn a_stream_that_is_stored_or_sent_takes_the_stated_ram() {
    ["wan store", "wan send"].into_iter().for_each(assert_kept);
}

#[test]
fn term_frequencies_take_the_stated_ram_however_long_a_document_is() {
    let names =
        ["tfidf build, 70 KB", "tfidf build, folder", "tfidf build, 12.7 MB", "tfidf update"];
    names.into_iter().for_each(assert_kept);
}

#[test]
fn near_duplicates_take_the_stated_ram_however_long_a_document_is() {
    let names = ["neardup index, 70 KB", "neardup index, folder", "neardup index, 12.7 MB"];
    names.into_iter().for_each(assert_kept);
}

/// Prints the table of all cases, or of those whose names contain `NANDEX_RAM_ONLY`. With `NANDEX_RAM_JSON`, writes a
/// line of JSON for each run to that file too.
#[test]
#[ignore = "takes minutes; `make ram` runs it"]
fn table_of_peaks() {
    let only = std::env::var("NANDEX_RAM_ONLY").unwrap_or_default();
    let cases = CASES.iter().filter(|it| it.name.contains(&only));
    table::print(cases, std::env::var_os("NANDEX_RAM_JSON")).expect("the table can be written");
}
