//! Tables 1 and 3: reads of a lookup and RAM of an entry, and those of other tables as printed.

use nandex::Table as _;
use nandex::raw::bufferhash::filter::Slices;

use super::lab::{Mix, Setup, ram_bytes_per_entry};
use super::throughput::Part;
use crate::bufferhash::lab::{
    BUFFER_ENTRIES, Filters, INCARNATIONS, SUPER_TABLES, Setup as BufferSetup,
};
use crate::{Experiment, Outcome, Result, Row, Scale, Table};

/// Table 1.
pub struct Table1;
/// Table 3.
pub struct Table3;

/// The workloads, their percentage of inserts, and the RAM of SILT's entries, minimum and maximum, in bytes.
const PRINTED: [(Mix, u32, [f64; 2]); 3] = [
    (Mix::Lookups, 0, [0.21, 0.21]),
    (Mix::Both, 50, [0.21, 0.57]),
    (Mix::Inserts, 100, [0.21, 1.46]),
];
/// The paper's numbers of the other tables in Table 1: their names, pages of a lookup on average and at
/// worst, and bytes of RAM for an entry.
const OTHERS: [(&str, [f64; 3]); 3] = [
    ("FlashStore", [1.0, 1.0, 6.0]),
    ("SkimpyStash", [5.0, 10.0, 1.0]),
    ("SILT", [1.0, 33.0, 0.7]),
];

/// The number of times that a BufferHash is filled before its RAM is counted: columns of its filters are in
/// use again by then.
const FILLS: u64 = 5;

/// RAM of each entry of BufferHash, in bytes.
#[derive(Clone, Copy)]
struct BufferRam {
    /// The RAM of a table that is full and evicts, as it counts itself.
    real: f64,
    /// The RAM with only the filter columns of the incarnations that it keeps.
    packed: f64,
    /// The columns of filters for each super table.
    columns: f64,
}

/// Measures full tables of two sizes, so that RAM which all super tables share is excluded.
fn buffer_hash_ram() -> Result<BufferRam> {
    let measure = |times| {
        let scale = Scale::new(times, 1)?;
        let setup = BufferSetup::paper(scale);
        let table = setup.open()?.table;
        let empty_bytes = table.stats().ram_bytes as f64;
        for key in 1..=FILLS * setup.capacity() {
            table.insert_u64(key, key)?;
        }
        let full_bytes = table.stats().ram_bytes as f64;
        let filter = table.config().filter;
        Ok::<_, crate::Error>((empty_bytes, full_bytes, scale.of(SUPER_TABLES) as f64, filter))
    };
    let (few_empty, few_full, few, filter) = measure(Scale::MOST)?;
    let (more_empty, more_full, more, _) = measure(Scale::MOST / 4)?;
    let column_bytes = filter.ram_bytes() as f64 / filter.columns() as f64;
    let narrow_bytes = Slices::with_columns(&filter, 1).ram_bytes() as f64;
    let each = |more_bytes: f64, few_bytes: f64| (more_bytes - few_bytes) / (more - few);
    let others = each(more_empty, few_empty) - narrow_bytes;
    let real = each(more_full, few_full);
    let packed = others + column_bytes * INCARNATIONS as f64;
    let entries = (INCARNATIONS as f64 + 0.5) * f64::from(BUFFER_ENTRIES);
    let columns = (real - others) / column_bytes;
    Ok(BufferRam { real: real / entries, packed: packed / entries, columns })
}

fn buffer_hash_rows(what: &str, ram: BufferRam) -> [Row; 2] {
    [
        Row::measured(what, "B/entry", ram.real).paper(4.0).why(format!(
            "A full table that evicts, as it counts its own RAM. Its filters have {:.0} columns \
             for 16 incarnations: a super table has one or two incarnations more at times, as all \
             share one ring of flash, another is being written, and the next width after 16 is 24.",
            ram.columns
        )),
        Row::measured(format!("{what}, with filters of 16 columns"), "B/entry", ram.packed)
            .paper(4.0)
            .why("Packed as the paper packs them, but without its window of spare bits."),
    ]
}

impl Experiment for Table1 {
    fn name(&self) -> &'static str {
        "table-1"
    }

    fn title(&self) -> &'static str {
        "Hash tables on flash"
    }

    fn reference(&self) -> &'static str {
        "section 2.1, Table 1"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let [slice] = Part::of(Setup::paper(scale), [Mix::Lookups])?;
        let [buffer] = Part::of_buffer_hash(Filters::Bloom, [Mix::Lookups], scale)?;
        let [blind] = Part::of_buffer_hash(Filters::Blind, [Mix::Lookups], scale)?;
        let slice_ram = ram_bytes_per_entry(Setup::paper(scale))?;
        let [ram, ram_packed] = buffer_hash_rows("RAM", buffer_hash_ram()?);
        let mut tables: Vec<Table> = vec![
            Table {
                title: "SliceHash (CPU overhead: low)".into(),
                rows: vec![
                    Row::measured("pages of a lookup, on average", "", slice.reads).paper(1.0),
                    worst("pages of a lookup, at worst", &slice).paper(2.0).why(
                        "Both cuckoo choices of a key are in one page here; the paper reads two \
                         pages at worst (5.4).",
                    ),
                    Row::measured("RAM", "B/entry", slice_ram).paper(0.6),
                ],
            },
            Table {
                title: "BufferHash (CPU overhead: low)".into(),
                rows: vec![
                    Row::measured("pages of a lookup, on average", "", buffer.reads).paper(1.0),
                    worst("pages of a lookup, at worst of those measured", &buffer),
                    worst("pages of a lookup, at worst, if all filters err", &blind).paper(16.0),
                    ram,
                    ram_packed,
                ],
            },
        ];
        tables.extend(OTHERS.map(|(name, printed)| others(name, printed)));
        Ok(Outcome {
            setup: vec![
                "Pages are counted for 20,000 lookups of keys that are there. The paper calls \
                 the CPU overhead of SILT high, and of all others low."
                    .into(),
                format!(
                    "RAM is what a partition takes, over the entries of a full one. BufferHash was filled \
                     {FILLS} times over, so that its filters are as wide as they become."
                ),
            ],
            tables,
            charts: Vec::new(),
        })
    }
}

fn worst(what: &str, part: &Part) -> Row {
    Row::measured(what, "", part.reads_max as f64)
}

fn others(name: &str, [mean, worst, ram_bytes]: [f64; 3]) -> Table {
    let overhead = if name == "SILT" { "high" } else { "low" };
    Table {
        title: format!("{name}, as printed (CPU overhead: {overhead})"),
        rows: vec![
            Row::stated("pages of a lookup, on average", "", mean),
            Row::stated("pages of a lookup, at worst", "", worst),
            Row::stated("RAM", "B/entry", ram_bytes),
        ],
    }
}

impl Experiment for Table3 {
    fn name(&self) -> &'static str {
        "table-3"
    }

    fn title(&self) -> &'static str {
        "RAM under inserts"
    }

    fn reference(&self) -> &'static str {
        "section 7.2, Table 3"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let setup = Setup::paper(scale);
        let (slice_ram, buffer_ram) = (ram_bytes_per_entry(setup)?, buffer_hash_ram()?);
        let mixes = PRINTED.map(|(mix, _, _)| mix);
        let slices = Part::of(setup, mixes)?;
        let mut rows = Vec::new();
        for (slice, (_, percent, silt)) in slices.iter().zip(PRINTED) {
            let name = |what: &str| format!("{percent} % inserts: {what}");
            let growth = slice.ram_growth_bytes / setup.capacity() as f64;
            rows.push(Row::measured(name("SliceHash"), "B/entry", slice_ram + growth).paper(0.6));
            rows.extend(buffer_hash_rows(&name("BufferHash"), buffer_ram));
            rows.push(Row::stated(name("SILT, least"), "B/entry", silt[0]));
            rows.push(Row::stated(name("SILT, most"), "B/entry", silt[1]));
        }
        Ok(Outcome {
            setup: vec![format!(
                "RAM of a full partition, and by how much the whole SliceHash's grew while lookups, \
                 inserts or both went on. BufferHash's is that of a table that was filled {FILLS} \
                 times over."
            )],
            tables: vec![Table { title: "RAM".into(), rows }],
            charts: Vec::new(),
        })
    }
}
