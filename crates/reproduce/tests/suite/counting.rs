//! Hash in a Flash: Table 2, and what the text says of the figures.

use nandex_reproduce::{Origin, Paper, Ran, Row, Scale, experiments};

use crate::outcome::{assert_within, ours, run};

const PAPER: Paper = Paper::Counting;

/// An experiment at the default scale, where a page has 32 entries.
fn at_default(name: &str) -> Ran {
    let all = experiments(PAPER);
    let experiment = all.iter().find(|it| it.name() == name).expect("there is such an experiment");
    Ran::run(&**experiment, Scale::default()).expect("nothing stops it")
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
