//! Runs `nandex-lab reproduce` as a child process: its output, the page it writes, its errors.

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
    fs::write(folder.path("text"), include_str!("../../../../../README.md"))
        .expect("it can be written");
    let words = "reproduce counting --corpus text --only corpus --report r.html --json";
    let outcome = folder.run(&format!("{words} --progress none"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let json: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    let row = &json["experiments"][0]["tables"][0]["rows"][0];
    assert_eq!((&row["what"], &row["origin"]), (&"tokens".into(), &"corpus".into()));
    let page = fs::read_to_string(folder.path("r.html")).expect("it was written");
    assert!(page.contains("measured on your corpus") && page.contains("The corpus is text: 1"));
    folder.assert_refused(
        "1 | reproduce counting --corpus absent --report x.html | absent: No such file\n\
         2 | reproduce counting --only corpus | `corpus` needs --corpus PATH\n\
         2 | reproduce cascade --corpus text | --corpus is for `nandex-lab reproduce counting`",
    );
    assert!(!folder.path("x.html").exists());
}

#[test]
fn what_the_paper_does_not_have_is_refused_before_anything_runs() {
    let folder = Folder::new();
    let outcome = folder.run("reproduce bufferhash --only figure-99 --report r.html");
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.contains("no experiment figure-99; there are merge, figure-3, figure-4")
    );
    assert!(!folder.path("r.html").exists());
    let outcome = folder.run("reproduce bufferhash --scale 1000");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("take a power of two from 64 to 8192"), "{outcome:?}");
    assert_eq!(folder.run("reproduce cuckoo").code, 2);
}

/// Two quick experiments of different papers.
const QUICK: &str = "reproduce all --only cascade/in-ram --only rhik/capacity --only slicehash/analysis --scale 8192";

/// Returns the names and bytes of the files of a report.
fn report_of(folder: &Folder, name: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder.path(name)).expect("it was made");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("it can be listed");
            let name = entry.file_name().into_string().expect("it is text");
            (name, fs::read(entry.path()).expect("it is a file"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn all_papers_are_pages_with_an_index_and_two_runs_give_the_same_bytes() {
    let folder = Folder::new();
    let first = folder.run(&format!("{QUICK} --report first --progress plain"));
    assert_eq!(first.code, 0, "{first:?}");
    assert!(
        first.stderr.contains("3 of 3: ") && first.stderr.contains("report: first"),
        "{first:?}"
    );
    let line = first.stdout.lines().find(|line| line.starts_with("rhik")).expect("a line each");
    assert!(line.split_whitespace().nth(1) == Some("1"), "{line}");
    let second = folder.run(&format!("{QUICK} --report second --threads 1 --json --progress none"));
    assert_eq!(second.code, 0, "{second:?}");
    let json: Value = serde_json::from_str(&second.stdout).expect("it is JSON");
    assert_eq!(json["scale"]["times"], 8192);
    assert_eq!(json["papers"][0]["experiments"][0]["name"], "in-ram");
    let files = report_of(&folder, "first");
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["cascade.html", "constants.html", "index.html", "rhik.html", "slicehash.html"]
    );
    assert!(files == report_of(&folder, "second"), "the bytes differ");
    let index = String::from_utf8_lossy(&files[2].1).into_owned();
    assert!(index.contains("<a href=\"rhik.html#capacity\">") && !index.contains("<script"));
}

#[test]
fn an_interrupted_run_of_all_papers_goes_on_where_it_was() {
    let folder = Folder::new();
    let whole = folder.run(&format!("{QUICK} --report whole"));
    assert_eq!(whole.code, 0, "{whole:?}");
    // A folder blocks the last page, so that the run ends before it is complete.
    fs::create_dir_all(folder.path("cut/index.html")).expect("it can be made");
    let cut = folder.run(&format!("{QUICK} --report cut"));
    assert_eq!(cut.code, 1, "{cut:?}");
    assert!(cut.stderr.contains("cannot write cut/index.html"), "{cut:?}");
    let kept = folder.path("cut/unfinished");
    assert_eq!(fs::read_dir(&kept).expect("it is there").count(), 3);
    fs::remove_dir(folder.path("cut/index.html")).expect("it is empty");
    fs::write(kept.join("rhik.capacity.json"), "{\"run\":").expect("it can be written");
    let resumed = folder.run(&format!("{QUICK} --report cut --progress plain"));
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.stderr.contains("2 of 3 experiments are there"), "{resumed:?}");
    assert!(resumed.stderr.contains("3 of 3: rhik/capacity"), "what was damaged: {resumed:?}");
    assert!(report_of(&folder, "whole") == report_of(&folder, "cut"), "the bytes differ");
}

#[test]
fn a_row_alone_is_printed_by_its_number_and_wrong_words_are_refused() {
    let folder = Folder::new();
    let capacity = "reproduce rhik --only capacity --scale 8192 --progress none";
    let whole = crate::common::json(&folder.run(&format!("{capacity} --json")));
    let row = crate::common::json(&folder.run(&format!("{capacity} --row 1.2 --json")));
    let tables = |json: &Value| json["experiments"][0]["tables"].clone();
    assert_eq!(tables(&row)[0]["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(tables(&row)[0]["rows"][0], tables(&whole)[0]["rows"][1]);
    folder.assert_refused(
        "2 | reproduce rhik --only capacity --row 9.1 --scale 8192 | capacity has no row 9.1: its tables have\n\
         2 | reproduce rhik --row 1.1 | --row names a row of one experiment, and 5 are to run\n\
         2 | reproduce rhik --row 1 | expected the number of a table and that of a row, such as 2.1\n\
         2 | reproduce rhik --threads 2 | --threads is for `nandex-lab reproduce all`\n\
         2 | reproduce all | give their folder with --report DIR\n\
         2 | reproduce all --report x --row 1.1 | --corpus and --row are for one paper\n\
         2 | reproduce all --report x --only rhik/merge | no experiment rhik/merge; there are bufferhash/conclusions",
    );
    assert!(!folder.path("x").exists());
}

#[test]
fn the_fitted_constants_are_printed_with_what_they_were_fitted_to() {
    let folder = Folder::new();
    let outcome = folder.run("reproduce constants --report c.html --json");
    let json = crate::common::json(&outcome);
    let constants = json.as_array().expect("it is a list");
    let read = constants.iter().find(|it| it["name"] == "intel-read").expect("it is fitted");
    assert_eq!((&read["value"], &read["unit"]), (&38_933.0.into(), &"ns".into()));
    assert_eq!(
        read["fitted_to"],
        "0.15 ms for a random read (NSDI 2010, 7.2.2); Table 2's 0.31 ms contradicts Figure 6"
    );
    let page = fs::read_to_string(folder.path("c.html")).expect("it was written");
    let rows = page.matches("<tr id=").count();
    assert_eq!(rows, constants.len());
    let outcome = folder.run("reproduce constants");
    assert!(outcome.stdout.contains("deck-merge: in the rows of cascade, deck"), "{outcome:?}");
    folder.assert_refused("2 | reproduce constants --only figure-6 | runs nothing");
}
