//! The named outputs of every verb, on each kind of file: a device, a pipe and the target of a link are written to, a
//! regular file is replaced whole and keeps its mode.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::common::Folder;
use crate::output_files::{
    self, MODE, Verb, assert_null_is_a_device, device, identity, make, ok, pipe, shell,
};

/// The inputs of the verbs, each created by an earlier verb.
const PREPARED: [&str; 4] = [
    "wan store texts -o a.refs --cache c.nandex --size 4MiB",
    "neardup index n.nandex texts --ram 64MiB --documents 10k",
    "tfidf build i.nandex texts --ram 64MiB",
    "create v.nandex --key-bytes 8 --entries 1e4 --ram 4MiB",
];

/// The verbs whose outputs are streams, once for each output.
const VERBS: [Verb; 14] = [
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
    Verb("probe flash --size 4MiB --svg OUT", "out"),
];

/// The verbs that write pages into a folder, with one of the pages.
const FOLDERS: [Verb; 1] = [Verb("man pages", "pages/nandex.1")];

fn with_inputs() -> Folder {
    let folder = Folder::new();
    let text = |number: u32| format!("{number} {} red fish blue fish\n", number * 7919 % 101);
    let texts: String = (0..200).chain(0..20).map(text).collect();
    fs::write(folder.path("texts"), texts).expect("the folder is writable");
    fs::create_dir(folder.path("pages")).expect("the folder is writable");
    PREPARED.iter().for_each(|words| ok(&shell(&folder, &format!("\"$NANDEX\" {words}"))));
    folder
}

#[test]
fn every_output_is_replaced_whole_or_written_to_by_the_kind_of_its_file() {
    output_files::assert_write_each_kind(&with_inputs(), VERBS.iter().chain(&FOLDERS));
}

#[test]
fn a_run_that_cannot_write_its_output_keeps_the_file_that_was_there() {
    // Some verbs emptied the file before they knew whether they could fill it.
    let verbs = VERBS.iter().chain(&FOLDERS);
    // The probe writes its own file first.
    let verbs = verbs.filter(|verb| !verb.0.starts_with("probe"));
    output_files::assert_keep_what_they_cannot_write(&with_inputs(), verbs);
}

#[test]
fn a_folder_and_a_socket_without_a_listener_are_refused() {
    output_files::assert_refuse_folders_and_sockets(&with_inputs(), &VERBS);
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
            // A volume is not merged with itself, which may be said first.
            let codes = if words.contains("merge ") { 1..=2 } else { 1..=1 };
            assert!(codes.contains(&refused.code), "{words} on a {kind}: {refused:?}");
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
    for words in ["create OUT --key-bytes 8 --entries 1e4", "probe flash --size 4MiB --svg OUT"] {
        output_files::assert_refuses_a_device_as_unfinished_file(&folder, words);
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
