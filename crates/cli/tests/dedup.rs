//! What `dedup` cannot read, and holes.
#![forbid(unsafe_code)]

#[expect(dead_code, reason = "shared with the tests of other verbs, which use more of it")]
mod common;

use std::fs;

use common::{Folder, Outcome};
use serde_json::Value;

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|e| panic!("{e}: {outcome:?}"))
}

/// Puts a file into the folder whose path is too long to open, for whichever user.
fn add_unreadable(folder: &Folder) {
    let deep =
        |name: &str| folder.path(&format!("tree/{name}")).join(vec!["d".repeat(250); 9].join("/"));
    for name in ["a", "b"] {
        fs::create_dir_all(deep(name)).expect("the folder is writable");
    }
    fs::write(deep("b").join("file"), "unread").expect("the folder is writable");
    fs::rename(folder.path("tree/b"), deep("a").join("b")).expect("the folder is writable");
}

#[test]
fn what_cannot_be_read_is_told_in_text_in_json_and_by_the_exit_code() {
    let folder = Folder::new();
    fs::create_dir(folder.path("tree")).expect("the folder is writable");
    fs::write(folder.path("tree/good"), "read").expect("the folder is writable");
    assert_eq!(folder.run("dedup tree --ram 8MiB").code, 0);
    add_unreadable(&folder);
    let text = folder.run("dedup tree --ram 8MiB");
    assert_eq!(text.code, 4, "{text:?}");
    assert!(text.stdout.contains("\nUnreadable   1 files and directories"), "{text:?}");
    assert!(text.stderr.contains("1 files and directories could not be read"), "{text:?}");
    let summary = folder.run("dedup tree --ram 8MiB --json");
    assert_eq!((summary.code, &json(&summary)["unreadable_count"]), (4, &1.into()));
    assert_eq!(json(&summary)["total_bytes"], 4);
}
