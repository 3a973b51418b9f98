//! Documents that cannot be read: an error, or left out, counted and reported.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use clap::ValueEnum;
use nandex_corpus::Error;

use crate::console::Console;
use crate::exit::{LEFT_OUT, Quiet};
use crate::size::show_count;

/// The number of broken documents that are named.
const SHOWN: usize = 3;

/// The handling of broken documents.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct BrokenArgs {
    /// Handling of invalid JSON lines, and of texts that are not UTF-8
    #[arg(long, value_name = "HOW", default_value = "stop")]
    pub broken: Broken,
}

/// The handling of broken documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Broken {
    /// Fail at the first
    Stop,
    /// Leave them out, count them, and exit with 4
    Skip,
    /// Leave them out, count them, and exit with 0
    Ignore,
}

/// Documents that were left out. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LeftOut(Arc<Mutex<(u64, Vec<String>)>>);

impl LeftOut {
    /// Notes a document that cannot be read on its own. Returns the error if it affects more than one document.
    pub fn note(&self, error: Error) -> Option<Error> {
        if !matches!(error, Error::Malformed { .. } | Error::Utf8 { .. }) {
            return Some(error);
        }
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.0 += 1;
        if noted.1.len() < SHOWN {
            noted.1.push(error.to_string());
        }
        None
    }

    /// Returns the number of documents.
    pub fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Reports them on stderr.
    ///
    /// # Errors
    /// The silent exit with code 4, if some require that.
    pub fn end(&self, broken: Broken, console: &Console) -> Result<()> {
        let (count, first) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *count == 0 {
            return Ok(());
        }
        let more = if *count > first.len() as u64 { "; ..." } else { "" };
        let count = show_count(*count);
        console.note(&format!("{count} broken documents are left out: {}{more}", first.join("; ")));
        if broken == Broken::Skip { Err(Quiet(LEFT_OUT).into()) } else { Ok(()) }
    }
}
