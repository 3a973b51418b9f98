//! `nandex neardup remove`: removes documents from an index by their ids.

use std::io::{self, BufRead};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::cmd::document_index::IndexArgs;
use crate::console::{Console, aligned};
use crate::exit::{FAILURE, Quiet};
use crate::size::show_count;

use super::hints::explained;

/// The index, and the ids.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    /// Ids of documents; default: those from stdin, one per line
    #[arg(value_name = "ID")]
    ids: Vec<String>,
}

/// The result.
#[derive(Debug, Serialize)]
struct Removal {
    removed: u64,
    unknown: Vec<String>,
    documents: u64,
}

/// Removes all of the documents; their texts are not needed.
///
/// # Errors
/// As for opening; a failed write; silently, an id that the index does not have: the others are removed.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let ids = if args.ids.is_empty() {
        io::stdin().lock().lines().collect::<io::Result<_>>().context("cannot read stdin")?
    } else {
        args.ids.clone()
    };
    let mut index: nandex_neardup::Index = args.index.open()?;
    let removed = index.remove(&ids).map_err(explained)?;
    let documents = index.documents();
    index.close().map_err(explained)?;
    let removal = Removal { removed: removed.documents, unknown: removed.unknown, documents };
    console.print_peak(&removal, |it| {
        let mut rows = vec![
            ("removed", format!("{} documents", show_count(it.removed))),
            ("holds", format!("{} documents", show_count(it.documents))),
        ];
        rows.extend(
            it.unknown.iter().map(|id| ("unknown", nandex_dedup::printable(id).to_string())),
        );
        aligned(&rows)
    })?;
    if removal.unknown.is_empty() { Ok(()) } else { Err(Quiet(FAILURE).into()) }
}
