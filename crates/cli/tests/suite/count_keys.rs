//! The keys of the verbs of `nandex count` and their output: CSV, fixed widths, texts that are too long, and bytes with
//! control characters.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{Folder, Outcome, json};

fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn folder(files: &[(&str, &[u8])]) -> Folder {
    let folder = Folder::new();
    for (name, bytes) in files {
        fs::write(folder.path(name), bytes).expect("the folder is writable");
    }
    folder
}

/// Returns the output of `dump`, by key.
fn dumped(folder: &Folder, words: &str) -> BTreeMap<String, i64> {
    let text = ok(folder.run(&format!("count dump {words}"))).stdout;
    let pair = |line: &str| {
        let (key, count) = line.rsplit_once('\t').expect("a tab");
        (key.to_owned(), count.parse().expect("a count"))
    };
    text.lines().map(pair).collect()
}

fn pairs(of: &[(&str, i64)]) -> BTreeMap<String, i64> {
    of.iter().map(|(key, count)| ((*key).to_owned(), *count)).collect()
}

#[test]
fn a_column_of_csv_is_counted_by_its_name_or_its_number() {
    let folder = folder(&[
        ("a.csv", b"id,who said it\n1,\"Smith, J.\"\n\n2,\"Smith, J.\"\n3,\"a \"\"b\"\"\"\n"),
        ("b.csv", b"id,x,who said it\r\n4,,Jones\r\n5,,\"two\r\nlines\"\r\n"),
        ("none.csv", b"4,Jones\n5,Smith\n"),
    ]);
    let named =
        |column: &str| ["count", "build", "c", "a.csv", "b.csv", "--csv", column].map(String::from);
    ok(folder.run_words(&named("who said it")));
    let expected = [("Smith, J.", 2), ("a \"b\"", 1), ("Jones", 1), ("\"two\\r\\nlines\"", 1)];
    assert_eq!(dumped(&folder, "c"), pairs(&expected));
    ok(folder.run("count build n none.csv --csv 2"));
    assert_eq!(dumped(&folder, "n"), pairs(&[("Jones", 1), ("Smith", 1)]));
    ok(folder.run("count build w none.csv --csv 2 --words --lowercase"));
    assert_eq!(dumped(&folder, "w"), pairs(&[("jones", 1), ("smith", 1)]));
    let stdin = folder.run_with("count build s --csv id", b"x,id\n1,7\n");
    assert_eq!((stdin.code, dumped(&folder, "s")), (0, pairs(&[("7", 1)])), "{stdin:?}");
}

#[test]
fn csv_that_has_no_such_column_is_refused_with_its_file_and_line() {
    let folder = folder(&[
        ("good.csv", b"a,b\n1,2\n"),
        ("short.csv", b"a,b\n1,2\n\n\"3\n\"\n"),
        ("latin.csv", b"a,b\xff\n1,2\n"),
        ("open.csv", b"a,b\n1,\"2\n"),
        ("empty.csv", b""),
    ]);
    folder.assert_refused(
        "1 | count build c good.csv --csv c | good.csv:1: no column is named `c`; the header has `a`, `b`\n\
         1 | count build c good.csv latin.csv --csv b | latin.csv:1: the name of column 2 is not UTF-8\n\
         1 | count build c empty.csv --csv a | empty.csv:1: expected a header\n\
         2 | count build c good.csv --csv 0 | numbered from 1 on\n\
         2 | count build c good.csv --csv a --weights | cannot be used with\n\
         2 | count build c good.csv --csv a --nul | cannot be used with",
    );
    assert!(!folder.path("c.unfinished").exists(), "headers are read before anything is made");
    folder.assert_refused(
        "1 | count build s good.csv short.csv --csv b | short.csv:4: a record of 1 columns, expected at least 2\n\
         1 | count build o good.csv open.csv --csv b | open.csv:2: the input ends inside of quotes",
    );
    assert_eq!(dumped(&folder, "s.unfinished"), pairs(&[("2", 2)]), "what came before is kept");
}

#[test]
fn fields_may_have_another_byte_between_them() {
    let folder = folder(&[
        (
            "semi.csv",
            b"id;name\n1;\"a;b\"\n2;\"two\r\nlines\"\n3;c,d\n4;\"say \"\"hi\"\"\"\n5;5\" f\n",
        ),
        ("tabs.tsv", b"id\tname\n1\tc,d\n2\t\"a\tb\"\n"),
    ]);
    ok(folder.run("count build s semi.csv --csv name --delimiter ;"));
    let expected =
        [("a;b", 1), ("\"two\\r\\nlines\"", 1), ("c,d", 1), ("say \"hi\"", 1), ("5\" f", 1)];
    assert_eq!(dumped(&folder, "s"), pairs(&expected));
    ok(folder.run("count build t tabs.tsv --csv 2 --delimiter \\t"));
    assert_eq!(dumped(&folder, "t"), pairs(&[("name", 1), ("c,d", 1), ("\"a\\tb\"", 1)]));
    ok(folder.run("count add t tabs.tsv --csv name --delimiter \\t --words"));
    folder.assert_refused(
        "1 | count build c semi.csv --csv name | the header has `id;name`; pass --delimiter\n\
         2 | count build c semi.csv --delimiter ; | --csv <COLUMN>\n\
         2 | count build c semi.csv --csv name --delimiter ;; | expected one byte\n\
         2 | count build c semi.csv --csv name --delimiter \u{a7} | expected one byte\n\
         2 | count build c semi.csv --csv name --delimiter \" | have a meaning of their own",
    );
    assert!(!folder.path("c.unfinished").exists(), "nothing was made");
}

#[test]
fn keys_of_fixed_width_are_stored_as_they_are_and_written_as_in_other_verbs() {
    let folder = folder(&[
        ("raw", b"\x00\xff\n\tabcd\x00\xff\n\t"),
        ("hex", b"00ff0a09\n0x61626364\n"),
        ("odd", b"abcde"),
        ("n", b"\x01\0\0\0\0\0\0\0"),
        ("long", &[7; 66]),
    ]);
    ok(folder.run("count build r raw --width 4"));
    let expected = pairs(&[("00ff0a09", 2), ("61626364", 1)]);
    assert_eq!(dumped(&folder, "r"), expected);
    assert_eq!(ok(folder.run("count get r 00ff0a09 61626364 00000000")).stdout, "2\n1\n0\n");
    assert_eq!(ok(folder.run("count get r abcd --key-format text")).stdout, "1\n");
    let top = ok(folder.run("count top r 1 --json")).stdout;
    assert_eq!(top, "{\"key\":\"00ff0a09\",\"count\":2}\n");
    // Lines of hex and the output of `dump` are the same keys.
    ok(folder.run("count build h hex --key-bytes 4"));
    ok(folder.run("count add h raw --width 4"));
    ok(folder.run("count remove h 61626364"));
    assert_eq!(dumped(&folder, "h"), pairs(&[("00ff0a09", 3)]));
    let lines = ok(folder.run("count dump r")).stdout;
    let again = folder.run_with("count build again --key-bytes 4 --weights", lines.as_bytes());
    assert_eq!((again.code, dumped(&folder, "again")), (0, expected.clone()), "{again:?}");
    ok(folder.run("count merge -o both r again"));
    let twice = expected.iter().map(|(key, count)| (key.clone(), count * 2)).collect();
    assert_eq!(dumped(&folder, "both"), twice);
    // Eight bytes are a number if the options say so.
    ok(folder.run("count build eight n --width 8"));
    assert_eq!(dumped(&folder, "eight --key-format u64"), pairs(&[("1", 1)]));
    assert_eq!(dumped(&folder, "eight"), pairs(&[("0100000000000000", 1)]));
    ok(folder.run("count build long.fpr long --width 33 --fpr 1e-6"));
    ok(folder.run("count build texts hex"));
    folder.assert_refused(
        "1 | count build x odd --width 4 | odd, key 2: expected 4 bytes, found 1\n\
         2 | count build y long --width 33 | keys of up to 32 bytes are stored whole; add --fpr\n\
         2 | count build y raw --width 4 --key-bytes 5 | keys have one width\n\
         1 | count build z odd --key-bytes 4 | odd:1: `abcde` is not a key in the hex format\n\
         1 | count build u odd --key-bytes 4 --key-format text | odd:1: a key of 5 bytes: the table has keys of 4\n\
         1 | count get r abcd | key 1: a key of 2 bytes: the table has keys of 4 bytes\n\
         1 | count dump r --key-format u64 | the u64 format is for 8\n\
         2 | count dump texts --key-format u64 | the u64 format is for 8\n\
         1 | count merge -o m r eight | only tables that store keys alike merge\n\
         2 | count build x raw --width 4 --key-format hex | cannot be used with\n\
         2 | count build x raw --key-bytes 33 | 33 is not in 1..=32\n\
         2 | count build x raw --key-bytes 4 --longest 9 | cannot be used with",
    );
}

#[test]
fn words_that_are_too_long_are_left_out_and_said_and_lines_are_refused() {
    let long = "x".repeat(40);
    let text = format!("one two\nthree {long} one\n{long}\n");
    let folder = folder(&[("first", b"one\n"), ("log", text.as_bytes())]);
    let build = folder.run("count build c first log --words --json");
    let counted = json(&build);
    assert_eq!(
        (build.code, &counted["keys_too_long"], &counted["keys_counted"]),
        (4, &2.into(), &5.into())
    );
    let said = "2 keys of more than 31 bytes are left out, the first at log:2; a table built with --fpr accepts them";
    assert!(build.stderr.contains(said), "{build:?}");
    assert_eq!(dumped(&folder, "c"), pairs(&[("one", 3), ("two", 1), ("three", 1)]));
    let added = folder.run("count add c log --words");
    assert!(added.code == 4 && added.stdout.contains("too long  2 keys left out"), "{added:?}");
    folder.assert_refused(
        "1 | count build w log --words --too-long refuse | log:2: the word `xxxxxxxx\n\
         1 | count build l first log | log:2: it has 50 bytes, and the table takes keys of up to 31: --too-long skip",
    );
    let lines = folder.run("count build s first log --too-long skip");
    assert_eq!((lines.code, dumped(&folder, "s").len()), (4, 2), "{lines:?}");
    let short = folder.run("count build t log --words --longest 8 --too-long refuse");
    assert!(
        short.stderr.contains("a table built with --longest, up to 31, or --fpr accepts them"),
        "{short:?}"
    );
    let whole = json(&ok(folder.run("count build f first log --words --fpr 1e-9 --json")));
    assert_eq!((&whole["keys_counted"], &whole["keys_too_long"]), (&7.into(), &0.into()));
    assert_eq!(ok(folder.run(&format!("count get f {long}"))).stdout, "2\n");
}

#[test]
fn any_bytes_are_printed_so_that_they_are_read_back_and_no_terminal_obeys_them() {
    let mut keys: Vec<Vec<u8>> = (0..=255_u8).map(|byte| vec![b'k', byte]).collect();
    keys.extend(
        [&b""[..], b"\"quoted\"", b"C:\\new", b"tab\tfeed\n", b"\x1b[2J\xc2\x9b"].map(Vec::from),
    );
    let nul: Vec<u8> = keys
        .iter()
        .filter(|key| !key.contains(&0))
        .flat_map(|key| [&key[..], b"\0"].concat())
        .collect();
    let folder = folder(&[("keys", &nul)]);
    ok(folder.run("count build c keys --nul"));
    let printed = ok(folder.run("count dump c")).stdout;
    let obeyed = |char: char| char.is_control() && !matches!(char, '\t' | '\n');
    assert!(!printed.contains(obeyed), "{printed:?}");
    assert_eq!(printed.lines().count(), keys.len() - 1);
    assert!(
        printed.contains("\nC:\\new\t1\n") && printed.contains("\n\"\\x1b[2J\\xc2\\x9b\"\t1\n"),
        "{printed}"
    );
    let again = folder.run_with("count build again --weights", printed.as_bytes());
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(dumped(&folder, "again"), dumped(&folder, "c"));
    assert_eq!(dumped(&folder, "again --key-format hex"), dumped(&folder, "c --key-format hex"));
    let hex: BTreeMap<String, i64> = keys
        .iter()
        .filter(|key| !key.contains(&0))
        .map(|key| (key.iter().map(|byte| format!("{byte:02x}")).collect(), 1))
        .collect();
    assert_eq!(dumped(&folder, "c --key-format hex"), hex);
    assert_eq!(ok(folder.run("count get c 6bff --key-format hex")).stdout, "1\n");
    let json = ok(folder.run("count dump c --json")).stdout;
    assert!(json.contains("{\"key\":\"k\u{fffd}\",\"key_hex\":\"6bff\",\"count\":1}"), "{json}");
    let bad = folder.run_with("count build bad --weights", b"a\t1\n\"b\t1\n");
    assert!(
        bad.code == 1 && bad.stderr.contains("stdin:2: the key begins with a quote"),
        "{bad:?}"
    );
}

#[test]
fn keys_that_are_asked_for_are_named_by_their_line() {
    let folder = folder(&[("n", b"7\n")]);
    ok(folder.run("count build c n --numbers"));
    let got = folder.run_with("count get c", b"7\nseven\n");
    assert!(got.code == 1 && got.stderr.contains("stdin:2: `seven` is not a key"), "{got:?}");
}

#[test]
fn counts_under_another_hash_merge_only_with_their_like() {
    let folder = folder(&[("n", b"7\n8\n")]);
    for (name, options) in [
        ("shared", ""),
        ("one", "--hash-key 7 --hash sip13"),
        ("two", "--hash-key 0x7 --hash sip13"),
        ("random", "--hash-key random"),
    ] {
        ok(folder.run(&format!("count build {name} n {options}")));
        assert_eq!(ok(folder.run(&format!("count get {name} 7 8 9"))).stdout, "1\n1\n0\n");
    }
    ok(folder.run("count merge -o both one two"));
    assert_eq!(ok(folder.run("count get both 7")).stdout, "2\n");
    assert_eq!(json(&ok(folder.run("info both --json")))["tables"][0]["hash"], "sip13");
    folder.assert_refused(
        "1 | count merge -o x shared one | one hashes keys by sip13, shared by xxh3, or under another key\n\
         1 | count merge -o x shared random | build both with the same --hash and --hash-key\n\
         2 | count build x n --hash-key pass | 32 digits in hex",
    );
}
