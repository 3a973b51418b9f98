//! `nandex count get`: the counts of keys.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use nandex::Counter;
use serde::Serialize;

use super::form::KeyForm;
use super::open::open_to_read;
use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::key_feed::KeyArgs;

/// Keys of the command line, or of stdin.
#[derive(Debug, clap::Args)]
pub struct NamedKeys {
    /// Keys, after `--` if one begins with a hyphen; `-`, or none, reads them from stdin, one a line
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
}

/// Takes keys as users write them, and as they are stored.
type ActOnKeys<'a> = dyn FnMut(&[&[u8]], &[&[u8]]) -> Result<()> + 'a;

impl NamedKeys {
    /// Passes all keys, as users write them and as they are stored, to `act`. Returns whether it was interrupted.
    ///
    /// # Errors
    /// A bad key, a failed read, those of `act`.
    pub fn each_batch(
        &self,
        form: KeyForm,
        (console, interrupt): (&Console, &Interrupt),
        act: &mut ActOnKeys<'_>,
    ) -> Result<bool> {
        let mut before = 0;
        let mut pass = |keys: &[&[u8]]| {
            let mut stored = Vec::with_capacity(keys.len());
            for (key, number) in keys.iter().zip(before + 1_u64..) {
                stored.push(form.encode(key).with_context(|| format!("key {number}"))?);
            }
            before += keys.len() as u64;
            act(keys, &stored.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
            Ok(true)
        };
        if self.keys.is_empty() || self.keys == ["-"] {
            let (fed, result) = KeyArgs::default().feed("read", (console, interrupt), &mut pass);
            return result.map(|()| fed.interrupted);
        }
        pass(&self.keys.iter().map(String::as_bytes).collect::<Vec<_>>()).map(|_| false)
    }
}

/// The table and the keys.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    keys: NamedKeys,
}

/// A key and its count, for programs.
#[derive(Debug, Serialize)]
pub struct CountLine<'k> {
    /// The key; bytes that are no UTF-8 are shown as U+FFFD.
    pub key: std::borrow::Cow<'k, str>,
    pub count: u64,
}

/// Prints the counts, one a line, in the order of the keys.
///
/// # Errors
/// A bad key, a failed read, damage; none of the keys is there.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let opened = open_to_read(&args.volume)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut found = false;
    let stopped = args.keys.each_batch(opened.form, (console, &interrupt), &mut |keys, stored| {
        for (key, count) in keys.iter().zip(opened.table.count_many(stored)?) {
            found |= count > 0;
            if console.json {
                serde_json::to_writer(
                    &mut out,
                    &CountLine { key: String::from_utf8_lossy(key), count },
                )?;
                writeln!(out)?;
            } else {
                writeln!(out, "{count}")?;
            }
        }
        Ok(out.flush()?)
    });
    opened.close()?;
    if stopped? || !found { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}
