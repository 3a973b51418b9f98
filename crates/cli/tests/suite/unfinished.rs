//! Verbs that create or fill a volume and are stopped, killed, or run out of space: afterwards the volume is complete,
//! absent, or marked unfinished, and the same command works again.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Folder, Outcome};

/// The times that a command runs before a signal reaches it: from its start to after its end.
const DELAYS_MS: [u64; 6] = [1, 10, 30, 60, 120, 400];
/// The largest file, in blocks of the shell's `ulimit`: from nothing to enough.
const BLOCKS: [u64; 6] = [0, 8, 600, 6000, 30_000, 200_000];
/// The bytes that are left on a disk: from nothing to enough.
const SPARE_BYTES: [u64; 7] = [0, 64 << 10, 1 << 20, 3 << 20, 6 << 20, 12 << 20, 100 << 20];

/// A command that creates or fills the volume of these files.
struct Verb {
    /// The words of the command.
    words: &'static str,
    /// The files; the volume is opened by the name of the first, with the others as members.
    files: &'static [&'static str],
    /// Whether the volume exists before.
    fills: bool,
}

const CREATE: Verb = Verb {
    words: "create t.nandex --key-bytes 8 --entries 1e5 --ram 4MiB",
    files: &["t.nandex"],
    fills: false,
};
const CREATE_ARRAY: Verb = Verb {
    words: "create a.nandex --member b.nandex --member c.nandex --key-bytes 8 --entries 1e5 --ram 4MiB",
    files: &["a.nandex", "b.nandex", "c.nandex"],
    fills: false,
};
const LOAD: Verb = Verb {
    words: "load l.nandex in.csv --format csv --key-format u64",
    files: &["l.nandex"],
    fills: true,
};
const BUILD: Verb =
    Verb { words: "filter build f.nandex in.csv", files: &["f.nandex"], fills: false };
const MERGE: Verb = Verb {
    words: "filter merge -o m.nandex one.nandex two.nandex",
    files: &["m.nandex"],
    fills: false,
};
/// Begins if nothing is left, and continues otherwise.
const MERGE_TABLES: Verb = Verb {
    words: "merge ta.nandex tb.nandex -o mt.nandex --resume",
    files: &["mt.nandex"],
    fills: false,
};
const DEDUP: Verb = Verb {
    words: "dedup in.csv --ram 8MiB --avg 256 --index i.nandex --progress none",
    files: &["i.nandex"],
    fills: false,
};

const TFIDF: Verb =
    Verb { words: "tfidf build w.nandex in.csv --ram 64MiB", files: &["w.nandex"], fills: false };
const GROW: Verb = Verb {
    words: "load g.nandex in.csv --format csv --key-format u64",
    files: &["g.nandex"],
    fills: true,
};
const LOAD_SPARSE: Verb = Verb {
    words: "load s.nandex in.csv --format csv --key-format u64",
    files: &["s.nandex"],
    fills: true,
};
const BACKUP: Verb = Verb { words: "backup l.nandex c.nandex", files: &["c.nandex"], fills: false };
const COMPACT: Verb = Verb { words: "compact l.nandex", files: &["l.nandex"], fills: true };

/// Creates the inputs of the verbs: records, two filters to merge and a table to load.
fn with_inputs(verb: &Verb) -> Folder {
    let folder = Folder::new();
    add_inputs(verb, &folder);
    folder
}

fn add_inputs(verb: &Verb, folder: &Folder) {
    let records: String = (0..60_000).map(|key| format!("{key},{key}\n")).collect();
    fs::write(folder.path("in.csv"), records).expect("the folder is writable");
    if verb.words.contains("one.nandex") {
        for name in ["one", "two"] {
            ok(&folder.run(&format!("filter build {name}.nandex in.csv --keys 1e6")));
        }
    }
    if verb.words.contains("ta.nandex") {
        for name in ["ta", "tb"] {
            ok(&folder
                .run(&format!("create {name}.nandex --key-bytes 8 --entries 1e5 --ram 4MiB")));
            let load = format!("load {name}.nandex in.csv --format csv --key-format u64");
            ok(&folder.run(&load));
        }
    }
    if verb.words.contains("l.nandex") {
        // Space for all loads: a record that comes again takes its space again.
        ok(&folder.run("create l.nandex --key-bytes 8 --entries 2e6 --ram 8MiB"));
    }
    if verb.words.contains("s.nandex") {
        ok(&folder.run("create s.nandex --key-bytes 8 --entries 2e6 --ram 8MiB --sparse"));
    }
    if verb.words.contains("g.nandex") {
        ok(&folder.run("create g.nandex --key-bytes 8 --entries 1000"));
    }
}

/// A folder on a file system of its own, whose size is limited.
struct SmallDisk {
    folder: Folder,
}

impl SmallDisk {
    /// Returns `None` if this process may not mount.
    fn mount() -> Option<Self> {
        let folder = Folder::new();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1G", "tmpfs"]).arg(folder.path("."));
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| Self { folder })
    }

    /// Leaves `bytes` bytes free.
    fn spare(&self, bytes: u64) {
        let mut df = Command::new("df");
        df.args(["--block-size=1", "--output=used"]).arg(self.folder.path("."));
        let used = String::from_utf8(df.output().expect("df can be started").stdout).expect("text");
        let used: u64 = used.lines().nth(1).and_then(|it| it.trim().parse().ok()).expect("bytes");
        let mut mount = Command::new("mount");
        mount.arg("-o").arg(format!("remount,size={}", used + bytes)).arg(self.folder.path("."));
        assert!(mount.output().expect("mount can be started").status.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path(".")).output();
    }
}

#[track_caller]
fn ok(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

impl Verb {
    /// Returns the words that open the volume.
    fn opened(&self) -> String {
        self.files.join(" --member ")
    }

    /// Asserts that the volume is complete, or that the next verb reports its state, and that the same command works.
    #[track_caller]
    fn assert_whole_or_told(&self, folder: &Folder, said: &str) {
        let check = folder.run(&format!("check {}", self.opened()));
        let named = self.files.iter().filter(|name| folder.path(name).exists()).count();
        let left = self.files.iter().any(|name| unfinished(folder, name).exists());
        match (named, left) {
            (0, false) => assert_refused(&check, "No such file"),
            (0, true) => assert_refused(&check, "is unfinished"),
            (all, _) if all == self.files.len() => assert_eq!(check.code, 0, "{said}: {check:?}"),
            (_, true) => return assert_refused(&check, "between its renames"),
            (_, false) => panic!("{said}: some files are gone"),
        }
        if named == 0 || self.fills {
            let again = folder.run(self.words);
            assert_eq!(again.code, 0, "{said}: {again:?}");
            ok(&folder.run(&format!("check {}", self.opened())));
        }
        assert!(!self.files.iter().any(|name| unfinished(folder, name).exists()), "{said}");
    }

    fn clear(&self, folder: &Folder) {
        if !self.fills {
            for name in self.files {
                let _ = fs::remove_file(folder.path(name));
                let _ = fs::remove_file(unfinished(folder, name));
            }
        }
    }

    /// Sends the signal after each of the delays.
    #[track_caller]
    fn assert_survives(&self, signal: &str) {
        let folder = with_inputs(self);
        for delay in DELAYS_MS {
            let child = folder.start(self.words);
            sleep(Duration::from_millis(delay));
            // It may have ended already.
            let id = child.id().to_string();
            let _ = Command::new("kill").args([&format!("-{signal}"), &id]).output();
            let outcome = Outcome::from(child.wait_with_output().expect("the command ends"));
            let said = format!("{} after {delay} ms of {signal}: {outcome:?}", self.words);
            assert!([-1, 0, 1].contains(&outcome.code), "{said}");
            self.assert_whole_or_told(&folder, &said);
            self.clear(&folder);
        }
    }

    /// Runs the verb where files may not grow, with an error of each write, and with a signal that kills.
    #[track_caller]
    fn assert_survives_full(&self) {
        let folder = with_inputs(self);
        for (trap, blocks) in
            BLOCKS.into_iter().flat_map(|blocks| [("trap '' XFSZ;", blocks), ("", blocks)])
        {
            let script = format!("{trap} ulimit -f {blocks}; exec \"$NANDEX\" {}", self.words);
            let outcome = shell(&folder, &script);
            let said = format!("{script}: {outcome:?}");
            let fails_well = outcome.code == 1 && outcome.stderr.contains("error: ");
            let is_killed = trap.is_empty() && outcome.code == -1;
            assert!(outcome.code == 0 || fails_well || is_killed, "{said}");
            self.assert_whole_or_told(&folder, &said);
            self.clear(&folder);
        }
    }

    /// Runs the verb on a disk with ever more space left, which is taken when a file grows, and when it is written.
    #[track_caller]
    fn assert_survives_no_space(&self) {
        let Some(disk) = SmallDisk::mount() else {
            println!("left out: this process may not mount");
            return;
        };
        add_inputs(self, &disk.folder);
        let mut failed = 0;
        // A merge has no such flag, and an index of documents is always sparse.
        let has_none = ["merge", "tfidf"].iter().any(|verb| self.words.contains(verb));
        let ways = if has_none { &[""][..] } else { &["", " --sparse"] };
        for (spare, how) in
            SPARE_BYTES.iter().flat_map(|bytes| ways.iter().map(move |how| (*bytes, how)))
        {
            disk.spare(spare);
            let outcome = disk.folder.run(&format!("{}{how}", self.words));
            let said = format!("{}{how} with {spare} bytes: {outcome:?}", self.words);
            let is_told = outcome.code == 1 && outcome.stderr.contains("space");
            assert!(outcome.code == 0 || is_told, "{said}");
            failed += u64::from(is_told);
            disk.spare(512 << 20);
            self.assert_whole_or_told(&disk.folder, &said);
            self.clear(&disk.folder);
        }
        assert!(failed > 0, "{}: there was always enough space", self.words);
    }
}

#[track_caller]
fn assert_refused(outcome: &Outcome, reason: &str) {
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains(reason), "{outcome:?}");
}

fn unfinished(folder: &Folder, name: &str) -> std::path::PathBuf {
    folder.path(&format!("{name}.unfinished"))
}

fn shell(folder: &Folder, script: &str) -> Outcome {
    let mut sh = Command::new("sh");
    sh.args(["-c", script]).current_dir(folder.path("."));
    sh.env("NANDEX", env!("CARGO_BIN_EXE_nandex")).env_remove("TMPDIR");
    sh.output().expect("the shell can be started").into()
}

/// A test of each signal, and one of each full disk, for each verb.
macro_rules! survives {
    ($($name:ident: $verb:ident)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn an_interrupt() {
                $verb.assert_survives("INT");
            }

            #[test]
            fn a_request_to_terminate() {
                $verb.assert_survives("TERM");
            }

            #[test]
            fn a_kill() {
                $verb.assert_survives("KILL");
            }

            #[test]
            fn files_that_may_not_grow() {
                $verb.assert_survives_full();
            }

        }
    )*};
}

survives! {
    create: CREATE
    create_array: CREATE_ARRAY
    load: LOAD
    build: BUILD
    merge: MERGE
    merge_tables: MERGE_TABLES
    dedup: DEDUP
    tfidf: TFIDF
}

/// A test of a disk without space for each verb.
macro_rules! survives_no_space {
    ($($name:ident: $verb:ident)*) => {
        mod a_disk_without_space {
            use super::*;

            $(#[test]
            fn $name() {
                $verb.assert_survives_no_space();
            })*
        }
    };
}

survives_no_space! {
    create: CREATE
    create_array: CREATE_ARRAY
    load_that_grows: GROW
    load_of_a_sparse_file: LOAD_SPARSE
    build: BUILD
    merge: MERGE
    merge_tables: MERGE_TABLES
    dedup: DEDUP
    tfidf: TFIDF
    backup: BACKUP
    compact: COMPACT
}

#[test]
fn every_verb_tells_that_a_volume_is_unfinished() {
    let folder = Folder::new();
    fs::write(folder.path("in"), "7,42\n").expect("the folder is writable");
    ok(&folder.run("filter build t.nandex in"));
    rename(&folder, "t.nandex", "t.nandex.unfinished");
    for words in [
        "info t.nandex",
        "check t.nandex",
        "get t.nandex 7",
        "dump t.nandex",
        "load t.nandex in --format csv",
        "filter info t.nandex",
        "filter test t.nandex in",
        "filter add t.nandex in",
        "filter delete t.nandex in",
        "filter merge -o m.nandex t.nandex in",
        "merge in t.nandex -o m.nandex",
        "tfidf query t.nandex 7",
        "tfidf report t.nandex",
        "tfidf update t.nandex in",
        "tfidf merge in t.nandex",
    ] {
        let outcome = folder.run(words);
        assert_refused(&outcome, "cannot open t.nandex: it is unfinished");
        assert!(outcome.stderr.contains("left t.nandex.unfinished; run that command again"));
    }
    ok(&folder.run("filter info t.nandex.unfinished"));
}

#[test]
fn renames_that_were_stopped_are_told_and_nothing_is_removed() {
    let folder = Folder::new();
    ok(&folder.run(CREATE_ARRAY.words));
    rename(&folder, "a.nandex", "a.nandex.unfinished");
    rename(&folder, "b.nandex", "b.nandex.unfinished");
    let finish =
        "a.nandex.unfinished not yet: the run that made them was stopped between its renames";
    assert_refused(&folder.run(&format!("info {}", CREATE_ARRAY.opened())), finish);
    let again = folder.run(CREATE_ARRAY.words);
    assert_refused(&again, finish);
    assert!(again.stderr.contains("mv a.nandex.unfinished a.nandex"), "{again:?}");
    assert!(unfinished(&folder, "a.nandex").exists() && unfinished(&folder, "b.nandex").exists());
    rename(&folder, "a.nandex.unfinished", "a.nandex");
    rename(&folder, "b.nandex.unfinished", "b.nandex");
    ok(&folder.run(&format!("check {}", CREATE_ARRAY.opened())));
}

fn rename(folder: &Folder, from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let path = |name: &Path| folder.path(&name.display().to_string());
    fs::rename(path(from.as_ref()), path(to.as_ref())).expect("the file is there");
}
