//! `nandex delete`: removes keys from a table.

use anyhow::Result;
use nandex::device::Access;
use serde::Serialize;

use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::keys::KeyWords;
use crate::place::{FieldArgs, TableArgs, open};
use crate::size::show_count;

/// The table and the keys.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    keys: KeyWords,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    fields: FieldArgs,
}

/// The result.
#[derive(Debug, Default, Serialize)]
struct Deleted {
    table: String,
    deleted: u64,
    absent: u64,
}

/// Removes all of the keys that are present, durably.
///
/// # Errors
/// A key of the wrong width, damage, a failed write. Keys before it are removed and durable.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let opened = open(&args.volume, &args.table, Access::ReadWrite)?;
    let columns = args.fields.columns(&opened.structure)?;
    let mut done = Deleted { table: opened.name.clone(), ..Deleted::default() };
    let result = args.keys.for_each_batch(&columns.key, |keys| {
        for (key, value) in keys.iter().zip(opened.structure.get_many(keys)?) {
            if value.is_some() {
                opened.structure.remove(key)?;
            }
            *if value.is_some() { &mut done.deleted } else { &mut done.absent } += 1;
        }
        Ok(())
    });
    opened.close()?;
    result?;
    console.print(&done, |done| {
        let (deleted, absent) = (show_count(done.deleted), show_count(done.absent));
        format!("{deleted} deleted from {}, {absent} were not there\n", done.table)
    })
}
