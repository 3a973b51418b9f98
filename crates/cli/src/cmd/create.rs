//! `nandex create`: creates a volume with one empty table.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use nandex::large::ValuesConfig;
use nandex::raw::device::{Geometry, Striping};
use nandex::raw::store::hash::{HashKind, KeyHasher};
use nandex::raw::store::schedule::Channels;
use nandex::raw::{ENTRIES_GROWING, Sizing, registry};
use nandex::{Policy, Prediction, Requirements, slicehash};
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::{FileBytes, StripeArg, VolumeArgs};
use crate::geometry::{self, GeometryArg, ShownGeometry};
use crate::growth::Growth;
use crate::hashing::HashKeyArg;
use crate::interrupt::Interrupt;
use crate::place::{DurabilityArg, Plan, create};
use crate::refuse;
use crate::size::{self, show_bytes, show_count};
use crate::sizing::{self, DesignArg, RequirementArgs, StructureArg, TableCosts};
use crate::stated::StatedArgs;

/// The place and the size.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
    /// Distribution of the volume over several devices: SIZE for runs of SIZE bytes on each in turn, or partition:SIZE
    /// for SIZE bytes of the volume on each
    #[arg(long, value_name = "STRIPING", default_value = "1MiB", requires = "members")]
    stripe: StripeArg,
    /// Use of several devices by a SliceHash, which then distinguishes them and decides how the volume is spread over
    /// them
    #[arg(long, requires = "members", conflicts_with = "stripe")]
    design: Option<DesignArg>,
    /// Name of the table
    #[arg(long, default_value = "main")]
    table: String,
    /// Number of entries that the table must hold, or that a growing table begins with; default for a growing table:
    /// any number, beginning with a thousand
    #[arg(long, value_name = "COUNT", value_parser = size::parse_some)]
    entries: Option<u64>,
    /// Bytes of each key, 8 to 32, for fixed widths; without this and --value-bytes, keys and values have any size
    #[arg(long, value_name = "SIZE", value_parser = sizing::key_bytes)]
    key_bytes: Option<u64>,
    /// Bytes of each value, 0 to 64, for fixed widths
    #[arg(long, value_name = "SIZE", value_parser = sizing::value_bytes)]
    value_bytes: Option<u64>,
    /// Bytes of all keys and values of any size, with about 40 more for each entry; default: 256 for each entry, and no
    /// limit for a growing table
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = size::parse_some_bytes,
        conflicts_with_all = ["key_bytes", "value_bytes"]
    )]
    bytes: Option<u64>,
    /// Structure of the table
    #[arg(long, value_name = "STRUCTURE", default_value = "auto", value_parser = StructureArg::parser())]
    structure: StructureArg,
    #[command(flatten)]
    requirements: RequirementArgs,
    /// Channels of the device, or of each of several alike, which the volume stores: probe to find them first, a file
    /// with the output of `nandex probe --json`, or none
    #[arg(long, value_name = "SOURCE", default_value = "none")]
    geometry: GeometryArg,
    /// Number of full buffers of a SliceHash that may wait on flash while inserts come in bursts
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    front_runs: u32,
    #[command(flatten)]
    stated: StatedArgs,
    /// Behaviour when the table is full; default: grow, unless --structure or a limit other than --ram requires reject
    #[arg(long, value_parser = sizing::policy)]
    policy: Option<Policy>,
    /// Key of the hash: `random`; `shared`, so that tables merge in one pass; or up to 32 digits in hex. Use random if
    /// keys come from untrusted sources
    #[arg(long, value_name = "KEY", default_value = "random")]
    hash_key: HashKeyArg,
    /// Durability of acknowledged updates in this run: always, every:MS or never; each opening chooses its own
    #[arg(long, default_value = "every:100")]
    durability: DurabilityArg,
}

/// The width of keys or values if only the other was given.
const FIELD_BYTES: u64 = 8;

impl Args {
    fn has_any_size(&self) -> bool {
        self.key_bytes.is_none() && self.value_bytes.is_none()
    }

    /// Chooses the table with the requested policy, and the place of its values. By default the table grows, unless
    /// another option rules that out.
    fn choose(&self, channels: Channels) -> Result<(Option<ValuesConfig>, Sizing)> {
        let may_grow = self.structure.0.is_none_or(registry::grows)
            && self.front_runs == 0
            && self.design.is_none()
            && self.requirements.is_free();
        let must_grow = self.structure.0.is_some() || self.entries.is_none();
        match self.policy {
            Some(policy) => self.choose_with(policy, channels),
            None if may_grow && must_grow => self.choose_with(Policy::Grow, channels),
            None if may_grow => self
                .choose_with(Policy::Grow, channels)
                .or_else(|_| self.choose_with(Policy::Reject, channels)),
            None => self.choose_with(Policy::Reject, channels),
        }
    }

    fn choose_with(
        &self,
        policy: Policy,
        channels: Channels,
    ) -> Result<(Option<ValuesConfig>, Sizing)> {
        let asked = Requirements { channels, ..self.requirements(policy)? };
        let size = |asked: &Requirements| match self.entries {
            None if policy == Policy::Grow => asked.size_first(self.structure.0),
            _ => asked.size(self.structure.0),
        };
        if !self.has_any_size() {
            return Ok((None, size(&asked)?));
        }
        let values = asked
            .values(self.bytes)
            .context("--policy: give widths with --key-bytes and --value-bytes for this one")?;
        let of_values = || {
            let taken = show_bytes(values.ram_bytes());
            format!(
                "of --ram, the log of keys and values takes {taken}, and its index has the rest"
            )
        };
        let sized = size(&asked.over(&values));
        let table =
            if self.requirements.has_ram() { sized.with_context(of_values)? } else { sized? };
        Ok((Some(values), table))
    }

    /// Returns the channels by which the table is laid out, where each device has those of `device`: each device's own
    /// if the table distinguishes several, and those of all together otherwise.
    fn channels(&self, device: Option<Geometry>) -> Result<Channels> {
        let geometry = match self.design {
            Some(_) => device,
            None => geometry::of_volume(device, &self.volume, self.stripe.0)?,
        };
        Ok(geometry.map_or(Channels::opaque(), |it| Channels::of(&it)))
    }

    /// Replaces parameters of the prediction by those of the options. Returns the RAM of the table with the requested
    /// entries.
    fn state_parameters(&self, sizing: &mut Sizing) -> Result<u64> {
        if self.has_any_size() {
            let why = "the index of keys and values of any size has its own; --policy states what it does when full";
            self.stated.refuse(&["key_bytes", "value_bytes", "policy"], why)?;
        }
        sizing.state(&self.stated.stated()).context("--set")
    }

    /// Returns the warning for a table that holds fewer entries than requested.
    fn too_few(&self, sizing: &Sizing) -> Option<String> {
        let holds = sizing.too_few().filter(|_| !self.stated.is_empty())?;
        let (holds, asked) =
            (show_count(holds), show_count(sizing.prediction.requirements.entries));
        Some(format!(
            "with the parameters of --set it holds {holds} entries, fewer than the {asked} asked for"
        ))
    }

    /// Returns the distribution of the volume over several devices.
    fn striping(&self, prediction: &Prediction) -> Result<Striping> {
        if self.design.is_none() {
            return Ok(self.stripe.0);
        }
        let config: &slicehash::Config = prediction.config.of()?;
        Ok(Striping::Extent { pages: config.stripe_pages().into() })
    }

    fn requirements(&self, policy: Policy) -> Result<Requirements> {
        let or_usual = |bytes: Option<u64>| bytes.unwrap_or(FIELD_BYTES);
        let (key_bytes, value_bytes) = (or_usual(self.key_bytes), or_usual(self.value_bytes));
        let entries = self.entries_of(policy)?;
        let asked = self.requirements.of(entries, key_bytes, value_bytes)?;
        let devices = 1 + self.volume.devices.members.len();
        let array = self.design.map(|design| design.on(devices)).transpose()?;
        Ok(Requirements { policy, front_runs: self.front_runs, array, ..asked })
    }

    /// Returns the number of entries that the table must hold, or begins with.
    fn entries_of(&self, policy: Policy) -> Result<u64> {
        match self.entries {
            Some(entries) => Ok(entries),
            None if policy == Policy::Grow => Ok(ENTRIES_GROWING),
            None => refuse!(
                "--entries: give the number of entries; only a table that grows may do without"
            ),
        }
    }
}

/// The new volume.
#[derive(Debug, Serialize)]
struct Created {
    path: PathBuf,
    table: String,
    structure: String,
    reasons: Vec<String>,
    entries_capacity: u64,
    /// Set if only the device limits the entries.
    #[serde(skip)]
    growth: Option<Growth>,
    /// Whether it grows within the given RAM.
    #[serde(skip)]
    grows_in_ram: bool,
    /// `None` for keys and values of any size.
    key_bytes: Option<usize>,
    value_bytes: Option<usize>,
    /// The number of entries requested, and the RAM that the table takes with them by its model.
    entries: u64,
    predicted_ram_bytes: u64,
    /// The warning that it holds fewer entries than requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// The current sizes, without entries.
    ram_bytes: u64,
    flash_bytes: u64,
    filter_bytes: u64,
    /// The channels that the volume stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    geometry: Option<ShownGeometry>,
    /// Set once the files are complete.
    #[serde(flatten)]
    files: Option<FileBytes>,
    #[serde(flatten)]
    costs: TableCosts,
}

/// Creates the volume and the table.
///
/// # Errors
/// A file that holds a volume already, invalid sizes, no space, an interrupt.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let device = args.geometry.find(&args.volume, console)?;
    let (values, mut sizing) = args.choose(args.channels(device)?)?;
    let ram_bytes = args.state_parameters(&mut sizing)?;
    let warning = args.too_few(&sizing);
    let Sizing { reasons, prediction } = sizing;
    let striping = args.striping(&prediction)?;
    let geometry = geometry::of_volume(device, &args.volume, striping)?;
    let given = args.hash_key.given();
    let hasher = given.map(|key| KeyHasher::new(HashKind::default(), key));
    let plan = Plan { name: &args.table, prediction: &prediction, values, geometry, hasher };
    let made = create(&args.volume, striping, plan, args.durability.0, console)?;
    let (held, widths) = (made.structure.stats(), made.structure.widths());
    let growth = made
        .structure
        .growth_bytes_per_entry()
        .map(|bytes_per_entry| Growth { free_bytes: None, bytes_per_entry });
    let free_bytes = made.volume().stats().free_pages * nandex::raw::device::PAGE_BYTES as u64;
    let mut created = Created {
        path: args.volume.file.clone(),
        table: args.table.clone(),
        structure: made.structure.index().kind().to_owned(),
        reasons,
        entries_capacity: prediction.entries_capacity,
        grows_in_ram: growth.is_none() && made.structure.grows(),
        growth,
        key_bytes: widths.map(|(key, _)| key),
        value_bytes: widths.map(|(_, value)| value),
        entries: prediction.requirements.entries,
        predicted_ram_bytes: ram_bytes + values.map_or(0, |it| it.ram_bytes()),
        warning,
        ram_bytes: held.ram_bytes,
        flash_bytes: held.flash_bytes,
        filter_bytes: prediction.optional_filter_bytes,
        geometry: geometry.map(|it| ShownGeometry::of(&it, &made.volume().device().geometry())),
        files: None,
        costs: TableCosts::of(made.structure.index())?,
    };
    if interrupt.is_set() {
        made.db.unfinished().remove();
        bail!("stopped; no file was made");
    }
    made.close()?.finish()?;
    created.files = Some(args.volume.file_bytes()?);
    // The file has its name only now, and its file system is found by that.
    if let Some(growth) = &mut created.growth {
        growth.free_bytes = args.volume.growth_bytes().map(|more| more + free_bytes);
    }
    if let Some(warning) = &created.warning {
        console.note(&format!("warning: {warning}"));
    }
    console.print(&created, text)
}

fn text(created: &Created) -> String {
    let mut rows = vec![
        ("volume", created.path.display().to_string()),
        ("table", created.table.clone()),
        ("structure", created.structure.clone()),
    ];
    let names = ["  because"].into_iter().chain(std::iter::repeat(""));
    rows.extend(names.zip(created.reasons.iter().cloned()));
    rows.extend([
        ("space for", shown_space(created)),
        ("entries", sizing::shown_widths(created.key_bytes, created.value_bytes)),
    ]);
    rows.extend(created.costs.rows());
    if created.filter_bytes > 0 {
        let bytes = show_bytes(created.filter_bytes);
        rows.push((
            "filters",
            format!("{bytes} more RAM, where a program opens it with that much"),
        ));
    }
    rows.extend([("RAM", shown_ram(created)), ("flash", show_bytes(created.flash_bytes))]);
    rows.extend(created.geometry.iter().map(|it| ("channels", it.shown())));
    rows.extend(created.files.map(|files| ("file", files.shown())));
    aligned(&rows)
}

fn shown_space(created: &Created) -> String {
    let entries = show_count(created.entries_capacity);
    match created.growth {
        Some(growth) => format!("{}; so does its RAM, unless --ram limits it", growth.shown()),
        None if created.grows_in_ram => {
            format!("{entries} entries, as far as its --ram lets it grow")
        }
        None => format!("{entries} entries"),
    }
}

fn shown_ram(created: &Created) -> String {
    let (predicted, now) = (show_bytes(created.predicted_ram_bytes), show_bytes(created.ram_bytes));
    let entries = show_count(created.entries);
    format!("up to {predicted} with {entries} entries by its model, {now} now")
}
