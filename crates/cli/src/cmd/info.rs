//! `nandex info`: shows the content of a volume.

use std::path::PathBuf;

use anyhow::Result;
use nandex::device::{Access, Device};
use nandex::raw::registry::{self, Family};
use nandex::{AnyFilter, Durability, OpenOptions, TableOrMap, TableStats, Volume};
use serde::Serialize;

use crate::cmd::filter::figures::FilterFigures;
use crate::console::{Console, aligned};
use crate::devices::VolumeArgs;
use crate::geometry::ShownGeometry;
use crate::growth::Growth;
use crate::held::open_volume;
use crate::lost::LostPages;
use crate::neighbors::NeighborsFigures;
use crate::size::{show_bytes, show_count};
use crate::sizing::{TableCosts, shown_widths};

/// The volume.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    volume: VolumeArgs,
}

/// A volume, for people and programs.
#[derive(Debug, Serialize)]
struct Info {
    path: PathBuf,
    /// The devices of an array in order; none for a volume on one device.
    members: Vec<String>,
    stripe_bytes: u64,
    bytes: u64,
    free_bytes: u64,
    engine: String,
    engine_reason: String,
    log_bytes: u64,
    log_used_bytes: u64,
    /// The channels of its device that the volume stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    geometry: Option<ShownGeometry>,
    tables: Vec<TableInfo>,
}

/// A structure, for people and programs.
#[derive(Debug, Serialize)]
struct TableInfo {
    name: String,
    kind: String,
    /// `None` for a structure that is not a table.
    #[serde(flatten)]
    figures: Option<Figures>,
    /// `None` for a structure that is not a filter.
    #[serde(flatten)]
    filter: Option<FilterFigures>,
    /// `None` for a structure that is not an index of neighbours.
    #[serde(flatten)]
    neighbors: Option<NeighborsFigures>,
    /// The pages of a structure that this verb does not open: a value log without a table of keys, or a kind that this
    /// nandex does not know. `None` for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u64>,
}

impl TableInfo {
    /// Returns a structure about which nothing more is known.
    const fn of(name: String, kind: String) -> Self {
        Self { name, kind, figures: None, filter: None, neighbors: None, pages: None }
    }

    /// Damaged pages whose entries are not counted.
    fn lost_pages(&self) -> impl Iterator<Item = &LostPages> {
        let of_table = self.figures.iter().map(|it| &it.lost_pages);
        let of_filter = self.filter.iter().map(FilterFigures::lost_pages);
        of_table.chain(of_filter).chain(self.neighbors.iter().map(NeighborsFigures::lost_pages))
    }
}

/// The figures of a table.
#[derive(Debug, Serialize)]
struct Figures {
    /// `None` for keys and values of any size.
    key_bytes: Option<usize>,
    value_bytes: Option<usize>,
    entries: u64,
    /// Damaged pages of saved buffers, whose entries are not counted.
    #[serde(skip_serializing_if = "LostPages::is_empty")]
    lost_pages: LostPages,
    /// The number of different keys that it certainly holds.
    entries_capacity: u64,
    /// `entries` over `entries_capacity`; above 1 while there is more space than is certain.
    fullness: f64,
    /// The number of entries that the policy has dropped in the table's life.
    evicted_life: u64,
    /// The number of those that the policy would have kept.
    forced_evictions_life: u64,
    /// Set if only the device limits the entries.
    #[serde(skip)]
    growth: Option<Growth>,
    /// `None` for fixed widths.
    value_log: Option<ValueLogUse>,
    /// The most RAM of its cache, almost none of which is used now.
    #[serde(skip_serializing_if = "is_zero")]
    cache_bytes_max: u64,
    ram_bytes: u64,
    ram_bytes_per_entry: f64,
    flash_bytes: u64,
    /// The bytes that `compact` would free, by the cost model.
    compaction_bytes: u64,
    #[serde(flatten)]
    costs: TableCosts,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The use of the log of keys and values of any size.
#[derive(Clone, Copy, Debug, Serialize)]
struct ValueLogUse {
    /// Bytes of present keys and values.
    live_bytes: u64,
    /// Bytes of replaced or removed ones, until their segment is cleaned.
    garbage_bytes: u64,
    /// Bytes in total.
    flash_bytes: u64,
    /// The number of times it has grown.
    growths: u64,
    /// The number of its segments that were overwritten in all openings.
    overwritten_segments_life: u64,
    /// The number of live records in them, as far as is known.
    overwritten_records_life: u64,
}

impl ValueLogUse {
    /// Returns the use of a map's log.
    fn of(table: &TableOrMap) -> Option<Self> {
        let TableOrMap::Map(map) = table else { return None };
        let stats = map.stats().values;
        Some(Self {
            live_bytes: stats.live_bytes,
            garbage_bytes: stats.garbage_bytes,
            flash_bytes: stats.flash_bytes,
            growths: stats.growths,
            overwritten_segments_life: stats.overwritten_segments_life,
            overwritten_records_life: stats.overwritten_records_life,
        })
    }
}

/// Prints the content of the volume.
///
/// # Errors
/// No such file, a file that is not a volume, one that is in use, damage; silently, after the result is printed, if
/// damaged pages are missing from it.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let (db, devices) = open_volume(&args.volume, Access::ReadOnly, Durability::default())?;
    let volume = db.volume();
    let stats = volume.stats();
    let page_bytes = u64::try_from(nandex::raw::device::PAGE_BYTES)?;
    let free_bytes = args.volume.growth_bytes().map(|more| more + stats.free_pages * page_bytes);
    let names = TableOrMap::names(volume).into_iter();
    let tables = names.map(|name| structure(volume, name, free_bytes)).collect::<Result<_>>()?;
    let info = Info {
        path: args.volume.file.clone(),
        members: devices.members,
        stripe_bytes: devices.volume.geometry().stripe_pages * page_bytes,
        bytes: stats.pages * page_bytes,
        free_bytes: stats.free_pages * page_bytes,
        engine: stats.engine.name,
        engine_reason: stats.engine.reason,
        log_bytes: stats.log_capacity_bytes,
        log_used_bytes: stats.log_used_bytes,
        geometry: volume
            .kept_geometry()
            .map(|kept| ShownGeometry::of(&kept, &volume.device().geometry())),
        tables,
    };
    console.print(&info, text)?;
    info.tables.iter().flat_map(TableInfo::lost_pages).try_for_each(LostPages::result)
}

fn structure(volume: &Volume, name: String, free_bytes: Option<u64>) -> Result<TableInfo> {
    let kind = registry::kind_in(volume, &name)?;
    match registry::find(&kind).map(|row| &row.family) {
        Some(Family::Part) if !TableOrMap::is_map(volume, &name) => {
            Ok(unopened(volume, name, kind))
        }
        Some(Family::Table(_) | Family::Part) => {
            let table = TableOrMap::open(volume, &name, &OpenOptions::default())?;
            let kind = table.index().kind().to_owned();
            let figures = Some(figures(table, free_bytes)?);
            Ok(TableInfo { figures, ..TableInfo::of(name, kind) })
        }
        Some(Family::Filter(_)) => {
            let filter = Some(filter_figures(volume, &name)?);
            Ok(TableInfo { filter, ..TableInfo::of(name, kind) })
        }
        Some(Family::Neighbors(_)) => {
            let neighbors = Some(NeighborsFigures::of(volume, &name)?);
            Ok(TableInfo { neighbors, ..TableInfo::of(name, kind) })
        }
        Some(Family::Generation) | None => Ok(unopened(volume, name, kind)),
    }
}

fn unopened(volume: &Volume, name: String, kind: String) -> TableInfo {
    let found = volume.structures().into_iter().find(|found| found.name == name);
    TableInfo { pages: found.map(|found| found.pages), ..TableInfo::of(name, kind) }
}

fn filter_figures(volume: &Volume, name: &str) -> Result<FilterFigures> {
    let filter = AnyFilter::open(volume, name, &OpenOptions::default())?;
    let figures = FilterFigures::of(&*filter, volume.hasher());
    filter.close()?;
    Ok(figures)
}

fn figures(table: TableOrMap, free_bytes: Option<u64>) -> Result<Figures> {
    let TableStats { entries, ram_bytes, flash_bytes, lost_pages, .. } = table.stats();
    let TableStats { evicted_life, forced_evictions_life, cache_bytes_max, .. } = table.stats();
    let entries_capacity = table.entries_capacity();
    let widths = table.widths();
    let figures = Figures {
        key_bytes: widths.map(|(key, _)| key),
        value_bytes: widths.map(|(_, value)| value),
        entries,
        lost_pages: LostPages::of(&lost_pages),
        entries_capacity,
        fullness: entries as f64 / entries_capacity.max(1) as f64,
        evicted_life,
        forced_evictions_life,
        growth: table
            .growth_bytes_per_entry()
            .map(|bytes_per_entry| Growth { free_bytes, bytes_per_entry }),
        value_log: ValueLogUse::of(&table),
        cache_bytes_max,
        ram_bytes,
        ram_bytes_per_entry: if entries > 0 { ram_bytes as f64 / entries as f64 } else { 0.0 },
        flash_bytes,
        compaction_bytes: table.compaction_bytes(),
        costs: TableCosts::of(table.index())?,
    };
    table.close()?;
    Ok(figures)
}

fn text(info: &Info) -> String {
    let log = format!("{}, {} in use", show_bytes(info.log_bytes), show_bytes(info.log_used_bytes));
    let size = format!("{}, {} free", show_bytes(info.bytes), show_bytes(info.free_bytes));
    let mut rows = vec![("volume", info.path.display().to_string())];
    if !info.members.is_empty() {
        let stripe = show_bytes(info.stripe_bytes);
        rows.push(("members", format!("{}, stripes of {stripe}", info.members.join(", "))));
    }
    rows.extend([
        ("size", size),
        ("engine", format!("{} ({})", info.engine, info.engine_reason)),
        ("log", log),
    ]);
    rows.extend(info.geometry.iter().map(|it| ("channels", it.shown())));
    let mut text = aligned(&rows);
    info.tables.iter().for_each(|table| text.push_str(&table_text(table)));
    text
}

fn table_text(table: &TableInfo) -> String {
    let mut rows = vec![("kind", table.kind.clone())];
    rows.extend(table.figures.iter().flat_map(figure_rows));
    rows.extend(table.filter.iter().flat_map(FilterFigures::rows));
    rows.extend(table.neighbors.iter().flat_map(NeighborsFigures::rows));
    rows.extend(table.pages.map(|pages| {
        let bytes = pages * nandex::raw::device::PAGE_BYTES as u64;
        ("flash", format!("{}, in {} pages", show_bytes(bytes), show_count(pages)))
    }));
    let lines = aligned(&rows);
    let lines: String = lines.lines().map(|line| format!("  {line}\n")).collect();
    let noun = match table {
        TableInfo { filter: Some(_), .. } => "filter",
        TableInfo { neighbors: Some(_), .. } => "neighbors",
        TableInfo { pages: Some(_), .. } => "structure",
        _ => "table",
    };
    format!("{noun} {}\n{lines}", table.name)
}

fn shown_log(log: ValueLogUse) -> String {
    let (live, garbage) = (show_bytes(log.live_bytes), show_bytes(log.garbage_bytes));
    let grown = match log.growths {
        0 => String::new(),
        1 => ", grown once".into(),
        times => format!(", grown {times} times"),
    };
    format!("{live} live and {garbage} garbage, of {}{grown}", show_bytes(log.flash_bytes))
}

/// Returns what a log that overwrites its oldest records has dropped.
fn shown_overwritten(log: ValueLogUse) -> Option<String> {
    let (segments, records) = (log.overwritten_segments_life, log.overwritten_records_life);
    let records = show_count(records);
    let segments = match segments {
        0 => return None,
        1 => "1 segment".to_owned(),
        more => format!("{} segments", show_count(more)),
    };
    Some(format!("{segments} of values in its life, with {records} records that were there"))
}

fn shown_evictions(it: &Figures) -> String {
    let evicted = match it.evicted_life {
        0 => return "none".into(),
        evicted => format!("{} entries in its life", show_count(evicted)),
    };
    match it.forced_evictions_life {
        0 => evicted,
        forced => format!("{evicted}, {} that the policy wanted to keep", show_count(forced)),
    }
}

fn figure_rows(it: &Figures) -> Vec<(&'static str, String)> {
    let ram = show_bytes(it.ram_bytes);
    let of_capacity = || {
        let (capacity, percent) = (show_count(it.entries_capacity), it.fullness * 100.0);
        format!("{capacity} entries, {percent:.1} % full")
    };
    let mut rows = vec![
        ("entries", show_count(it.entries)),
        ("space for", it.growth.map_or_else(of_capacity, Growth::shown)),
        ("evicted", shown_evictions(it)),
        ("widths", shown_widths(it.key_bytes, it.value_bytes)),
    ];
    rows.extend(it.value_log.map(|log| ("values", shown_log(log))));
    rows.extend(it.value_log.and_then(shown_overwritten).map(|text| ("overwritten", text)));
    rows.extend(it.costs.rows());
    rows.push(it.costs.values_row());
    rows.push(("RAM", format!("{ram}, {:.2} bytes per entry", it.ram_bytes_per_entry)));
    if it.cache_bytes_max > 0 {
        let most = show_bytes(it.cache_bytes_max);
        rows.push(("cache", format!("up to {most} more, of what is read and written")));
    }
    let compaction = match it.compaction_bytes {
        0 => String::new(),
        less => format!("; `nandex compact` gives back about {}", show_bytes(less)),
    };
    rows.push(("flash", format!("{}{compaction}", show_bytes(it.flash_bytes))));
    rows.extend(it.lost_pages.row());
    rows
}
