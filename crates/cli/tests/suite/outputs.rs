//! The named outputs of every verb, on each kind of file: a device, a pipe and the target of a link are written to, a
//! regular file is replaced whole and keeps its mode.
//!
//! As root, `nandex wan restore a.refs --cache w.nandex -o /dev/null` removed the machine's /dev/null and left a
//! regular file, as did other verbs; a link was replaced, and its target stayed old. So devices are nodes of a
//! temporary folder here. If a test may not create one, it uses a link to the machine's, and could only remove the
//! link.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, Outcome};

/// The number of seconds after which a command that waits for the other end of a pipe is ended.
const DEADLINE_S: u32 = 120;

/// A mode that no new file has.
const MODE: u32 = 0o640;

/// The inputs of the verbs, each created by an earlier verb.
const PREPARED: [&str; 4] = [
    "wan store texts -o a.refs --cache c.nandex --size 4MiB",
    "neardup index n.nandex texts --ram 64MiB --documents 10k",
    "tfidf build i.nandex texts --ram 64MiB",
    "create v.nandex --key-bytes 8 --entries 1e4 --ram 4MiB",
];

/// A command with `OUT` in place of its output, and that name.
struct Verb(&'static str, &'static str);

/// The verbs whose outputs are streams, once for each output.
const VERBS: [Verb; 18] = [
    Verb("wan store texts -o OUT --cache c.nandex", "out"),
    Verb("wan restore a.refs -o OUT --cache c.nandex", "out"),
    Verb(
        "wan receive -o OUT --cache d.nandex --size 4MiB --from '$NANDEX wan send texts --cache c.nandex'",
        "out",
    ),
    Verb("neardup dedup n.nandex texts --skip-repeats --ram 64MiB --kept OUT --audit audit", "out"),
    Verb("neardup dedup n.nandex texts --skip-repeats --ram 64MiB --kept kept --audit OUT", "out"),
    Verb("neardup stats n.nandex --ram 64MiB --html OUT", "out"),
    Verb("tfidf report i.nandex --ram 64MiB --html OUT", "out"),
    Verb("tfidf export i.nandex texts --ram 64MiB --npz OUT --vocabulary v --documents d", "out"),
    Verb("tfidf export i.nandex texts --ram 64MiB --npz m --vocabulary OUT --documents d", "out"),
    Verb("tfidf export i.nandex texts --ram 64MiB --npz m --vocabulary v --documents OUT", "out"),
    Verb("tfidf export i.nandex texts --ram 64MiB --parquet OUT --vocabulary v", "out"),
    Verb("dedup texts --ram 8MiB --avg 256 --progress none --report OUT", "out"),
    Verb("dedup texts --ram 8MiB --avg 256 --progress none --list OUT", "out"),
    Verb("sim --preset crucial-m4 --workload mixed --requests 100 --trace OUT", "out"),
    Verb("sim --preset crucial-m4 --workload mixed --requests 100 --report OUT", "out"),
    Verb("probe --preset intel-x18m --size 4MiB --svg OUT", "out"),
    Verb("reproduce constants --report OUT", "out"),
    Verb("reproduce rhik --only capacity --scale 8192 --progress none --report OUT", "out"),
];

/// The verbs that write pages into a folder, with one of the pages.
const FOLDERS: [Verb; 2] = [
    Verb("man pages", "pages/nandex.1"),
    Verb("reproduce all --only rhik/capacity --scale 8192 --report pages", "pages/index.html"),
];

fn with_inputs() -> Folder {
    let folder = Folder::new();
    let text = |number: u32| format!("{number} {} red fish blue fish\n", number * 7919 % 101);
    let texts: String = (0..200).chain(0..20).map(text).collect();
    fs::write(folder.path("texts"), texts).expect("the folder is writable");
    fs::create_dir(folder.path("pages")).expect("the folder is writable");
    PREPARED.iter().for_each(|words| ok(&shell(&folder, &format!("\"$NANDEX\" {words}"))));
    folder
}

#[track_caller]
fn ok(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

fn shell(folder: &Folder, script: &str) -> Outcome {
    let mut timeout = Command::new("timeout");
    timeout.arg(DEADLINE_S.to_string()).args(["sh", "-c", script]).current_dir(folder.path("."));
    timeout.env("NANDEX", env!("CARGO_BIN_EXE_nandex")).env_remove("TMPDIR");
    timeout.output().expect("the shell can be started").into()
}

impl Verb {
    fn script(&self) -> String {
        format!("\"$NANDEX\" {}", self.0.replace("OUT", self.1))
    }

    /// Runs the verb on a file of each kind in the place of its output.
    fn assert_writes_each_kind(&self, folder: &Folder) {
        let out = folder.path(self.1);
        let _ = fs::remove_file(&out);
        ok(&shell(folder, &self.script()));
        let length = fs::metadata(&out).expect("it was written").len();
        assert!(length > 0, "{}", self.0);
        self.assert_replaces_a_regular_file(folder, &out);
        self.assert_follows_a_link(folder, &out);
        self.assert_fills_a_pipe(folder, &out);
        self.assert_leaves_a_device(folder, &out);
        fs::remove_file(&out).expect("the test made it");
    }

    /// Asserts that a regular file is replaced, and that the file that a failed run could have left is gone, too.
    fn assert_replaces_a_regular_file(&self, folder: &Folder, out: &Path) {
        old(out);
        ok(&shell(folder, &self.script()));
        self.assert_new(out);
        assert!(!folder.path(&format!("{}.unfinished", self.1)).exists(), "{}", self.0);
    }

    #[track_caller]
    fn assert_new(&self, path: &Path) {
        let found = fs::symlink_metadata(path).expect("it is there");
        assert!(found.is_file(), "{}", self.0);
        assert_eq!(found.mode() & 0o7777, MODE, "{}", self.0);
        let bytes = fs::read(path).expect("it can be read");
        assert!(!bytes.is_empty() && bytes != b"old", "{}", self.0);
    }

    fn assert_follows_a_link(&self, folder: &Folder, out: &Path) {
        let target = folder.path("elsewhere/target");
        fs::create_dir_all(folder.path("elsewhere")).expect("the folder is writable");
        old(&target);
        fs::remove_file(out).expect("it is there");
        symlink(&target, out).expect("the folder is writable");
        ok(&shell(folder, &self.script()));
        assert!(out.is_symlink(), "{}: the link is gone", self.0);
        self.assert_new(&target);
        fs::remove_file(&target).expect("it is there");
        ok(&shell(folder, &self.script()));
        assert!(out.is_symlink() && target.is_file(), "{}: nothing to replace", self.0);
        fs::remove_file(out).expect("it is there");
    }

    fn assert_fills_a_pipe(&self, folder: &Folder, out: &Path) {
        pipe(out);
        let verb = self.script();
        let name = self.1;
        let script = format!("cat {name} > got & {verb}; code=$?; wait; exit $code");
        ok(&shell(folder, &script));
        let found = fs::symlink_metadata(out).expect("it is there");
        assert!(found.file_type().is_fifo(), "{}: the pipe is gone", self.0);
        let got = fs::metadata(folder.path("got")).expect("the reader made it").len();
        assert!(got > 0, "{}: nothing came through the pipe", self.0);
        fs::remove_file(out).expect("the test made it");
    }

    fn assert_leaves_a_device(&self, folder: &Folder, out: &Path) {
        let before = device(out);
        ok(&shell(folder, &self.script()));
        let after = fs::symlink_metadata(out).expect("it is there");
        assert_eq!((before.ino(), before.rdev()), (after.ino(), after.rdev()), "{}", self.0);
        assert_eq!(before.file_type(), after.file_type(), "{}", self.0);
        assert_null_is_a_device();
    }
}

fn old(path: &Path) {
    fs::write(path, "old").expect("the folder is writable");
    fs::set_permissions(path, Permissions::from_mode(MODE)).expect("the file is ours");
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("it can be started");
    assert!(made.success());
}

/// Creates a node of the null device at `path`; if this process may not, a link to the machine's.
fn device(path: &Path) -> fs::Metadata {
    let node = Command::new("mknod").arg(path).args(["c", "1", "3"]).output();
    let is_made = node.is_ok_and(|output| output.status.success());
    if !is_made || fs::OpenOptions::new().write(true).open(path).is_err() {
        let _ = fs::remove_file(path);
        symlink("/dev/null", path).expect("the folder is writable");
    }
    fs::symlink_metadata(path).expect("it was made")
}

fn assert_null_is_a_device() {
    let null = fs::symlink_metadata("/dev/null").expect("the machine has it");
    assert!(null.file_type().is_char_device(), "/dev/null is no device any more");
}

#[test]
fn every_output_is_replaced_whole_or_written_to_by_the_kind_of_its_file() {
    let folder = with_inputs();
    for verb in VERBS.iter().chain(&FOLDERS) {
        verb.assert_writes_each_kind(&folder);
    }
}

#[test]
fn a_run_that_cannot_write_its_output_keeps_the_file_that_was_there() {
    // Some verbs emptied the file before they knew whether they could fill it.
    let folder = with_inputs();
    for verb in VERBS.iter().chain(&FOLDERS) {
        let out = folder.path(verb.1);
        old(&out);
        let script = format!("trap '' XFSZ; ulimit -f 0; {}", verb.script());
        let outcome = shell(&folder, &script);
        assert_eq!(outcome.code, 1, "{script}: {outcome:?}");
        assert_eq!(fs::read(&out).expect("it is there"), b"old", "{script}: {outcome:?}");
        assert!(!folder.path(&format!("{}.unfinished", verb.1)).exists(), "{script}");
        fs::remove_file(&out).expect("it is there");
    }
}

#[test]
fn a_folder_and_a_socket_without_a_listener_are_refused() {
    let folder = with_inputs();
    for verb in &VERBS {
        let out = folder.path(verb.1);
        fs::create_dir(&out).expect("the folder is writable");
        let refused = shell(&folder, &verb.script());
        assert_eq!(refused.code, 1, "{}: {refused:?}", verb.0);
        assert!(refused.stderr.contains("out: it is a folder; name a file in it"), "{refused:?}");
        fs::remove_dir(&out).expect("it is empty");
        drop(UnixListener::bind(&out).expect("the folder is writable"));
        let refused = shell(&folder, &verb.script());
        assert_eq!(refused.code, 1, "{}: {refused:?}", verb.0);
        assert!(refused.stderr.contains("out: it is a socket without a listener"), "{refused:?}");
        let found = fs::symlink_metadata(&out).expect("it is there");
        assert!(found.file_type().is_socket(), "{}", verb.0);
        fs::remove_file(&out).expect("it is there");
    }
}

#[test]
fn a_verb_that_makes_a_volume_leaves_what_has_its_name() {
    let folder = with_inputs();
    ok(&shell(&folder, "seq 100 > keys; \"$NANDEX\" filter build f.nandex keys"));
    ok(&shell(&folder, "\"$NANDEX\" count build k.nandex keys"));
    for words in [
        "create OUT --key-bytes 8 --entries 1e4 --ram 4MiB",
        "backup v.nandex OUT",
        "compact v.nandex --to OUT",
        "merge v.nandex v.nandex -o OUT",
        "filter build OUT keys",
        "filter merge -o OUT f.nandex f.nandex",
        "count build OUT keys",
        "count merge -o OUT k.nandex k.nandex",
        "tfidf build OUT texts --ram 64MiB",
        "neardup index OUT texts --ram 64MiB --documents 10k",
        "dedup texts --ram 8MiB --avg 256 --progress none --index OUT",
        "kvssd create OUT --capacity 16MiB",
        "wan store texts -o b.refs --cache OUT --size 4MiB",
        "wan proxy key OUT",
    ] {
        let verb = Verb(words, "out");
        let out = folder.path(verb.1);
        let target = folder.path("target");
        for kind in ["device", "pipe", "link to a file", "link to a device"] {
            make(kind, &out, &target);
            let before = identity(&out);
            let refused = shell(&folder, &verb.script());
            assert_eq!(refused.code, 1, "{words} on a {kind}: {refused:?}");
            assert_eq!(identity(&out), before, "{words} on a {kind}: {refused:?}");
            assert!(!target.is_file() || fs::read(&target).expect("it is there") == b"old");
            assert!(!folder.path("out.unfinished").exists(), "{words} on a {kind}");
            let _ = (fs::remove_file(&out), fs::remove_file(&target));
        }
    }
    assert_null_is_a_device();
}

#[test]
fn an_unfinished_file_that_is_no_file_is_refused() {
    // A verb removed any file that had the name of its unfinished file.
    let folder = with_inputs();
    let left = folder.path("out.unfinished");
    for words in ["create OUT --key-bytes 8 --entries 1e4", "sim --preset pm983 --report OUT"] {
        device(&left);
        let before = identity(&left);
        let words = words.replace("--report", "--workload mixed --requests 10 --report");
        let refused = shell(&folder, &format!("\"$NANDEX\" {}", words.replace("OUT", "out")));
        assert_eq!(refused.code, 1, "{words}: {refused:?}");
        assert!(refused.stderr.contains("is not a regular file"), "{words}: {refused:?}");
        assert_eq!(identity(&left), before, "{words}");
        fs::remove_file(&left).expect("it is there");
    }
}

#[test]
fn compacting_keeps_the_link_to_a_volume_and_its_mode() {
    let folder = with_inputs();
    let (volume, link) = (folder.path("v.nandex"), folder.path("link"));
    fs::set_permissions(&volume, Permissions::from_mode(MODE)).expect("it is ours");
    symlink("v.nandex", &link).expect("the folder is writable");
    let before = identity(&volume);
    ok(&folder.run("compact link"));
    let found = fs::metadata(&volume).expect("it is there");
    assert!(link.is_symlink() && found.is_file());
    assert_eq!(found.mode() & 0o7777, MODE);
    assert_ne!(identity(&volume), before, "it is another file");
    ok(&folder.run("check v.nandex"));
}

#[test]
fn what_the_shell_has_opened_is_appended_to() {
    let folder = with_inputs();
    let restore = "\"$NANDEX\" wan restore a.refs --cache c.nandex --json";
    let script = format!("(printf 'first\n'; {restore} -o /dev/stdout; printf 'last\n') > all");
    ok(&shell(&folder, &script));
    let all = fs::read_to_string(folder.path("all")).expect("it was written");
    let texts = fs::read_to_string(folder.path("texts")).expect("it is there");
    let figures = all.strip_prefix(&format!("first\n{texts}")).expect("the stream is all there");
    assert!(figures.starts_with('{') && figures.ends_with("\nlast\n"), "{figures}");
}

#[test]
fn a_matrix_on_a_device_or_a_pipe_has_nothing_next_to_it() {
    // `--npz /dev/null` would have made /dev/null.vocabulary.jsonl.
    let folder = with_inputs();
    fs::create_dir(folder.path("dev")).expect("the folder is writable");
    device(&folder.path("dev/null"));
    let export = "tfidf export i.nandex texts --ram 64MiB";
    ok(&folder.run(&format!("{export} --npz dev/null")));
    ok(&folder.run(&format!("{export} --npz m.npz --vocabulary dev/null --documents dev/null")));
    ok(&folder.run(&format!("{export} --parquet dev/null --vocabulary dev/null")));
    assert_eq!(fs::read_dir(folder.path("dev")).expect("it is there").count(), 1);
    pipe(&folder.path("p"));
    let script =
        format!("cat p > piped.npz & \"$NANDEX\" {export} --npz p; code=$?; wait; exit $code");
    ok(&shell(&folder, &script));
    assert!(!folder.path("p.vocabulary.jsonl").exists());
    let length = |name| fs::metadata(folder.path(name)).expect("it was written").len();
    // The piped file has a length after each array.
    assert!(length("piped.npz") >= length("m.npz"));
}

/// Creates a file of this kind, and its target.
fn make(kind: &str, path: &Path, target: &Path) {
    match kind {
        "device" => _ = device(path),
        "pipe" => pipe(path),
        "link to a file" => old(target),
        _ => _ = device(target),
    }
    if kind.starts_with("link") {
        symlink(target, path).expect("the folder is writable");
    }
}

fn identity(path: &Path) -> (u64, u64, u32) {
    let found = fs::symlink_metadata(path).expect("it is there");
    (found.ino(), found.rdev(), found.mode())
}
