//! `nandex count get`: the counts of keys.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use nandex::Counter;

use super::form::KeyForm;
use super::open::CountsArgs;
use super::written::{WrittenKeys, json_of};
use crate::console::Console;
use crate::exit::{FAILURE, Quiet};
use crate::field::FieldFormat;
use crate::interrupt::Interrupt;
use crate::key_feed::{FeedRam, KeyArgs};

/// Keys from the command line or from stdin.
#[derive(Debug, clap::Args)]
pub struct NamedKeys {
    /// Keys, after `--` if one begins with a hyphen; `-`, or none, reads them from stdin, one per line
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Format of keys; default: text, but u64 for numbers and hex for others of fixed width
    #[arg(long, value_name = "FORMAT")]
    key_format: Option<FieldFormat>,
}

/// A callback for keys as users write them, and as they are stored.
type ActOnKeys<'a> = dyn FnMut(&[&[u8]], &[&[u8]]) -> Result<()> + 'a;

impl NamedKeys {
    /// Passes all keys, as users write them and as they are stored, to `act`. Returns whether it was interrupted.
    ///
    /// # Errors
    /// A bad key, a failed read, an error of `act`.
    pub fn each_batch(
        &self,
        form: KeyForm,
        (console, interrupt): (&Console, &Interrupt),
        act: &mut ActOnKeys<'_>,
    ) -> Result<bool> {
        let written = WrittenKeys::new(form, self.key_format)?;
        let mut pass = |keys: &[&[u8]], place: &dyn Fn(usize) -> String| {
            let mut stored = Vec::with_capacity(keys.len());
            for (index, key) in keys.iter().enumerate() {
                stored.push(written.stored(key).with_context(|| place(index))?);
            }
            act(keys, &stored.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        if self.keys.is_empty() || self.keys == ["-"] {
            let (stdin, heard) = (KeyArgs::default(), (console, interrupt));
            let (fed, result) =
                stdin.feed_batches(None, ("read", FeedRam::SMALL), heard, &mut |batch| {
                    pass(&batch.keys(), &|index| batch.place(index))?;
                    Ok(true)
                });
            return result.map(|()| fed.interrupted);
        }
        let keys: Vec<_> = self.keys.iter().map(String::as_bytes).collect();
        pass(&keys, &|index| format!("key {}", index + 1)).map(|()| false)
    }
}

/// The table and the keys.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    counts: CountsArgs,
    #[command(flatten)]
    keys: NamedKeys,
}

/// Prints the counts, one per line, in the order of the keys.
///
/// # Errors
/// A bad key, a failed read, damage; none of the keys has a count.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let opened = args.counts.open_to_read()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut found = false;
    let stopped =
        args.keys.each_batch(opened.form(), (console, &interrupt), &mut |keys, stored| {
            for (key, count) in keys.iter().zip(opened.structure.count_many(stored)?) {
                found |= count > 0;
                if console.json {
                    writeln!(out, "{}", json_of(key, count)?)?;
                } else {
                    writeln!(out, "{count}")?;
                }
            }
            Ok(out.flush()?)
        });
    opened.close()?;
    if stopped? || !found { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}
