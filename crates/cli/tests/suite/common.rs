//! A folder to run the command in, and the result of a run.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// An empty folder that is removed with the test.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code; -1 when a signal ended it.
    pub code: i32,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

impl Folder {
    /// Creates a new, empty folder.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// Returns the path of something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the command with these words, separated by spaces, in the folder.
    pub fn run(&self, words: &str) -> Outcome {
        self.command(words).output().expect("the command can be started").into()
    }

    /// Runs the command with words that may hold spaces.
    pub fn run_words(&self, words: &[String]) -> Outcome {
        let mut command = self.command("");
        command.args(words).output().expect("the command can be started").into()
    }

    /// Runs the command with this stdin.
    pub fn run_with(&self, words: &str, stdin: &[u8]) -> Outcome {
        let mut child = self.start_piped(words);
        let mut to = child.stdin.take().expect("stdin is piped");
        to.write_all(stdin).expect("it reads");
        drop(to);
        child.wait_with_output().expect("the command ends").into()
    }

    /// Starts the command and does not wait for it.
    pub fn start(&self, words: &str) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the command can be started")
    }

    /// Starts the command with a stdin to write to.
    #[allow(dead_code, reason = "only the tests of verbs that read stdin use it")]
    pub fn start_piped(&self, words: &str) -> Child {
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the command can be started")
    }

    /// Returns the bytes that a successful run printed.
    pub fn run_bytes(&self, words: &str) -> Vec<u8> {
        let output = self.command(words).output().expect("the command can be started");
        assert!(output.status.success(), "{words}: {output:?}");
        output.stdout
    }

    /// Runs failing commands, one per line: the exit code, the command, and a part of its message.
    #[track_caller]
    pub fn assert_refused(&self, lines: &str) {
        let mut wrong = Vec::new();
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let parts: Vec<&str> = line.split(" | ").collect();
            let [code, command, reason] = parts[..] else { panic!("three parts: {line}") };
            let outcome = self.run(command);
            let is_right = outcome.code.to_string() == code.trim()
                && outcome.stderr.contains(reason)
                && outcome.stdout.is_empty();
            if !is_right {
                wrong.push(format!("{line}\n  {outcome:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(crate::PROGRAM);
        command.args(words.split_whitespace()).current_dir(self.0.path()).env_remove("TMPDIR");
        command
    }
}

/// Returns what a run with `--json` printed.
#[track_caller]
#[allow(dead_code, reason = "not all tests read JSON")]
pub fn json(outcome: &Outcome) -> serde_json::Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|e| panic!("{e}: {outcome:?}"))
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}
