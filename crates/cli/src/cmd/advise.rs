//! `nandex advise`: recommends a structure for some requirements, with its costs, before it is created.

use anyhow::Result;
use nandex::{Advice, Policy, Prediction, Requirements};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::console::Console;
use crate::refuse;
use crate::size;
use crate::sizing::{self, DesignArg, RequirementArgs, members};

/// The requirements.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of entries that the table must hold
    #[arg(long, value_name = "COUNT", value_parser = size::parse_some)]
    entries: u64,
    /// Bytes of a key and its value together
    #[arg(long, value_name = "SIZE", value_parser = sizing::entry_bytes, default_value = "16")]
    entry_bytes: u64,
    /// Bytes of the key, as part of those: 8 to 32
    #[arg(long, value_name = "SIZE", value_parser = sizing::key_bytes, default_value = "8")]
    key_bytes: u64,
    #[command(flatten)]
    requirements: RequirementArgs,
    /// Use of several devices, as for `create --design`
    #[arg(long, requires = "devices")]
    design: Option<DesignArg>,
    /// Number of devices, which are alike: 2 to 64
    #[arg(long, value_name = "COUNT", requires = "design")]
    devices: Option<usize>,
    /// Behaviour when the table is full, as for `create --policy`
    #[arg(long, default_value = "fifo", value_parser = sizing::policy)]
    policy: Policy,
}

/// The choice, the figures of the chosen structure, and those of all. The key is a structure's kind; the value is its
/// figures or null. The kind with `_refused` gives the reason why it cannot meet the requirements, or is null.
#[derive(Debug, Serialize)]
struct AdviceOutput<'a> {
    structure: &'static str,
    reasons: Vec<String>,
    #[serde(flatten)]
    chosen: Figures<'a>,
    #[serde(flatten)]
    candidates: Map<String, Value>,
}

/// The parts of a prediction for programs.
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
    update_read_bytes: f64,
    update_write_bytes: f64,
    inserts_per_s: f64,
    updates_per_s: f64,
    ops_per_s: f64,
    busy_share: f64,
    lifetime_years: Option<f64>,
    /// Whether the load wears the flash out within three years.
    wears_out_early: bool,
    #[serde(flatten)]
    parameters: Map<String, Value>,
}

impl<'a> From<&'a Prediction> for Figures<'a> {
    fn from(it: &'a Prediction) -> Self {
        let Requirements { entries, key_bytes, value_bytes, device, .. } = &it.requirements;
        Self {
            entries: *entries,
            key_bytes: *key_bytes,
            value_bytes: *value_bytes,
            device: device.name,
            entries_capacity: it.entries_capacity,
            ram_bytes: it.ram_bytes(),
            buffer_bytes: it.buffer_bytes,
            filter_bytes: it.filter_bytes,
            ram_bytes_per_entry: it.ram_bytes_per_entry(),
            flash_bytes: it.flash_bytes,
            reads_per_hit: it.costs.reads_per_hit,
            reads_per_miss: it.costs.reads_per_miss,
            hit_ns: it.hit_ns(),
            miss_ns: it.miss_ns(),
            insert_amortised_ns: it.insert_amortised_ns,
            insert_worst_ns: it.insert_worst_ns,
            write_amplification: it.write_amplification(),
            write_amplification_with_log: it.write_amplification_with_log(),
            update_read_bytes: it.costs.update_read_bytes(),
            update_write_bytes: it.costs.update_write_bytes(),
            inserts_per_s: it.inserts_per_s(),
            updates_per_s: it.updates_per_s(),
            ops_per_s: it.ops_per_s(),
            busy_share: it.busy_share(),
            lifetime_years: it.lifetime_years(),
            wears_out_early: it.wears_out_early(),
            parameters: members(&it.parameters),
        }
    }
}

fn output(advice: &Advice) -> Result<AdviceOutput<'_>> {
    let mut candidates = Map::new();
    for candidate in &advice.candidates {
        let kind = candidate.row.kind;
        let answer = candidate.answer.as_ref();
        let figures = answer.ok().map(Figures::from);
        let refusal = answer.err().map(ToString::to_string);
        candidates.insert(kind.to_owned(), serde_json::to_value(figures)?);
        candidates.insert(format!("{kind}_refused"), refusal.into());
    }
    let (structure, reasons) = (advice.row().kind, advice.reasons());
    Ok(AdviceOutput { structure, reasons, chosen: advice.chosen().into(), candidates })
}

/// Prints the advice.
///
/// # Errors
/// Requirements that no structure can meet, with the least value that is enough.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let advice = requirements(args)?.advise()?;
    console.print(&output(&advice)?, |_| advice.to_string())
}

fn requirements(args: &Args) -> Result<Requirements> {
    let Some(value_bytes) = args.entry_bytes.checked_sub(args.key_bytes) else {
        let (entry, key) = (args.entry_bytes, args.key_bytes);
        refuse!("--entry-bytes: entries of {entry} bytes cannot hold keys of {key} (--key-bytes)");
    };
    let asked = args.requirements.of(args.entries, args.key_bytes, value_bytes)?;
    let array = args.design.map(|design| design.on(args.devices.unwrap_or(1))).transpose()?;
    Ok(Requirements { policy: args.policy, array, ..asked })
}
