//! Exit codes, and which failure gives which.

use std::io;
use std::process::ExitCode;

/// The command did what it was asked to.
pub const SUCCESS: u8 = 0;
/// It could not, or the answer is no.
pub const FAILURE: u8 = 1;
/// The volume is damaged. (2 is a wrong command line, and clap's.)
pub const DAMAGE: u8 = 3;

/// An end that has been explained already, or needs no explanation.
#[derive(Clone, Copy, Debug)]
pub struct Quiet(pub u8);

impl std::fmt::Display for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}", self.0)
    }
}

impl std::error::Error for Quiet {}

/// Says on stderr what went wrong, and chooses the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(Quiet(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    if is_broken_pipe(error) {
        return ExitCode::from(SUCCESS);
    }
    eprintln!("error: {error:#}");
    ExitCode::from(if is_damage(error) { DAMAGE } else { FAILURE })
}

/// Whoever read our output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json =
            cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        kind.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}

/// Does a cause say that bytes on flash are not what was written there?
fn is_damage(error: &anyhow::Error) -> bool {
    use nandex::store::Error as Store;
    error.chain().any(|cause| {
        let index = cause.downcast_ref().map(|index| match index {
            nandex::Error::Store(store) => Some(store),
            _ => None,
        });
        let store = cause.downcast_ref::<Store>().or(index.flatten());
        matches!(store, Some(Store::Corrupt { .. } | Store::Truncated { .. }))
    })
}
