//! Runs the commands in README.md, ARCHITECTURE.md, CHANGELOG.md and the pages under docs/.
//!
//! Each page runs in a folder of its own with a small tree in `sample`, so no page depends on another one.
//! Lines of `console` blocks that begin with `$` and all lines of `sh` blocks go to a shell with `nandex` and
//! `nandex-lab` on its path, and must succeed; `make` is called with `-n`. Examples in Rust are doctests.
//!
//! A build of the workspace's tests leaves both commands in one folder. A build of this package's tests leaves only
//! `nandex` there: then build `nandex-lab-cli` first.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command, and its line in the page.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Shown {
    line: usize,
    command: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root is there")
}

fn pages() -> Vec<PathBuf> {
    let names = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"];
    let mut pages = names.map(|name| root().join(name)).to_vec();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("docs can be read") {
            let path = entry.expect("docs can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Returns the commands of a page, in order. A backslash at the end of a line joins the next to it.
fn commands(text: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut fence = None;
    let mut continues = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
            continue;
        }
        let command = match fence {
            Some("console") if continues => Some(line),
            Some("console") => line.strip_prefix("$ "),
            Some("sh") => Some(line).filter(|line| !line.is_empty() && !line.starts_with('#')),
            _ => None,
        };
        let Some(command) = command else { continue };
        match found.last_mut() {
            Some(last) if continues => last.command.push_str(command),
            _ => found.push(Shown { line: index + 1, command: command.to_owned() }),
        }
        let last = found.last_mut().expect("one was pushed");
        continues = last.command.ends_with('\\');
        if continues {
            last.command.pop();
        }
    }
    found
}

/// Creates a folder with a small tree in it, with duplicates.
fn folder_with_sample() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let sample = folder.path().join("sample");
    fs::create_dir(&sample).expect("the folder is writable");
    let words: String = (0..20_000).map(|word| format!("word {word}\n")).collect();
    for name in ["first.txt", "second.txt"] {
        fs::write(sample.join(name), &words).expect("the folder is writable");
    }
    folder
}

/// Returns whether `nandex-lab` is in the folder of `nandex`.
fn has_lab() -> bool {
    Path::new(env!("CARGO_BIN_EXE_nandex")).with_file_name("nandex-lab").exists()
}

fn run(shown: &Shown, folder: &Path) -> Result<(), String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_nandex"));
    let mut places = vec![binary.parent().expect("the binary is in a folder").to_path_buf()];
    places.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let command = match shown.command.strip_prefix("make") {
        Some(rest) => format!("make -n -C '{}' {rest}", root().display()),
        None => shown.command.clone(),
    };
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(folder)
        .env("PATH", env::join_paths(places).expect("no place has a colon"))
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .output()
        .map_err(|e| format!("the shell cannot be started: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("line {}: `{}` gave {}: {said}", shown.line, shown.command, output.status))
}

/// Ends processes that a page has left running, if a command before the one that ends them has failed. Such pages keep
/// the number of a process in a file.
fn end_processes(folder: &Path) {
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|it| it == "pid") {
            let number = fs::read_to_string(&path).unwrap_or_default();
            // Usually the process has ended.
            let _ = Command::new("kill").arg(number.trim()).output();
        }
    }
}

#[test]
fn every_command_of_the_pages_succeeds() {
    let mut failures = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("the page can be read");
        let place = page.strip_prefix(root()).unwrap_or(&page).display().to_string();
        let folder = folder_with_sample();
        for shown in commands(&text) {
            count += 1;
            failures.extend(run(&shown, folder.path()).err().map(|why| format!("{place}: {why}")));
        }
        end_processes(folder.path());
    }
    assert!(has_lab(), "nandex-lab is not next to nandex: build the package nandex-lab-cli");
    assert!(count > 10, "only {count} commands found: the search has lost its way");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn commands_are_found_in_their_fences_only() {
    let text =
        "```console\n$ nandex a \\\n  b\noutput\n```\n```text\n$ no\n```\n```sh\nmake x\n```\n";
    let shown = |line, command: &str| Shown { line, command: command.into() };
    assert_eq!(commands(text), [shown(2, "nandex a   b"), shown(10, "make x")]);
}

#[test]
fn a_command_that_fails_is_reported() {
    let folder = folder_with_sample();
    let wrong = Shown { line: 3, command: "nandex get gone.nandex 1".into() };
    assert!(run(&wrong, folder.path()).unwrap_err().contains("cannot open gone.nandex"));
    let wrong = Shown { line: 3, command: "make no-such-target".into() };
    assert!(run(&wrong, folder.path()).is_err());
}
