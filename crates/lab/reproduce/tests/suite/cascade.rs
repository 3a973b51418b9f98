//! Every experiment of the HotStorage 2011 deck at the smallest scale: the shapes that the structures must have,
//! and the same bytes each time.

use nandex_reproduce::{Outcome, Paper};

use crate::outcome::{self, assert_within, ours};

const PUBLISHED: &str = "cascade filter, fan-out 2, as published";
const TWO: &str = "cascade filter, two levels, fan-out 8";
const ONE: &str = "cascade filter, one wide level";
const PLAIN: &str = "plain Bloom filter, cached pages";
const ONE_PAGE: &str = "Bloom filter with one page for each key, cached pages";
const BUFFERED: &str = "buffered Bloom filter, queued bits";
const STRONGEST: &str = "page-blocked buffered Bloom filter";

fn run(name: &str) -> Outcome {
    outcome::run(Paper::Cascade, name).outcome
}

#[test]
fn inserts_are_faster_the_less_random_a_filter_writes() {
    let outcome = run("insertion");
    let rate = |row| ours(&outcome, "Inserts, drive and", row);
    let order = [PLAIN, ONE_PAGE, BUFFERED, STRONGEST, ONE, TWO].map(rate);
    assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
    assert_within("one page for eight", rate(ONE_PAGE) / rate(PLAIN), (6.0, 10.0));
    assert!(rate(ONE) > 2.0 * rate(STRONGEST));
    let device = |row| ours(&outcome, "Inserts if the processor", row);
    let order = [ONE, TWO, PUBLISHED].map(device);
    assert!(order.is_sorted_by(|a, b| a < b), "fewer writes for each key are faster: {order:?}");
    let growing = &outcome.charts[0].series;
    assert_eq!(growing.len(), 3);
    let one: Vec<f64> = growing[2].points.iter().map(|point| point.1).collect();
    assert!(one[2] > 2.0 * one[one.len() - 1], "one level slows down as it grows: {one:?}");
}

#[test]
fn lookups_read_one_page_for_each_level_and_fan_out_two_has_most() {
    let outcome = run("lookups");
    let reads = |row: &str| ours(&outcome, "Pages read", row);
    assert_within("one level", reads(&format!("{ONE}, absent")), (1.0, 1.01));
    assert_within("one level, there", reads(&format!("{ONE}, there")), (0.9, 1.01));
    assert_within("two levels", reads(&format!("{TWO}, absent, while it grows")), (1.5, 2.01));
    assert_within("fan-out 2", reads(&format!("{PUBLISHED}, absent, while it grows")), (2.3, 6.0));
    assert_within("plain", reads(&format!("{PLAIN}, absent")), (1.7, 2.1));
    assert_within("plain, there", reads(&format!("{PLAIN}, there")), (7.0, 8.0));
    assert_within("page-blocked", reads(&format!("{STRONGEST}, absent")), (0.9, 1.0));
    let single = |row| ours(&outcome, "Absent keys, one after", row);
    let batched = |row| ours(&outcome, "Absent keys in a batch", row);
    assert!(single(ONE) > 1.5 * single(PUBLISHED), "one level answers faster");
    assert_within("the drive's reads", batched(ONE), (30_000.0, 38_000.0));
    assert!(batched(ONE) > 2.0 * single(ONE));
    assert_within("as one page", single(ONE) / single(STRONGEST), (0.85, 1.1));
}

#[test]
fn a_quotient_filter_jumps_once_where_a_bloom_filter_jumps_eight_times() {
    let outcome = run("in-ram");
    assert_eq!(outcome, run("in-ram"), "the same seed gives the same numbers");
    let row = |row: &str| ours(&outcome, "Memory", row);
    assert_within(
        "insert",
        row("quotient filter with three bits, 75 % full, insert: jumps"),
        (1.0, 1.01),
    );
    assert_within(
        "lines",
        row("quotient filter with three bits, 75 % full, insert: lines"),
        (1.0, 2.0),
    );
    let fast = "quotient filter by rank and select, 90 % full, insert: ";
    assert_within("jumps", row(&format!("{fast}jumps")), (1.0, 2.0));
    assert_within("lines", row(&format!("{fast}lines")), (1.5, 5.0));
    assert_within("Bloom, insert", row("Bloom filter, insert: jumps"), (7.9, 8.0));
    assert_within("Bloom, absent", row("Bloom filter, absent key: jumps"), (1.9, 2.1));
    assert_within("Bloom, there", row("Bloom filter, key that is there: jumps"), (7.9, 8.0));
}

#[test]
fn the_decks_numbers_are_given_with_ours_and_reasons() {
    let outcome = run("deck");
    let printed: Vec<f64> = outcome
        .tables
        .iter()
        .flat_map(|table| &table.rows)
        .filter_map(|row| {
            let value = row.paper?.value;
            assert!(!row.why.is_empty(), "{}", row.what);
            Some(value)
        })
        .collect();
    let decks = [670_000.0, 40.0, 530.0, 1.0 / 3.0, 1.0 / 3.0];
    // One part, several parts, and a slow processor.
    assert_eq!(printed, [&decks[..], &decks, &decks[..2]].concat());
    let parts = |row| ours(&outcome, "Fan-out 2 in parts", row);
    assert!(parts("parts") > 4.0);
    assert_within("writes", parts("times a key is written, over one part"), (0.6, 0.98));
    assert_within("reads", parts("pages read for each lookup"), (1.0, 6.0));
    assert_within("inserts", parts("inserts over one part"), (0.5, 1.5));
    assert_within(
        "fitted",
        ours(&outcome, "Inserts on a processor", PUBLISHED),
        (500_000.0, 680_000.0),
    );
    let gain = ours(
        &outcome,
        "Inserts",
        "cascade filter, fan-out 2, over page-blocked buffered Bloom filter",
    );
    assert_within("over the strongest", gain, (3.0, 30.0));
}

/// Checks rows of the deck's experiment, which once were divided by another kind than they named, at another
/// time than the deck.
#[test]
fn the_decks_lookups_are_those_when_all_keys_are_in_over_the_kind_that_a_row_names() {
    let (deck, lookups) = (run("deck"), run("lookups"));
    let rate = |name| ours(&lookups, "Absent keys, one after another", name);
    for bloom in [PLAIN, ONE_PAGE] {
        let found = ours(&deck, "Lookups of absent keys", &format!("{PUBLISHED}, over {bloom}"));
        assert_eq!(found, rate(PUBLISHED) / rate(bloom), "{bloom}");
    }
}

#[test]
fn writes_for_each_key_are_what_the_formula_says_and_reads_fall_with_the_fan_out() {
    let outcome = run("fan-out");
    for ratio in [4, 16, 64] {
        let table = format!("Filter {ratio} times");
        let of = |fan_out: &str, what: &str| ours(&outcome, &table, &format!("{fan_out}: {what}"));
        let all = ["fan-out 2", "fan-out 4", "fan-out 8", "fan-out 16", "one level"];
        for fan_out in all {
            let (found, formula) =
                (of(fan_out, "times a key is written"), of(fan_out, "times, by the policy"));
            assert_within(&format!("{ratio}, {fan_out}"), found / formula, (0.97, 1.03));
        }
        assert_within("one level", of("one level", "pages read for each lookup"), (0.9, 1.01));
        assert!(of("fan-out 2", "pages read for each lookup") > 1.3, "{ratio}");
        let most = of("one level", "times a key is written");
        assert!(all.iter().all(|it| of(it, "times a key is written") <= most * 1.01), "{ratio}");
    }
    let write = |ratio: u64| {
        ours(&outcome, &format!("Filter {ratio} times"), "one level: times a key is written")
    };
    assert_within("four times the ratio", write(64) / write(16), (3.5, 4.5));
    // A sweep takes the whole filter for each queue of keys, and a quarter of the RAM holds a quarter of them.
    let bloom = |ratio: u64| {
        ours(&outcome, &format!("Filter {ratio} times"), &format!("{STRONGEST}: inserts"))
    };
    for (few, many) in [(4, 16), (16, 64)] {
        assert_within("page-blocked", bloom(few) / bloom(many), (3.5, 4.2));
    }
}
