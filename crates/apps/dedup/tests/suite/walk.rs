//! Real trees: links, loops, pipes, sockets, several names, and unreadable things.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::common::run;
use nandex::raw::oracle::MapTable;
use nandex_dedup::{
    Chunker, Chunking, Error, Found, Options, SkipKind, Summary, Survey, VALUE_BYTES, Walk, survey,
};
use rustix::fs::{CWD, FileType, Mode, OFlags};

fn run_on<P: AsRef<Path>>(paths: &[P]) -> Summary {
    let options = Options::new(paths.iter().map(AsRef::as_ref));
    run(&MapTable::new(options.hash.key_bytes(), VALUE_BYTES), &options)
}

/// Returns file names and kinds of skips, in the order of the walk.
fn names<P: AsRef<Path>>(paths: &[P]) -> Vec<String> {
    let name = |found| match found {
        Found::File(file) => file.path.file_name().unwrap().to_string_lossy().into_owned(),
        Found::Skipped(skipped) => format!("{:?}", skipped.kind),
    };
    Walk::new(paths).unwrap().map(name).collect()
}

#[test]
fn what_is_no_file_is_reported_and_passed_over() {
    let tree = tempfile::tempdir().unwrap();
    let at = |name: &str| tree.path().join(name);
    let _listener = UnixListener::bind(at("a_socket")).unwrap();
    rustix::fs::mknodat(CWD, at("b_pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    fs::write(at("c_file"), "x").unwrap();
    symlink("c_file", at("d_link")).unwrap();
    symlink("nowhere", at("e_dangling")).unwrap();
    assert_eq!(names(&[tree.path()]), ["Special", "Special", "c_file", "Symlink", "Symlink"]);

    let summary = run_on(&[tree.path(), Path::new("/dev/null")]);
    assert_eq!((summary.files, summary.total_bytes, summary.skipped_count), (1, 1, 5));
    let reasons: Vec<&str> = summary.skipped.iter().map(|skipped| &*skipped.reason).collect();
    assert!(reasons[0].contains("socket") && reasons[1].contains("pipe"), "{reasons:?}");
    assert!(reasons[4].contains("character device"), "{reasons:?}");
}

#[test]
fn links_that_loop_are_not_followed() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join("a")).unwrap();
    symlink("..", tree.path().join("a/up")).unwrap();
    symlink("self", tree.path().join("self")).unwrap();
    assert_eq!(names(&[tree.path()]), ["Symlink", "Symlink"]);
}

#[test]
fn a_given_link_is_followed_once_and_a_given_loop_is_refused() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join("real")).unwrap();
    fs::write(tree.path().join("real/f"), "x").unwrap();
    symlink("real", tree.path().join("link")).unwrap();
    symlink("loop", tree.path().join("loop")).unwrap();
    assert_eq!(names(&[tree.path().join("link")]), ["f"]);
    assert!(matches!(Walk::new(&[tree.path().join("loop")]), Err(Error::Path { .. })));
}

#[test]
fn a_file_of_several_names_is_counted_once() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("a"), vec![7; 1000]).unwrap();
    fs::hard_link(tree.path().join("a"), tree.path().join("b")).unwrap();
    let summary = run_on(&[tree.path()]);
    assert_eq!((summary.files, summary.total_bytes, summary.duplicate_bytes), (1, 1000, 0));
    assert_eq!(summary.skipped[0].kind, SkipKind::HardLink);
    assert!(summary.skipped[0].path.ends_with('b'));
}

#[test]
fn paths_that_overlap_are_counted_once() {
    let tree = tempfile::tempdir().unwrap();
    let inner = tree.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("f"), "x").unwrap();
    let (outer, file) = (tree.path().to_owned(), inner.join("f"));
    assert_eq!(names(&[&outer, &inner]), ["f", "Repeated"]);
    assert_eq!(names(&[&inner, &outer]), ["f", "Repeated"]);
    assert_eq!(names(&[&outer, &file]), ["f", "HardLink"]);
    assert_eq!(names(&[&file, &outer]), ["f", "HardLink"]);
    assert_eq!(names(&[&file, &file]), ["f", "HardLink"]);
}

#[test]
fn a_path_that_is_not_there_is_an_error_that_names_it() {
    let error = survey(&["/nowhere/at/all"]).unwrap_err();
    assert!(matches!(error, Error::Path { .. }));
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    let table = MapTable::new(32, VALUE_BYTES);
    let options = Options::new(["/nowhere/at/all"]);
    let result = nandex_dedup::dedup(&table, &options, &(), &false.into());
    assert!(matches!(result, Err(Error::Path { .. })));
}

#[test]
fn the_index_itself_is_left_out_under_any_name() {
    let tree = tempfile::tempdir().unwrap();
    let index = tree.path().join("index");
    fs::write(&index, "its pages").unwrap();
    fs::write(tree.path().join("f"), "x").unwrap();
    fs::hard_link(&index, tree.path().join("other name")).unwrap();
    let mut options = Options::new([tree.path()]);
    options.leave_out = vec![index];
    let summary = run(&MapTable::new(32, VALUE_BYTES), &options);
    assert_eq!((summary.files, summary.total_bytes, summary.skipped_count), (1, 1, 2));
    assert!(summary.skipped.iter().all(|skipped| skipped.kind == SkipKind::LeftOut));
    options.leave_out = vec![tree.path().join("nowhere")];
    let result = nandex_dedup::dedup(&MapTable::new(32, 8), &options, &(), &false.into());
    assert!(matches!(result, Err(Error::Path { .. })));
}

#[test]
fn proc_is_not_entered() {
    let found: Vec<Found> = Walk::new(&["/proc"]).unwrap().collect();
    assert!(matches!(&found[..], [Found::Skipped(s)] if s.kind == SkipKind::PseudoFileSystem));
}

#[test]
fn the_order_is_that_of_names_and_each_directory_is_one_stretch() {
    let tree = tempfile::tempdir().unwrap();
    for directory in ["b", "a"] {
        fs::create_dir(tree.path().join(directory)).unwrap();
    }
    for file in ["b/1", "a/9", "a.x", "b/0", "B", "c"] {
        fs::write(tree.path().join(file), "").unwrap();
    }
    assert_eq!(names(&[tree.path()]), ["B", "9", "a.x", "0", "1", "c"]);
}

#[test]
fn what_this_user_may_not_read_is_reported() {
    let tree = tempfile::tempdir().unwrap();
    let (locked, file) = (tree.path().join("locked"), tree.path().join("secret"));
    fs::create_dir(&locked).unwrap();
    fs::write(&file, "x").unwrap();
    for path in [&locked, &file] {
        fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
    }
    let denied = u64::from(fs::File::open(&file).is_err());
    let summary = run_on(&[tree.path()]);
    fs::set_permissions(&locked, Permissions::from_mode(0o700)).unwrap();
    // The superuser may read everything; all other users miss both.
    assert_eq!((summary.files, summary.skipped_count), (1 - denied, 2 * denied));
    assert!(summary.skipped.iter().all(|skipped| skipped.kind == SkipKind::Unreadable));
}

#[test]
fn a_path_too_long_to_look_at_is_reported() {
    let tree = tempfile::tempdir().unwrap();
    let name = "d".repeat(250);
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open(tree.path(), flags, Mode::empty()).unwrap();
    for _ in 0..18 {
        rustix::fs::mkdirat(&directory, &*name, Mode::RWXU).unwrap();
        directory = rustix::fs::openat(&directory, &*name, flags, Mode::empty()).unwrap();
    }
    let summary = run_on(&[tree.path()]);
    assert_eq!(summary.skipped_count, 1);
    assert_eq!(summary.skipped[0].kind, SkipKind::Unreadable);
}

#[test]
fn a_survey_counts_without_reading() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join("a")).unwrap();
    fs::write(tree.path().join("a/f"), vec![1; 5000]).unwrap();
    fs::write(tree.path().join("g"), vec![1; 96]).unwrap();
    symlink("g", tree.path().join("l")).unwrap();
    let survey = survey(&[tree.path()]).unwrap();
    assert_eq!(survey, Survey { files: 2, bytes: 5096, directories: 2, skipped: 1 });
    let chunking = Chunking::new(Chunker::Fixed, 256).unwrap();
    assert_eq!(survey.chunks_expected(&chunking), 2 + 19);
}
