//! `nandex parameters`: lists all parameters of a kind of structure for `--set`.

use anyhow::Result;
use nandex::db;
use nandex::raw::{Statable, registry};
use serde_json::json;

use crate::console::{Console, aligned};

/// The kind.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kind of structure, such as bufferhash or cascade; default: list all kinds
    kind: Option<String>,
}

/// Lists the parameters of a kind and the options of its opening, or the kinds.
///
/// # Errors
/// An unknown kind.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let Some(kind) = &args.kind else {
        let kinds = registry::rows().filter(|row| db::parameters(row.kind).is_ok());
        let kinds: Vec<_> = kinds.map(|row| (row.kind, row.good_for.to_owned())).collect();
        return console.print(&kinds, |kinds| aligned(kinds));
    };
    let all = db::parameters(kind)?;
    let members: Vec<_> = all.iter().map(member).collect();
    console.print(&members, |_| all.iter().map(text).collect())
}

fn member(it: &Statable) -> serde_json::Value {
    let Statable { name, meaning, values, default, is_kept } = it;
    json!({"name": name, "meaning": meaning, "values": values, "default": default, "kept": is_kept})
}

fn text(it: &Statable) -> String {
    let Statable { name, meaning, values, default, is_kept } = it;
    let kept = if *is_kept { "" } else { "; of an opening" };
    format!("{name}: {values}; {default} unless stated{kept}\n    {meaning}\n")
}
