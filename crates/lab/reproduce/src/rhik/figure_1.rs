//! Figure 1: the bandwidth of stores against the keys in the index.

use super::expected::reads_of_insert;
use super::lab::{Access, CAPACITY_PER_DRAM, IndexSize, KvIndex, key};
use super::multilevel::{LevelShape, MultilevelIndex};
use super::pairs::Pairs;
use super::player::{drive, play};
use super::records::RhikIndex;
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table};

/// See the [module](self).
pub struct Figure1;

/// Keys in the index at which the paper measures.
const KEYS: [u64; 4] = [2_000_000, 116_000_000, 1_760_000_000, 3_100_000_000];
/// The paper's drive.
const CAPACITY_BYTES: u64 = 3_840_000_000_000;
/// The bytes of a value: the longest with which the drive takes as many pairs.
const VALUE_BYTES: u64 = 1024;
/// The number of stores that are measured: a sixteenth of the keys, within these bounds.
const STORES: (u64, u64) = (4096, 16_384);

/// An index at one of the sizes.
#[derive(Clone, Copy, Debug)]
struct At {
    mb_per_s: f64,
    /// Index pages read by a store.
    reads: f64,
    /// Index pages written for a store.
    writes: f64,
}

impl Experiment for Figure1 {
    fn name(&self) -> &'static str {
        "figure-1"
    }

    fn title(&self) -> &'static str {
        "Write bandwidth against the index"
    }

    fn reference(&self) -> &'static str {
        "section 1, Figure 1"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let size = size(scale.times().into(), scale.seed());
        let ours = grown(&mut RhikIndex::new(size)?, scale)?;
        let other = grown(&mut MultilevelIndex::new(size)?, scale)?;
        let (tables, charts) = (
            vec![bandwidth(&ours, &other), reads(&ours, &other), writes(&ours, &other)],
            vec![chart(&ours, &other)],
        );
        Ok(Outcome { setup: setup(), tables, charts })
    }
}

/// Returns the size of the index, divided by `times`.
fn size(times: u64, seed: u64) -> IndexSize {
    let dram_bytes = (CAPACITY_BYTES / CAPACITY_PER_DRAM / times).max(1);
    IndexSize { dram_bytes, keys: (KEYS[KEYS.len() - 1] / times).max(1), times, seed }
}

fn setup() -> Vec<String> {
    vec![
        "An index grows to the paper's four sizes, and at each some thousand more pairs of 1 \
         KiB are stored, 64 commands in flight, on the PM983. Keys and DRAM are divided by the \
         scale; DRAM is 3.84 GB, by the rule that the paper has for its emulator, 10 MB for 10 \
         GB: it does not say what the real drive has. The stores at 2 million keys are more \
         than these are, so there the index grows while it is measured."
            .into(),
        "The paper's bandwidths are not printed; its text says that performance is sustained at \
         a small index and collapses. The firmware's processor, which takes some 18 us for a \
         store on the real drive, takes no time here: what is left is what flash allows."
            .into(),
        "Both indexes are the tables of nandex. An eighth of the DRAM is for write buffers of the \
         multi-level one, a little for the map of its pages, and the rest for pages. RHIK's write \
         buffers have seven eighths of what its directory leaves, since record pages in DRAM would \
         save it few reads; its cache of pages exists in these experiments alone. The \
         other's reads \
         at the paper's own size are computed: levels that are full up to the last, and a cache \
         that keeps what was used last. The run at the scale confirms it."
            .into(),
    ]
}

/// Grows an index, and measures it at each size.
fn grown(index: &mut dyn KvIndex, scale: Scale) -> Result<Vec<At>> {
    let mut number = 0;
    let mut all = Vec::new();
    for keys in KEYS.map(|keys| scale.of(keys)) {
        while number < keys {
            index.access(key(number), Access::Insert)?;
            number += 1;
        }
        let stores = (keys / 16).clamp(STORES.0, STORES.1);
        all.push(measure(index, number, stores)?);
        number += stores;
    }
    Ok(all)
}

fn measure(index: &mut dyn KvIndex, first: u64, stores: u64) -> Result<At> {
    let mut pairs = Pairs::new(index, VALUE_BYTES, first);
    (0..stores).try_for_each(|_| pairs.store())?;
    let rate = play(&pairs.take_tape(), &mut drive()?).operations_per_s();
    let each = |count: u64| count as f64 / stores as f64;
    let (reads, writes) = (each(pairs.index_reads), each(pairs.index_writes));
    Ok(At { mb_per_s: rate * VALUE_BYTES as f64 / 1e6, reads, writes })
}

fn million(keys: u64) -> String {
    format!("{} million keys", keys / 1_000_000)
}

fn bandwidth(ours: &[At], other: &[At]) -> Table {
    let mut rows = Vec::new();
    for ((keys, ours), other) in KEYS.into_iter().zip(ours).zip(other) {
        let row = |name: &str, ours: f64| {
            Row::measured(format!("{}: {name}", million(keys)), "MB/s", ours)
        };
        rows.extend([row("multi-level", other.mb_per_s), row("RHIK", ours.mb_per_s)]);
    }
    let fall = |all: &[At]| all[0].mb_per_s / all[all.len() - 1].mb_per_s;
    rows.push(
        Row::measured("multi-level: 2 million over 3100 million", "", fall(other))
            .paper_at_least(1.0)
            .why("The paper: collapses. How far is in its figure and not in its text."),
    );
    rows.push(Row::measured("RHIK: 2 million over 3100 million", "", fall(ours)).why(
        "From no read to one for each store, and to rewrites: a full write buffer rewrites its \
         partition's tables, which are the more the larger the index is in the same DRAM.",
    ));
    Table { title: "Write bandwidth, values of 1 KiB".into(), rows }
}

fn reads(ours: &[At], other: &[At]) -> Table {
    let shape = LevelShape::of(size(1, 0));
    let mut rows = Vec::new();
    for ((keys, ours), other) in KEYS.into_iter().zip(ours).zip(other) {
        let row =
            |name: &str, ours| Row::measured(format!("{}: {name}", million(keys)), "reads", ours);
        let formula = reads_of_insert(keys as f64, shape);
        rows.extend([
            row("RHIK, run", ours.reads).paper_at_most(1.0),
            row("multi-level, run", other.reads),
            Row::predicted(
                format!("{}: multi-level, computed for the paper's size", million(keys)),
                "reads",
                formula,
            ),
        ]);
    }
    Table { title: "Flash reads of the index for each store".into(), rows }
}

fn writes(ours: &[At], other: &[At]) -> Table {
    let mut rows = Vec::new();
    for ((keys, ours), other) in KEYS.into_iter().zip(ours).zip(other) {
        let row =
            |name: &str, ours| Row::measured(format!("{}: {name}", million(keys)), "pages", ours);
        rows.extend([row("RHIK", ours.writes), row("multi-level", other.writes)]);
    }
    Table { title: "Pages that the index writes for each store".into(), rows }
}

fn chart(ours: &[At], other: &[At]) -> Chart {
    let points = |all: &[At]| {
        KEYS.into_iter().zip(all).map(|(keys, at)| (keys as f64, at.mb_per_s)).collect::<Vec<_>>()
    };
    Chart {
        title: "Figure 1: write bandwidth by the keys in the index".into(),
        x: "keys",
        y: "MB/s",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Logarithmic,
        series: vec![
            Series::ours("RHIK", points(ours)),
            Series::ours("multi-level", points(other)),
        ],
    }
}
