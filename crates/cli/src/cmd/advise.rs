//! `nandex advise`: which structure for a need, and what it would cost, before there is one.

use anyhow::{Result, bail};
use nandex::bufferhash;
use nandex::compare::{Comparison, Structure, Wish};
use nandex::slicehash;
use serde::Serialize;

use crate::need::NeedArgs;
use crate::size;
use crate::talk::Talk;

/// What is wanted.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Entries the table must hold
    #[arg(long, value_name = "COUNT", value_parser = size::parse)]
    entries: u64,
    /// Bytes of a key and its value together
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "16")]
    entry_bytes: u64,
    /// Bytes of a key, as part of those
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "8")]
    key_bytes: u64,
    #[command(flatten)]
    need: NeedArgs,
}

/// The choice, the figures of the chosen one, and both.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    structure: &'static str,
    reasons: Vec<String>,
    #[serde(flatten)]
    chosen: Figures<'a>,
    bufferhash: Option<Figures<'a>>,
    bufferhash_refused: Option<String>,
    slicehash: Option<Figures<'a>>,
    slicehash_refused: Option<String>,
}

/// The parts of an advice that a program may want.
#[derive(Clone, Debug, Serialize)]
struct Figures<'a> {
    entries: u64,
    key_bytes: u32,
    value_bytes: u32,
    device: &'a str,
    entries_capacity: u64,
    ram_bytes: u64,
    buffer_bytes: u64,
    filter_bytes: u64,
    ram_bytes_per_entry: f64,
    flash_bytes: u64,
    reads_per_hit: f64,
    reads_per_miss: f64,
    hit_ns: f64,
    miss_ns: f64,
    insert_amortised_ns: f64,
    insert_worst_ns: f64,
    write_amplification: f64,
    write_amplification_with_log: f64,
    inserts_per_s: f64,
    ops_per_s: f64,
    busy_share: f64,
    lifetime_years: Option<f64>,
    #[serde(flatten)]
    shape: Shape,
}

/// The parameters, which each structure has of its own.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Shape {
    BufferHash { super_tables: u32, incarnations: u32, pages_per_buffer: u32, relaxed: bool },
    SliceHash { partitions: u32, incarnations: f64, pages_per_buffer: u32, slices: u32 },
}

/// The figures of an advice; both kinds name them alike.
macro_rules! figures {
    ($wish:expr, $advice:expr, $shape:expr) => {{
        let (wish, advice) = ($wish, $advice);
        let costs = advice.operation_costs();
        let worn_bytes = wish.flash_bytes.unwrap_or(advice.flash_bytes);
        let years = costs.lifetime_years(&wish.device, &wish.load, worn_bytes);
        Figures {
            entries: wish.entries,
            key_bytes: wish.key_bytes,
            value_bytes: wish.value_bytes,
            device: wish.device.name,
            entries_capacity: advice.entries_capacity,
            ram_bytes: advice.ram_bytes,
            buffer_bytes: advice.buffer_bytes,
            filter_bytes: advice.filter_bytes,
            ram_bytes_per_entry: advice.ram_bytes_per_entry,
            flash_bytes: advice.flash_bytes,
            reads_per_hit: advice.reads_per_hit,
            reads_per_miss: advice.reads_per_miss,
            hit_ns: advice.hit_ns,
            miss_ns: advice.miss_ns,
            insert_amortised_ns: advice.insert_amortised_ns,
            insert_worst_ns: advice.insert_worst_ns,
            write_amplification: advice.write_amplification,
            write_amplification_with_log: advice.write_amplification_with_log,
            inserts_per_s: costs.inserts_per_s(&wish.device),
            ops_per_s: costs.ops_per_s(&wish.device, &wish.load),
            busy_share: costs.busy_share(&wish.device, &wish.load),
            lifetime_years: (wish.load.inserts_per_s > 0.0).then_some(years),
            shape: $shape,
        }
    }};
}

fn buffered<'a>(wish: &'a Wish, advice: &bufferhash::model::Advice) -> Figures<'a> {
    let shape = Shape::BufferHash {
        super_tables: advice.super_tables,
        incarnations: advice.incarnations,
        pages_per_buffer: advice.pages_per_buffer,
        relaxed: advice.relaxed,
    };
    figures!(wish, advice, shape)
}

fn sliced<'a>(wish: &'a Wish, advice: &slicehash::model::Advice) -> Figures<'a> {
    let shape = Shape::SliceHash {
        partitions: advice.partitions,
        incarnations: advice.incarnations,
        pages_per_buffer: advice.buffer_pages,
        slices: advice.slices,
    };
    figures!(wish, advice, shape)
}

impl<'a> From<&'a Comparison> for Shown<'a> {
    fn from(it: &'a Comparison) -> Self {
        let bufferhash = it.bufferhash.as_ref().ok().map(|advice| buffered(&it.wish, advice));
        let slicehash = it.slicehash.as_ref().ok().map(|advice| sliced(&it.wish, advice));
        let (structure, chosen) = match it.chosen {
            Structure::BufferHash => ("bufferhash", bufferhash.clone()),
            Structure::SliceHash => ("slicehash", slicehash.clone()),
        };
        Self {
            structure,
            reasons: it.reasons(),
            chosen: chosen.expect("what was chosen can do it"),
            bufferhash,
            bufferhash_refused: it.bufferhash.as_ref().err().map(ToString::to_string),
            slicehash,
            slicehash_refused: it.slicehash.as_ref().err().map(ToString::to_string),
        }
    }
}

/// Prints the advice.
///
/// # Errors
/// A need that no structure can meet, with the least that would do.
pub fn run(args: &Args, talk: &Talk) -> Result<()> {
    let comparison = wish(args)?.compare()?;
    talk.print(&Shown::from(&comparison), |_| comparison.to_string())
}

fn wish(args: &Args) -> Result<Wish> {
    let Some(value_bytes) = args.entry_bytes.checked_sub(args.key_bytes) else {
        bail!("entries of {} bytes cannot hold keys of {}", args.entry_bytes, args.key_bytes);
    };
    args.need.wish(args.entries, args.key_bytes, value_bytes)
}
