//! The exit codes, and the report of a failure.

use std::io;
use std::process::ExitCode;

use nandex::raw::words;
use serde::Serialize;

use crate::usage::{CommandLine, Usage};

/// The command succeeded.
pub const SUCCESS: u8 = 0;
/// The command failed, or the answer is no.
pub const FAILURE: u8 = 1;
/// The command line is wrong, or a value on it cannot work.
pub const USAGE: u8 = 2;
/// The volume is damaged.
pub const DAMAGE: u8 = 3;
/// The command succeeded with what it could read: unreadable files, or keys that are too long, were left out.
pub const LEFT_OUT: u8 = 4;

/// An exit that was explained already, or needs no explanation.
#[derive(Clone, Copy, Debug)]
pub struct Quiet(pub u8);

impl std::fmt::Display for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}", self.0)
    }
}

impl std::error::Error for Quiet {}

/// An error as JSON.
#[derive(Debug, Serialize)]
struct ErrorOutput<'a> {
    /// The message.
    what: &'a str,
    /// The flag, the file or the verb that it is about.
    r#where: &'a str,
    /// The exit code.
    code: u8,
}

/// Prints the error on stderr, and chooses the exit code.
pub fn report(error: &anyhow::Error, line: &CommandLine) -> ExitCode {
    if let Some(Quiet(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    if is_broken_pipe(error) {
        return ExitCode::from(SUCCESS);
    }
    let code = code_of(error);
    let text = with_flag(words(error.as_ref()), error, line);
    let text = nandex_dedup::printable(&text);
    if line.json {
        print_json(&text, &line.place(&text), code);
    } else {
        eprintln!("error: {text}");
    }
    ExitCode::from(code)
}

/// Prints the error of a command line that cannot be parsed, or the help or version that it asks for.
pub fn report_usage(error: &clap::Error, line: &CommandLine) -> ExitCode {
    if !error.use_stderr() || !line.json {
        // A closed stdout needs no report.
        let _ = error.print();
    } else {
        let (what, place) = line.explain(error);
        print_json(&what, &place, USAGE);
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
}

fn print_json(what: &str, place: &str, code: u8) {
    let output = ErrorOutput { what, r#where: place, code };
    eprintln!("{}", serde_json::to_string(&output).expect("it has texts and a number"));
}

fn code_of(error: &anyhow::Error) -> u8 {
    match error {
        _ if is_damage(error) => DAMAGE,
        _ if is_usage(error) => USAGE,
        _ => FAILURE,
    }
}

/// Returns whether a cause is a value that the user has given and that cannot work.
fn is_usage(error: &anyhow::Error) -> bool {
    use nandex_dedup::Error as Dedup;
    let is_choice = error.chain().any(|cause| {
        let of_dedup = matches!(cause.downcast_ref(), Some(Dedup::Chunk(_) | Dedup::Trees { .. }));
        let of_wan = matches!(cause.downcast_ref(), Some(nandex_wan::Error::Chunk(_)));
        of_dedup || of_wan || cause.is::<Usage>()
    });
    is_choice || field_of(error).is_some()
}

/// Returns the field of an index that has a value that cannot work.
fn field_of_index(error: &nandex::Error) -> Option<&'static str> {
    use nandex::raw::store::Error as Store;
    match error {
        // These are about what a file holds.
        nandex::Error::Config { field: "kind" | "path" | "table", .. }
        | nandex::Error::Store(Store::Config { field: "path", .. }) => None,
        nandex::Error::Config { field, .. }
        | nandex::Error::TooLittleRam { field, .. }
        | nandex::Error::Store(Store::Config { field, .. }) => Some(*field),
        _ => None,
    }
}

/// Returns the field of an application on an index that has a value that cannot work, if the cause is its error.
macro_rules! field_of_application {
    ($application:ident, $cause:expr) => {
        $cause.downcast_ref().and_then(|error| match error {
            $application::Error::Options { field, .. } => Some(*field),
            $application::Error::Index(error) => field_of_index(error),
            _ => None,
        })
    };
}

/// Returns the field of a library that has a value that cannot work.
fn field_of(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|cause| {
        let proxy = cause.downcast_ref().and_then(|error| match error {
            nandex_wanproxy::Error::Options { field, .. } => Some(*field),
            _ => None,
        });
        let kvssd = cause.downcast_ref().and_then(|error| match error {
            nandex_kvssd::Error::Config { field, .. } => Some(*field),
            nandex_kvssd::Error::Param { what, .. } => Some(*what),
            _ => None,
        });
        let index = cause.downcast_ref().and_then(field_of_index);
        let tfidf = field_of_application!(nandex_tfidf, cause);
        let neardup = field_of_application!(nandex_neardup, cause);
        let wan = field_of_application!(nandex_wan, cause);
        index.or(tfidf).or(neardup).or(wan).or(proxy).or(kvssd)
    })
}

/// Names the flag in place of the library's field that it sets, unless the message begins with a flag.
fn with_flag(text: String, error: &anyhow::Error, line: &CommandLine) -> String {
    let Some(field) = field_of(error).map(|field| format!("{field}: ")) else { return text };
    if text.starts_with("--set") {
        // Parameters have no flags of their own.
        return text;
    }
    if text.starts_with("--") {
        return text.replace(&format!(": {field}"), ": ");
    }
    match line.flag_of(field.trim_end_matches(": ")) {
        Some(flag) => text.replace(&field, &format!("{flag}: ")),
        None => text,
    }
}

/// Returns whether the reader of our output has closed it.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json =
            cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        kind.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}

/// Returns whether a cause is that bytes on flash differ from what was written.
pub fn is_damage(error: &anyhow::Error) -> bool {
    use nandex::raw::device::{Error as Device, LabelFault};
    use nandex::raw::store::Error as Store;
    error.chain().any(|cause| {
        let index = cause.downcast_ref().map(|index| match index {
            nandex::Error::Store(store) => Some(store),
            _ => None,
        });
        let store = cause.downcast_ref::<Store>().or(index.flatten());
        let label = match cause.downcast_ref() {
            Some(Device::Label { fault, .. }) => matches!(**fault, LabelFault::Damaged { .. }),
            _ => false,
        };
        let kvssd = matches!(cause.downcast_ref(), Some(nandex_kvssd::Error::Damaged { .. }));
        label || kvssd || matches!(store, Some(Store::Corrupt { .. } | Store::Truncated { .. }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandex::raw::store::Error as Store;

    fn damage() -> Store {
        Store::corrupt("page", nandex::raw::device::PageId(7), "magic", "zeros")
    }

    #[test]
    fn damage_is_known_at_any_depth() {
        assert!(is_damage(&anyhow::Error::from(damage()).context("cannot open")));
        assert!(is_damage(&anyhow::Error::from(nandex::Error::from(damage())).context("a table")));
        let deep = nandex_dedup::Error::from(nandex::Error::from(damage()));
        assert!(is_damage(&deep.into()));
        assert!(!is_damage(&anyhow::anyhow!("no such file")));
    }
}
