//! Every kind of file, in a folder of the test's own: no test opens a device of the machine except the null device, and
//! that through a link.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::*;

/// A time that nothing that a test waits for takes.
const DEADLINE: Duration = Duration::from_secs(60);

const NEW: &[u8] = b"the new content";

fn old(path: &Path, mode: u32) {
    fs::write(path, "old").unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Creates a pipe or a device of the test's own. The number is that of a memory device: 3 accepts everything, 7 is
/// full.
fn node(path: &Path, kind: FileType, number: u32) -> rustix::io::Result<()> {
    mknodat(CWD, path, kind, Mode::from_raw_mode(0o666), makedev(1, number))
}

/// Creates a device of the test's own, or a link to the machine's if this process may not create one.
fn device(path: &Path, number: u32, machine: &str) {
    if node(path, FileType::CharacterDevice, number).is_err() || open(path).is_err() {
        let _ = fs::remove_file(path);
        symlink(machine, path).unwrap();
    }
}

fn null_device(path: &Path) {
    device(path, 3, "/dev/null");
}

/// Returns what a reader of the file gets, sent when it has ended; what `open` owns is dropped by then.
fn reader(open: impl FnOnce() -> File + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        open().read_to_end(&mut bytes).unwrap();
        // The test has ended if it took too long.
        let _ = sender.send(bytes);
    });
    receiver
}

fn refusal(path: &Path) -> (ErrorKind, String) {
    let error = write_output(path, NEW).unwrap_err();
    (error.kind(), error.to_string())
}

#[test]
fn a_regular_file_is_replaced_whole_and_keeps_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for wanted in [0o640, 0o600, 0o777] {
        old(&path, wanted);
        let before = fs::metadata(&path).unwrap();
        let mut output = OutputFile::begin(&path).unwrap();
        output.write_all(NEW).unwrap();
        output.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old", "it is not whole yet");
        assert_eq!(mode(output.unfinished().unwrap()) & !wanted, 0, "nobody else may read it");
        output.finish().unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (NEW.to_vec(), wanted));
        let after = fs::metadata(&path).unwrap();
        assert_eq!((before.uid(), before.gid()), (after.uid(), after.gid()));
        assert_ne!(before.ino(), after.ino(), "who reads the old file reads it to its end");
        assert_eq!(names(folder.path()), ["out"]);
    }
}

#[test]
fn root_keeps_the_owner_of_a_file_that_it_replaces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    old(&path, 0o640);
    if std::os::unix::fs::chown(&path, Some(12_345), Some(54_321)).is_err() {
        println!("left out: this process may not give files away");
        return;
    }
    write_output(&path, NEW).unwrap();
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.gid(), mode(&path)), (12_345, 54_321, 0o640));
}

#[test]
fn a_run_that_fails_keeps_the_file_that_was_there_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    old(&path, 0o640);
    let mut output = OutputFile::begin(&path).unwrap();
    output.write_all(&[7; BUFFER_BYTES * 2]).unwrap();
    drop(output);
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"old".to_vec(), 0o640));
    drop(OutputFile::begin(&folder.path().join("new")).unwrap());
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn a_file_that_is_not_there_is_made_with_the_mode_of_any_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("out"), folder.path().join("other"));
    write_output(&path, NEW).unwrap();
    File::create(&other).unwrap();
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (NEW.to_vec(), mode(&other)));
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("far")).unwrap();
    old(&at("far/target"), 0o640);
    // One link leads to another, the first of them without a folder in it.
    symlink("far/link", at("link")).unwrap();
    symlink("target", at("far/link")).unwrap();
    write_output(&at("link"), NEW).unwrap();
    assert!(at("link").is_symlink() && at("far/link").is_symlink());
    assert_eq!((fs::read(at("far/target")).unwrap(), mode(&at("far/target"))), (NEW.into(), 0o640));
    assert_eq!((names(folder.path()).len(), names(&at("far")).len()), (2, 2));
}

#[test]
fn a_link_that_leads_nowhere_stays_and_what_it_names_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("far")).unwrap();
    symlink("far/target", at("link")).unwrap();
    write_output(&at("link"), NEW).unwrap();
    assert!(at("link").is_symlink());
    assert_eq!(fs::read(at("far/target")).unwrap(), NEW);
    symlink("none/target", at("worse")).unwrap();
    let (kind, text) = refusal(&at("worse"));
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(text.contains("there is no folder ") && text.contains("none; create it"), "{text}");
    symlink("circle", at("circle")).unwrap();
    assert!(refusal(&at("circle")).1.contains("symbolic link"));
    assert!(at("circle").is_symlink() && at("worse").is_symlink());
}

#[test]
fn a_pipe_is_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    node(&path, FileType::Fifo, 0).unwrap();
    let read = path.clone();
    let got = reader(move || File::open(&read).unwrap());
    let (sender, written) = mpsc::channel();
    let name = path.clone();
    thread::spawn(move || sender.send(write_output(&name, NEW)));
    written.recv_timeout(DEADLINE).unwrap().unwrap();
    assert_eq!(got.recv_timeout(DEADLINE).unwrap(), NEW);
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    assert_eq!(names(folder.path()), ["pipe"]);
}

#[test]
fn a_device_is_written_to_and_stays_a_device() {
    // As root, an output named /dev/null was renamed over it: the machine had a regular file there.
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("null"), folder.path().join("link"));
    null_device(&path);
    symlink("null", &link).unwrap();
    let before = fs::symlink_metadata(&path).unwrap();
    for name in [&path, &link] {
        write_output(name, NEW).unwrap();
        drop(OutputFile::begin(name).unwrap());
        let output = OutputFile::begin(name).unwrap();
        assert_eq!((output.unfinished(), output.replaces_unfinished()), (None, false));
    }
    let after = fs::symlink_metadata(&path).unwrap();
    assert_eq!((before.ino(), before.file_type()), (after.ino(), after.file_type()));
    assert_eq!(names(folder.path()), ["link", "null"]);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn a_socket_is_written_to_while_it_has_a_listener() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let got = reader(move || OwnedFd::from(listener.accept().unwrap().0).into());
    write_output(&path, NEW).unwrap();
    assert_eq!(got.recv_timeout(DEADLINE).unwrap(), NEW);
    let (kind, text) = refusal(&path);
    assert_eq!(kind, ErrorKind::ConnectionRefused);
    assert!(text.starts_with("it is a socket without a listener: "), "{text}");
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    assert_eq!(names(folder.path()), ["socket"]);
}

#[test]
fn what_is_open_already_is_appended_to_by_whatever_link() {
    // A shell's `> file` and /dev/stdout: what other commands have written there stays.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut shared = File::create(&path).unwrap();
    shared.write_all(b"first, ").unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&shared);
    let link = folder.path().join("link");
    symlink(format!("/proc/self/fd/{descriptor}"), &link).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    write_output(&link, b"second").unwrap();
    write_output(Path::new(&format!("/dev/fd/{descriptor}")), b", third").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first, second, third");
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    assert_eq!(names(folder.path()), ["link", "out"]);
}

#[test]
fn folders_and_files_of_folders_that_are_not_there_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "old").unwrap();
    assert_eq!(
        refusal(folder.path()),
        (ErrorKind::IsADirectory, "it is a folder; name a file in it".into())
    );
    let (kind, text) = refusal(&at("none/out"));
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(text.starts_with("there is no folder ") && text.contains("none; create it"), "{text}");
    assert_eq!(refusal(&at("none/")).0, ErrorKind::NotFound);
    assert_eq!(refusal(&at("file/out")).0, ErrorKind::NotADirectory);
    assert_eq!(refusal(Path::new("")).0, ErrorKind::NotFound);
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn an_output_that_another_run_writes_is_refused_and_what_a_dead_run_left_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let left = unfinished_path(&path);
    fs::write(&left, "of a run that was killed").unwrap();
    let output = OutputFile::begin(&path).unwrap();
    assert!(output.replaces_unfinished());
    let (kind, text) = refusal(&path);
    assert_eq!(kind, ErrorKind::ResourceBusy);
    assert!(text.contains("out.unfinished: another output of that name"), "{text}");
    output.finish().unwrap();
    assert!(!OutputFile::begin(&path).unwrap().replaces_unfinished());
    null_device(&left);
    let (kind, text) = refusal(&path);
    assert_eq!(kind, ErrorKind::AlreadyExists);
    assert!(text.contains("out.unfinished: it exists and is not a regular file"), "{text}");
    assert_eq!(names(folder.path()), ["out", "out.unfinished"]);
}

#[test]
fn a_protected_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    old(&path, 0o444);
    match open(&path) {
        Ok(_) => println!("left out: this process may write to any file"),
        Err(_) => {
            assert_eq!(refusal(&path).0, ErrorKind::PermissionDenied);
            assert_eq!(fs::read(&path).unwrap(), b"old");
        }
    }
}

#[test]
fn a_write_that_fails_is_told_and_the_device_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full");
    device(&path, 7, "/dev/full");
    assert_eq!(refusal(&path).0, ErrorKind::StorageFull);
    assert!(fs::metadata(&path).unwrap().file_type().is_char_device());
    assert_eq!(names(folder.path()), ["full"]);
}
