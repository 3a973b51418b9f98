//! Updates and builds that are stopped.

use super::*;

/// The number of times that each document of a long run has the word that all have.
const ALL: u64 = 20;

/// Returns the documents of a long run. Each has a word that all have, and one of its own.
fn many(count: u64) -> String {
    let all = "all ".repeat(ALL as usize);
    (0..count).map(|number| format!("{all}own{number}\n")).collect()
}

/// Returns the number of documents that a killed run has left, after checking that every count is theirs.
fn counted(folder: &Folder, documents_max: u64) -> u64 {
    let report = json(&ok(folder.run(&format!("tfidf report k.nandex {RAM} --json"))));
    let documents = report["documents"].as_u64().expect("a number");
    assert!((1000..=documents_max).contains(&documents), "{report}");
    assert_eq!(counts(folder, "k.nandex", "all"), [(documents, ALL * documents)]);
    // All documents before the last one, and none after it.
    let (last, next) = (documents - 1, documents);
    let ends = format!("own0 own{last} own{next}");
    assert_eq!(counts(folder, "k.nandex", &ends), [(1, 1), (1, 1), (0, 0)]);
    assert_eq!(
        (&report["terms"], &report["occurrences"]),
        (&(documents + 1).into(), &((ALL + 1) * documents).into())
    );
    documents
}

#[test]
fn after_a_kill_an_index_has_whole_batches_and_an_update_adds_the_rest() {
    const DOCUMENTS: u64 = 120_000;
    let folder = Folder::new();
    write(&folder, "few.txt", many(1000));
    write(&folder, "many.txt", many(DOCUMENTS));
    ok(folder.run(&format!("tfidf build base.nandex few.txt --name many.txt {RAM}")));
    let update = format!("tfidf update k.nandex many.txt {RAM} --skip-repeats");
    let copy = || fs::copy(folder.path("base.nandex"), folder.path("k.nandex")).expect("space");
    copy();
    let start = Instant::now();
    ok(folder.run(&update));
    let whole = start.elapsed();
    assert_eq!(counted(&folder, DOCUMENTS), DOCUMENTS);
    let kill_after = |delay| {
        copy();
        let mut child = folder.start(&update);
        sleep(delay);
        let _ = child.kill();
        child.wait_with_output().expect("the command ends");
        let left = counted(&folder, DOCUMENTS);
        ok(folder.run(&update));
        assert_eq!(counted(&folder, DOCUMENTS), DOCUMENTS, "killed after {delay:?}");
        left
    };
    // From the start to shortly before the end, at equal parts of the time of a whole run.
    let mut left: BTreeSet<_> = (1..6).map(|part| kill_after(whole * part / 6)).collect();
    // On a busy machine all times shift: then by bisection between too early and too late.
    let (mut early, mut late) = (Duration::ZERO, 4 * whole);
    let is_part = |documents: &u64| (1001..DOCUMENTS).contains(documents);
    for _ in 0..12 {
        if left.iter().any(is_part) {
            return;
        }
        let delay = (early + late) / 2;
        let documents = kill_after(delay);
        *(if documents == DOCUMENTS { &mut late } else { &mut early }) = delay;
        left.insert(documents);
    }
    panic!("no kill was between two batches: {left:?}");
}

#[test]
fn a_build_that_is_stopped_leaves_what_it_read_under_another_name() {
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        write(&folder, "in.txt", many(3000));
        let mut child = folder.start_piped(&format!("tfidf build i.nandex - {RAM} --name in.txt"));
        let mut stdin = child.stdin.take().expect("stdin is piped");
        stdin.write_all(many(3000).as_bytes()).expect("the command reads");
        // The command waits for more, and receives the signal.
        while !folder.path("i.nandex.unfinished").exists() {
            sleep(Duration::from_millis(5));
        }
        sleep(Duration::from_millis(500));
        let id = child.id().to_string();
        Command::new("kill").args([&format!("-{signal}"), &id]).output().expect("kill is there");
        let stopped = Outcome::from(child.wait_with_output().expect("the command ends"));
        drop(stdin);
        assert_eq!(stopped.code, 1, "{stopped:?}");
        assert!(stopped.stderr.contains("with --resume adds the rest"), "{stopped:?}");
        assert!(!folder.path("i.nandex").exists());
        let refused = folder.run(&format!("tfidf query i.nandex all {RAM}"));
        assert!(refused.stderr.contains("cannot open i.nandex: it is unfinished"), "{refused:?}");
        let other = folder.run(&format!("tfidf build i.nandex in.txt {RAM} --resume --ngram 2"));
        assert_eq!(other.code, 2, "{other:?}");
        assert!(other.stderr.contains("was begun with other options of terms"), "{other:?}");
        let rest = ok(folder.run(&format!("tfidf build i.nandex in.txt {RAM} --resume --json")));
        assert!(rest.stderr.contains("i.nandex.unfinished is resumed: it has "), "{rest:?}");
        let rest = json(&rest);
        assert_eq!((&rest["documents"], &rest["path"]), (&3000.into(), &"i.nandex".into()));
        assert!(rest["skipped"].as_u64() > Some(0), "{rest}");
        assert_eq!(counts(&folder, "i.nandex", "all own2999"), [(3000, 3000 * ALL), (1, 1)]);
        // Without the option the run begins again.
        fs::rename(folder.path("i.nandex"), folder.path("i.nandex.unfinished"))
            .expect("it is there");
        let again = ok(folder.run(&format!("tfidf build i.nandex in.txt {RAM}")));
        assert!(again.stderr.contains("i.nandex.unfinished is replaced"), "{again:?}");
        assert_eq!(counts(&folder, "i.nandex", "all own2999"), [(3000, 3000 * ALL), (1, 1)]);
    }
}
