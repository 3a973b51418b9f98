//! `nandex check`: reads and verifies everything in a volume, without writing.

use std::path::PathBuf;

use anyhow::Result;
use nandex::device::Access;
use nandex::raw::CheckProgress;
use nandex::raw::device::PAGE_BYTES;
use nandex::raw::store::check::CheckedStructure;
use nandex::raw::store::is_part_of;
use nandex::{Finding, Report};
use serde::Serialize;

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::exit::{DAMAGE, Quiet};
use crate::size::show_count;

/// The volume, which no process may have open for writing.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
}

/// The result.
#[derive(Debug, Serialize)]
struct Checked {
    path: PathBuf,
    pages_read: u64,
    log_entries: u64,
    tables: Vec<CheckedTable>,
    damage: Vec<Damage>,
    damage_left_out: u64,
}

/// A table and its entries.
#[derive(Debug, Serialize)]
struct CheckedTable {
    name: String,
    kind: String,
    entries: u64,
    whole: bool,
}

/// A difference from what was written.
#[derive(Debug, Serialize)]
struct Damage {
    table: Option<String>,
    page: u64,
    text: String,
}

/// Prints the result.
///
/// # Errors
/// Not a volume, a newer one, one in use; damage, after the result is printed.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let devices = args.volume.open(Access::ReadOnly)?;
    let meter = console.meter("checked", None);
    let mut on_progress = |done: CheckProgress<'_>| meter.at(done.pages_done * PAGE_BYTES as u64);
    let report = nandex::check(devices.volume, devices.log, &mut on_progress)?;
    meter.finish();
    let checked = checked(args, &report);
    console.print(&checked, text)?;
    if report.ok() { Ok(()) } else { Err(Quiet(DAMAGE).into()) }
}

fn checked(args: &Args, report: &Report) -> Checked {
    // Parts count towards their structure.
    let is_of = |found: &str, name: &str| found == name || is_part_of(found, name);
    let whole = |name: &str| {
        let damaged = report.findings.iter().filter_map(|it| it.structure.as_deref());
        !damaged.into_iter().any(|found| is_of(found, name))
    };
    let entries = |name: &str| {
        report.structures.iter().filter(|it| is_of(&it.name, name)).map(|it| it.entries).sum()
    };
    let table = |it: &CheckedStructure| CheckedTable {
        name: it.name.clone(),
        kind: it.kind.clone(),
        entries: entries(&it.name),
        whole: whole(&it.name),
    };
    let is_part = |it: &&CheckedStructure| {
        report.structures.iter().any(|owner| is_part_of(&it.name, &owner.name))
    };
    let damage = |it: &Finding| Damage {
        table: it.structure.clone(),
        page: it.page.0,
        text: it.to_string(),
    };
    Checked {
        path: args.volume.file.clone(),
        pages_read: report.pages_read,
        log_entries: report.log_entries,
        tables: report.structures.iter().filter(|it| !is_part(it)).map(table).collect(),
        damage: report.findings.iter().map(damage).collect(),
        damage_left_out: report.findings_left_out,
    }
}

fn text(checked: &Checked) -> String {
    let mut text = String::new();
    for CheckedTable { name, entries, whole, .. } in &checked.tables {
        let state = if *whole { "whole" } else { "damaged" };
        text.push_str(&format!("table {name}: {state}, {} entries read\n", show_count(*entries)));
    }
    checked.damage.iter().for_each(|it| text.push_str(&format!("damage: {}\n", it.text)));
    if checked.damage_left_out > 0 {
        text.push_str(&format!("damage: and {} more\n", show_count(checked.damage_left_out)));
    }
    let pages = show_count(checked.pages_read);
    if checked.damage.is_empty() {
        text.push_str(&format!("{}: no damage in {pages} pages\n", checked.path.display()));
    }
    text
}
