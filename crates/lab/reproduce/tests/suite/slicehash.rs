//! Every experiment of ANCS 2014 at the smallest scale: numbers within wide bounds around the paper's, so that
//! an experiment that measures something else fails, and the same bytes each time.

use nandex_reproduce::{Origin, Outcome, Paper};

use crate::outcome::{self, assert_within, ours};

fn run(name: &str) -> Outcome {
    outcome::run(Paper::SliceHash, name).outcome
}

#[test]
fn table_1_reads_one_page_and_takes_half_a_byte() {
    let outcome = run("table-1");
    assert_eq!(ours(&outcome, "SliceHash", "pages of a lookup, on average"), 1.0);
    assert_eq!(ours(&outcome, "SliceHash", "pages of a lookup, at worst"), 1.0);
    assert_within("RAM", ours(&outcome, "SliceHash", "RAM"), (0.45, 0.6));
    let buffer = |row| ours(&outcome, "BufferHash", row);
    assert_within("mean", buffer("pages of a lookup, on average"), (0.95, 1.02));
    assert_within("worst", buffer("pages of a lookup, at worst, if all filters err"), (15.0, 18.0));
    assert_within("RAM", buffer("RAM"), (4.5, 5.2));
    assert_within("packed", buffer("RAM, with filters of 16 columns"), (3.5, 4.5));
    let silt = outcome.tables.iter().find(|it| it.title.starts_with("SILT")).expect("it is there");
    assert!(silt.rows.iter().all(|row| row.ours.is_none() && row.paper.is_some()));
}

#[test]
fn figure_2_spreads_reads_five_times_as_fast_as_on_one_channel() {
    let outcome = run("figure-2");
    let read = |row| ours(&outcome, "Reads", row);
    assert_within("best", read("reads a second, best"), (66_000.0, 72_000.0));
    assert_within("over worst", read("best over worst"), (5.0, 5.4));
    assert_within("over random", read("best over random"), (1.0, 1.5));
    let bandwidth = |row: &str| ours(&outcome, "Bandwidth", row);
    let [one, many] =
        [1, 32].map(|count| bandwidth(&format!("writes of 128 KiB, threads: {count}")));
    assert_within("writes gain little from threads", many / one, (0.9, 1.3));
    let [small, large] =
        [4, 512].map(|kib| bandwidth(&format!("one thread's random reads of {kib} KiB")));
    assert!(large > 8.0 * small, "{large} and {small}");
    let depth = |row: &str| ours(&outcome, "Reads of 4 KiB by threads", row);
    let best = [1, 2, 4, 8].map(|count| {
        let plural = if count == 1 { "thread" } else { "threads" };
        depth(&format!("{count} {plural}: reads a second, best"))
    });
    assert!(best.windows(2).all(|pair| pair[1] > 1.9 * pair[0]), "{best:?}");
    assert_eq!(depth("1 thread: best over worst"), 1.0);
    assert_within("8 threads", depth("8 threads: best over random"), (1.2, 1.7));
    let chart = &outcome.charts[0];
    assert!(chart.series.iter().take(3).all(|series| series.points.len() == 32));
}

#[test]
fn the_analysis_is_the_papers() {
    let outcome = run("analysis");
    for row in &outcome.tables[0].rows {
        let Some(ratio) = row.ratio else { continue };
        assert_within(&row.what, ratio, (0.96, 1.04));
    }
}

#[test]
fn figure_5_has_the_three_workloads_where_the_paper_has_them() {
    let outcome = run("figure-5");
    let lookup = |row| ours(&outcome, "Figure 5a", row);
    // The requirement: within 15 % of 69 K.
    assert_within("lookups", lookup("SliceHash"), (58_650.0, 79_350.0));
    assert_within("streams", lookup("SliceHash over BufferHash"), (1.02, 1.3));
    let waiting = lookup("SliceHash over BufferHash, whose threads wait for each other");
    assert_within("batches", waiting, (1.21, 2.0));
    assert_eq!(lookup("SliceHash: pages read for each lookup"), 1.0);
    let insert = |row| ours(&outcome, "Figure 5b", row);
    assert_within("inserts", insert("SliceHash"), (125_000.0, 260_000.0));
    assert_within("buffers", insert("BufferHash, 32 threads"), (1_000_000.0, 1_200_000.0));
    let mixed = |row| ours(&outcome, "Figure 5c", row);
    assert_within("mix", mixed("SliceHash"), (90_000.0, 120_000.0));
    assert_within("mix over", mixed("SliceHash over BufferHash"), (0.75, 0.95));
    let series = &outcome.charts[0].series;
    let points = |name: &str| &series.iter().find(|it| it.name == name).expect("drawn").points;
    let rates = [lookup("SliceHash"), mixed("SliceHash"), insert("SliceHash")];
    let ours = [0.0, 50.0, 100.0].into_iter().zip(rates).collect::<Vec<_>>();
    assert_eq!(points("SliceHash"), &ours);
    let printed = [(0.0, 57e3), (50.0, 121e3), (100.0, 1.1e6)];
    assert_eq!(points("BufferHash, 32 threads, paper"), &printed);
    assert_eq!(points("SILT, paper").len(), 3);
}

#[test]
fn table_3_stays_as_it_was_under_inserts() {
    let outcome = run("table-3");
    for percent in [0, 50, 100] {
        let ram = |of| ours(&outcome, "RAM", &format!("{percent} % inserts: {of}"));
        assert_within("SliceHash", ram("SliceHash"), (0.45, 0.6));
        assert_within("BufferHash", ram("BufferHash"), (4.5, 5.2));
        assert_within("packed", ram("BufferHash, with filters of 16 columns"), (3.5, 4.5));
    }
}

#[test]
fn table_4_follows_from_recorded_times_and_has_bufferhashs_inserts_the_busiest() {
    let outcome = run("table-4");
    let row = |row: &str| ours(&outcome, "Utilization at the rates of our workers", row);
    let busiest = row("100 % inserts, BufferHash");
    for percent in [0, 50, 100] {
        for name in ["SliceHash", "BufferHash"] {
            assert!(row(&format!("{percent} % inserts, {name}")) <= busiest, "{percent} {name}");
        }
    }
    assert_within("lookups", row("0 % inserts, SliceHash: operations"), (65_000.0, 72_000.0));
    let mut rows = outcome.tables.iter().flat_map(|table| &table.rows);
    assert!(rows.all(|row| matches!(row.origin(), Origin::Recorded { .. } | Origin::Stated)));
}

#[test]
fn a_log_on_the_drive_costs_inserts_little_and_takes_the_knowledge_of_channels_away() {
    let outcome = run("own-log");
    let row = |row: &str| ours(&outcome, "Operations a second", row);
    assert_within("inserts", row("inserts: with over alone"), (0.8, 1.0));
    assert_within("stream", row("lookups, as a stream: with over alone"), (0.9, 1.01));
    let batches = "lookups in batches of 32";
    let unaware = row(&format!("{batches}, without knowledge of channels: with the log"));
    assert_within("batches", row(&format!("{batches}: with the log")) / unaware, (0.95, 1.2));
    assert!(row(&format!("{batches}: slicetables alone")) > 1.3 * unaware);
    let share = ours(&outcome, "What is written", "pages of log");
    assert_within("written", share, (0.02, 0.2));
}

#[test]
fn figure_6_loses_most_where_one_channel_comes_after_another() {
    let outcome = run("figure-6");
    let batches = |row: &str| ours(&outcome, "Without over with, in batches", row);
    let stream = |row| ours(&outcome, "Without over with, as a stream", row);
    assert_within("K = 16", batches("ordered, K = 16"), (0.37, 0.47));
    for (order, paper) in [("random", 0.85), ("skewed, S = 5", 0.83), ("skewed, S = 10", 0.70)] {
        // The paper does not say how its threads waited.
        assert!(batches(order) < paper && paper < stream(order), "{order}");
        assert!(batches(order) > paper - 0.25, "{order}");
    }
    assert!(batches("skewed, S = 10") < batches("skewed, S = 5") - 0.1);
    for (order, few) in [("random", 0.95), ("skewed, S = 10", 0.9), ("ordered, K = 16", 0.95)] {
        let [with, few_to_choose] =
            ["with", "with 256 to choose from"].map(|what| batches(&format!("{order}: {what}")));
        assert!(few_to_choose > few * with, "{order}: {few_to_choose} of {with}");
    }
}

/// Measures the paper's schedule, which is slower than none for two to eight reads of a channel in a row on
/// this model of the drive, where these overlap.
#[test]
fn runs_of_a_channel_are_faster_than_no_schedule_and_than_the_papers_in_every_order() {
    let outcome = run("figure-6");
    let orders = ["random", "skewed, S = 5", "skewed, S = 10"].map(String::from);
    let runs = [1, 2, 4, 8, 16, 32].map(|run| format!("ordered, K = {run}"));
    for order in orders.into_iter().chain(runs) {
        for way in ["in batches", "as a stream"] {
            let rate = |table: &str, what: &str| {
                ours(&outcome, &format!("{table}, {way}"), &format!("{order}: {what}"))
            };
            let in_runs = |what| rate("In runs of a channel, as nandex starts them", what);
            let few = in_runs("in runs, with 256 to choose from");
            for what in ["with", "with 256 to choose from", "without"] {
                let other = rate("Without over with", what);
                assert!(in_runs("in runs") > 1.05 * other, "{order}, {way}: {what}");
                assert!(few > 1.05 * other, "{order}, {way}: {what}");
            }
        }
    }
}

#[test]
fn without_slices_and_filters_lookups_are_an_eighth_as_many() {
    let outcome = run("no-slices");
    let row = |row| ours(&outcome, "Lookups", row);
    assert_within("without", row("BufferHash without filters"), (7_000.0, 10_000.0));
    assert_within(
        "reads",
        row("BufferHash without filters: pages read for each lookup"),
        (7.5, 9.5),
    );
    assert_eq!(row("SliceHash: pages read for each lookup"), 1.0);
}

#[test]
fn table_5_trades_inserts_for_ram() {
    let outcome = run("table-5");
    let all = [16, 32, 48, 64].map(|count| {
        ["inserts", "50/50", "RAM"]
            .map(|what| ours(&outcome, "Incarnations", &format!("{count} incarnations: {what}")))
    });
    for (column, name) in ["inserts", "50/50", "RAM"].into_iter().enumerate() {
        let column = all.map(|row| row[column]);
        assert!(column.is_sorted_by(|a, b| a > b), "{name}: {column:?}");
    }
    // A merge of twice the pages takes twice the time.
    assert_within("inserts", all[1][0] / all[3][0], (1.8, 2.2));
    assert_within("RAM", all[3][2], (0.2, 0.3));
}

#[test]
fn a_full_drive_cleans_unless_slicetables_are_written_in_the_same_order() {
    let outcome = run("full-drive");
    let row = |row: &str| ours(&outcome, "Figure 5b", row);
    let programmed =
        |name: &str| row(&format!("{name}: pages that the drive programs for each written"));
    let (together, staggered) = ("buffers that began together", "staggered buffers");
    assert_within("together", programmed(together), (3.0, 8.0));
    assert_within("80 %", programmed("the same on 80 % of the drive"), (1.0, 3.0));
    assert_within("staggered", programmed(staggered), (1.0, 1.1));
    let inserts = |name: &str| row(&format!("SliceHash, {name}"));
    assert!(inserts(staggered) > 3.0 * inserts(together));
    // The paper has 125 K.
    assert_within("full", inserts(together), (30_000.0, 80_000.0));
    let shares = [95, 90, 80].map(|percent| inserts(&format!("the same on {percent} % of the")));
    assert!(shares.is_sorted() && shares[0] > inserts(together), "{shares:?}");
    assert_within("small part", inserts("on a small part"), (180_000.0, 260_000.0));
    let all = [16, 32, 48, 64].map(|count| {
        let row = |what| ours(&outcome, "Table 5", &format!("{count} incarnations: {what}"));
        [row("inserts"), row("50/50")]
    });
    assert!(all.is_sorted_by(|a, b| a[0] > b[0]), "{all:?}");
    for part in ["all of the drive", "40 % of the drive, the rest full of other data"] {
        let row = |row: String| ours(&outcome, "BufferHash, Figure 5b", &row);
        assert_within("inserts", row(format!("BufferHash, {part}")), (1.0e6, 1.25e6));
        assert_within("ring", row(format!("{part}: pages that the drive programs")), (1.0, 1.05));
    }
}

#[test]
fn table_6_grows_with_the_drives_or_takes_less_ram() {
    let outcome = run("table-6");
    let fast = |row| ours(&outcome, "Throughput", row);
    assert_within("two", fast("2 drives: lookups") / fast("1 drive: lookups"), (1.9, 2.1));
    // Three drives share eight partitions: 2.67 at most.
    assert_within("three", fast("3 drives: lookups") / fast("1 drive: lookups"), (2.5, 2.8));
    assert_within("mix", fast("3 drives: 50/50") / fast("1 drive: 50/50"), (2.0, 3.1));
    let lean = |row| ours(&outcome, "Memory", row);
    assert_within("lookups", lean("3 drives: lookups") / lean("1 drive: lookups"), (0.95, 1.05));
    assert_within("RAM", lean("1 drive: RAM") / lean("3 drives: RAM"), (2.9, 3.1));
}

#[test]
fn slicebloom_reads_three_pages_and_is_slowest_on_one_channel() {
    let outcome = run("slicebloom");
    let mixed = |row| ours(&outcome, "50 % lookups", row);
    assert_within("mix", mixed("SliceBloom"), (15_000.0, 45_000.0));
    assert!(mixed("naive parallelism") <= 1.02 * mixed("SliceBloom"));
    assert_within("worst", mixed("SliceBloom over the worst"), (2.5, 6.0));
    let lookup = |row| ours(&outcome, "Lookups", row);
    // A third of 69 K, and of its 5.2th.
    assert_within("lookups", lookup("SliceBloom"), (22_000.0, 24_000.0));
    assert_within(
        "worst",
        lookup("naive parallelism, all lookups on one channel"),
        (4_200.0, 4_700.0),
    );
    let unsliced = lookup("without slices");
    assert!(lookup("SliceBloom") > 30.0 * unsliced, "{unsliced}");
    let size = |row| ours(&outcome, "Sizes", row);
    assert_within("reads", size("pages read for each lookup"), (2.98, 3.0));
    assert_within("without", size("without slices: pages read"), (100.0, 200.0));
    assert_within("writes", size("inserts for each block"), (110.0, 140.0));
    assert_within("RAM", size("RAM"), (0.12, 0.16));
    assert_within("one", size("absent keys that one"), (0.0006, 0.0009));
}

#[test]
fn slicelsh_reads_ten_pages_and_keeps_its_rate_on_channels_of_its_own() {
    let outcome = run("slicelsh");
    let placed = |table| ours(&outcome, table, "each table on its own channels");
    let striped = |table| ours(&outcome, table, "striped");
    let [schedule, arrival, worst] =
        ["Lookups in", "Lookups of 32 threads, in", "Lookups of 32 threads in"];
    assert_within("schedule", placed(schedule), (6_000.0, 7_500.0));
    assert_within("arrival", placed(arrival), (6_000.0, 7_500.0));
    assert_within("striped", striped(schedule), (6_000.0, 7_500.0));
    // All ten pages on one channel: a tenth of the reads.
    assert_within("striped, worst", striped(worst), (1_200.0, 1_500.0));
    assert!(placed(worst) > 2.0 * striped(worst));
    let size = |row| ours(&outcome, "Sizes", row);
    assert_eq!(size("pages read for each lookup"), 10.0);
    assert_within("RAM", size("RAM over flash"), (0.025, 0.045));
    assert_eq!(size("share of pages that no table has"), 0.0625);
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    // Not those that run for many seconds, such as full-drive: they use the same code.
    for name in [
        "table-1",
        "figure-2",
        "analysis",
        "figure-6",
        "no-slices",
        "slicebloom",
        "slicelsh",
        "own-log",
    ] {
        assert_eq!(run(name), run(name), "{name}");
    }
}
