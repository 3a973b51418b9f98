//! `nandex check`: reads everything that a volume holds and proves it.
//!
//! Opening proves the superblock, the checkpoint and the log's tail; going over every entry of every
//! table proves each page of each live incarnation. Places that hold nothing are not looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use nandex::device::{Access, Device, FileDevice, FileOptions, PageBuf, PageId};
use nandex::store::superblock::{SUPERBLOCK_PAGES, Superblock};
use nandex::{BufferHash, Durability, Volume};
use serde::Serialize;

use crate::exit::{self, DAMAGE, Quiet};
use crate::place::open_volume;
use crate::size::show_count;
use crate::talk::Talk;

/// Which volume.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The volume, which nobody else may have open
    file: PathBuf,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Checked {
    path: PathBuf,
    tables: Vec<CheckedTable>,
    damage: Vec<String>,
}

/// A table and what was found in it.
#[derive(Debug, Serialize)]
struct CheckedTable {
    name: String,
    entries: u64,
    whole: bool,
}

/// Prints what was found.
///
/// # Errors
/// A volume that cannot be opened at all, a read that the device refuses, or, after what was found
/// has been printed, damage.
pub fn run(args: &Args, talk: &Talk) -> Result<()> {
    let mut damage = superblock_damage(&args.file)?;
    let volume = open_volume(&args.file, Durability::default())?;
    let mut tables = Vec::new();
    for structure in volume.structures() {
        let (entries, result) = check_table(&volume, &structure.name);
        let whole = result.is_ok();
        if let Err(error) = result {
            damage.push(damage_or_fail(&structure.name, error)?);
        }
        tables.push(CheckedTable { name: structure.name, entries, whole });
    }
    let checked = Checked { path: args.file.clone(), tables, damage };
    talk.print(&checked, text)?;
    if checked.damage.is_empty() { Ok(()) } else { Err(Quiet(DAMAGE).into()) }
}

/// What is wrong with either copy of the superblock. One whole copy is enough to open the volume, so
/// opening alone does not tell.
fn superblock_damage(path: &Path) -> Result<Vec<String>> {
    let options = FileOptions { access: Access::ReadOnly, ..FileOptions::default() };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(path, &options)?);
    if device.page_count() < SUPERBLOCK_PAGES {
        return Ok(Vec::new());
    }
    let pages = device.read(PageId(0), PageBuf::zeroed(2))?;
    let copies = [pages.page(0), pages.page(1)];
    if Superblock::choose(copies).is_err() {
        // Opening says so, in better words.
        return Ok(Vec::new());
    }
    let places = [PageId(0), PageId(1)];
    let flaws = copies.into_iter().zip(places).map(|(page, place)| Superblock::decode(page, place));
    Ok(flaws.filter_map(Result::err).map(|flaw| flaw.to_string()).collect())
}

/// Goes over all entries; how many there were, and what stopped it.
fn check_table(volume: &Volume, name: &str) -> (u64, Result<()>) {
    let table = match BufferHash::open(volume, name) {
        Ok(table) => table,
        Err(error) => return (0, Err(error.into())),
    };
    let mut entries = 0;
    for entry in table.iter() {
        match entry {
            Ok(_) => entries += 1,
            Err(error) => return (entries, Err(error.into())),
        }
    }
    (entries, table.close().map_err(Into::into))
}

/// The words for damage; anything else is a failure to check.
fn damage_or_fail(table: &str, error: anyhow::Error) -> Result<String> {
    if exit::is_damage(&error) {
        return Ok(format!("table {table}: {}", exit::words(&error)));
    }
    Err(anyhow!(error).context(format!("table {table}")))
}

fn text(checked: &Checked) -> String {
    let mut text = String::new();
    for CheckedTable { name, entries, whole } in &checked.tables {
        let state = if *whole { "whole" } else { "damaged" };
        text.push_str(&format!("table {name}: {state}, {} entries read\n", show_count(*entries)));
    }
    checked.damage.iter().for_each(|damage| text.push_str(&format!("damage: {damage}\n")));
    if checked.damage.is_empty() {
        text.push_str(&format!("{}: no damage\n", checked.path.display()));
    }
    text
}
