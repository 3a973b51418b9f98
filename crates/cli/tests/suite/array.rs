//! Volumes on several devices and with a separate log, from the shell: every verb, and every wrong member.

use std::fs;

use crate::common::{Folder, Outcome};
use serde_json::Value;

const MEMBERS: &str = "a.nandex --member b.nandex --member c.nandex";

/// Creates a folder with an array of three files, in which key 7 has the value 42.
fn with_array() -> Folder {
    let folder = Folder::new();
    ok(&folder
        .run(&format!("create {MEMBERS} --key-bytes 8 --entries 1e5 --ram 4MiB --stripe 16KiB")));
    fs::write(folder.path("in.csv"), "7,42\n8,43\n").expect("the folder is writable");
    ok(&folder.run(&format!("load {MEMBERS} in.csv --format csv --key-format u64")));
    folder
}

#[track_caller]
fn ok(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

#[track_caller]
fn refused(folder: &Folder, command: &str, reasons: &[&str]) {
    refused_as(1, folder, command, reasons);
}

#[track_caller]
fn refused_as(code: i32, folder: &Folder, command: &str, reasons: &[&str]) {
    let outcome = folder.run(command);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (code, ""), "{command}: {outcome:?}");
    for reason in reasons {
        assert!(outcome.stderr.contains(reason), "{command}, no {reason}: {outcome:?}");
    }
}

#[test]
fn all_verbs_open_an_array_from_its_members_in_any_order() {
    let folder = with_array();
    for order in [
        MEMBERS,
        "c.nandex --member b.nandex --member a.nandex",
        "b.nandex --member c.nandex --member a.nandex --engine buffered",
    ] {
        let got = folder.run(&format!("get {order} 8 7 --key-format u64"));
        assert_eq!((got.code, got.stdout.as_str()), (0, "8\t43\n7\t42\n"), "{got:?}");
    }
    let dumped = folder.run(&format!("dump {MEMBERS} --format csv --key-format u64"));
    assert_eq!(dumped.stdout.lines().count(), 3);
    let checked = folder.run(&format!("check {MEMBERS}"));
    ok(&checked);
    assert!(checked.stdout.contains("no damage"), "{checked:?}");
    let info = folder.run("info --json c.nandex --member b.nandex --member a.nandex");
    let info: Value = serde_json::from_str(&info.stdout).expect("an object");
    assert_eq!(info["members"], serde_json::json!(["a.nandex", "b.nandex", "c.nandex"]));
    assert_eq!(info["stripe_bytes"], 16 << 10);
    let shown = folder.run(&format!("info {MEMBERS}"));
    assert!(shown.stdout.contains("members"), "{shown:?}");
    for name in ["a.nandex", "b.nandex", "c.nandex"] {
        let bytes = fs::metadata(folder.path(name)).expect("it is there").len();
        assert!(bytes > 2 << 20, "{name} has only {bytes} bytes");
    }
}

#[test]
fn a_missing_member_is_named() {
    let folder = with_array();
    let missing = ["c.nandex: member 2 of 3 is missing"];
    refused(&folder, "info a.nandex --member b.nandex", &missing);
    refused(&folder, "check b.nandex --member a.nandex", &missing);
    refused(&folder, "info a.nandex", &["b.nandex: member 1 of 3 is missing", "name it as well"]);
    fs::remove_file(folder.path("b.nandex")).expect("it is there");
    refused(&folder, &format!("info {MEMBERS}"), &["cannot open b.nandex"]);
}

#[test]
fn a_swapped_file_is_named_and_so_is_the_array_it_belongs_to() {
    let folder = with_array();
    ok(&folder.run("create d.nandex --member e.nandex --key-bytes 8 --entries 1e5 --ram 4MiB"));
    let swapped = "get a.nandex --member e.nandex --member c.nandex 7 --key-format u64";
    refused(
        &folder,
        swapped,
        &["e.nandex: it is member 1 of 2 of array", "while a.nandex belongs"],
    );
    ok(&folder.run("create plain.nandex --key-bytes 8 --entries 1e5 --ram 4MiB"));
    let plain = "info a.nandex --member b.nandex --member plain.nandex";
    refused(&folder, plain, &["plain.nandex: it is not a member of an array"]);
    let plain = "info plain.nandex --member a.nandex";
    refused(&folder, plain, &["plain.nandex: it is not a member of an array"]);
}

#[test]
fn a_member_that_is_named_twice_is_refused_under_whatever_path() {
    let folder = with_array();
    std::os::unix::fs::symlink("b.nandex", folder.path("link")).expect("the folder is writable");
    for second in ["b.nandex", "./b.nandex", "link"] {
        let command = format!("info a.nandex --member b.nandex --member {second}");
        refused_as(2, &folder, &command, &[&format!("{second} is named twice")]);
        let command = format!("check a.nandex --member b.nandex --member {second}");
        refused_as(2, &folder, &command, &["is named twice"]);
    }
    fs::copy(folder.path("b.nandex"), folder.path("copy")).expect("the folder is writable");
    let command = "info a.nandex --member b.nandex --member copy";
    refused(&folder, command, &["copy: it is member 1 of the array, and so is b.nandex"]);
    let twice = "create x.nandex --member x.nandex --key-bytes 8 --entries 1e5";
    refused_as(2, &folder, twice, &["x.nandex is named twice"]);
    assert!(!folder.path("x.nandex").exists());
}

#[test]
fn an_older_copy_of_a_member_is_named() {
    let folder = with_array();
    fs::copy(folder.path("b.nandex"), folder.path("old")).expect("the folder is writable");
    ok(&folder.run(&format!("load {MEMBERS} in.csv --format csv --key-format u64")));
    let command = "get a.nandex --member old --member c.nandex 7 --key-format u64";
    refused(&folder, command, &["old: it is an older copy of member 1", "put the current one"]);
    ok(&folder.run(&format!("get {MEMBERS} 7 --key-format u64")));
}

#[test]
fn a_member_that_was_cut_short_or_damaged_is_named() {
    let folder = with_array();
    let file = fs::OpenOptions::new().write(true).open(folder.path("c.nandex"));
    file.and_then(|file| file.set_len(1 << 20)).expect("it can be cut");
    refused(&folder, &format!("info {MEMBERS}"), &["c.nandex: it is too small: it has 256 pages"]);
    let mut bytes = fs::read(folder.path("b.nandex")).expect("it can be read");
    bytes[100] ^= 1;
    bytes[4196] ^= 1;
    fs::write(folder.path("b.nandex"), bytes).expect("it can be written");
    let outcome = folder.run(&format!("info {MEMBERS}"));
    assert_eq!(outcome.code, 3, "{outcome:?}");
    assert!(outcome.stderr.contains("b.nandex: its label is damaged"), "{outcome:?}");
}

#[test]
fn partitions_too_small_for_the_volume_leave_nothing_behind() {
    let folder = Folder::new();
    let command =
        format!("create {MEMBERS} --key-bytes 8 --entries 1e5 --ram 4MiB --stripe partition:1MiB");
    refused(&folder, &command, &["no space for", "its partitions have 768 pages in all"]);
    for name in ["a.nandex", "b.nandex", "c.nandex"] {
        assert!(!folder.path(name).exists(), "{name}");
    }
    ok(&folder.run(
        "create p.nandex --member q.nandex --key-bytes 8 --entries 1e5 --stripe partition:1GiB",
    ));
    ok(&folder.run("info q.nandex --member p.nandex"));
}

/// The output of a probe of a device with 16 channels on two buses, whose chunks are 8 KiB: rounds of 32 pages.
const PROBED: &str = r#"{"chunk_bytes": {"value": 8192}, "channels": {"value": 16}, "groups": [2],
    "mapping": {"value": "write-order"}, "phase_bytes": 0}"#;

fn shown(folder: &Folder, words: &str) -> Value {
    let outcome = folder.run(&format!("{words} --json"));
    ok(&outcome);
    serde_json::from_str(&outcome.stdout).expect("an object")
}

#[test]
fn a_table_tells_several_devices_apart_by_the_design_that_is_asked_for() {
    let keys: String = (0..3000).map(|key| format!("{key},{}\n", 7 * key)).collect();
    let rows: Vec<String> = keys.lines().map(|line| line.replace(',', "\t")).collect();
    for (design, parts) in [("throughput", 1), ("memory", 3)] {
        for geometry in ["", "--geometry drive.json"] {
            let folder = Folder::new();
            fs::write(folder.path("drive.json"), PROBED).expect("the folder is writable");
            fs::write(folder.path("in.csv"), &keys).expect("the folder is writable");
            let make = format!(
                "create {MEMBERS} --key-bytes 8 --entries 1e5 --design {design} {geometry}"
            );
            let made = shown(&folder, &make);
            assert_eq!(
                (&made["structure"], &made["policy"]),
                (&"slicehash".into(), &"reject".into())
            );
            assert_eq!(
                (&made["devices"], &made["slice_parts"]),
                (&3.into(), &parts.into()),
                "{made}"
            );
            let info = shown(&folder, &format!("info {MEMBERS}"));
            let runs = info["stripe_bytes"].as_u64().expect("a number");
            assert_eq!(info["tables"][0]["devices"], 3);
            if !geometry.is_empty() {
                // Runs are whole rounds, so a page's place determines its channel.
                assert_eq!(runs % (32 * 4096), 0, "{info}");
                let channels = info["geometry"]["channels"].as_u64().expect("a number");
                assert!([16, 48].contains(&channels), "{info}");
            }
            let text = folder.run(&format!("info {MEMBERS}"));
            assert!(text.stdout.contains(&format!("{design}-oriented on 3 devices")), "{text:?}");
            ok(&folder.run(&format!("load {MEMBERS} in.csv --format csv --key-format u64")));
            let got = folder.run(&format!("get {MEMBERS} 0 1234 2999 --key-format u64"));
            assert_eq!(
                got.stdout.lines().collect::<Vec<_>>(),
                [&rows[0], &rows[1234], &rows[2999]]
            );
            ok(&folder.run(&format!("check {MEMBERS}")));
            // A copy on one device is the same table.
            ok(&folder.run(&format!("backup {MEMBERS} copy.nandex")));
            let got = folder.run("get copy.nandex 2999 --key-format u64");
            assert_eq!((got.code, got.stdout.trim_end()), (0, rows[2999].as_str()), "{got:?}");
        }
    }
}

#[test]
fn a_design_that_cannot_be_is_refused_with_the_reason() {
    let folder = Folder::new();
    folder.assert_refused(&format!(
        "
2 | create x.nandex --entries 1e5 --design memory | --member
2 | create {MEMBERS} --entries 1e5 --design memory --stripe 1MiB | cannot be used with
2 | create {MEMBERS} --entries 1e5 --design both | throughput, memory
2 | create {MEMBERS} --entries 1e5 --design memory --structure bufferhash | choose a slicehash
2 | create {MEMBERS} --entries 1e5 --key-bytes 8 --design memory --policy grow | choose a slicehash
2 | create {MEMBERS} --entries 1e5 --key-bytes 8 --design memory --miss-reads 0.1 | a page of each device
2 | advise --entries 1e6 --design memory --devices 99 | give 2 to 64
2 | advise --entries 1e6 --design memory | --devices
"
    ));
    for name in ["a.nandex", "b.nandex", "c.nandex", "x.nandex"] {
        assert!(!folder.path(name).exists(), "{name}");
    }
    let [one, fast, small] = ["", "--design throughput --devices 3", "--design memory --devices 3"]
        .map(|words| {
            let words = format!("advise --entries 256e6 --lookups 9000 --inserts 1000 {words}");
            shown(&folder, &words)["slicehash"].clone()
        });
    let number = |of: &Value, name: &str| of[name].as_f64().expect("a number");
    assert!((number(&fast, "ops_per_s") / number(&one, "ops_per_s") - 3.0).abs() < 1e-6, "{fast}");
    let share = number(&small, "ram_bytes_per_entry") / number(&one, "ram_bytes_per_entry");
    assert!((0.3..0.4).contains(&share), "{share}");
    assert_eq!((&small["devices"], &small["slice_parts"]), (&3.into(), &3.into()), "{small}");
}

#[test]
fn an_array_keeps_the_channels_of_its_devices_where_runs_tell_them() {
    let folder = Folder::new();
    fs::write(folder.path("drive.json"), PROBED).expect("the folder is writable");
    let make = "--entries 1e5 --key-bytes 8 --structure bufferhash --geometry drive.json --stripe";
    // Channels of two devices come in turn with runs of one chunk or of four; two rounds are each device's own.
    for (name, stripe, channels, buses, round) in
        [("c", "8KiB", 32, 4, 64), ("r", "256KiB", 16, 2, 32), ("f", "32KiB", 32, 1, 64)]
    {
        let files = format!("{name}1.nandex --member {name}2.nandex");
        let made = shown(&folder, &format!("create {files} {make} {stripe}"));
        assert_eq!(made["geometry"]["channels"], channels, "{made}");
        let told = made["geometry"]["buses"].as_u64().unwrap_or(1);
        assert_eq!(told, buses, "{made}");
        assert_eq!(made["pages_per_segment"].as_u64().expect("a number") % round, 0, "{made}");
        let info = shown(&folder, &format!("info {files}"));
        assert_eq!(
            (&info["geometry"], &info["geometry"]["overruled"]),
            (&made["geometry"], &false.into())
        );
    }
    folder.assert_refused(&format!(
        "
2 | create x.nandex --member y.nandex {make} 24KiB | such as --stripe 131072
2 | create x.nandex --member y.nandex {make} partition:1GiB | --geometry none
"
    ));
    assert!(!folder.path("x.nandex").exists());
}

#[test]
fn what_cannot_be_made_is_refused_and_what_was_there_stays() {
    let folder = with_array();
    refused(
        &folder,
        "create n.nandex --member b.nandex --key-bytes 8 --entries 1e5",
        &["cannot create b.nandex"],
    );
    assert!(!folder.path("n.nandex").exists() && folder.path("b.nandex").exists());
    for command in [
        "create n.nandex --key-bytes 8 --entries 1e5 --stripe 1MiB",
        "create n.nandex --member m.nandex --key-bytes 8 --entries 1e5 --stripe 1000",
        "create n.nandex --key-bytes 8 --entries 1e5 --engine steam",
    ] {
        assert_eq!(folder.run(command).code, 2, "{command}");
    }
    assert!(!folder.path("n.nandex").exists());
}

#[test]
fn a_log_on_a_device_of_its_own_is_wanted_again_by_every_verb() {
    let folder = Folder::new();
    ok(&folder.run("create v.nandex --log-device v.log --key-bytes 8 --entries 1e5 --ram 4MiB"));
    fs::write(folder.path("in.csv"), "7,42\n").expect("the folder is writable");
    let load = "load v.nandex in.csv --log-device v.log --format csv --key-format u64";
    ok(&folder.run(load));
    let got = folder.run("get v.nandex 7 --log-device v.log --key-format u64");
    assert_eq!((got.code, got.stdout.as_str()), (0, "7\t42\n"));
    ok(&folder.run("check v.nandex --log-device v.log"));
    assert!(fs::metadata(folder.path("v.log")).expect("it is there").len() > 1 << 20);
    for verb in ["info", "check", "dump"] {
        refused(&folder, &format!("{verb} v.nandex"), &["log_device"]);
        refused_as(
            2,
            &folder,
            &format!("{verb} v.nandex --log-device v.nandex"),
            &["is named twice"],
        );
    }
}

#[test]
fn an_index_of_duplicates_may_be_on_an_array() {
    let folder = Folder::new();
    fs::write(folder.path("x"), [7; 100_000]).expect("the folder is writable");
    let command = "dedup x --ram 8MiB --index i.nandex --member j.nandex --progress none --json";
    ok(&folder.run(command));
    let again = folder.run(command);
    let again: Value = serde_json::from_str(&again.stdout).expect("an object");
    assert_eq!(again["unique_chunks"], 0, "{again}");
    let stray = folder.run("dedup x --ram 8MiB --member j.nandex");
    assert_eq!(stray.code, 2, "{stray:?}");
    assert!(stray.stderr.contains("name it with --index"), "{stray:?}");
}

#[test]
fn the_forced_engine_is_the_one_that_runs() {
    let folder = with_array();
    let info = folder.run(&format!("info {MEMBERS} --engine buffered --json"));
    let info: Value = serde_json::from_str(&info.stdout).expect("an object");
    assert_eq!(info["engine"], "buffered, buffered, buffered");
    assert!(info["engine_reason"].as_str().is_some_and(|it| it.contains("member 1 (b.nandex)")));
}
