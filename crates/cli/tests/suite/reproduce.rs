//! Runs `nandex reproduce` as a child process: what it prints, the page it writes, what it refuses.

use std::fs;

use crate::common::Folder;
use serde_json::Value;

#[test]
fn an_experiment_is_printed_next_to_the_paper_and_drawn_in_a_page() {
    let folder = Folder::new();
    let words = "reproduce bufferhash --only no-buffering --scale 8192";
    let outcome = folder.run(&format!("{words} --report r.html --progress plain"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("without buffers, inserts without a pause: mean, ms"));
    assert!(outcome.stderr.starts_with("1 of 1: no-buffering, "), "{outcome:?}");
    assert!(outcome.stderr.contains("report: r.html"), "{outcome:?}");
    let page = fs::read_to_string(folder.path("r.html")).expect("it was written");
    assert!(page.contains("<path class=\"s0\"") && page.ends_with("</html>\n"));
    let json = folder.run(&format!("{words} --json --progress none"));
    assert_eq!((json.code, json.stderr.as_str()), (0, ""), "{json:?}");
    let json: Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    let row = &json["experiments"][0]["tables"][0]["rows"][0];
    assert_eq!(row["paper"]["value"], 4.8, "{row}");
    assert!(row["ours"].as_f64().is_some_and(|ours| ours > 0.5), "{row}");
}

#[test]
fn the_other_papers_can_be_run_too() {
    for (experiment, conference, row, words) in [
        ("slicehash --only analysis", "ANCS 2014", ("ratio", 0.9..1.1), "section 5.4"),
        (
            "cascade --only in-ram",
            "HotStorage 2011",
            ("paper", 3.0..3.1),
            "Quotient filters in RAM",
        ),
        (
            "rhik --only capacity",
            "HPDC 2023",
            ("ours", 0.05..0.2),
            "Keys of a drive of 3.84 TB, by the length of values",
        ),
    ] {
        let folder = Folder::new();
        let words_of_run = "--scale 8192 --report r.html --json --progress none";
        let outcome = folder.run(&format!("reproduce {experiment} {words_of_run}"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let json: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
        assert!(json["paper"].as_str().is_some_and(|paper| paper.ends_with(conference)), "{json}");
        let rows = json["experiments"][0]["tables"][0]["rows"].as_array().expect("there are rows");
        let (figure, range) = row;
        let number = |row: &Value| row[figure].as_f64().or_else(|| row[figure]["value"].as_f64());
        let fits = |row: &Value| number(row).is_some_and(|number| range.contains(&number));
        assert!(rows.iter().any(fits), "{json}");
        let page = fs::read_to_string(folder.path("r.html")).expect("it was written");
        assert!(page.contains(words), "{experiment}");
    }
}

#[test]
fn a_corpus_is_counted_by_the_papers_designs() {
    let folder = Folder::new();
    fs::write(folder.path("text"), include_str!("../../../../README.md"))
        .expect("it can be written");
    let words = "reproduce counting --corpus text --only corpus --report r.html --json";
    let outcome = folder.run(&format!("{words} --progress none"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let json: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    let row = &json["experiments"][0]["tables"][0]["rows"][0];
    assert_eq!((&row["what"], &row["origin"]), (&"tokens".into(), &"measured".into()));
    let page = fs::read_to_string(folder.path("r.html")).expect("it was written");
    assert!(page.contains("measured on your corpus") && page.contains("The corpus is text: 1"));
    folder.assert_refused(
        "1 | reproduce counting --corpus absent --report x.html | absent: No such file\n\
         1 | reproduce counting --only corpus | `corpus` needs --corpus PATH\n\
         1 | reproduce cascade --corpus text | --corpus is for `nandex reproduce counting`",
    );
    assert!(!folder.path("x.html").exists());
}

#[test]
fn what_the_paper_does_not_have_is_refused_before_anything_runs() {
    let folder = Folder::new();
    let outcome = folder.run("reproduce bufferhash --only figure-99 --report r.html");
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("no experiment figure-99; there are merge, figure-3, figure-4")
    );
    assert!(!folder.path("r.html").exists());
    let outcome = folder.run("reproduce bufferhash --scale 1000");
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("take a power of two from 64 to 8192"), "{outcome:?}");
    assert_eq!(folder.run("reproduce cuckoo").code, 2);
}
