//! Builds and merges that are stopped.

use super::*;

#[test]
fn an_interrupted_build_leaves_a_filter_that_is_marked_unfinished_and_goes_on() {
    let folder = Folder::new();
    sparse(&folder, "sparse");
    let mut child =
        folder.start("filter build f.nandex sparse --width 16 --keys 1M --json --progress plain");
    let mut said = std::io::BufReader::new(child.stderr.take().expect("stderr is piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("stderr can be read");
    assert!(line.starts_with("adding: "), "{line}");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill can be started").success());
    let output: Outcome = child.wait_with_output().expect("the command ends").into();
    assert_eq!(output.code, 1, "{output:?}");
    let built = json(&output);
    assert_eq!((&built["interrupted"], &built["entries"]), (&true.into(), &1.into()));
    assert_eq!(built["path"], "f.nandex.unfinished");
    assert!(!folder.path("f.nandex").exists());
    assert_eq!(folder.run("check f.nandex.unfinished").code, 0);
    let asked = piped(&folder, "filter test f.nandex.unfinished --width 16", &[0; 16]);
    assert_eq!(asked, (0, vec![0; 16]));
}

/// Creates sparse files of keys: holes cost no disk, and take long to read.
fn sparse(folder: &Folder, name: &str) {
    let sparse = fs::File::create(folder.path(name));
    sparse.and_then(|file| file.set_len(64 << 30)).expect("a sparse file can be made");
}

#[test]
fn a_killed_build_leaves_no_file_of_that_name_and_the_next_one_says_what_it_replaces() {
    let folder = Folder::new();
    sparse(&folder, "sparse");
    let words = "filter build f.nandex sparse --width 16 --keys 1M --progress plain";
    let mut child = folder.start(words);
    let mut said = std::io::BufReader::new(child.stderr.take().expect("stderr is piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("stderr can be read");
    write(&folder, "in", "a\nb\n");
    let busy = folder.run("filter build f.nandex in");
    assert!(busy.stderr.contains("another run is making it"), "{busy:?}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(!folder.path("f.nandex").exists());
    let again = ok(folder.run("filter build f.nandex in"));
    assert!(again.stderr.contains("f.nandex.unfinished is replaced"), "{again:?}");
    assert!(!folder.path("f.nandex.unfinished").exists());
    assert_eq!(json(&ok(folder.run("filter info f.nandex --json")))["entries"], 2);
}

#[test]
fn a_merge_that_cannot_go_on_leaves_no_file() {
    let folder = Folder::new();
    write(&folder, "in", "a\nb\n");
    ok(folder.run("filter build a.nandex in --keys 1e5"));
    ok(folder.run("filter build b.nandex in --keys 1e5"));
    let bytes = fs::read(folder.path("b.nandex")).expect("it was made");
    // The superblocks stay intact, the runs do not.
    let damaged: Vec<u8> =
        bytes.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at > 1 << 19)).collect();
    fs::write(folder.path("b.nandex"), damaged).expect("it can be written");
    let merged = folder.run("filter merge -o m.nandex a.nandex b.nandex");
    assert_ne!(merged.code, 0, "{merged:?}");
    assert!(!folder.path("m.nandex").exists() && !folder.path("m.nandex.unfinished").exists());
}
