//! Every number that a verb accepts, as users mistype it: rejected with exit code 2 or 1, or accepted, and never a
//! panic, an abort or an endless run. The options are read from the help texts.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::Folder;

/// The values that are tried for each number.
const VALUES: [&str; 7] = ["nan", "inf", "-1", "0", "1e18", "1e30", ""];

/// The words of the help texts that are numbers.
const NUMBERS: [&str; 9] =
    ["BYTES", "COUNT", "IOPS", "NUMBER", "PERCENT", "SIZE", "SIZES", "TABLE.ROW", "TIMES"];

/// A command line of each verb.
const LINES: [&str; 6] = [
    "sim --preset pm983 --workload mixed --requests 100",
    "sim --preset pm983 --workload mixed --requests 100 --rate 1000",
    "reproduce rhik --only capacity --scale 8192",
    "probe --preset intel-x18m --size 4MiB",
    "kvssd bench --capacity 16MiB --count 100",
    "kvssd replay --trace trace --format twitter --capacity 16MiB",
];

/// The exit code of a run that continues for as long as its number says, and was stopped.
const INTERRUPTED: i32 = 130;

/// Returns the options of the verb of a line that accept a number.
fn numbers(folder: &Folder, line: &str) -> Vec<String> {
    let verb: Vec<&str> = line.split(' ').take_while(|word| !word.starts_with("--")).collect();
    let help = folder.run(&format!("{} --help", verb.join(" ")));
    let option = |line: &str| {
        let (option, word) = line.trim().split_once(" <")?;
        let word = word.split_once('>')?.0;
        let is_number = option.starts_with("--") && NUMBERS.contains(&word);
        is_number.then(|| option.to_owned())
    };
    help.stdout.lines().filter_map(option).collect()
}

/// Returns a command line with an option, replacing the same option if it has that already.
fn with_option(line: &str, option: &str, value: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    if let Some(at) = words.iter().position(|word| *word == option) {
        words.drain(at..at + 2);
    }
    format!("{} '{option}={value}'", words.join(" "))
}

#[test]
fn no_number_of_any_verb_is_a_panic_an_abort_or_a_run_without_end() {
    let folder = Folder::new();
    fs::write(folder.path("trace"), "1219008,1,SET,obj,100\n").expect("the folder is writable");
    let (mut count, mut faults) = (0, Vec::new());
    for line in LINES {
        for option in numbers(&folder, line) {
            for value in VALUES {
                let run = with_option(line, &option, value);
                let limits = "trap '' XFSZ; ulimit -f 2097152; ulimit -v 4194304";
                let program = crate::PROGRAM;
                let timeout = "timeout --preserve-status -s INT -k 20 1";
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("{limits}; {timeout} '{program}' {run} > stdout"));
                shell.current_dir(folder.path("")).stdin(Stdio::null());
                let output = shell.output().expect("there is a shell");
                let stderr = String::from_utf8_lossy(&output.stderr);
                let code = output.status.code().unwrap_or(-1);
                let is_fine = matches!(code, 0..=4 | INTERRUPTED) && !stderr.contains("panicked");
                count += 1;
                if !is_fine {
                    faults.push(format!("{code}: nandex-lab {run}\n{stderr}"));
                }
            }
        }
    }
    assert!(count > 200, "{count} runs");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
