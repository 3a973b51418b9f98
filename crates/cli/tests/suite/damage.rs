//! Files with one damaged page: each verb that reads prints the same as for the whole file, or names the page and exits
//! with 3.
//!
//! `nandex filter test` denied keys that a damaged page of a saved buffer had, and `nandex filter info` counted without
//! them; both exited with 0.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{Folder, Outcome, json};

const PAGE: usize = 4096;

/// The number of pages of each kind that are damaged.
const EACH_KIND: usize = 4;

/// The file.
const FILE: &str = "f.nandex";

/// Returns the keys of a file, as lines.
fn lines(keys: std::ops::Range<u64>) -> String {
    keys.map(|key| format!("{key}\n")).collect()
}

/// The observed effects of damage in a file.
#[derive(Default)]
struct Shown {
    /// The number of exit codes of 3, by verb.
    refused: BTreeMap<String, u64>,
    /// The number of pages that `check` names.
    found: u64,
}

/// Returns some pages of each kind: those that name their structure.
fn pages(bytes: &[u8]) -> Vec<usize> {
    let mut kinds: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
    let numbered = bytes.chunks_exact(PAGE).zip(0..);
    for (page, number) in numbered.filter(|(page, _)| page[4..8] == *b"ndx1") {
        kinds.entry(page[8]).or_default().push(number);
    }
    let some = |all: Vec<usize>| {
        let step = all.len().div_ceil(EACH_KIND);
        // The last ones belong to snapshots.
        all.into_iter().rev().step_by(step).collect::<Vec<_>>()
    };
    kinds.into_values().flat_map(some).collect()
}

fn names(outcome: &Outcome, page: usize) -> bool {
    let text = format!("{}{}", outcome.stdout, outcome.stderr);
    let number = page.to_string();
    text.split(|it: char| !it.is_ascii_digit()).any(|word| word == number)
}

/// Returns the output of a verb, without the free space of the disk.
fn fixed(outcome: &Outcome) -> Vec<&str> {
    outcome.stdout.lines().filter(|line| !line.contains(" free ")).collect()
}

/// Damages some pages of the file in a folder, and runs these verbs on it.
fn damage_each(folder: &Folder, verbs: &[&str]) -> Shown {
    let bytes = fs::read(folder.path(FILE)).expect("it can be read");
    let whole: Vec<Outcome> = verbs.iter().map(|verb| folder.run(verb)).collect();
    whole.iter().for_each(|outcome| assert_eq!(outcome.code, 0, "{outcome:?}"));
    assert_eq!(folder.run("check f.nandex").code, 0);
    let mut shown = Shown::default();
    for page in pages(&bytes) {
        let mut damaged = bytes.clone();
        damaged[page * PAGE + 2000] ^= 0x5a;
        fs::write(folder.path(FILE), damaged).expect("it can be written");
        let checked = folder.run("check f.nandex");
        let is_found = checked.code == 3 && names(&checked, page);
        assert!(is_found || checked.code == 0, "page {page}: {checked:?}");
        shown.found += u64::from(is_found);
        for (verb, whole) in verbs.iter().zip(&whole) {
            let outcome = folder.run(verb);
            if outcome.code == 3 {
                assert!(is_found && names(&outcome, page), "page {page}, {verb}: {outcome:?}");
                *shown.refused.entry((*verb).to_owned()).or_default() += 1;
            } else {
                let is_same = outcome.code == 0 && fixed(&outcome) == fixed(whole);
                assert!(is_same, "page {page}, {verb}: {outcome:?}");
            }
        }
    }
    fs::write(folder.path(FILE), bytes).expect("it can be written");
    shown
}

fn run(folder: &Folder, words: &str) {
    let outcome = folder.run(words);
    assert_eq!(outcome.code, 0, "{words}: {outcome:?}");
}

/// Creates a folder with keys, and with some of them alone.
fn with_keys() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("first"), lines(0..5000)).expect("it can be written");
    fs::write(folder.path("second"), lines(5000..5400)).expect("it can be written");
    fs::write(folder.path("some"), lines(4990..5020)).expect("it can be written");
    fs::write(folder.path("all"), lines(0..5400)).expect("it can be written");
    folder
}

#[test]
fn a_damaged_filter_denies_no_key_and_counts_none_as_if_it_were_whole() {
    for build in ["--keys 6000 --counts", "--window 3000 --rate 0.01"] {
        let folder = with_keys();
        run(&folder, &format!("filter build f.nandex first {build}"));
        run(&folder, "filter add f.nandex second");
        let is_set = build.contains("--counts");
        let counts = if is_set { "filter test f.nandex all --count" } else { "info f.nandex" };
        let all = if is_set { "all" } else { "second" };
        let verbs = [
            &format!("filter test f.nandex {all}"),
            "filter test f.nandex some",
            counts,
            "filter info f.nandex",
            "filter info f.nandex --json",
            "info f.nandex --json",
        ];
        let Shown { refused, found } = damage_each(&folder, &verbs);
        assert!(found > 4, "{build}: {found}");
        assert!(verbs.iter().all(|verb| refused.contains_key(*verb)), "{build}: {refused:?}");
    }
}

#[test]
fn damaged_counts_are_refused_and_not_too_low() {
    let folder = with_keys();
    run(&folder, "count build f.nandex first");
    run(&folder, "count add f.nandex second");
    let verbs = [
        "count get f.nandex 7 4999 5001 5399",
        "count top f.nandex 10",
        "count dump f.nandex",
        "info f.nandex",
    ];
    let Shown { refused, found } = damage_each(&folder, &verbs);
    assert!(found > 4, "{found}");
    assert!(verbs.iter().all(|verb| refused.contains_key(*verb)), "{refused:?}");
}

#[test]
fn damaged_tables_give_the_right_values_or_none() {
    for create in ["--entries 6000 --key-bytes 8 --value-bytes 8", "--entries 6000 --bytes 64MiB"] {
        let folder = with_keys();
        run(&folder, &format!("create f.nandex {create}"));
        let format = if create.contains("--key-bytes") { " --key-format u64" } else { "" };
        for keys in [0..5000_u64, 5000..5400] {
            let records: String = keys.map(|key| format!("{key},{key}\n")).collect();
            fs::write(folder.path("records.csv"), format!("key,value\n{records}")).expect("space");
            run(&folder, &format!("load f.nandex records.csv --format csv{format}"));
        }
        let get = format!("get f.nandex{format} 7 99 1234 4999 5001 5399");
        let dump = format!("dump f.nandex{format} --format csv");
        let verbs = [&get[..], &dump[..], "info f.nandex", "info f.nandex --json"];
        let Shown { refused, found } = damage_each(&folder, &verbs);
        assert!(found > 4, "{create}: {found}");
        assert!(verbs.iter().all(|verb| refused.contains_key(*verb)), "{create}: {refused:?}");
    }
}

#[test]
fn the_page_that_a_filter_lacks_is_in_its_figures() {
    let folder = with_keys();
    run(&folder, "filter build f.nandex first --keys 6000");
    run(&folder, "filter add f.nandex second");
    let whole = json(&folder.run("filter info f.nandex --json"));
    assert!(whole["lost_pages"].is_null(), "{whole}");
    let bytes = fs::read(folder.path(FILE)).expect("it can be read");
    let mut damaged = bytes.clone();
    let runs = bytes.chunks_exact(PAGE).zip(0..).filter(|(it, _)| it[4..9] == *b"ndx1\x08");
    runs.for_each(|(_, page): (_, usize)| damaged[page * PAGE + 2000] ^= 0x5a);
    fs::write(folder.path(FILE), damaged).expect("it can be written");
    let told = folder.run("filter info f.nandex --json");
    assert_eq!(told.code, 3, "{told:?}");
    let told = json(&told);
    assert!(told["lost_pages"].as_array().is_some_and(|pages| !pages.is_empty()), "{told}");
    assert!(told["entries"].as_u64() < whole["entries"].as_u64(), "{told}");
    let text = folder.run("filter info f.nandex");
    assert!(text.code == 3 && text.stdout.contains("damaged     page "), "{text:?}");
}
