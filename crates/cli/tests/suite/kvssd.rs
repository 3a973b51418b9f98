//! The verbs of `nandex kvssd`, as a user calls them.

use std::fs;
use std::io::Write;

use crate::common::{Folder, json};

fn drive(folder: &Folder) {
    let made = folder.run("kvssd create d.nandex --capacity 1MiB --pairs 1000 --value-max 4KiB");
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.stdout.contains("rhik"), "{made:?}");
}

#[test]
fn pairs_are_stored_retrieved_listed_and_deleted() {
    let folder = Folder::new();
    drive(&folder);
    assert_eq!(folder.run("kvssd put d.nandex one first").code, 0);
    let mut child = folder.start_piped("kvssd put d.nandex two");
    child.stdin.take().unwrap().write_all(b"from\0stdin").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(folder.run_bytes("kvssd get d.nandex two"), b"from\0stdin");
    assert_eq!(folder.run("kvssd put d.nandex one ,more --store append").code, 0);
    let got = json(&folder.run("kvssd get d.nandex one --length 5 --json"));
    assert_eq!((&got["value"], &got["value_bytes"]), (&"first".into(), &10.into()));
    let there = folder.run("kvssd exist d.nandex one three");
    assert_eq!((there.code, &there.stdout[..]), (1, "one\tthere\nthree\tnot there\n"));
    let listed = folder.run("kvssd list d.nandex --prefix one --values");
    assert_eq!(listed.stdout, "one\tfirst,more\n");
    let info = json(&folder.run("kvssd info d.nandex --json"));
    assert_eq!((&info["stats"]["pairs"], &info["info"]["index"]), (&2.into(), &"rhik".into()));
    let removed = folder.run("kvssd rm d.nandex one three");
    assert_eq!((removed.code, &removed.stdout[..]), (1, "1 deleted\n"), "{removed:?}");
    let taken = folder.run("kvssd get d.nandex two --delete");
    assert_eq!(taken.code, 0);
    let gone = folder.run("kvssd get d.nandex two");
    assert_eq!((gone.code, &gone.stdout[..]), (1, ""), "{gone:?}");
    assert!(gone.stderr.contains("two: not there"));
    let check = folder.run("check d.nandex");
    assert_eq!(check.code, 0, "{check:?}");
}

#[test]
fn key_spaces_are_made_and_deleted() {
    let folder = Folder::new();
    drive(&folder);
    assert_eq!(folder.run("kvssd space create d.nandex small --limit 100").code, 0);
    assert_eq!(folder.run("kvssd put d.nandex key value --space small").code, 0);
    let spaces = json(&folder.run("kvssd space list d.nandex --json"));
    assert_eq!((&spaces[1]["name"], &spaces[1]["pairs"]), (&"small".into(), &1.into()));
    assert_eq!(folder.run("kvssd rm d.nandex --prefix ke --space small").stdout, "1 deleted\n");
    assert_eq!(folder.run("kvssd space delete d.nandex small").code, 0);
    let text = folder.run("kvssd space list d.nandex").stdout;
    assert_eq!(text, "main\t0 pairs\t0 B\n");
}

#[test]
fn what_the_drive_refuses_is_said_with_the_remedy() {
    let folder = Folder::new();
    drive(&folder);
    folder.run("kvssd put d.nandex key value");
    folder.assert_refused(
        "
1 | kvssd put d.nandex key other --store new | must not overwrite it
1 | kvssd put d.nandex none other --store update | the key is not there
1 | kvssd put d.nandex key x --space none | there is no key space \"none\"
1 | kvssd get d.nandex key --offset 3 | not a multiple of 512
1 | kvssd get d.nandex key --offset 512 | begin before its end
2 | kvssd list d.nandex --prefix abcde | by their first 4 bytes
1 | kvssd space create d.nandex main | exists
1 | kvssd space create d.nandex big --limit 2MiB | ask for less
1 | kvssd info none.nandex | cannot open none.nandex
1 | kvssd create d.nandex | it exists
2 | kvssd create e.nandex --key-min 0 | --key-min: 0 is not between 1 and 255
2 | kvssd create e.nandex --value-max 3MiB | --value-max <SIZE>': values have 0 to 2097152 bytes
2 | kvssd create e.nandex --index cascade | possible values
2 | kvssd bench d.nandex --count 0 | '--count <COUNT>': 0 is too few
2 | kvssd bench --count 5 | <FILE>
2 | kvssd bench d.nandex --index growing | this drive, which was made with \"rhik\"
",
    );
    assert!(!folder.path("e.nandex").exists() && !folder.path("e.nandex.unfinished").exists());
    folder.run("create table.nandex --entries 1000");
    folder.assert_refused("1 | kvssd info table.nandex | there is no drive");
}

#[test]
fn a_drive_in_a_file_is_measured() {
    let folder = Folder::new();
    drive(&folder);
    let on_file = folder.run("kvssd bench d.nandex --count 100 --value-bytes 100");
    assert_eq!(on_file.code, 0, "{on_file:?}");
    assert!(on_file.stdout.contains("read absent"), "{on_file:?}");
}

#[test]
fn a_drive_has_the_index_that_it_was_made_with() {
    let folder = Folder::new();
    let limits = "--capacity 1MiB --pairs 1000 --value-max 4KiB --index growing-slicehash";
    let made = folder.run(&format!("kvssd create d.nandex {limits}"));
    assert!(made.code == 0 && made.stdout.contains("growing-slicehash"), "{made:?}");
    assert_eq!(folder.run("kvssd put d.nandex one first").code, 0);
    let measured =
        "kvssd bench d.nandex --index growing-slicehash --count 500 --value-bytes 100 --json";
    let sizes = json(&folder.run(measured));
    assert_eq!(sizes[0]["index"], "growing-slicehash");
    assert_eq!(folder.run_bytes("kvssd get d.nandex one"), b"first");
    let info = json(&folder.run("kvssd info d.nandex --json"));
    assert_eq!(
        (&info["stats"]["pairs"], &info["info"]["index"]),
        (&501.into(), &"growing-slicehash".into())
    );
    fs::write(folder.path("t.ibm"), "1 REST.PUT.OBJECT a1 100\n").unwrap();
    folder.assert_refused(
        "
2 | kvssd bench d.nandex --index rhik | made with \"growing-slicehash\"
2 | kvssd replay d.nandex --index slicehash --trace t.ibm --format ibm | not the index of this drive
",
    );
    assert_eq!(folder.run("check d.nandex").code, 0);
}

#[test]
fn a_trace_is_replayed_on_a_drive_in_a_file() {
    let folder = Folder::new();
    drive(&folder);
    fs::write(folder.path("t.ibm"), "1 REST.PUT.OBJECT a1 100\n2 REST.GET.OBJECT b2 9\n").unwrap();
    let replayed = json(&folder.run("kvssd replay d.nandex --trace t.ibm --format ibm --json"));
    assert_eq!((&replayed["misses"], &replayed["device"]), (&1.into(), &"d.nandex".into()));
}
