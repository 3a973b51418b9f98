//! Runs each verb of `nandex tfidf` as a child process, against tf-idf that is computed here from plain maps.

mod stopped;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Folder, Outcome, json};
use serde_json::{Value, json as value};

/// The least RAM, so that batches are small.
const RAM: &str = "--ram 64MiB";

/// Texts of lower-case letters: a word ends at a space.
const TEXTS: [&str; 5] = [
    "red fish blue fish one fish two fish",
    "the red cat sat",
    "",
    "the cat sat on the cat",
    "blue moon",
];

fn write(folder: &Folder, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.path(name);
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder is writable");
    fs::write(path, bytes).expect("the folder is writable");
}

#[track_caller]
fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn lines(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text}\n")).collect()
}

/// Creates a folder with the texts as lines in `t.txt`.
fn with_texts() -> Folder {
    let folder = Folder::new();
    write(&folder, "t.txt", lines(&TEXTS));
    folder
}

fn objects(outcome: &Outcome) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).expect("an object in each line");
    outcome.stdout.lines().map(parse).collect()
}

/// Returns what the command prints for terms: documents and occurrences.
fn counts(folder: &Folder, index: &str, terms: &str) -> Vec<(u64, u64)> {
    let found = folder.run(&format!("tfidf query {index} {terms} {RAM} --json"));
    let number = |object: &Value, name: &str| object[name].as_u64().expect("a number");
    let counts = objects(&found);
    assert!(!counts.is_empty(), "{found:?}");
    counts.iter().map(|it| (number(it, "documents"), number(it, "occurrences"))).collect()
}

/// A row for each text: the weights of its terms, by their names.
type Rows = Vec<BTreeMap<String, f64>>;

/// Returns the weights of scikit-learn's formula with its default options, for single words.
fn weights(texts: &[&str]) -> Rows {
    let words = |text: &str| -> Vec<String> {
        text.split(' ').filter(|word| word.len() > 1).map(str::to_owned).collect()
    };
    let mut documents: BTreeMap<String, f64> = BTreeMap::new();
    for text in texts {
        let mut once = words(text);
        once.sort();
        once.dedup();
        once.into_iter().for_each(|word| *documents.entry(word).or_default() += 1.0);
    }
    let row = |text: &&str| {
        let mut row: BTreeMap<String, f64> = BTreeMap::new();
        for word in words(text) {
            let idf = ((1.0 + texts.len() as f64) / (1.0 + documents[&word])).ln() + 1.0;
            *row.entry(word).or_default() += idf;
        }
        let length = row.values().map(|weight| weight * weight).sum::<f64>().sqrt();
        row.values_mut().for_each(|weight| *weight /= length);
        row
    };
    texts.iter().map(row).collect()
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
}

/// Returns the numbers of an array of an `.npz` file, whose arrays are not compressed: the bytes after its header.
fn array(npz: &[u8], index: usize, count: usize, width: usize) -> Vec<&[u8]> {
    let is_start = |at: &usize| npz[*at..].starts_with(b"\x93NUMPY");
    let start = (0..npz.len()).filter(is_start).nth(index).expect("the array is there");
    let header = usize::from(u16::from_le_bytes([npz[start + 8], npz[start + 9]]));
    let first = start + 10 + header;
    npz[first..first + count * width].chunks(width).collect()
}

fn read_rows(folder: &Folder, shape: &Value, terms: &[String]) -> Rows {
    let npz = fs::read(folder.path("m.npz")).expect("it was written");
    let size = |name: &str| shape[name].as_u64().expect("a number") as usize;
    let (entries, rows) = (size("entries"), size("rows"));
    let int = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("4 bytes")) as usize;
    let indices: Vec<usize> = array(&npz, 0, entries, 4).into_iter().map(int).collect();
    let starts: Vec<usize> = array(&npz, 1, rows + 1, 4).into_iter().map(int).collect();
    let data: Vec<f64> = array(&npz, 4, entries, 8)
        .into_iter()
        .map(|bytes| f64::from_le_bytes(bytes.try_into().expect("8 bytes")))
        .collect();
    let row = |pair: &[usize]| {
        (pair[0]..pair[1]).map(|at| (terms[indices[at]].clone(), data[at])).collect()
    };
    starts.windows(2).map(row).collect()
}

#[test]
fn the_matrix_has_the_weights_of_the_formula() {
    let folder = with_texts();
    ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM}")));
    let shape =
        json(&ok(folder.run(&format!("tfidf export i.nandex t.txt --npz m.npz {RAM} --json"))));
    assert_eq!(shape["rows"], 5);
    let read = |name: &str| fs::read_to_string(folder.path(name)).expect("it was written");
    let vocabulary = read("m.vocabulary.jsonl");
    let terms: Vec<String> = vocabulary
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an object"))
        .map(|line| line["term"].as_str().expect("a text").to_owned())
        .collect();
    let expected = weights(&TEXTS);
    let found = read_rows(&folder, &shape, &terms);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        found.iter().for_each(|(term, weight)| assert_near(*weight, expected[term]));
    }
    assert!(read("m.documents.jsonl").ends_with("{\"row\":4,\"id\":\"t.txt:5\"}\n"));
    let parquet = "tfidf export i.nandex t.txt --parquet m.parquet --min-df 2 --json";
    let shape = json(&ok(folder.run(&format!("{parquet} {RAM}"))));
    // Terms in two documents or more: blue, cat, red, sat, the.
    assert_eq!((&shape["columns"], &shape["documents"]), (&5.into(), &Value::Null));
    assert!(folder.path("m.vocabulary.parquet").exists());
}

#[test]
fn a_small_index_is_a_small_file() {
    let folder = with_texts();
    let built = json(&ok(folder.run("tfidf build i.nandex t.txt --json")));
    let bytes = built["file_bytes"].as_u64().expect("a number");
    assert_eq!(bytes, fs::metadata(folder.path("i.nandex")).expect("it was made").len());
    assert!(bytes <= 32 << 20, "{bytes} bytes");
    let refused = folder.run("tfidf build j.nandex t.txt --text-bytes 4GiB");
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn keywords_and_ranks_are_the_heaviest_terms_and_the_nearest_documents() {
    let folder = with_texts();
    ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM}")));
    let found = ok(folder.run(&format!("tfidf keywords i.nandex t.txt --top 2 {RAM} --json")));
    let rows = weights(&TEXTS);
    let found = objects(&found);
    assert_eq!(found.len(), 5);
    for (number, (found, row)) in found.iter().zip(&rows).enumerate() {
        assert_eq!(found["id"], format!("t.txt:{}", number + 1));
        let mut best: Vec<(&String, &f64)> = row.iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(a.1).then(a.0.cmp(b.0)));
        let keywords = found["keywords"].as_array().expect("a list");
        assert_eq!(keywords.len(), row.len().min(2));
        for (keyword, (term, weight)) in keywords.iter().zip(best) {
            assert_eq!(keyword["term"], term.as_str());
            assert_near(keyword["weight"].as_f64().expect("a number"), *weight);
        }
    }
    let ranked = ok(folder.run(&format!("tfidf rank i.nandex cat t.txt {RAM} --json")));
    let ranking = json(&ranked);
    assert_eq!((&ranking["documents_read"], &ranking["method"]), (&5.into(), &"scan".into()));
    assert_eq!(ranking["reason"], "the index has no rank index");
    let ranked = ranking["ranked"].as_array().expect("a list");
    // A query of one word has one weight, 1: the cosine is the weight of that word.
    let ids: Vec<&Value> = ranked.iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["t.txt:4", "t.txt:2"]);
    assert_near(ranked[0]["cosine"].as_f64().expect("a number"), rows[3]["cat"]);
    assert_near(ranked[1]["cosine"].as_f64().expect("a number"), rows[1]["cat"]);
    let text = ok(folder.run(&format!("tfidf rank i.nandex CAT t.txt --top 1 {RAM}")));
    assert_eq!(text.stdout, format!("{:.6}\tt.txt:4\n", rows[3]["cat"]));
    let how = "exact scan: all 5 documents were read and weighed (the index has no rank index)";
    assert!(text.stderr.contains(how), "{text:?}");
    let none = folder.run(&format!("tfidf rank i.nandex dog t.txt {RAM}"));
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
}

/// Returns the output of `rank`: the ids and cosines, and the rest.
fn ranked(folder: &Folder, words: &str) -> (Vec<Value>, Value) {
    let mut ranking = json(&ok(folder.run(&format!("tfidf rank i.nandex {words} {RAM} --json"))));
    let found = ranking["ranked"].take();
    (found.as_array().expect("a list").clone(), ranking)
}

#[test]
fn a_rank_index_answers_as_a_scan_does_until_documents_come_or_go() {
    let folder = with_texts();
    write(&folder, "more.txt", "a cat on the moon\n");
    ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM}")));
    folder.assert_refused(&format!(
        "2 | tfidf rank i.nandex cat {RAM} | cannot rank without reading documents: the index has no rank index; name \
         them, or make"
    ));
    let made = json(&ok(folder.run(&format!("tfidf index i.nandex t.txt {RAM} --json"))));
    assert_eq!((&made["documents"], &made["terms"]), (&5.into(), &10.into()));
    // 5 + 4 + 0 + 4 + 2 different words.
    assert_eq!(made["postings"], 15);
    let (scanned, how) = ranked(&folder, "cat t.txt --scan");
    assert_eq!((&how["method"], &how["reads"]), (&"scan".into(), &Value::Null));
    for words in ["cat", "cat t.txt", "cat ./t.txt"] {
        let (found, how) = ranked(&folder, words);
        assert_eq!(found, scanned, "{words}");
        assert_eq!((&how["method"], &how["reason"]), (&"index".into(), &Value::Null));
        assert_eq!((&how["documents_read"], &how["documents_sharing"]), (&0.into(), &2.into()));
        // The tree's root, the postings, the lengths, and an id for each document.
        let reads = how["reads"].as_u64().expect("a number");
        assert!((4..=20).contains(&reads), "{how}");
    }
    let text = ok(folder.run(&format!("tfidf rank i.nandex cat {RAM}")));
    assert!(text.stderr.contains("index: 2 documents share a term with the query; "), "{text:?}");
    // A query that the index does not support is scanned, with the reason.
    let why = |words: &str| ranked(&folder, words).1["reason"].clone();
    let told = |words: &str, part: &str| {
        let why = why(words);
        assert!(why.as_str().is_some_and(|why| why.contains(part)), "{words}: {why}");
    };
    told("cat t.txt --scan", "--scan");
    told("cat more.txt", "the rank index is of other documents: expected ");
    told("cat t.txt --name other", "the rank index is of other documents: expected ");
    told("cat t.txt --min-df 2", "made with other options of terms and weights: expected ");
    folder.assert_refused(&format!(
        "2 | tfidf rank i.nandex cat --norm l1 {RAM} | the rank index was made with other options\n\
         2 | tfidf rank i.nandex cat --scan {RAM} | cannot rank without reading documents: --scan; name them\n\
         1 | tfidf index i.nandex gone.txt {RAM} | cannot open gone.txt\n\
         2 | tfidf index i.nandex {RAM} | INPUT"
    ));
    ok(folder.run(&format!("tfidf update i.nandex more.txt {RAM}")));
    told("cat t.txt", "documents were added or removed since the rank index was made");
    ok(folder.run(&format!("tfidf index i.nandex t.txt more.txt --sublinear-tf {RAM}")));
    let (found, how) = ranked(&folder, "moon --sublinear-tf");
    assert_eq!((how["method"].as_str(), found.len()), (Some("index"), 2));
    assert_eq!(found, ranked(&folder, "moon t.txt more.txt --sublinear-tf --scan").0);
    ok(folder.run("check i.nandex"));
}

#[test]
fn a_query_gives_documents_occurrences_and_idf() {
    let folder = with_texts();
    ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM} --ngram 1-2")));
    let found = ok(folder.run(&format!("tfidf query i.nandex FISH cat dog {RAM}")));
    // ln(6 / 2) + 1, ln(6 / 3) + 1.
    assert_eq!(found.stdout, "1\t4\t2.098612\tfish\n2\t3\t1.693147\tcat\n0\t0\t-\tdog\n");
    let plain = ok(folder.run(&format!("tfidf query i.nandex fish --no-smooth-idf {RAM} --json")));
    assert_near(json(&plain)["idf"].as_f64().expect("a number"), 5.0_f64.ln() + 1.0);
    let none = folder.run(&format!("tfidf query i.nandex dog {RAM} --json"));
    assert_eq!((none.code, &json(&none)["idf"]), (1, &Value::Null));
    let mut pair = Command::new(env!("CARGO_BIN_EXE_nandex"));
    pair.current_dir(folder.path(".")).args(["tfidf", "query", "i.nandex", "blue fish"]);
    let pair = Outcome::from(pair.output().expect("the command can be started"));
    assert_eq!(pair.stdout, "1\t1\t2.098612\tblue fish\n");
}

#[test]
fn options_of_words_choose_the_terms() {
    let folder = Folder::new();
    write(&folder, "t.txt", "The Red FISH and the cat\n");
    write(&folder, "stop.txt", "fish\n\n cat \n");
    let terms = |options: &str| -> Vec<String> {
        let _ = fs::remove_file(folder.path("i.nandex"));
        ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM} {options}")));
        let report = json(&ok(folder.run(&format!("tfidf report i.nandex {RAM} --json"))));
        let term = |top: &Value| top["term"].as_str().expect("a text").to_owned();
        report["top"].as_array().expect("a list").iter().map(term).collect()
    };
    assert_eq!(terms(""), ["the", "and", "cat", "fish", "red"]);
    assert_eq!(terms("--stop-words english"), ["cat", "fish", "red"]);
    assert_eq!(terms("--stop-words stop.txt --ngram 2"), ["and the", "red and", "the red"]);
    assert_eq!(terms("--no-lowercase --stop-words english"), ["FISH", "Red", "The", "cat"]);
    let told = folder.run(&format!("tfidf build j.nandex t.txt {RAM} --stop-words t.txt"));
    assert!(told.stderr.contains("is in no text: text is made lower case"), "{told:?}");
}

#[test]
fn options_of_weights_are_those_of_the_formula() {
    let folder = with_texts();
    ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM}")));
    let weight = |options: &str| {
        let words = format!("tfidf keywords i.nandex t.txt {RAM} --json {options}");
        let first = objects(&ok(folder.run(&words)))[0].clone();
        let keywords = first["keywords"].as_array().expect("a list").clone();
        let fish = keywords.iter().find(|it| it["term"] == "fish").expect("it is there").clone();
        (keywords.len(), fish["weight"].as_f64().expect("a number"))
    };
    let idf = 3.0_f64.ln() + 1.0;
    assert_near(weight("--norm none").1, 4.0 * idf);
    assert_near(weight("--norm none --no-smooth-idf").1, 4.0 * (5.0_f64.ln() + 1.0));
    assert_near(weight("--norm none --no-idf --sublinear-tf").1, 4.0_f64.ln() + 1.0);
    assert_near(weight("--norm none --no-idf --binary").1, 1.0);
    // Eight words, four of which are fish.
    assert_near(weight("--norm l1 --no-idf").1, 0.5);
    assert_eq!(weight("--top 3 --max-features 2").0, 1, "the most frequent are fish and cat");
    assert_eq!(weight("--max-df 1").0, 3, "fish, one and two are in one document");
    folder.assert_refused(&format!(
        "2 | tfidf keywords i.nandex t.txt --min-df 2 --max-df 1 {RAM} | raise max_df\n\
         2 | tfidf keywords i.nandex t.txt --min-df 0 {RAM} | --min-df: 0 documents\n\
         1 | tfidf keywords i.nandex t.txt --min-df 4 {RAM} | no terms: \n\
         2 | tfidf keywords i.nandex t.txt --max-df half {RAM} | give a count such as 2, or a share such as 0.5"
    ));
}

#[test]
fn every_kind_of_input_gives_the_same_terms() {
    let folder = with_texts();
    let object = |(number, text): (usize, &&str)| value!({"key": number, "body": text});
    let objects: String = TEXTS.iter().enumerate().map(|it| format!("{}\n", object(it))).collect();
    write(&folder, "t.jsonl", objects);
    for (number, text) in TEXTS.iter().enumerate() {
        write(&folder, &format!("texts/{}/{number}.txt", number % 2), text);
    }
    ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM}")));
    ok(folder.run(&format!("tfidf build j.nandex t.jsonl --id key --text body {RAM}")));
    ok(folder.run(&format!("tfidf build f.nandex ./texts/ {RAM}")));
    // The vocabulary is a Parquet file with a column of texts.
    ok(folder.run(&format!("tfidf export i.nandex t.txt --parquet m.parquet {RAM}")));
    ok(folder.run(&format!("tfidf build p.nandex m.vocabulary.parquet --text term {RAM}")));
    let mut piped = folder.start_piped(&format!("tfidf build s.nandex - {RAM} --name t.txt"));
    let mut stdin = piped.stdin.take().expect("stdin is piped");
    stdin.write_all(lines(&TEXTS).as_bytes()).expect("the command reads");
    drop(stdin);
    ok(piped.wait_with_output().expect("the command ends").into());
    let expected = counts(&folder, "i.nandex", "fish cat the blue sat");
    assert_eq!(expected, [(1, 4), (2, 3), (2, 3), (2, 2), (2, 2)]);
    for index in ["j.nandex", "f.nandex", "s.nandex"] {
        assert_eq!(counts(&folder, index, "fish cat the blue sat"), expected, "{index}");
    }
    assert_eq!(counts(&folder, "p.nandex", "fish cat the"), [(1, 1); 3]);
    // Ids are fields, paths and names: added documents are removed by them.
    for (index, inputs) in [
        ("i.nandex", "t.txt"),
        ("j.nandex", "t.jsonl --id key --text body"),
        ("f.nandex", "texts"),
        ("s.nandex", "t.txt"),
        ("p.nandex", "m.vocabulary.parquet --text term"),
    ] {
        let removed = json(&ok(folder.run(&format!("tfidf remove {index} {inputs} {RAM} --json"))));
        assert_eq!((&removed["documents"], &removed["occurrences"]), (&0.into(), &0.into()));
    }
}

#[test]
fn what_is_added_and_removed_leaves_the_rest_as_if_alone() {
    let folder = with_texts();
    write(&folder, "more.txt", "a red moon\n");
    ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM}")));
    let before = counts(&folder, "i.nandex", "red moon cat");
    let added = json(&ok(folder.run(&format!("tfidf update i.nandex more.txt {RAM} --json"))));
    assert_eq!((&added["added"], &added["documents"]), (&1.into(), &6.into()));
    assert_eq!(counts(&folder, "i.nandex", "red moon cat"), [(3, 3), (2, 2), (2, 3)]);
    let again = format!("tfidf update i.nandex more.txt t.txt {RAM} --skip-repeats --json");
    let again = json(&ok(folder.run(&again)));
    assert_eq!((&again["added"], &again["skipped"]), (&0.into(), &6.into()));
    ok(folder.run(&format!("tfidf remove i.nandex more.txt {RAM}")));
    assert_eq!(counts(&folder, "i.nandex", "red moon cat"), before);
    ok(folder.run("check i.nandex"));
}

#[test]
fn shards_merge_into_the_whole_and_others_are_refused_before_anything_changes() {
    let folder = with_texts();
    write(&folder, "a.txt", lines(&TEXTS[..2]));
    write(&folder, "b.txt", lines(&TEXTS[2..]));
    for (index, input) in [("whole", "t"), ("a", "a"), ("b", "b"), ("same", "a")] {
        ok(folder.run(&format!("tfidf build {index}.nandex {input}.txt {RAM}")));
    }
    ok(folder.run(&format!("tfidf build other.nandex a.txt --ngram 1-2 {RAM}")));
    folder.assert_refused(&format!(
        "1 | tfidf merge a.nandex b.nandex other.nandex {RAM} | cannot merge other.nandex into a.nandex; nothing is \
         changed: the indexes count different terms: expected the analysis\n\
         1 | tfidf merge a.nandex same.nandex {RAM} | is in the index already, with the same text\n\
         2 | tfidf merge a.nandex b.nandex b.nandex {RAM} | b.nandex is named twice\n\
         2 | tfidf merge a.nandex a.nandex {RAM} | a.nandex is named twice\n\
         1 | tfidf merge a.nandex gone.nandex {RAM} | cannot open gone.nandex"
    ));
    assert_eq!(counts(&folder, "a.nandex", "fish red moon"), [(1, 4), (2, 2), (0, 0)]);
    let merged = json(&ok(folder.run(&format!("tfidf merge a.nandex b.nandex {RAM} --json"))));
    assert_eq!((&merged["files"], &merged["documents"]), (&1.into(), &5.into()));
    let terms = "red fish blue one two the cat sat on moon";
    assert_eq!(counts(&folder, "a.nandex", terms), counts(&folder, "whole.nandex", terms));
}

#[test]
fn a_report_has_the_figures_as_text_json_and_a_page() {
    let folder = with_texts();
    ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM} --stop-words english")));
    for option in ["--html", "--report"] {
        let words = format!("tfidf report i.nandex {RAM} {option} page.html --json");
        let report = json(&ok(folder.run(&words)));
        assert_eq!((&report["documents"], &report["terms"]), (&5.into(), &6.into()));
        assert_eq!(report["top"][0], value!({"term": "fish", "documents": 1, "occurrences": 4}));
        assert_eq!(report["analysis"]["stop_words"], "english");
        let page = fs::read_to_string(folder.path("page.html")).expect("it was written");
        assert!(page.contains("<h1>6 terms</h1>") && page.ends_with("</html>\n"), "{page}");
        assert!(!folder.path("page.html.unfinished").exists());
    }
    let text = ok(folder.run(&format!("tfidf report i.nandex {RAM}"))).stdout;
    assert!(text.contains("1 word, lower case, without English stop words\n"), "{text}");
    assert!(text.contains("fish, 4 times in 1 documents\n"), "{text}");
}

#[test]
fn bad_input_is_refused_by_its_place_and_what_to_do() {
    let folder = with_texts();
    write(&folder, "bad.txt", b"fine\nab\xffcd\n");
    write(&folder, "texts/a.txt", b"ab\x80");
    write(&folder, "t.jsonl", "{\"text\": \"a cat\", \"id\": 1}\n{\"text\": \"cat\", \"id\": 1}\n");
    write(&folder, "same.txt", lines(&TEXTS[..1]));
    write(&folder, "other.txt", "another text\n");
    ok(folder.run(&format!("tfidf build i.nandex t.txt {RAM}")));
    ok(folder.run(&format!("tfidf export i.nandex t.txt --parquet m.parquet {RAM}")));
    ok(folder.run("create table.nandex --entries 1e4 --key-bytes 8"));
    folder.assert_refused(&format!(
        "1 | tfidf build b.nandex bad.txt {RAM} | document bad.txt:2: expected UTF-8, found byte 0xff at byte 2\n\
         1 | tfidf build b.nandex bad.txt {RAM} | --decoding replace or --decoding ignore reads it\n\
         1 | tfidf build b.nandex texts {RAM} | document texts/a.txt: expected UTF-8, found byte 0x80 at byte 2\n\
         1 | tfidf build b.nandex t.txt {RAM} --document-bytes 9 | more than 9 bytes\n\
         1 | tfidf build b.nandex t.jsonl --id id {RAM} | document 1 is in the index already, with another text\n\
         1 | tfidf build b.nandex t.jsonl --text body {RAM} | found no such field; name another field\n\
         1 | tfidf build b.nandex m.vocabulary.parquet {RAM} | expected a column \"text\", found [\"term\"\n\
         2 | tfidf build b.nandex t.txt --id key {RAM} | t.txt has no field \"key\"\n\
         1 | tfidf build b.nandex t.txt --format parquet {RAM} | expected a Parquet file\n\
         2 | tfidf build b.nandex texts --format lines {RAM} | texts is a folder\n\
         1 | tfidf build b.nandex gone.txt {RAM} | cannot open gone.txt\n\
         2 | tfidf build b.nandex t.txt ./t.txt {RAM} | t.txt is named twice\n\
         2 | tfidf build b.nandex - --format parquet {RAM} | stdin has lines or JSON lines\n\
         2 | tfidf build b.nandex t.txt --ram 63MiB | give 67108864 (64 MiB) or more, and at most 1 TiB\n\
         2 | tfidf build b.nandex t.txt --ngram 3-1 {RAM} | --ngram: \n\
         2 | tfidf build b.nandex t.txt --ngram one {RAM} | give 1, or 1-3\n\
         1 | tfidf build b.nandex t.txt --stop-words gone {RAM} | cannot read the stop words of gone\n\
         1 | tfidf build i.nandex t.txt {RAM} | cannot create i.nandex: it exists\n\
         1 | tfidf update i.nandex t.txt {RAM} | document t.txt:1 is in the index already, with the same text\n\
         1 | tfidf remove i.nandex same.txt {RAM} | document same.txt:1 cannot be removed: no document of this id\n\
         1 | tfidf remove i.nandex same.txt --name t.txt:1 {RAM} | no document of this id was added\n\
         1 | tfidf remove i.nandex other.txt --name t.txt {RAM} | it was added with another text\n\
         1 | tfidf query t.txt cat {RAM} | cannot open t.txt\n\
         1 | tfidf query table.nandex cat {RAM} | cannot open table.nandex as a TF-IDF index\n\
         1 | tfidf query gone.nandex cat {RAM} | cannot open gone.nandex\n\
         2 | tfidf export i.nandex t.txt --npz t.txt {RAM} | cannot write t.txt: this command reads it\n\
         2 | tfidf export i.nandex t.txt --npz m --vocabulary m {RAM} | cannot write m: this command reads it, or\n\
         2 | tfidf export i.nandex t.txt {RAM} | --npz"
    ));
    // A failed run changed nothing, and left no matrix.
    assert_eq!(counts(&folder, "i.nandex", "fish cat"), [(1, 4), (2, 3)]);
    assert!(!folder.path("b.nandex").exists() && !folder.path("m").exists());
    let read = format!("tfidf build b.nandex bad.txt {RAM} --decoding replace --json");
    assert_eq!(json(&ok(folder.run(&read)))["added"], 2);
    assert_eq!(counts(&folder, "b.nandex", "ab cd"), [(1, 1); 2]);
}
