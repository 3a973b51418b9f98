//! Documents that cannot be read: an error, or left out, counted and told.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use clap::ValueEnum;
use nandex_corpus::Error;

use crate::console::Console;
use crate::exit::{LEFT_OUT, Quiet};
use crate::size::show_count;

/// Broken documents that are told of.
const SHOWN: usize = 3;

/// What happens to broken documents.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct BrokenArgs {
    /// What happens to lines that are no such JSON, and to texts that are no UTF-8
    #[arg(long, value_name = "HOW", default_value = "stop")]
    pub broken: Broken,
}

/// What happens to broken documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Broken {
    /// The first is an error
    Stop,
    /// They are left out and counted, and the exit code is 4
    Skip,
    /// They are left out and counted, and the exit code is 0
    Ignore,
}

/// Documents that were left out. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LeftOut(Arc<Mutex<(u64, Vec<String>)>>);

impl LeftOut {
    /// Notes a document that cannot be read by itself. Gives the error back if it is of more than one document.
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

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Tells of them on stderr.
    ///
    /// # Errors
    /// The quiet end with exit code 4, if some are to give that.
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
