//! Every experiment of NSDI 2010 at the smallest scale: the same bytes each time, and numbers within wide
//! bounds around the paper's, so that an experiment that measures something else fails.

use nandex_reproduce::{Outcome, Paper, Ran, Report, Row, Scale, experiments, html, text};

use crate::outcome::{self, assert_within, ours, scale};

fn run(name: &str) -> Ran {
    outcome::run(Paper::BufferHash, name)
}

/// Returns the outcome of an experiment that was run twice.
fn outcome(name: &str) -> Outcome {
    let [first, second] = [run(name), run(name)];
    let json = |ran: &Ran| serde_json::to_string(ran).expect("it is plain data");
    assert_eq!(json(&first), json(&second), "the same seed gives the same bytes");
    first.outcome
}

/// Returns the outcome of a long one, run once: it uses the same code as the others.
fn outcome_once(name: &str) -> Outcome {
    run(name).outcome
}

#[test]
fn figure_5_measures_what_the_model_says() {
    let outcome = outcome_once("figure-5");
    let rate = |row| ours(&outcome, "False-positive reads", row);
    assert_within("best", rate("best size of buffers, by"), (266.0, 267.0));
    assert_within("2 GiB", rate("spurious rate at 2048 MiB, measured"), (0.004, 0.012));
    // A few answers decide at this scale.
    assert_within("256 MiB", rate("spurious rate at 256 MiB, measured"), (0.0, 0.001));
}

#[test]
fn table_2_reads_once_where_a_key_is_found_and_hardly_ever_where_not() {
    let outcome = outcome("table-2");
    assert_within(
        "absent",
        ours(&outcome, "Lookups by reads, no", "probability of 0"),
        (0.98, 0.999),
    );
    let some = |row| ours(&outcome, "Lookups by reads, 40", row);
    assert_within("found", some("share"), (0.37, 0.43));
    assert_within("no read", some("probability of 0"), (0.56, 0.64));
    assert_within("two reads", some("probability of 2"), (0.0003, 0.005));
    assert_eq!(ours(&outcome, "Time of a lookup by reads, Flash chip", "1 reads"), 0.24);
    assert_within(
        "Intel",
        ours(&outcome, "Time of a lookup by reads, Intel", "1 reads"),
        (0.149, 0.16),
    );
}

#[test]
fn a_ring_costs_no_cleaning_on_a_drive_as_full_as_the_papers_or_fuller() {
    let outcome = outcome("full-drive");
    let intel = |row: &str| ours(&outcome, "Inserts on the Intel SSD", row);
    for part in [
        "40 % of the drive, the rest never written",
        "40 % of the drive, the rest full of other data",
        "80 % of the drive, the rest full of other data",
        "all of the drive",
    ] {
        let programmed = intel(&format!("{part}: pages that the drive programs"));
        assert_within(part, programmed, (1.0, 1.05));
        assert_within(part, intel(&format!("{part}: mean")), (0.0055, 0.0065));
    }
    let transcend = |row: &str| ours(&outcome, "Inserts on the Transcend SSD", row);
    assert_within("blocks", transcend("all of the drive: pages that the drive"), (1.0, 1.1));
}

#[test]
fn figure_6_has_the_media_in_the_papers_order() {
    let outcome = outcome("figure-6");
    let lookup = |row| ours(&outcome, "Lookups", row);
    assert_within("Intel", lookup("Intel: mean"), (0.05, 0.08));
    assert_within("RAM answers", lookup("Intel: share"), (0.55, 0.65));
    assert_within("Transcend", lookup("Transcend: 90 %"), (0.55, 0.7));
    assert_within("disk", lookup("Disk: 99 %"), (6.0, 20.0));
    let insert = |row| ours(&outcome, "Inserts", row);
    assert_within("Intel, longest", insert("Intel: the longest, incarnations"), (0.8, 3.5));
    assert_within("Transcend", insert("Transcend: the longest, incarnations"), (28.0, 100.0));
    assert!(insert("Intel: mean") < insert("Transcend: mean"));
    assert!(insert("Intel: mean, inc") <= insert("Intel: mean"));
}

#[test]
fn figure_7_runs_berkeley_db_whose_lookups_pay_for_writes() {
    let outcome = outcome("figure-7");
    let mut rows = outcome.tables.iter().flat_map(|table| &table.rows);
    assert!(rows.all(|row| row.ours.is_some()), "{:?}", outcome.tables);
    let disk = |row: &str| ours(&outcome, "Disk", row);
    let slow = |kind| disk(&format!("Berkeley DB, other keys: {kind} above 5 ms"));
    assert_within("lookups above 5 ms", slow("lookups"), (0.5, 0.75));
    assert_within("inserts above 5 ms", slow("inserts"), (0.3, 0.6));
    assert_within("disk", disk("without buffers: mean of lookups"), (3.0, 12.0));
    // The cache holds a part of the pages, so a lookup that only read would take less than one without a cache.
    let intel = |row: &str| ours(&outcome, "Intel SSD", row);
    for name in ["Berkeley DB", "Berkeley DB, other keys"] {
        let lookup = intel(&format!("{name}: mean of lookups"));
        assert!(lookup > 2.0 * intel("without buffers: mean of lookups"), "{name}: {lookup}");
        assert!(lookup > intel(&format!("{name}: mean of inserts")), "{name}: {lookup}");
    }
    for drive in ["Disk", "Intel SSD"] {
        let [direct, buffered] =
            ["without buffers: mean of inserts", "BufferHash: mean of inserts"]
                .map(|row| ours(&outcome, drive, row));
        assert!(direct > 30.0 * buffered, "{drive}: {direct} and {buffered}");
    }
}

#[test]
fn table_3_grows_with_the_share_of_lookups() {
    let outcome = outcome_once("table-3");
    let rows = &outcome.tables[0].rows;
    let of = |name: &str| -> Vec<f64> {
        let is_its = |row: &&Row| row.what.starts_with(name) && row.what.ends_with(" lookups");
        rows.iter().filter(is_its).filter_map(|row| row.ours).collect()
    };
    let (means, berkeley) = (of("BufferHash"), of("Berkeley DB"));
    assert_eq!((means.len(), berkeley.len()), (5, 5));
    // The paper has 18.4 ms of inserts, and 0.3 of lookups.
    assert!(berkeley.is_sorted_by(|a, b| a > b), "{berkeley:?}");
    assert_within("Berkeley DB, inserts", berkeley[0], (18.0, 60.0));
    assert_within("Berkeley DB, lookups", berkeley[4], (0.2, 0.6));
    assert!(means.is_sorted(), "{means:?}");
    assert_within("inserts", means[0], (0.0055, 0.03));
    assert_within("lookups", means[4], (0.15, 0.35));
}

#[test]
fn without_buffers_an_insert_costs_hundreds_of_times_more() {
    let outcome = outcome("no-buffering");
    let row = |row| ours(&outcome, "Inserts", row);
    assert_within("gain", row("without buffers over"), (200.0, 2000.0));
    assert_within("high", row("without buffers, inserts"), (1.0, 10.0));
    assert!(row("without buffers, 20") < row("without buffers, inserts") / 2.0);
}

#[test]
fn without_filters_a_lookup_reads_every_incarnation() {
    let outcome = outcome_once("no-filters");
    let row = |row| ours(&outcome, "Flash reads", row);
    assert_within("all", row("0 % found, without filters: reads"), (14.0, 18.0));
    assert_within("some", row("40 % found, without filters: time"), (1.6, 2.2));
    assert_within("gain", row("40 % found, without over"), (20.0, 45.0));
    assert!(row("80 % found, without filters: time") < row("40 % found, without filters: time"));
    assert!(row("80 % found, with filters: time") > row("40 % found, with filters: time"));
}

#[test]
fn bit_slicing_looks_at_a_sixth_of_the_memory() {
    let outcome = outcome("no-bit-slicing");
    let row = |row| ours(&outcome, "Memory", row);
    assert_within("sliced", row("absent key, bit-sliced"), (4.5, 6.5));
    // Half of all bits are set, so two bits are read of each of 16 filters.
    assert_within("apart", row("absent key, filters"), (30.0, 34.0));
    assert_eq!(row("key of the oldest incarnation, bit-sliced"), 11.0);
}

#[test]
fn partial_discard_costs_more_than_full_discard() {
    let outcome = outcome("figure-8");
    let full = |row| ours(&outcome, "Inserts with full", row);
    let partial = |row| ours(&outcome, "Inserts with partial", row);
    assert!(full("LRU over FIFO: flushes") >= 1.0);
    for (policy, least) in
        [("update-based, Transcend: mean, inc", 1.3), ("update-based, Transcend: mean", 3.0)]
    {
        let base = full("FIFO, Transcend: mean, inc");
        assert!(partial(policy) > least * base, "{policy}: {} and {base}", partial(policy));
    }
    assert_within("kept", partial("update-based: part"), (0.3, 0.95));
    let cascades = |row| ours(&outcome, "Cascades", row);
    assert_within("tried", cascades("incarnations tried for each flush"), (0.9, 1.5));
    assert_within("of users", cascades("incarnations tried for each buffer"), (1.5, 17.0));
}

#[test]
fn the_papers_own_eviction_flushes_often_once_nearly_all_entries_stay() {
    let outcome = outcome("figure-8");
    let row = |row: &str| ours(&outcome, "The paper's own", row);
    let [first, later] = ["40 % updates, the rest new", "the same, a table's length later"];
    for moment in ["keys from a range", first, later] {
        assert_eq!(row(&format!("{moment}: incarnations tried for each flush")), 1.0);
    }
    let flush = |moment: &str| row(&format!("{moment}: inserts for each flush"));
    assert!(flush(first) > 1000.0 && flush(later) < 200.0);
    // The paper has 0.56 ms and 0.08.
    assert_within("Transcend", row(&format!("{later}: mean of inserts, Transcend")), (0.2, 2.0));
    assert_within("Intel", row(&format!("{later}: mean of inserts, Intel")), (0.01, 0.2));
}

#[test]
fn drives_by_partition_are_as_fast_as_striped_ones_except_for_a_flush() {
    let outcome = outcome_once("several-drives");
    let rate = |row: &str| ours(&outcome, "32 threads", row);
    for spread in ["by partition", "striped"] {
        let more = rate(&format!("4 drives, {spread}: lookups over 1 drive"));
        assert_within(spread, more, (2.0, 4.1));
    }
    let flush = |name: &str| ours(&outcome, "Flushes", &format!("{name}: a flush alone"));
    assert_within("apart", flush("4 drives, by partition") / flush("1 drive"), (0.8, 1.25));
    assert!(flush("4 drives, striped") < 0.8 * flush("1 drive"));
    for (drives, least) in [("2 drives", 1.6), ("4 drives", 2.5)] {
        let row = format!("{drives}, by partition: inserts without a processor, over 1 drive");
        assert!(ours(&outcome, "Flushes", &row) >= least, "{row}");
    }
}

#[test]
fn the_table_is_cheaper_than_a_dram_ssd_by_an_order_of_magnitude() {
    let outcome = run("cost").outcome;
    let dollars = |row: &str| ours(&outcome, "For each dollar", row);
    assert_eq!(dollars("RamSan"), 2.5);
    assert_within("lookups", dollars("BufferHash, lookups"), (33.0, 50.0));
    assert_within("inserts", dollars("BufferHash, inserts"), (330.0, 500.0));
    assert!(ours(&outcome, "For each watt", "BufferHash over RamSan, lookups, at least") > 10.0);
}

#[test]
fn figures_3_and_4_are_the_formulas_with_the_papers_bounds() {
    let overhead = run("figure-3").outcome;
    let ms = |row: &str| ours(&overhead, "Time of false-positive reads", row);
    for device in ["flash chip", "Intel"] {
        let named = |what: &str| format!("{device}, 32 GiB of flash: {what}");
        assert_within("1 GiB", ms(&named("with 1 GiB of filters")), (0.05, 1.0));
        assert_within("for 1 ms", ms(&named("filters for 1 ms")), (700.0, 1024.0));
        assert!(ms(&named("with 2 GiB of filters")) < ms(&named("with 1 GiB of filters")) / 20.0);
    }
    let insert = run("figure-4").outcome;
    for row in ["the buffer that costs least on average", "the buffer that costs least at worst"] {
        assert_eq!(ours(&insert, "Flash chip", row), 128.0);
    }
    assert!(ours(&insert, "Intel", "1 MiB over 128 KiB, on average") < 1.0);
    assert!(ours(&insert, "Intel", "1 MiB over 128 KiB, at worst") > 1.0);
}

#[test]
fn figure_9_is_ideal_on_slow_links_and_what_asks_the_drive_each_time_is_not() {
    let outcome = outcome_once("figure-9");
    let at = |table: &str, name: &str, speed: u64| {
        ours(&outcome, table, &format!("{name}, {speed} Mb/s"))
    };
    let [half, few] = ["Effective bandwidth improvement, 5", "Effective bandwidth improvement, 1"];
    for (table, ideal) in [(half, 2.0), (few, 1.18)] {
        let none = ours(&outcome, table, "an index that takes no time");
        assert_within("ideal", none, (0.95 * ideal, 1.05 * ideal));
        for name in ["BufferHash, Transcend", "BufferHash, Transcend by its parts"] {
            let by_speed = [10, 20, 50, 100, 200, 400, 500].map(|speed| at(table, name, speed));
            assert!(by_speed.is_sorted_by(|one, other| one >= other), "{by_speed:?}");
            // The trace is short here: its longest object, which the link waits for, has a sixth of the chunks.
            assert!(by_speed[2] > 0.93 * none, "{by_speed:?}");
            assert!(by_speed[3] > 10.0 * at(table, "without buffers, Transcend", 100));
        }
        assert!(at(table, "BufferHash, Intel", 200) > 0.93 * none);
    }
    assert!(at(half, "BufferHash, Transcend", 400) < 1.0);
    // Few repeats are few reads, so that it comes nearer to ideal.
    let of_ideal = |table: &str| {
        at(table, "BufferHash, Transcend", 200)
            / ours(&outcome, table, "an index that takes no time")
    };
    assert!(of_ideal(few) > 1.5 * of_ideal(half), "{} and {}", of_ideal(few), of_ideal(half));
    assert_within("Berkeley DB", at(half, "Berkeley DB of 1.25 ms", 10), (1.8, 2.05));
    assert!(at(half, "Berkeley DB of 1.25 ms", 50) < 0.5);
    // It slows the link at every speed, on either drive at 50 Mb/s.
    assert!(at(half, "Berkeley DB, Transcend", 10) < 0.5);
    assert!(at(half, "Berkeley DB, Intel", 50) < 1.0);
    assert!(at(half, "Berkeley DB, Intel", 10) > at(half, "Berkeley DB, Transcend", 10));
}

#[test]
fn figure_10_improves_objects_more_with_bufferhash_and_slows_fewer() {
    let outcome = outcome_once("figure-10");
    let mean = |row| ours(&outcome, "Improvement of an object's throughput", row);
    assert_within("BufferHash", mean("BufferHash"), (1.5, 5.0));
    assert!(mean("BufferHash") > 1.2 * mean("Berkeley DB of 1.25 ms"));
    assert!(mean("without buffers") < 0.5, "{}", mean("without buffers"));
    assert!(mean("Berkeley DB") < 0.5, "{}", mean("Berkeley DB"));
    let slowed = |row: &str| ours(&outcome, "Share of objects", row);
    assert!(slowed("BufferHash: slowed") < slowed("Berkeley DB of 1.25 ms: slowed") / 2.0);
    let of_small = "of those up to 500 KB, slowed to half or less";
    let of_small = |name: &str| slowed(&format!("{name}: {of_small}"));
    assert!(of_small("BufferHash") < of_small("Berkeley DB of 1.25 ms"));
    let time = |row| ours(&outcome, "Time of an object", row);
    assert!(time("BufferHash: mean") < time("without the optimizer"));
}

#[test]
fn a_merge_in_order_takes_minutes_and_one_key_by_key_days() {
    let outcome = outcome_once("merge");
    let keys = |row| ours(&outcome, "As many fingerprints", row);
    assert_within("fingerprints", keys("fingerprints in 2 hours"), (5e5, 5.5e5));
    assert_within("Intel", keys("Intel SSD: BufferHash"), (0.2, 2.0));
    assert_within("disk", keys("Disk: without buffers"), (60.0, 240.0));
    // The paper estimates 120.
    assert_within("Berkeley DB", keys("Disk: Berkeley DB"), (50.0, 240.0));
    assert!(keys("Intel SSD: Berkeley DB") > 3.0 * keys("Intel SSD: BufferHash"));
    let merged = |row: &str| ours(&outcome, "Two indexes", row);
    for drive in ["Intel SSD", "Disk"] {
        let (in_order, ratio) = (format!("{drive}: in order"), "without buffers, over in order");
        assert_within("in order", merged(&in_order), (1.0, 60.0));
        assert!(merged(&format!("{drive}: key by key {ratio}")) > 1000.0, "{drive}");
    }
}

/// Checks that every opened element is closed, in order.
fn assert_well_formed(page: &str) {
    const VOID: [&str; 2] = ["meta", "!doctype"];
    let mut open = Vec::new();
    for part in page.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().expect("one part");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_has_every_row_and_curve_and_refers_to_nothing_outside_itself() {
    let mut report = Report::new(Paper::BufferHash, scale());
    report.experiments.extend([run("no-buffering"), run("no-bit-slicing")]);
    let page = html(&report);
    assert_well_formed(&page);
    for reference in ["http://", "https://", "src=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.split("href=").skip(1).all(|link| link.starts_with("\"#")), "links within it");
    assert!(page.contains("prefers-color-scheme: dark"));
    assert_eq!(page.matches("<tr><td").count(), 6 + 6);
    assert_eq!(page.matches("<path class").count(), 3);
    let text = text(&report);
    let rows =
        report.experiments.iter().flat_map(|ran| &ran.outcome.tables).flat_map(|it| &it.rows);
    for row in rows {
        assert!(text.contains(&row.what), "{}", row.what);
    }
}

#[test]
fn another_seed_gives_other_keys() {
    let other = Scale::new(Scale::MOST, 2).expect("it is in range");
    let all = experiments(Paper::BufferHash);
    let experiment = all.iter().find(|it| it.name() == "no-bit-slicing").expect("it is there");
    let [first, second] = [scale(), other].map(|scale| experiment.run(scale).expect("it runs"));
    assert_ne!(first, second);
}
