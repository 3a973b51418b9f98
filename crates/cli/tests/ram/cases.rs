//! The verbs that are measured, each with its input and its command.

use crate::input::Input;

/// A verb on an input.
#[derive(Debug)]
pub struct Case {
    /// The verb, and what is particular about its input.
    pub name: &'static str,
    /// The inputs, which the commands name by their file names.
    pub inputs: &'static [Input],
    /// Commands that prepare the folder and are not measured.
    pub before: &'static [&'static str],
    /// The measured command. `{ram}` is the stated RAM in bytes, `{quarter}` a quarter of it, and `{n}` a number of
    /// keys or pairs by the scale.
    pub command: &'static str,
    /// The sizes of RAM, in MiB.
    pub sizes_mib: [u64; 3],
}

const SIZES: [u64; 3] = [8, 32, 128];
/// Indexes of documents need 64 MiB, and refuse less.
const DOCUMENT_SIZES: [u64; 3] = [32, 64, 128];

const fn case(
    name: &'static str,
    inputs: &'static [Input],
    before: &'static [&'static str],
    command: &'static str,
) -> Case {
    Case { name, inputs, before, command, sizes_mib: SIZES }
}

const fn documents(name: &'static str, inputs: &'static [Input], command: &'static str) -> Case {
    Case { name, inputs, before: &[], command, sizes_mib: DOCUMENT_SIZES }
}

/// All cases.
pub const CASES: &[Case] = &[
    case(
        "filter build",
        &[Input::Keys],
        &[],
        "filter build f.nandex keys.txt --ram {ram} --keys {n} --json",
    ),
    case(
        "filter test",
        &[Input::Keys],
        &["filter build f.nandex keys.txt --ram {ram} --keys {n}"],
        "filter test f.nandex keys.txt --json",
    ),
    case("filter unique", &[Input::Keys], &[], "filter unique keys.txt --ram {ram} --json"),
    case(
        "count build",
        &[Input::Keys],
        &[],
        "count build c.nandex keys.txt --ram {ram} --keys {n} --json",
    ),
    case(
        "count add",
        &[Input::Keys],
        &["count build c.nandex keys.txt --ram {ram} --keys {n}"],
        "count add c.nandex keys.txt --json",
    ),
    case(
        "merge",
        &[Input::Records],
        &[
            "create a.nandex --entries {n} --key-bytes 8 --ram {quarter} --hash-key shared",
            "create b.nandex --entries {n} --key-bytes 8 --ram {quarter} --hash-key shared",
            "load a.nandex records.csv --format csv --key-format u64",
            "load b.nandex records.csv --format csv --key-format u64",
        ],
        "merge a.nandex b.nandex -o c.nandex --ram {quarter} --merge-ram {quarter} --json",
    ),
    case(
        "wan store",
        &[Input::Stream],
        &[],
        "wan store stream -o refs --cache w.nandex --size 256MiB --ram {ram} --json",
    ),
    case(
        "wan send",
        &[Input::Stream],
        &[],
        "wan send stream --to receiver --cache w.nandex --size 256MiB --ram {ram} --json",
    ),
    case(
        "kvssd bench",
        &[],
        &["kvssd create d.nandex --capacity 1GiB --ram {ram}"],
        "kvssd bench d.nandex --count {pairs} --json",
    ),
    documents(
        "tfidf build, 70 KB",
        &[Input::Documents],
        "tfidf build t.nandex docs.jsonl --ram {ram} --json",
    ),
    documents(
        "tfidf build, folder",
        &[Input::Folder],
        "tfidf build t.nandex folder --ram {ram} --json",
    ),
    documents(
        "tfidf build, 12.7 MB",
        &[Input::Document],
        "tfidf build t.nandex long.jsonl --ram {ram} --json",
    ),
    Case {
        name: "tfidf update",
        inputs: &[Input::Documents, Input::Document],
        before: &["tfidf build t.nandex long.jsonl --ram 256MiB"],
        command: "tfidf update t.nandex docs.jsonl --ram {ram} --json",
        sizes_mib: DOCUMENT_SIZES,
    },
    documents(
        "neardup index, 70 KB",
        &[Input::Documents],
        "neardup index n.nandex docs.jsonl --ram {ram} --json",
    ),
    documents(
        "neardup index, folder",
        &[Input::Folder],
        "neardup index n.nandex folder --ram {ram} --json",
    ),
    documents(
        "neardup index, 12.7 MB",
        &[Input::Document],
        "neardup index n.nandex long.jsonl --ram {ram} --json",
    ),
    case("dedup", &[Input::Tree], &[], "dedup tree --ram {ram} --json"),
    case(
        "load bufferhash",
        &[Input::Records],
        &[
            "create t.nandex --entries {n} --key-bytes 8 --value-bytes 8 --structure bufferhash --policy fifo \
             --ram {ram}",
        ],
        "load t.nandex records.csv --format csv --key-format u64 --json",
    ),
    case(
        "load slicehash",
        &[Input::Records],
        &[
            "create t.nandex --entries {n} --key-bytes 8 --value-bytes 8 --structure slicehash --policy fifo \
             --ram {ram}",
        ],
        "load t.nandex records.csv --format csv --key-format u64 --json",
    ),
    case(
        "load rhik",
        &[Input::Records],
        &[
            "create t.nandex --entries {n} --key-bytes 8 --value-bytes 8 --structure rhik --ram {ram}",
        ],
        "load t.nandex records.csv --format csv --key-format u64 --json",
    ),
];
