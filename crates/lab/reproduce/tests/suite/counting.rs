//! Hash in a Flash: Table 2, and the text's statements on the figures.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use nandex_reproduce::counting::{Corpus, on_corpus};
use nandex_reproduce::{Origin, Paper, Ran, Report, Row, Scale, experiments, html, text};

use crate::outcome::{assert_within, ours, run, scale};

const PAPER: Paper = Paper::Counting;

/// Runs an experiment at the default scale, where a page has 32 entries.
fn at_default(name: &str) -> Ran {
    let all = experiments(PAPER);
    let experiment = all.iter().find(|it| it.name() == name).expect("there is such an experiment");
    Ran::run(Paper::Counting, &**experiment, Scale::default()).expect("nothing stops it")
}

fn rows(ran: &Ran) -> impl Iterator<Item = &Row> {
    ran.outcome.tables.iter().flat_map(|table| &table.rows)
}

#[test]
fn every_count_of_table_2_is_within_a_tenth_of_the_papers() {
    let ran = at_default("table-2");
    let compared: Vec<f64> = rows(&ran).filter_map(|row| row.ratio).collect();
    assert_eq!(compared.len(), 8 + 2 * 3 * 16 + 3);
    for row in rows(&ran) {
        assert_within(&row.what, row.ratio.expect("the paper has it"), (0.9, 1.1));
    }
}

#[test]
fn only_what_the_209_stages_of_one_percent_give_back_is_fitted_in_table_2() {
    let ran = run(PAPER, "table-2");
    for table in &ran.outcome.tables {
        for row in &table.rows {
            let is_stages = row.what == "RAM 1 %: stages";
            let is_mb = table.title == "MB" && row.what.starts_with("RAM 1 %");
            let is_fitted =
                matches!(row.origin(), Origin::Fitted { fitted_to } if fitted_to.contains("209"));
            assert_eq!(is_fitted, is_stages || is_mb, "{}: {}", table.title, row.what);
        }
    }
}

#[test]
fn the_counts_of_tokens_alone_give_fewer_stages_than_the_paper_has() {
    let ran = run(PAPER, "tokens");
    for (percent, paper) in [(1, 209.0), (2, 89.0), (5, 29.0), (10, 13.0)] {
        let row = format!("RAM {percent} %: stages");
        let alone = ours(&ran.outcome, "Stages, the law fitted to both counts", &row);
        assert_within(&row, alone / paper, (0.7, 0.9));
        let fitted = ours(&ran.outcome, "Stages, the law fitted to the 209", &row);
        assert_within(&row, fitted / paper, (0.9, 1.01));
    }
}

#[test]
fn queries_are_as_fast_as_the_text_ranks_them() {
    let ran = run(PAPER, "figure-3");
    let claim = |row: &str| ours(&ran.outcome, "What the text says", row);
    assert_within("MDB-L over MB", claim("MDB-L over MB"), (1.5, 20.0));
    assert_within("MDB over MDB-L", claim("MDB over MDB-L"), (1.5, 40.0));
    assert_within("MDB over MB", claim("MDB over MB"), (10.0, 60.0));
    assert_within("log", claim("MDB-L: change segment 50 % over"), (2.0, 6.0));
    assert_within("MB", claim("MB: RAM 1 % over 10 %"), (0.95, 1.05));
}

#[test]
fn a_change_segment_saves_cleans_and_a_log_costs_least() {
    let ran = run(PAPER, "figure-5");
    let claim = |row: &str| ours(&ran.outcome, "What the text says", row);
    assert_within("MB over MDB", claim("MB over MDB, RAM 1 %"), (5.0, 20.0));
    assert_within("MDB over MDB-L", claim("MDB over MDB-L"), (0.9, 1.1));
    let ran = run(PAPER, "figure-4");
    let claim = |row: &str| ours(&ran.outcome, "What the text says", row);
    assert_within("MB over MDB-L", claim("MB over MDB-L"), (1.5, 4.0));
    assert_within("drives", claim("MLC-1 over MLC-2"), (1.2, 3.0));
}

#[test]
fn without_a_buffer_cleans_are_on_both_sides_of_the_papers() {
    let ran = run(PAPER, "no-buffer");
    for table in ["Wiki", "Meme"] {
        let cleans = |row: &str| ours(&ran.outcome, table, row);
        let least = cleans("cleans, if nothing");
        assert_within("larger", cleans("cleans, larger") / least, (0.9, 1.5));
        assert!(cleans("cleans, smallest") > 2.0 * least);
    }
}

#[test]
fn the_same_scale_and_seed_give_the_same_outcome() {
    for name in ["table-2", "tokens"] {
        assert_eq!(run(PAPER, name), run(PAPER, name), "{name}");
    }
}

/// Returns the corpus's experiment.
fn on(path: &Path, scale: Scale) -> Ran {
    let corpus = Corpus::read(path).expect("it can be read");
    Ran::run(Paper::Counting, &*on_corpus(corpus), scale).expect("nothing stops it")
}

/// Returns the repository's own pages.
fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs")
}

/// Counts a corpus of different words only, each three times: a buffer is full by their number alone.
#[test]
fn operations_on_a_corpus_are_those_that_its_different_words_make() {
    let folder = tempfile::tempdir().expect("there is a place for it");
    let words = (0..30_000).fold(String::new(), |mut all, number| {
        writeln!(all, "w{number} W{number}, (w{number})").expect("a text takes everything");
        all
    });
    fs::write(folder.path().join("words.txt"), words).expect("it can be written");
    let ran = on(folder.path(), scale());
    let row = |table: &str, row: &str| ours(&ran.outcome, table, row) as u64;
    assert_eq!(row("The corpus", "tokens"), 90_000);
    assert_eq!(row("The corpus", "different tokens"), 30_000);
    // Two entries of a page: 2 * 128 * 205 of all pages; 1, 2, 5 and 10 % of them are in RAM.
    for (percent, entries) in [(1, 524), (2, 1049), (5, 2624), (10, 5248)] {
        let stages = 30_000_u64.div_ceil(entries);
        assert_eq!(row("MB", &format!("RAM {percent} %: merges")), stages);
        // A buffer of so few keys has none for some of the blocks.
        let blocks = row("MB", &format!("RAM {percent} %: operations on blocks"));
        assert!((stages * 370..=stages * 410).contains(&blocks), "{percent}: {blocks}");
        for (change, blocks) in [("50 %", 103), ("25 %", 52), ("12.5 %", 26)] {
            let title = format!("MDB-L, change segment {change}");
            assert_eq!(row(&title, &format!("RAM {percent} %: stages")), stages);
            let merges = 30_000_u64.div_ceil(blocks * 256);
            assert_eq!(row(&title, &format!("RAM {percent} %: merges")), merges, "{title}");
            let operations = row(&title, &format!("RAM {percent} %: operations on blocks"));
            // The last log may have keys for some of the blocks only.
            let most = merges * 410;
            assert!((most - 420..=most).contains(&operations), "{title}: {operations}");
        }
    }
}

#[test]
fn a_real_text_is_measured_and_only_ratios_stand_next_to_the_papers() {
    let mut words = Vec::new();
    let mut folders = vec![docs()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it is there").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(path).expect("it is a text").to_lowercase();
            let found = text.split(|char: char| !char.is_alphanumeric());
            words.extend(found.filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    let ran = on(&docs(), scale());
    let sizes = ran.outcome.tables.iter().find(|it| it.title == "The corpus, docs");
    let sizes = &sizes.expect("it is named by its folder").rows;
    let distinct = words.iter().collect::<HashSet<_>>().len();
    assert_eq!(sizes[0].ours, Some(words.len() as f64));
    assert_eq!(sizes[1].ours, Some(distinct as f64));
    assert!(rows(&ran).all(|row| row.origin() == Origin::Corpus && row.ours.is_some()));
    let ratios = rows(&ran).filter(|row| row.paper.is_some()).count();
    assert_eq!(ratios, 1 + 3 * 4 * 5, "one of the sizes, and those of disciplines");
    let more = ours(&ran.outcome, "One discipline over another", "RAM 1 %: operations on blocks");
    assert_within("MB over MDB", more, (1.5, 100.0));
    // A larger table of the law has the same corpus.
    assert_eq!(ran, on(&docs(), Scale::default()));
}

#[test]
fn page_and_text_and_data_tell_the_corpus() {
    let folder = tempfile::tempdir().expect("there is a place for it");
    let path = folder.path().join("two <words>.txt");
    fs::write(&path, "two words two").expect("it can be written");
    let mut report = Report::new(PAPER, scale());
    report.experiments.push(on(&path, scale()));
    let (page, text) = (html(&report), text(&report));
    assert!(page.contains("two &lt;words&gt;.txt: 1 files of 13 bytes with 3 tokens, 2 of them"));
    assert!(page.contains("<td class=\"origin\">measured on your corpus</td>"), "{page}");
    assert!(text.contains("The corpus, two <words>.txt"), "{text}");
    assert!(text.contains("measured on your corpus"), "{text}");
    let json = serde_json::to_value(&report).expect("it is data");
    let ran = &json["experiments"][0];
    assert!(ran["setup"][0].as_str().is_some_and(|text| text.contains("with 3 tokens, 2 of")));
    let tokens = &ran["tables"][0]["rows"][0];
    assert_eq!((&tokens["ours"], &tokens["origin"]), (&3.0.into(), &"corpus".into()));
}
