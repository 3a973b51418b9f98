//! The RAM that is stated.

use super::*;

/// The RAM that runs may take in addition, for threads and the pages of code that data needs.
const OTHER_BYTES: u64 = 2 << 20;

fn peak(outcome: &Outcome) -> u64 {
    json(outcome)["resident_peak_bytes"].as_u64().expect("Linux counts it")
}

/// Asserts that a run took no more than `stated` bytes, by its own account, and by the kernel's in addition to those of
/// a run without keys.
fn assert_within(stated: u64, run: &Outcome, empty: &Outcome) {
    let told = json(run)["ram_bytes"].as_u64().expect("a number");
    assert!(told <= stated, "{told} bytes of {stated}: {run:?}");
    let more = peak(run).saturating_sub(peak(empty));
    assert!(more <= stated + OTHER_BYTES, "{more} bytes more than without keys: {run:?}");
}

/// Keys that were being read took 27 MiB in addition to what was stated.
#[cfg(target_os = "linux")]
#[test]
fn the_ram_that_is_stated_holds_the_filter_and_the_keys_that_are_read() {
    let folder = Folder::new();
    let numbers = |range: std::ops::Range<u64>| -> String {
        range.map(|number| format!("key {}\n", number * 7919 % 1_000_003)).collect()
    };
    write(&folder, "in", numbers(0..1_000_000));
    write(&folder, "none", "");
    let run = |words: &str| ok(folder.run(words));
    let stated = "--keys 4M --ram 8MiB --json";
    let empty = run(&format!("filter build e.nandex none {stated}"));
    assert_within(8 << 20, &run(&format!("filter build f.nandex in {stated}")), &empty);
    assert_within(8 << 20, &run("filter add f.nandex in --json"), &empty);
    assert_within(8 << 20, &run("filter test f.nandex in --json"), &empty);
    assert_within(8 << 20, &run("filter unique in --ram 8MiB --json"), &empty);
    assert_within(8 << 20, &run("filter delete f.nandex in --json"), &empty);
}

#[test]
fn the_least_ram_that_is_named_is_enough() {
    let folder = Folder::new();
    write(&folder, "in", "a\n");
    for verb in
        ["filter build f.nandex in", "filter unique in", "filter build w.nandex in --window 1M"]
    {
        let more = if verb.contains("--window") { "" } else { "--keys 1e9" };
        let refused = folder.run(&format!("{verb} {more} --ram 1MiB"));
        assert_eq!(refused.code, 2, "{refused:?}");
        let least = refused.stderr.split("at least ").nth(1).expect("the least is named");
        let least: u64 = least.split(' ').next().and_then(|it| it.parse().ok()).expect("bytes");
        ok(folder.run(&format!("{verb} {more} --ram {least}")));
        let less = folder.run(&format!("{verb} {more} --ram {}", least - 1));
        assert!(less.stderr.contains(&format!("at least {least} ")), "{less:?}");
    }
}
