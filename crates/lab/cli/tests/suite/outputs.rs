//! The named outputs of every verb, on each kind of file.

use std::fs;

use crate::common::Folder;
use crate::output_files::{self, Verb};

/// The verbs, once for each output.
const VERBS: [Verb; 5] = [
    Verb("sim --preset crucial-m4 --workload mixed --requests 100 --trace OUT", "out"),
    Verb("sim --preset crucial-m4 --workload mixed --requests 100 --report OUT", "out"),
    Verb("probe --preset intel-x18m --size 4MiB --svg OUT", "out"),
    Verb("reproduce constants --report OUT", "out"),
    Verb("reproduce rhik --only capacity --scale 8192 --progress none --report OUT", "out"),
];

/// The verb that writes pages into a folder, with one of the pages.
const FOLDERS: [Verb; 1] =
    [Verb("reproduce all --only rhik/capacity --scale 8192 --report pages", "pages/index.html")];

fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.path("pages")).expect("the folder is writable");
    folder
}

#[test]
fn every_output_is_replaced_whole_or_written_to_by_the_kind_of_its_file() {
    output_files::assert_write_each_kind(&folder(), VERBS.iter().chain(&FOLDERS));
}

#[test]
fn a_run_that_cannot_write_its_output_keeps_the_file_that_was_there() {
    output_files::assert_keep_what_they_cannot_write(&folder(), VERBS.iter().chain(&FOLDERS));
}

#[test]
fn a_folder_and_a_socket_without_a_listener_are_refused() {
    output_files::assert_refuse_folders_and_sockets(&folder(), &VERBS);
}

#[test]
fn an_unfinished_file_that_is_no_file_is_refused() {
    let words = "sim --preset pm983 --workload mixed --requests 10 --report OUT";
    output_files::assert_refuses_a_device_as_unfinished_file(&folder(), words);
}
