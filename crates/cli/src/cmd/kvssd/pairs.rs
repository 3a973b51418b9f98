//! `nandex kvssd put`, `get`, `rm` and `exist`: operations on pairs by their keys.

use std::io::{self, Read, Write};

use anyhow::Result;
use clap::ValueEnum;
use nandex::device::Access;
use nandex_kvssd::{
    Afterwards, DeleteMissing, GroupFilter, ResultCode, RetrieveOptions, StoreKind,
};
use serde_json::{Map, Value, json};

use super::place::SpaceArgs;
use super::shown::{field, key_text};
use crate::console::Console;
use crate::exit::{FAILURE, Quiet};
use crate::refuse;
use crate::size;

/// The handling of an existing key by a store.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StoreWord {
    /// Overwrite it, or create the pair
    Post,
    /// Overwrite it; fail if the key is absent
    Update,
    /// Create the pair; fail if the key is present
    New,
    /// Append to its value, or create the pair
    Append,
}

/// A pair to store.
#[derive(Debug, clap::Args)]
pub struct PutArgs {
    #[command(flatten)]
    place: SpaceArgs,
    /// Key of the pair
    key: String,
    /// Value of the pair; default: read from stdin
    value: Option<String>,
    /// Handling of an existing key
    #[arg(long, value_name = "WORD", default_value = "post")]
    store: StoreWord,
}

/// A value to retrieve.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    #[command(flatten)]
    place: SpaceArgs,
    /// Key of the pair
    key: String,
    /// First byte of the value to write, a multiple of 512
    #[arg(long, value_name = "BYTES", value_parser = size::parse, default_value = "0")]
    offset: u64,
    /// Most bytes to write; default: all
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    length: Option<u64>,
    /// Delete the pair once the value is retrieved
    #[arg(long)]
    delete: bool,
}

/// Pairs to delete.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    #[command(flatten)]
    place: SpaceArgs,
    /// Keys to delete
    #[arg(required_unless_present = "prefix", conflicts_with = "prefix")]
    keys: Vec<String>,
    /// Delete all keys that begin with these bytes, at most four
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
}

/// The keys to test.
#[derive(Debug, clap::Args)]
pub struct ExistArgs {
    #[command(flatten)]
    place: SpaceArgs,
    /// Keys to test
    #[arg(required = true)]
    keys: Vec<String>,
}

/// The longest prefix of a group, in bytes.
const PREFIX_BYTES_MAX: usize = 4;

/// Returns the filter for a prefix.
///
/// # Errors
/// A prefix that is longer than a group's.
pub fn filter(prefix: Option<&str>) -> Result<GroupFilter> {
    let prefix = prefix.unwrap_or_default();
    if prefix.len() > PREFIX_BYTES_MAX {
        refuse!(
            "--prefix: {} bytes; a drive groups keys by their first {PREFIX_BYTES_MAX} bytes: give as many or fewer",
            prefix.len()
        );
    }
    Ok(GroupFilter::prefix(prefix.as_bytes()))
}

/// Stores a pair.
///
/// # Errors
/// A key or value that the drive does not accept, a full drive.
pub fn put(args: &PutArgs, console: &Console) -> Result<()> {
    let kind = match args.store {
        StoreWord::Post => StoreKind::Post,
        StoreWord::Update => StoreKind::UpdateOnly,
        StoreWord::New => StoreKind::NoOverwrite,
        StoreWord::Append => StoreKind::Append,
    };
    let bytes = args.place.with(Access::ReadWrite, |drive, space| {
        let value = match &args.value {
            Some(value) => value.clone().into_bytes(),
            None => read_value(u64::from(drive.config().value_bytes_max))?,
        };
        space.store(args.key.as_bytes(), &value, kind.into())?;
        Ok(value.len())
    })?;
    if console.json {
        console.print(&json!({ "stored_bytes": bytes }), |_| String::new())?;
    }
    Ok(())
}

/// Reads a value from stdin, and a byte more than the drive accepts, so that it rejects a longer one.
fn read_value(most: u64) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    io::stdin().lock().take(most + 1).read_to_end(&mut value)?;
    Ok(value)
}

/// Writes a value to stdout, unchanged.
///
/// # Errors
/// Silently, an absent key.
pub fn get(args: &GetArgs, console: &Console) -> Result<()> {
    let access = if args.delete { Access::ReadWrite } else { Access::ReadOnly };
    let afterwards = if args.delete { Afterwards::Delete } else { Afterwards::Keep };
    let options = RetrieveOptions { offset: args.offset, length: args.length, afterwards };
    let found =
        args.place.with(access, |_, space| match space.retrieve(args.key.as_bytes(), options) {
            Err(error) if error.code() == ResultCode::KeyNotExist => Ok(None),
            found => Ok(Some(found?)),
        })?;
    let Some(found) = found else {
        console.note(&format!("{}: not there", key_text(args.key.as_bytes())));
        return Err(Quiet(FAILURE).into());
    };
    if console.json {
        let fields = [
            field("key", args.key.as_bytes()),
            field("value", &found.bytes),
            ("value_bytes".to_owned(), json!(found.value_bytes)),
        ];
        return console.print(&Map::from_iter(fields), |_| String::new());
    }
    let mut out = io::stdout().lock();
    out.write_all(&found.bytes)?;
    Ok(out.flush()?)
}

/// Deletes pairs.
///
/// # Errors
/// An absent key; the others are deleted.
pub fn remove(args: &RemoveArgs, console: &Console) -> Result<()> {
    let filter = args.prefix.as_deref().map(|prefix| filter(Some(prefix))).transpose()?;
    let (removed, missing) = args.place.with(Access::ReadWrite, |_, space| {
        let (mut removed, mut missing) = (0, 0_u64);
        if let Some(filter) = filter {
            removed = space.delete_group(filter)?;
        }
        for key in &args.keys {
            match space.delete(key.as_bytes(), DeleteMissing::Refuse) {
                Err(error) if error.code() == ResultCode::KeyNotExist => {
                    missing += 1;
                    console.note(&format!("{}: not there", key_text(key.as_bytes())));
                }
                deleted => {
                    deleted?;
                    removed += 1;
                }
            }
        }
        Ok((removed, missing))
    })?;
    console.print(&json!({ "deleted": removed, "missing": missing }), |_| {
        format!("{removed} deleted\n")
    })?;
    if missing == 0 { Ok(()) } else { Err(Quiet(FAILURE).into()) }
}

/// Prints whether each key is present.
///
/// # Errors
/// Silently, an absent key.
pub fn exist(args: &ExistArgs, console: &Console) -> Result<()> {
    let keys: Vec<_> = args.keys.iter().map(String::as_bytes).collect();
    let there = args.place.with(Access::ReadOnly, |_, space| Ok(space.exist(&keys)?))?;
    let answers = args.keys.iter().zip(&there);
    let fields = answers.clone().map(|(key, there)| (key.clone(), Value::Bool(*there)));
    console.print(&Map::from_iter(fields), |_| {
        let word = |there: bool| if there { "there" } else { "not there" };
        answers.map(|(key, it)| format!("{}\t{}\n", key_text(key.as_bytes()), word(*it))).collect()
    })?;
    if there.iter().all(|there| *there) { Ok(()) } else { Err(Quiet(FAILURE).into()) }
}
