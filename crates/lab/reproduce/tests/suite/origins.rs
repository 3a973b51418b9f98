//! The fitted rows: those that return a printed number, and no others.

use nandex_reproduce::{Origin, Paper, Report, Source, constants, html, text};

use crate::outcome::{run, scale};

/// The fitted rows of an experiment, and their printed numbers.
fn fitted(paper: Paper, name: &str) -> Vec<(String, &'static str)> {
    let outcome = run(paper, name).outcome;
    let rows = outcome.tables.into_iter().flat_map(|table| table.rows);
    rows.filter_map(|row| match row.origin() {
        Origin::Fitted { fitted_to } => Some((row.what, fitted_to)),
        _ => None,
    })
    .collect()
}

fn assert_fitted(paper: Paper, name: &str, wanted: &[(&str, &str)]) {
    let found = fitted(paper, name);
    assert_eq!(found.len(), wanted.len(), "{name}: {found:?}");
    for ((what, fitted_to), (row, number)) in found.iter().zip(wanted) {
        assert!(what.starts_with(row) && fitted_to.contains(number), "{name}: {what}, {fitted_to}");
    }
}

#[test]
fn times_of_the_papers_drives_are_fitted_and_what_follows_from_them_is_measured() {
    let nsdi = |name, wanted: &[_]| assert_fitted(Paper::BufferHash, name, wanted);
    nsdi(
        "figure-6",
        &[
            ("Transcend: 90 % take at most", "0.6 ms"),
            ("Intel: mean", "0.006 ms"),
            ("Intel: mean, incarnations alone", "0.006 ms"),
            ("Intel: the longest", "2.72 ms"),
            ("Intel: the longest, incarnations alone", "2.72 ms"),
            ("Transcend: the longest", "30 ms"),
            ("Transcend: the longest, incarnations alone", "30 ms"),
        ],
    );
    nsdi("no-buffering", &[("with buffers: mean", "0.006 ms")]);
    nsdi("figure-7", &[]);
    nsdi("figure-3", &[]);
    nsdi("figure-4", &[("an insert with 128 KiB, at worst", "2.72 ms")]);
    let fast = fitted(Paper::BufferHash, "figure-9");
    assert!(!fast.is_empty() && fast.iter().all(|row| row.0.starts_with("Berkeley DB of 1.25 ms")));
    nsdi(
        "figure-10",
        &[("Berkeley DB of 1.25 ms", "2 x"), ("BufferHash over Berkeley DB of 1.25 ms", "2 x")],
    );
    let reads = fitted(Paper::BufferHash, "table-2");
    let [chip, intel] = ["0.24 ms", "0.15 ms"]
        .map(|number| reads.iter().filter(|(_, fitted_to)| fitted_to.contains(number)).count());
    assert!(chip > 0 && intel > 0 && chip + intel == reads.len(), "{reads:?}");
}

#[test]
fn reads_of_the_m4_are_fitted_and_the_bound_of_cores_is_too() {
    let ancs = |name, wanted: &[_]| assert_fitted(Paper::SliceHash, name, wanted);
    ancs(
        "figure-2",
        &[
            ("reads a second, best", "69 000"),
            ("reads a second, worst", "5.2th"),
            ("best over worst", "5.2th"),
            ("reads a second, best, drive by its data sheet", "40 000"),
            ("2 threads: reads a second, worst", "5.2th"),
            ("4 threads: reads a second, worst", "5.2th"),
            ("8 threads: reads a second, worst", "5.2th"),
            ("16 threads: reads a second, worst", "5.2th"),
            ("writes of 128 KiB, threads: 1", "175 MB/s"),
            ("writes of 128 KiB, threads: 2", "175 MB/s"),
            ("writes of 128 KiB, threads: 4", "175 MB/s"),
            ("writes of 128 KiB, threads: 8", "175 MB/s"),
            ("writes of 128 KiB, threads: 16", "175 MB/s"),
            ("writes of 128 KiB, threads: 32", "175 MB/s"),
        ],
    );
    ancs(
        "figure-5",
        &[
            ("SliceHash", "69 000"),
            ("SliceHash, drive by its data sheet", "40 000"),
            ("BufferHash, 32 threads", "8 cores at 1 100 000"),
        ],
    );
    ancs("table-6", &[("1 drive: lookups", "69 000"), ("1 drive: lookups", "69 000")]);
    ancs("analysis", &[]);
    ancs("slicelsh", &[]);
}

/// The rows of an experiment that no number of the paper can be compared with, by origin.
fn rows_of(paper: Paper, name: &str, is: fn(Origin) -> bool) -> Vec<String> {
    let outcome = run(paper, name).outcome;
    let rows = outcome.tables.into_iter().flat_map(|table| table.rows);
    rows.filter(|row| is(row.origin())).map(|row| row.what).collect()
}

#[test]
fn what_a_load_was_made_with_is_an_input_and_the_papers_formula_is_a_formula() {
    let input = |paper, name| rows_of(paper, name, |it| it == Origin::Input);
    assert_eq!(input(Paper::BufferHash, "table-2").len(), 2, "share of lookups that find");
    assert_eq!(input(Paper::BufferHash, "figure-10"), ["part of the bytes that repeat"]);
    assert_eq!(input(Paper::BufferHash, "figure-9").len(), 2, "the redundancy of both traces");
    let formula = |paper, name| rows_of(paper, name, |it| it == Origin::Formula).len();
    assert_eq!(formula(Paper::BufferHash, "figure-3"), 12);
    assert_eq!(formula(Paper::BufferHash, "figure-5"), 3);
    assert_eq!(formula(Paper::SliceHash, "analysis"), 10);
}

#[test]
fn what_rests_on_an_assumed_constant_names_it_and_the_constant_is_listed() {
    let constants = constants().unwrap();
    for (paper, name) in [
        (Paper::BufferHash, "no-bit-slicing"),
        (Paper::Cascade, "in-ram"),
        (Paper::Cascade, "deck"),
        (Paper::Cascade, "insertion"),
        (Paper::Rhik, "capacity"),
    ] {
        let rows = run(paper, name).outcome.tables.into_iter().flat_map(|table| table.rows);
        let assumed: Vec<_> = rows
            .filter_map(|row| match row.origin() {
                Origin::Assumed { assumed } => Some(assumed),
                _ => None,
            })
            .collect();
        assert!(!assumed.is_empty(), "{name}");
        for it in assumed {
            let constant = constants.iter().find(|constant| constant.name == it).expect(it);
            assert!(matches!(constant.source, Source::Assumed(_)), "{it}");
        }
    }
}

#[test]
fn the_decks_slow_processor_is_fitted() {
    assert_fitted(
        Paper::Cascade,
        "deck",
        &[
            ("a fingerprint in a merge", "670 000"),
            ("cascade filter, fan-out 2, as published", "670 000"),
            ("cascade filter, fan-out 2, as published, over buffered", "670 000"),
            ("cascade filter, fan-out 2, as published, over page-blocked", "670 000"),
            ("cascade filter, two levels, fan-out 8", "670 000"),
            ("cascade filter, one wide level", "670 000"),
        ],
    );
}

#[test]
fn page_and_text_say_what_a_number_was_fitted_to_and_what_is_only_printed() {
    let mut report = Report::new(Paper::BufferHash, scale());
    report.experiments.push(run(Paper::BufferHash, "no-buffering"));
    report.experiments.push(run(Paper::SliceHash, "table-4"));
    let (page, text) = (html(&report), text(&report));
    assert!(page.contains("<b class=\"fitted\">fitted</b> to 0.006 ms for an insert"), "{page}");
    assert!(text.contains("with buffers: mean: fitted to 0.006 ms for an insert"), "{text}");
    assert!(page.contains("recorded on a virtual core"), "{page}");
    for word in ["measured", "stated"] {
        assert!(page.contains(&format!("<td class=\"origin\">{word}</td>")), "{word}");
        assert!(text.contains(&format!("  {word}\n")), "{word}");
    }
}

#[test]
fn the_page_draws_every_number_of_the_paper_and_colours_how_near_ours_is() {
    for (paper, name, closeness) in [
        (Paper::BufferHash, "table-2", "near"),
        (Paper::SliceHash, "analysis", "fitted"),
        (Paper::BufferHash, "no-buffering", "fitted"),
        (Paper::BufferHash, "no-buffering", "far"),
    ] {
        let mut report = Report::new(paper, scale());
        report.experiments.push(run(paper, name));
        let printed = report.experiments[0].outcome.tables.iter().flat_map(|table| &table.rows);
        let printed = printed.filter(|row| row.paper.is_some()).count();
        let page = html(&report);
        assert_eq!(page.matches("<rect class=\"printed\"").count(), printed, "{name}");
        assert!(page.contains(&format!("class=\"number ratio {closeness}\"")), "{name}");
    }
}
