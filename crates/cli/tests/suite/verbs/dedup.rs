//! Runs of `nandex dedup` that end, and that are stopped.

use super::*;

#[test]
fn duplicates_are_found_reported_and_remembered() {
    for structure in ["bufferhash", "slicehash", "auto"] {
        let folder = Folder::new();
        let half: Vec<u8> =
            (0..200_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        fs::create_dir(folder.path("tree")).expect("the folder is writable");
        fs::write(folder.path("tree/a"), &half).expect("the folder is writable");
        fs::write(folder.path("tree/b"), &half).expect("the folder is writable");
        let words =
            format!("dedup tree --ram 8MiB --structure {structure} --index i.nandex --json");
        let first = folder.run(&format!("{words} --report r.html"));
        assert_eq!(first.code, 0, "{first:?}");
        let summary = json(&first);
        assert_eq!(summary["total_bytes"], 2 * 800_000);
        assert_eq!(summary["duplicate_bytes"], 800_000);
        let report = fs::read_to_string(folder.path("r.html")).expect("the report is there");
        assert!(report.contains("</html>"));
        let second = json(&folder.run(&words));
        assert_eq!(second["unique_chunks"], 0, "{structure}");
    }
}

/// Creates a file of pages of ones, each after a long hole: little on disk, and many seconds to read.
fn long_to_read(folder: &Folder, name: &str) {
    let file = fs::File::create(folder.path(name)).expect("the folder is writable");
    for page in 0..50_000 {
        file.write_all_at(&[1; 4096], page << 20).expect("a sparse file can be made");
    }
}

#[test]
fn an_interrupted_run_leaves_an_index_that_is_whole_and_goes_on() {
    let folder = Folder::new();
    long_to_read(&folder, "sparse");
    let words = "dedup sparse --ram 64MiB --index i.nandex --json --progress plain";
    let mut child = folder.start(words);
    let mut said = BufReader::new(child.stderr.take().expect("stderr is piped"));
    // The first word of progress comes after the first batch of lookups.
    let mut stderr = String::new();
    said.read_line(&mut stderr).expect("stderr can be read");
    assert!(stderr.starts_with("reading: "), "{stderr}");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill can be started").success());
    said.read_to_string(&mut stderr).expect("stderr can be read");
    let output = child.wait_with_output().expect("the command ends");
    let outcome = Outcome { stderr, ..Outcome::from(output) };
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert_eq!(json(&outcome)["interrupted"], true);
    assert!(outcome.stderr.contains("goes on with i.nandex"), "{outcome:?}");
    assert_eq!(folder.run("check i.nandex").code, 0);
    let small = fs::File::create(folder.path("small"));
    small.and_then(|file| file.set_len(64 << 20)).expect("a sparse file can be made");
    let again = json(&folder.run("dedup small --ram 64MiB --index i.nandex --json"));
    assert_eq!(again["unique_chunks"], 0, "zeros were seen before the interrupt: {again}");
}

#[test]
fn a_killed_run_without_an_index_leaves_nothing_behind() {
    let folder = Folder::new();
    long_to_read(&folder, "sparse");
    let mut child = folder.start("dedup sparse --ram 64MiB --progress plain");
    let mut said = BufReader::new(child.stderr.take().expect("stderr is piped"));
    said.read_line(&mut String::new()).expect("stderr can be read");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let names = fs::read_dir(folder.path(".")).expect("the folder is readable");
    assert_eq!(names.count(), 1, "only what was there");
}

#[test]
fn a_run_without_an_index_leaves_nothing_behind() {
    let folder = Folder::new();
    fs::write(folder.path("a"), [7; 100_000]).expect("the folder is writable");
    let outcome = folder.run("dedup a --ram 8MiB --progress none");
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let names = fs::read_dir(folder.path(".")).expect("the folder is readable");
    let names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names, ["a"]);
}

#[test]
fn dedup_lists_every_chunk_and_says_what_made_the_report() {
    let folder = Folder::new();
    fs::create_dir(folder.path("tree")).unwrap();
    for name in ["one", "two"] {
        fs::write(folder.path("tree").join(name), "the same ".repeat(100)).unwrap();
    }
    let outcome = folder.run("dedup tree --ram 8MiB --list tree/chunks.tsv --json --progress none");
    let summary = json(&outcome);
    assert_eq!(summary["files"], 2, "the list itself is not read");
    assert_eq!(
        summary["command"],
        "nandex dedup tree --ram 8MiB --list tree/chunks.tsv --json --progress none"
    );
    assert_eq!(summary["version"], env!("CARGO_PKG_VERSION"));
    assert!(summary["date"].as_str().is_some_and(|date| date.ends_with('Z') && date.len() == 20));
    let list = fs::read_to_string(folder.path("tree/chunks.tsv")).unwrap();
    let starts =
        ["chunk\t0\t0\t900\t1\t", "file\t0\t900\t", "chunk\t1\t0\t900\t1\t", "file\t1\t900\t"];
    assert_eq!(list.lines().count(), 4, "{list}");
    assert!(list.lines().zip(starts).all(|(line, start)| line.starts_with(start)), "{list}");
    assert!(list.contains("\tnew\nfile") && list.contains("\tduplicate\nfile"), "{list}");
    let again = folder.run("dedup tree --ram 8MiB --list tree/chunks.tsv --json --progress none");
    assert_eq!(json(&again)["files"], 2, "neither the list nor the one that it replaces is read");
    assert_eq!(fs::read_to_string(folder.path("tree/chunks.tsv")).unwrap(), list);
    let outcome = folder.run("dedup tree --ram 8MiB --list none/chunks.tsv");
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("cannot write none/chunks.tsv"), "{outcome:?}");
}

#[test]
fn too_little_ram_shortens_the_index_and_says_so() {
    let folder = Folder::new();
    fs::File::create(folder.path("sparse")).and_then(|file| file.set_len(1 << 30)).expect("sparse");
    fs::create_dir(folder.path("tree")).expect("the folder is writable");
    let outcome = folder.run("dedup sparse --ram 2400KiB --avg 256 --progress none --json");
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("the oldest are forgotten"), "{outcome:?}");
    let outcome = folder.run("dedup sparse --ram 64KiB --progress none");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("this table needs"), "{outcome:?}");
}
