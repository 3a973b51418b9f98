//! `nandex advise`: what a table would cost, before there is one.

use anyhow::{Result, bail};
use nandex::bufferhash::model::{Advice, CostPreset, Need};
use serde::Serialize;

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
    /// RAM that it may take; without it, what it needs
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    ram: Option<u64>,
    /// Flash that it may take; without it, what it needs
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    flash: Option<u64>,
    /// Page reads that a lookup of an absent key may take, on average
    #[arg(long, value_name = "PAGES", default_value_t = 0.01)]
    miss_reads: f64,
    /// The device whose times are shown
    #[arg(long, value_name = "PRESET", value_parser = preset_names())]
    device: Option<String>,
}

fn preset_names() -> Vec<&'static str> {
    CostPreset::all().iter().map(|preset| preset.name).collect()
}

/// The parts of an advice that a program may want.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    entries: u64,
    key_bytes: u32,
    value_bytes: u32,
    device: &'a str,
    super_tables: u32,
    incarnations: u32,
    pages_per_buffer: u32,
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
    relaxed: bool,
}

impl<'a> From<&'a Advice> for Shown<'a> {
    fn from(advice: &'a Advice) -> Self {
        Self {
            entries: advice.need.entries,
            key_bytes: advice.need.key_bytes,
            value_bytes: advice.need.value_bytes,
            device: advice.need.device.name,
            super_tables: advice.super_tables,
            incarnations: advice.incarnations,
            pages_per_buffer: advice.pages_per_buffer,
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
            relaxed: advice.relaxed,
        }
    }
}

/// Prints the advice.
///
/// # Errors
/// A need that cannot be met, with the least that would do.
pub fn run(args: &Args, talk: &Talk) -> Result<()> {
    let advice = need(args)?.advise()?;
    talk.print(&Shown::from(&advice), |_| advice.to_string())
}

fn need(args: &Args) -> Result<Need> {
    let Some(value_bytes) = args.entry_bytes.checked_sub(args.key_bytes) else {
        bail!("entries of {} bytes cannot hold keys of {}", args.entry_bytes, args.key_bytes);
    };
    let mut need = Need::new(args.entries, args.key_bytes.try_into()?, value_bytes.try_into()?);
    need.ram_bytes = args.ram;
    need.flash_bytes = args.flash;
    need.miss_reads_max = args.miss_reads;
    if let Some(name) = &args.device {
        need.device = CostPreset::by_name(name)?;
    }
    Ok(need)
}
