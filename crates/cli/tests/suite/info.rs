//! `nandex info`, `check` and verbs that list, on the volumes of every application.

use std::fs;
use std::sync::Arc;

use nandex::device::{Access, Create, FileDevice, FileOptions};
use nandex::{Volume, VolumeOptions};
use serde_json::Value;

use crate::common::{Folder, Outcome, json};

#[track_caller]
fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

/// Creates a volume of each application, and returns the names of its structures as `info` shows them.
fn applications(folder: &Folder) -> Vec<(&'static str, Vec<String>)> {
    let texts: String = (0..50).map(|at| format!("document {at} of {} words\n", at % 7)).collect();
    fs::write(folder.path("t.txt"), texts).expect("the folder is writable");
    let makers = [
        ("wan.nandex", "wan store t.txt -o t.refs --cache wan.nandex --size 4MiB"),
        ("tfidf.nandex", "tfidf build tfidf.nandex t.txt --ram 64MiB"),
        ("neardup.nandex", "neardup index neardup.nandex t.txt --ram 64MiB --documents 1000"),
        ("kvssd.nandex", "kvssd create kvssd.nandex --capacity 1MiB --pairs 1000 --value-max 4KiB"),
        ("dedup.nandex", "dedup t.txt --index dedup.nandex"),
    ];
    makers
        .map(|(file, make)| {
            ok(folder.run(make));
            let info = json(&ok(folder.run(&format!("info {file} --json"))));
            let tables = info["tables"].as_array().expect("a list");
            let name = |table: &Value| table["name"].as_str().expect("a text").to_owned();
            (file, tables.iter().map(name).collect())
        })
        .into()
}

/// For a cache of `nandex wan`, `info` reported that "wan-content-keys" is missing: it took each value log for that of
/// a table of any size.
#[test]
fn info_and_check_show_the_volume_of_every_application() {
    let folder = Folder::new();
    for (file, names) in applications(&folder) {
        let shown = ok(folder.run(&format!("info {file}"))).stdout;
        assert!(!names.is_empty(), "{file}: {shown}");
        for name in &names {
            assert!(shown.contains(&format!(" {name}\n")), "{file}: {name} in {shown}");
        }
        let check = json(&ok(folder.run(&format!("check {file} --json"))));
        let checked = check["tables"].as_array().expect("a list");
        for name in &names {
            assert!(checked.iter().any(|it| it["name"] == name[..]), "{file}: {name} in {check}");
        }
        // Every structure that it names can be dumped, or the error says what it is.
        for name in &names {
            let dump = folder.run(&format!("dump {file} --table {name} --value-format hex"));
            let is_explained = dump.stderr.contains(name) && !dump.stderr.contains("no structure");
            assert!(dump.code == 0 || dump.code == 1 && is_explained, "{file}: {dump:?}");
        }
    }
}

#[test]
fn a_value_log_without_keys_is_listed_by_its_pages() {
    let folder = Folder::new();
    fs::write(folder.path("t.txt"), "a text").expect("the folder is writable");
    ok(folder.run("wan store t.txt -o t.refs --cache w --size 4MiB"));
    let info = json(&ok(folder.run("info w --json")));
    let content = info["tables"].as_array().expect("a list").last().expect("one").clone();
    assert_eq!((&content["name"], &content["kind"]), (&"wan-content".into(), &"values".into()));
    let pages = content["pages"].as_u64().expect("a number");
    assert!(pages >= 1024, "4 MiB are {pages} pages");
    assert!(content.get("entries").is_none() && info["tables"][0].get("pages").is_none(), "{info}");
    let shown = ok(folder.run("info w")).stdout;
    assert!(shown.contains("structure wan-content\n"), "{shown}");
    for verb in ["dump w", "get w 00"] {
        let refused = folder.run(&format!("{verb} --table wan-content"));
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains("wan-content is a value log without"), "{refused:?}");
    }
}

#[test]
fn a_kind_that_is_not_known_is_listed_by_its_pages() {
    let folder = Folder::new();
    let file = FileOptions { access: Access::ReadWrite, create: Create::New, ..Default::default() };
    let device = Arc::new(FileDevice::open(folder.path("v"), &file).expect("a new file"));
    let volume = Volume::create(device, VolumeOptions::tiny()).expect("a new volume");
    volume.create_structure("of-tomorrow", "holographic", Vec::new(), 7).expect("it has pages");
    volume.checkpoint().expect("it is written");
    drop(volume);
    let table = json(&ok(folder.run("info v --json")))["tables"][0].clone();
    assert_eq!(table["kind"], "holographic");
    assert_eq!(table["pages"], 7);
    let shown = ok(folder.run("info v")).stdout;
    assert!(shown.contains("structure of-tomorrow\n") && shown.contains("in 7 pages"), "{shown}");
}
