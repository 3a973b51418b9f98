//! `nandex filter test`: tests which keys are in a filter.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::VolumeArgs;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::refuse;

use super::figures::percent;
use super::open::{NameArgs, open_to_read};
use crate::key_feed::{Form, KeyArgs};

/// The keys, the filter, and the output.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    name: NameArgs,
    /// Print the absent keys instead
    #[arg(long)]
    absent: bool,
    /// Print how often each key was added, a tab and the key; 0 if it is absent
    #[arg(long, conflicts_with = "absent")]
    count: bool,
    /// Print no keys, but the number of those present
    #[arg(long)]
    summary: bool,
    /// Print nothing, and stop at the first key that would be printed
    #[arg(long, conflicts_with = "summary")]
    quiet: bool,
}

/// The numbers of keys and answers.
#[derive(Debug, Default, Serialize)]
struct Tested {
    keys_read: u64,
    present: u64,
    absent: u64,
    /// The rate of false positives, at most.
    rate: f64,
    elapsed_s: f64,
    keys_per_s: f64,
    interrupted: bool,
    /// The most RAM that the filter and the keys took.
    ram_bytes: u64,
}

/// Prints the keys that are present, unchanged and in the order of the input.
///
/// # Errors
/// A failed read, damage; with `--quiet`, if no key was selected.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    args.keys.check()?;
    let form = args.keys.form()?;
    if args.count && matches!(form, Form::Width(_)) {
        refuse!(
            "keys of fixed width cannot follow counts; take lines or --nul, or leave --count out"
        );
    }
    let opened = open_to_read(&args.volume, &args.name)?;
    let prints = !(args.summary || args.quiet || console.json);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut tested = Tested { rate: opened.structure.filter().stats().rate, ..Tested::default() };
    let feed_ram = opened.structure.lookup_feed();
    let (fed, result) = args.keys.feed(("tested", feed_ram), (console, &interrupt), &mut |keys| {
        let counts = opened.structure.look_up(keys, args.count)?;
        tested.keys_read += keys.len() as u64;
        for (key, count) in keys.iter().zip(counts) {
            let is_there = count > 0;
            *if is_there { &mut tested.present } else { &mut tested.absent } += 1;
            if prints && args.count {
                write!(out, "{count}\t")?;
            }
            if prints && (args.count || is_there != args.absent) {
                form.write(&mut out, key)?;
            }
        }
        out.flush()?;
        Ok(!(args.quiet && tested.selected(args) > 0))
    });
    tested.ram_bytes = fed.ram_bytes + opened.structure.ram_bytes();
    opened.close()?;
    result?;
    (tested.elapsed_s, tested.keys_per_s) = (fed.elapsed_s, fed.keys_per_s());
    tested.interrupted = fed.interrupted;
    drop(out);
    if (args.summary || console.json) && !args.quiet {
        console.print_peak(&tested, text)?;
    }
    if tested.selected(args) == 0 || fed.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

impl Tested {
    /// The number of keys to print.
    fn selected(&self, args: &Args) -> u64 {
        if args.absent { self.absent } else { self.present }
    }
}

fn text(tested: &Tested) -> String {
    aligned(&[
        ("keys", tested.keys_read.to_string()),
        ("there", tested.present.to_string()),
        ("not there", tested.absent.to_string()),
        ("rate", format!("{} of absent keys are reported as there", percent(tested.rate))),
    ])
}
