//! The kinds of files that an output may be, and the verbs that write one, for the suites of `nandex` and of
//! `nandex-lab`.
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
pub const MODE: u32 = 0o640;

/// A command with `OUT` in place of its output, and that name.
pub struct Verb(pub &'static str, pub &'static str);

/// Asserts that a run succeeded.
#[track_caller]
pub fn ok(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

/// Runs a script in the folder, which finds the command as `$NANDEX`.
pub fn shell(folder: &Folder, script: &str) -> Outcome {
    let mut timeout = Command::new("timeout");
    timeout.arg(DEADLINE_S.to_string()).args(["sh", "-c", script]).current_dir(folder.path("."));
    timeout.env("NANDEX", crate::PROGRAM).env_remove("TMPDIR");
    timeout.output().expect("the shell can be started").into()
}

impl Verb {
    /// Returns the script that runs the verb.
    pub fn script(&self) -> String {
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

/// Creates a regular file with an unusual mode.
pub fn old(path: &Path) {
    fs::write(path, "old").expect("the folder is writable");
    fs::set_permissions(path, Permissions::from_mode(MODE)).expect("the file is ours");
}

/// Creates a named pipe.
pub fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("it can be started");
    assert!(made.success());
}

/// Creates a node of the null device at `path`; if this process may not, a link to the machine's.
pub fn device(path: &Path) -> fs::Metadata {
    let node = Command::new("mknod").arg(path).args(["c", "1", "3"]).output();
    let is_made = node.is_ok_and(|output| output.status.success());
    if !is_made || fs::OpenOptions::new().write(true).open(path).is_err() {
        let _ = fs::remove_file(path);
        symlink("/dev/null", path).expect("the folder is writable");
    }
    fs::symlink_metadata(path).expect("it was made")
}

/// Asserts that no run has replaced the machine's null device.
pub fn assert_null_is_a_device() {
    let null = fs::symlink_metadata("/dev/null").expect("the machine has it");
    assert!(null.file_type().is_char_device(), "/dev/null is no device any more");
}

/// Asserts for each verb that a regular file is replaced whole, and any other is written to by its kind.
pub fn assert_write_each_kind<'v>(folder: &Folder, verbs: impl IntoIterator<Item = &'v Verb>) {
    verbs.into_iter().for_each(|verb| verb.assert_writes_each_kind(folder));
}

/// Asserts for each verb that a run that cannot write its output keeps the file that was there.
pub fn assert_keep_what_they_cannot_write<'v>(
    folder: &Folder,
    verbs: impl IntoIterator<Item = &'v Verb>,
) {
    for verb in verbs {
        let out = folder.path(verb.1);
        old(&out);
        let script = format!("trap '' XFSZ; ulimit -f 0; {}", verb.script());
        let outcome = shell(folder, &script);
        assert_eq!(outcome.code, 1, "{script}: {outcome:?}");
        assert_eq!(fs::read(&out).expect("it is there"), b"old", "{script}: {outcome:?}");
        assert!(!folder.path(&format!("{}.unfinished", verb.1)).exists(), "{script}");
        fs::remove_file(&out).expect("it is there");
    }
}

/// Asserts for each verb that a folder and a socket without a listener are refused.
pub fn assert_refuse_folders_and_sockets(folder: &Folder, verbs: &[Verb]) {
    for verb in verbs {
        let out = folder.path(verb.1);
        fs::create_dir(&out).expect("the folder is writable");
        let refused = shell(folder, &verb.script());
        assert_eq!(refused.code, 1, "{}: {refused:?}", verb.0);
        assert!(refused.stderr.contains("out: it is a folder; name a file in it"), "{refused:?}");
        fs::remove_dir(&out).expect("it is empty");
        drop(UnixListener::bind(&out).expect("the folder is writable"));
        let refused = shell(folder, &verb.script());
        assert_eq!(refused.code, 1, "{}: {refused:?}", verb.0);
        assert!(refused.stderr.contains("out: it is a socket without a listener"), "{refused:?}");
        let found = fs::symlink_metadata(&out).expect("it is there");
        assert!(found.file_type().is_socket(), "{}", verb.0);
        fs::remove_file(&out).expect("it is there");
    }
}

/// Asserts that a command with `OUT` in place of its output refuses a device in place of its unfinished file.
pub fn assert_refuses_a_device_as_unfinished_file(folder: &Folder, words: &str) {
    let left = folder.path("out.unfinished");
    device(&left);
    let before = identity(&left);
    let refused = shell(folder, &format!("\"$NANDEX\" {}", words.replace("OUT", "out")));
    assert_eq!(refused.code, 1, "{words}: {refused:?}");
    assert!(refused.stderr.contains("is not a regular file"), "{words}: {refused:?}");
    assert_eq!(identity(&left), before, "{words}");
    fs::remove_file(&left).expect("it is there");
}

/// Creates a file of this kind, and its target.
pub fn make(kind: &str, path: &Path, target: &Path) {
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

/// Returns what tells a file from any other.
pub fn identity(path: &Path) -> (u64, u64, u32) {
    let found = fs::symlink_metadata(path).expect("it is there");
    (found.ino(), found.rdev(), found.mode())
}
