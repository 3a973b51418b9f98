//! Wrong values on the command line: exit code 2 in every verb, messages that name the flag, and errors as JSON.

use serde_json::Value;

use crate::common::Folder;

/// Verbs with the words that they need, and flags that take a number above 0.
const NUMBERS: &[(&str, &[&str])] = &[
    ("create new", &["--entries", "--key-bytes", "--bytes", "--ram", "--flash"]),
    ("create new --entries 1e5", &["--miss-reads", "--worst-insert"]),
    (
        "advise --entries 1e6",
        &["--ram", "--flash", "--miss-reads", "--worst-insert", "--key-bytes", "--entry-bytes"],
    ),
    ("dedup .", &["--ram", "--avg"]),
    ("filter build new in", &["--keys", "--window", "--ram", "--rate", "--width"]),
    ("filter unique in", &["--keys", "--ram", "--rate", "--width"]),
    ("count build new in", &["--keys", "--ram", "--rate", "--width", "--top", "--longest"]),
    ("tfidf build new .", &["--ram", "--document-bytes", "--ngram"]),
    (
        "neardup index new .",
        &["--ram", "--documents", "--threshold", "--permutations", "--document-bytes"],
    ),
    (
        "neardup index new . --family p-stable --dimensions 3 --distance 1",
        &["--width", "--tables", "--projections"],
    ),
    ("wan store in -o out --cache new", &["--size", "--ram", "--avg", "--level"]),
    ("kvssd create new", &["--capacity", "--pairs", "--ram", "--key-min", "--key-max"]),
    ("kvssd bench new", &["--count", "--key-bytes", "--depth"]),
    ("probe new", &["--size"]),
];

/// The same for flags that take a share, which may be 0.
const SHARES: &[(&str, &[&str])] = &[
    ("create new", &["--misses", "--updates"]),
    ("advise --entries 1e6", &["--misses", "--updates"]),
];

/// Limits that may be as high as one likes.
const UNLIMITED: &[(&str, &str)] = &[("--worst-insert", "1e300")];

#[test]
fn wrong_numbers_exit_with_2_in_every_verb_and_name_their_flag() {
    let folder = Folder::new();
    std::fs::write(folder.path("in"), "a\nb\n").unwrap();
    assert_eq!(folder.run("kvssd create drive --capacity 16MiB").code, 0);
    let is_wrong = |verb: &str, flag: &str, value: &str| {
        let verb = verb.replace("bench new", "bench drive");
        let outcome = folder.run(&format!("{verb} {flag}={value}"));
        let is_refused = outcome.code == 2 && outcome.stderr.contains(flag);
        let is_made = std::fs::remove_file(folder.path("new")).is_ok();
        (!is_refused || is_made).then(|| format!("{verb} {flag}={value}: {outcome:?}"))
    };
    let of = |(verbs, values): (&[(&'static str, &[&'static str])], [&'static str; 6])| {
        let flags = verbs.iter().flat_map(|(verb, flags)| flags.iter().map(move |it| (*verb, *it)));
        let all = flags.flat_map(|(verb, flag)| values.map(|value| (verb, flag, value)));
        all.collect::<Vec<_>>()
    };
    let numbers = of((NUMBERS, ["nan", "-1", "0", "word", "", "1e300"]));
    let shares = of((SHARES, ["nan", "-1", "1.5", "word", "", "1e300"]));
    let all = numbers.into_iter().chain(shares).filter(|it| !UNLIMITED.contains(&(it.1, it.2)));
    let wrong: Vec<_> = all.filter_map(|(verb, flag, value)| is_wrong(verb, flag, value)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn errors_are_json_with_json_also_those_of_the_command_line() {
    let folder = Folder::new();
    std::fs::write(folder.path("foreign"), [7; 8192]).unwrap();
    for (command, code, place, what) in [
        ("create new --entries 0", 2, "--entries <COUNT>", "invalid value '0'"),
        ("create new --structure rhik --entries 1e6 --ram 1", 2, "--ram", "this table needs"),
        ("nothing", 2, "nandex", "unrecognized subcommand 'nothing'"),
        ("filter build", 2, "<FILE>", "required arguments were not provided: <FILE>"),
        ("sim --preset nvme", 2, "sim", "run `nandex-lab sim`"),
        ("probe", 2, "probe", "nandex-lab probe --preset NAME"),
        ("get gone 1", 1, "gone", "cannot open gone: No such file"),
        ("info foreign", 1, "foreign", "not a nandex volume"),
    ] {
        let outcome = folder.run(&format!("{command} --json"));
        assert_eq!((outcome.code, &*outcome.stdout), (code, ""), "{command}: {outcome:?}");
        let error: Value = serde_json::from_str(&outcome.stderr).unwrap();
        assert_eq!((&error["code"], &error["where"]), (&code.into(), &place.into()), "{error}");
        assert!(error["what"].as_str().unwrap().contains(what), "{error}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{error}");
        let told = folder.run(command);
        assert_eq!(told.code, code);
        assert!(told.stderr.starts_with("error: "), "{told:?}");
    }
}

#[test]
fn every_verb_that_opens_a_volume_takes_an_engine() {
    /// Verbs that open none.
    const WITHOUT: &[&str] = &["advise", "completions", "man", "parameters", "proxy", "help"];
    fn check(folder: &Folder, verb: &str, checked: &mut usize) {
        let help = folder.run(&format!("{verb} -h")).stdout;
        let Some((_, verbs)) = help.split_once("Commands:\n") else {
            assert!(help.contains("--engine"), "{verb}: {help}");
            *checked += 1;
            return;
        };
        let verbs = verbs.lines().take_while(|line| !line.is_empty());
        // Lines that go on have more spaces.
        let verbs = verbs.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        for inner in verbs.filter(|verb| !verb.is_empty()) {
            if !WITHOUT.contains(&inner) {
                check(folder, &format!("{verb} {inner}"), checked);
            }
        }
    }
    let (folder, mut checked) = (Folder::new(), 0);
    check(&folder, "", &mut checked);
    assert!(checked > 50, "{checked}");
}

#[test]
fn a_load_that_wears_the_drive_out_early_is_marked() {
    let folder = Folder::new();
    let advise = |inserts: &str, more: &str| {
        folder
            .run(&format!("advise --entries 1e6 --flash 100MiB --inserts {inserts} {more}"))
            .stdout
    };
    for (inserts, is_early) in [("100k", true), ("1", false)] {
        let text = advise(inserts, "");
        assert_eq!(text.contains("early, before 3 years"), is_early, "{text}");
        let figures: Value = serde_json::from_str(&advise(inserts, "--json")).unwrap();
        assert_eq!(figures["wears_out_early"], is_early, "{figures}");
    }
}
