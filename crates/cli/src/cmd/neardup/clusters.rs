//! `nandex neardup clusters`: prints the clusters that pairs of near-duplicates connect.

use std::io::{self, Write};

use anyhow::Result;
use nandex_neardup::{Cluster, Error, Index};
use serde_json::json;

use crate::cmd::document_index::IndexArgs;
use crate::console::Console;
use crate::size::show_count;
use crate::texts::scratch;

use super::hints::explained;

/// The index.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
}

/// Prints a line for each document that is in a cluster: the cluster's number and the document's id.
///
/// # Errors
/// As for opening; a failed write to stdout; no space for temporary files.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let index: Index = args.index.open_to_read()?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let clustered = index.clusters(Some(&scratch()), |cluster| {
        print((&mut out, console), cluster).map_err(Error::Output)
    });
    let clustered = clustered.map_err(explained)?;
    out.flush()?;
    drop(out);
    let (documents, clusters) = (show_count(clustered.documents), show_count(clustered.clusters));
    console.note(&format!("{documents} documents in {clusters} clusters"));
    index.close().map_err(explained)
}

fn print((out, console): (&mut impl Write, &Console), cluster: &Cluster) -> io::Result<()> {
    let Cluster { number, ids, .. } = cluster;
    ids.iter().try_for_each(|id| {
        if console.json {
            return writeln!(out, "{}", json!({"cluster": number, "id": id}));
        }
        writeln!(out, "{number}\t{}", nandex_dedup::printable(id))
    })
}
