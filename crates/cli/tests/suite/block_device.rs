//! Verbs that create a volume on a block device: one that a stopped run has left is marked, and `--force` creates it
//! again.
//!
//! A loop device serves as the block device. If this process may not have one, the tests report that.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Folder, Outcome};

/// A loop device over a file of the folder.
struct Loop(String);

impl Loop {
    /// Returns `None` if this process may not have one.
    fn over(folder: &Folder, name: &str) -> Option<Self> {
        let file = fs::File::create(folder.path(name)).expect("the folder is writable");
        file.set_len(256 << 20).expect("a sparse file");
        let mut setup = Command::new("losetup");
        setup.args(["-f", "--show"]).arg(folder.path(name));
        let made = setup.output().ok().filter(|output| output.status.success())?;
        Some(Self(String::from_utf8(made.stdout).expect("a path").trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).output();
    }
}

fn loops(folder: &Folder, count: usize) -> Option<Vec<Loop>> {
    let all: Option<Vec<_>> =
        (0..count).map(|number| Loop::over(folder, &format!("disk{number}"))).collect();
    if all.is_none() {
        println!("left out: this process may not have loop devices");
    }
    all
}

#[track_caller]
fn ok(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

#[track_caller]
fn assert_unfinished(outcome: &Outcome) {
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let told = &outcome.stderr;
    assert!(told.contains("it is unfinished") && told.contains("--force"), "{told}");
}

/// Kills the command after each of these times: from before it has created anything to after its end. The result is
/// complete, or is reported and created again.
fn assert_survives_kills(verb: &str, opened: &str, folder: &Folder) {
    let mut told = 0;
    for delay in [5, 20, 50, 100, 200, 400, 800, 1600] {
        let mut child = folder.start(&format!("{verb} --force"));
        sleep(Duration::from_millis(delay));
        child.kill().expect("it was started");
        let _ = child.wait();
        let check = folder.run(&format!("check {opened}"));
        if check.code == 0 {
            break;
        }
        if check.stderr.contains("it is unfinished") {
            assert_unfinished(&check);
            assert_unfinished(&folder.run(verb));
            told += 1;
        } else {
            // Nothing was created yet.
            let told = &check.stderr;
            let is_nothing =
                told.contains("not a nandex volume") || told.contains("not a member of an array");
            assert!(is_nothing, "{told}");
        }
    }
    println!("{verb}: {told} kills left something unfinished");
    let check = folder.run(&format!("check {opened}"));
    if check.code != 0 {
        ok(&folder.run(&format!("{verb} --force")));
        ok(&folder.run(&format!("check {opened}")));
    }
    // A complete volume is never replaced.
    let again = folder.run(&format!("{verb} --force"));
    assert_eq!(again.code, 1, "{again:?}");
    ok(&folder.run(&format!("check {opened}")));
}

#[test]
fn a_block_device_is_marked_until_it_is_whole() {
    let folder = Folder::new();
    let Some(disks) = loops(&folder, 1) else { return };
    let disk = &disks[0].0;
    let keys: String = (0..300_000).map(|key| format!("{key}\n")).collect();
    fs::write(folder.path("in"), keys).expect("the folder is writable");
    assert_survives_kills(&format!("filter build {disk} in"), disk, &folder);
}

/// A process that has ended may keep a device for a moment, until the kernel has taken down its rings.
#[test]
fn a_block_device_that_is_let_go_soon_is_waited_for() {
    const O_EXCL: i32 = 0o200;
    let folder = Folder::new();
    let Some(disks) = loops(&folder, 1) else { return };
    let disk = &disks[0].0;
    fs::write(folder.path("in"), "one\n").expect("the folder is writable");
    let mut exclusive = fs::OpenOptions::new();
    exclusive.read(true).write(true).custom_flags(O_EXCL);
    let claim = exclusive.open(disk).expect("a loop device can be opened");
    let child = folder.start(&format!("filter build {disk} in"));
    sleep(Duration::from_millis(200));
    drop(claim);
    let ended = child.wait_with_output().expect("it was started");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn an_array_of_block_devices_is_made_again_after_a_kill() {
    let folder = Folder::new();
    let Some(disks) = loops(&folder, 2) else { return };
    let opened = format!("{} --member {}", disks[0].0, disks[1].0);
    let verb = format!("create {opened} --key-bytes 8 --entries 1e5 --ram 4MiB");
    assert_survives_kills(&verb, &opened, &folder);
}

#[test]
fn a_tfidf_index_on_a_block_device_is_marked_until_it_is_whole() {
    let folder = Folder::new();
    let Some(disks) = loops(&folder, 2) else { return };
    let (disk, other) = (&disks[0].0, &disks[1].0);
    let texts: String = (0..40_000).map(|n| format!("all own{n} word{}\n", n % 100)).collect();
    fs::write(folder.path("in"), texts).expect("the folder is writable");
    let build = |disk: &str| format!("tfidf build {disk} in --ram 64MiB");
    assert_survives_kills(&build(disk), disk, &folder);
    ok(&folder.run(&format!("tfidf index {disk} in --ram 64MiB")));
    let found = folder.run(&format!("tfidf rank {disk} own7 --ram 64MiB"));
    assert!(found.stdout.ends_with("\tin:8\n"), "{found:?}");
    // A volume that a failure has left is reported by every verb, and is resumed or created again.
    fs::write(folder.path("bad"), b"fine\nab\xffcd\n").expect("the folder is writable");
    let failed = folder.run(&format!("tfidf build {other} bad --ram 64MiB"));
    assert!(failed.code == 1 && failed.stderr.contains("expected UTF-8"), "{failed:?}");
    for verb in ["query OTHER fine", "report OTHER", "update OTHER in", "rank OTHER fine in"] {
        let words = format!("tfidf {} --ram 64MiB", verb.replace("OTHER", other));
        assert_unfinished(&folder.run(&words));
    }
    assert_unfinished(&folder.run(&build(other)));
    let rest = folder.run(&format!("{} --resume", build(other)));
    ok(&rest);
    assert!(rest.stderr.contains("is resumed: it has "), "{rest:?}");
    ok(&folder.run(&format!("tfidf query {other} own7 --ram 64MiB")));
    // A complete volume is neither resumed nor created again.
    for option in ["--resume", "--force"] {
        assert_eq!(folder.run(&format!("{} {option}", build(other))).code, 1, "{option}");
    }
    ok(&folder.run(&format!("check {other}")));
}

#[test]
fn an_index_of_near_duplicates_on_a_block_device_is_marked_until_it_is_whole() {
    let folder = Folder::new();
    let Some(disks) = loops(&folder, 2) else { return };
    let (disk, other) = (&disks[0].0, &disks[1].0);
    let texts: String =
        (0..20_000).map(|n| format!("all own{n} word{} more{n}\n", n % 100)).collect();
    fs::write(folder.path("in"), texts).expect("the folder is writable");
    let index = |disk: &str| format!("neardup index {disk} in --ram 64MiB --documents 50k");
    assert_survives_kills(&index(disk), disk, &folder);
    fs::write(folder.path("more"), "all own7 word7 more7\n").expect("the folder is writable");
    let found = folder.run(&format!("neardup query {disk} more --ram 64MiB"));
    assert!(found.stdout.ends_with("equal\tin:8\n"), "{found:?}");
    ok(&folder.run(&format!("neardup dedup {disk} more --kept kept.jsonl --ram 64MiB")));
    // A volume that a failure has left is reported by every verb, and is resumed or created again.
    fs::write(folder.path("bad"), b"fine\nab\xffcd\n").expect("the folder is writable");
    let failed = folder.run(&format!("neardup index {other} bad --ram 64MiB --documents 50k"));
    assert!(failed.code == 1 && failed.stderr.contains("expected UTF-8"), "{failed:?}");
    for verb in ["query OTHER in", "pairs OTHER", "clusters OTHER", "stats OTHER", "remove OTHER a"]
    {
        let words = format!("neardup {} --ram 64MiB", verb.replace("OTHER", other));
        assert_unfinished(&folder.run(&words));
    }
    assert_unfinished(&folder.run(&index(other)));
    let rest = folder.run(&format!("{} --resume", index(other)));
    ok(&rest);
    assert!(rest.stderr.contains("is resumed: it has 1 documents"), "{rest:?}");
    // A complete index is neither resumed nor created again: documents are added to it.
    for option in ["--resume", "--force"] {
        let again = folder.run(&format!("{} {option}", index(other)));
        assert!(again.code == 1 && again.stderr.contains("is in the index already"), "{again:?}");
    }
    ok(&folder.run(&format!("check {other}")));
}
