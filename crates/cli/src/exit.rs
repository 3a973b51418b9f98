//! The exit codes, and their failures.

use std::io;
use std::process::ExitCode;

use nandex::raw::words;

/// The command succeeded.
pub const SUCCESS: u8 = 0;
/// The command failed, or the answer is no.
pub const FAILURE: u8 = 1;
/// The volume is damaged. (2 is a wrong command line, and clap's.)
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

/// Prints the error on stderr, and chooses the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(Quiet(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    if is_broken_pipe(error) {
        return ExitCode::from(SUCCESS);
    }
    eprintln!("error: {}", nandex_dedup::printable(&words(error.as_ref())));
    ExitCode::from(if is_damage(error) { DAMAGE } else { FAILURE })
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
