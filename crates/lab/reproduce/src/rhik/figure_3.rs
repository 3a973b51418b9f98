//! Figure 3: asynchronous stores and retrievals, by the length of values.

use super::lab::{CAPACITY_PER_DRAM, IndexSize, KvIndex, key};
use super::multilevel::MultilevelIndex;
use super::pairs::{PAIR_BYTES, Pairs};
use super::player::{drive, play};
use super::records::RhikIndex;
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table};

/// See the [module](self).
pub struct Figure3;

/// The drive of the paper, and its keys.
const CAPACITY_BYTES: u64 = 64_000_000_000;
const KEYS: u64 = 100_000_000;
/// The percentage of the drive that pairs fill if it is too small for all keys.
const FULL_PERCENT: u64 = 90;
/// The lengths of values that are measured; the paper's text does not state its own.
const VALUE_BYTES: [u64; 6] = [64, 256, 1024, 4096, 16_384, 65_536];
/// The length from which on values count as large here: the paper says that RHIK reads large ones faster, and prints no
/// length.
const LARGE_BYTES: u64 = 4096;
/// The minimum keys, so that the queue is full for long enough.
const KEYS_MIN: u64 = 512;
/// The maximum retrievals that are measured.
const READS: u64 = 20_000;

const UNIT: &str = "operations/s";

/// The rates of an index at a length of values.
#[derive(Clone, Copy, Debug)]
struct Rates {
    stores: f64,
    retrievals: f64,
    /// The index pages read by a store, and by a retrieval.
    reads: (f64, f64),
}

/// Both at a length of values.
struct Measured {
    value_bytes: u64,
    rhik: Rates,
    multilevel: Rates,
}

impl Experiment for Figure3 {
    fn name(&self) -> &'static str {
        "figure-3"
    }

    fn title(&self) -> &'static str {
        "Asynchronous stores and retrievals"
    }

    fn reference(&self) -> &'static str {
        "section 3, Figure 3"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let measure = |value_bytes| Measured::new(value_bytes, scale);
        let all = VALUE_BYTES.into_iter().map(measure).collect::<Result<Vec<_>>>()?;
        Ok(Outcome {
            setup: setup(),
            tables: vec![table("stores", &all), table("retrievals", &all), index_reads(&all)],
            charts: vec![chart("stores", &all), chart("retrievals", &all)],
        })
    }
}

fn setup() -> Vec<String> {
    vec![
        "Pairs are stored in their order, as many as fit into 64 GB and at most 100 million, \
         then some are retrieved at random, 64 commands in flight. The paper retrieves in \
         order, and finds other orders not much different. Keys, capacity and DRAM are divided \
         by the scale; DRAM is 64 MB, by the paper's 10 MB for 10 GB. A key is 16 bytes, and 38 \
         are kept with a pair. Both indexes are the tables of nandex, and what their write \
         buffers rewrite is played with the stores. RHIK's write buffers have a quarter \
         of the DRAM if it \
         holds the tables and else seven eighths of what the directory leaves, the other's an eighth."
            .into(),
        "The drive is the PM983 behind Samsung's key-value SSD, from its data sheet, with \
         blocks for this and a write buffer of 1 MiB. The paper's emulator has no flash times \
         but a model of operations each second. Its rates are not printed, only that RHIK's \
         stores are faster for almost all lengths and its retrievals for long ones, so bounds \
         of 1 are what can be compared. The firmware's processor takes no time here, and no \
         index has a cache of values."
            .into(),
    ]
}

fn keys_of(value_bytes: u64, scale: Scale) -> u64 {
    let fit = CAPACITY_BYTES / 100 * FULL_PERCENT / (value_bytes + PAIR_BYTES);
    scale.of(fit.min(KEYS)).max(KEYS_MIN)
}

impl Measured {
    fn new(value_bytes: u64, scale: Scale) -> Result<Self> {
        let keys = keys_of(value_bytes, scale);
        let dram_bytes = scale.of(CAPACITY_BYTES / CAPACITY_PER_DRAM);
        let (times, seed) = (scale.times().into(), scale.seed());
        let size = IndexSize { dram_bytes, keys, times, seed };
        Ok(Self {
            value_bytes,
            rhik: Rates::of(&mut RhikIndex::new(size)?, value_bytes, keys)?,
            multilevel: Rates::of(&mut MultilevelIndex::new(size)?, value_bytes, keys)?,
        })
    }
}

impl Rates {
    fn of(index: &mut dyn KvIndex, value_bytes: u64, keys: u64) -> Result<Self> {
        let mut drive = drive()?;
        let mut pairs = Pairs::new(index, value_bytes, 0);
        (0..keys).try_for_each(|_| pairs.store())?;
        let stores = play(&pairs.take_tape(), &mut drive).operations_per_s();
        let of_stores = std::mem::take(&mut pairs.index_reads);
        let asked = keys.min(READS);
        (0..asked).try_for_each(|number| pairs.retrieve(key(number) % keys))?;
        let retrievals = play(&pairs.take_tape(), &mut drive).operations_per_s();
        let reads = (of_stores as f64 / keys as f64, pairs.index_reads as f64 / asked as f64);
        Ok(Self { stores, retrievals, reads })
    }

    fn rate(self, what: &str) -> f64 {
        if what == "stores" { self.stores } else { self.retrievals }
    }
}

fn table(what: &'static str, all: &[Measured]) -> Table {
    let mut rows = Vec::new();
    for it in all {
        let bytes = it.value_bytes;
        let (ours, other) = (it.rhik.rate(what), it.multilevel.rate(what));
        rows.push(Row::measured(format!("values of {bytes} B: RHIK"), UNIT, ours));
        rows.push(Row::measured(format!("values of {bytes} B: multi-level"), UNIT, other));
        let over =
            Row::measured(format!("values of {bytes} B: RHIK over multi-level"), "", ours / other);
        let over = match it.multilevel.reads.0 < 1.0 {
            true => over.why("Most of either index is in DRAM."),
            false => over,
        };
        let is_said = what == "stores" || bytes >= LARGE_BYTES;
        rows.push(if is_said { over.paper_at_least(1.0) } else { over });
    }
    if let (true, [shortest, .., longest]) = (what == "retrievals", all) {
        let over = |it: &Measured| it.rhik.rate(what) / it.multilevel.rate(what);
        let [short, long] = [shortest, longest].map(|it| it.value_bytes);
        let row = format!("RHIK over multi-level: values of {long} B over values of {short} B");
        rows.push(Row::measured(row, "", over(longest) / over(shortest)).paper_at_least(1.0).why(
            "The trend is the reverse of the paper's, where RHIK reads better with large values. Here the pages of a value cost more the \
             longer it is, and the index's share of a retrieval vanishes.",
        ));
    }
    Table { title: format!("Asynchronous {what}"), rows }
}

fn index_reads(all: &[Measured]) -> Table {
    let mut rows = Vec::new();
    for it in all {
        let row = |name: &str, reads| {
            let what = format!("values of {} B: {name}", it.value_bytes);
            Row::measured(what, "reads", reads)
        };
        rows.extend([
            row("RHIK, store", it.rhik.reads.0).paper_at_most(1.0),
            row("RHIK, retrieval", it.rhik.reads.1).paper_at_most(1.0),
            row("multi-level, store", it.multilevel.reads.0),
            row("multi-level, retrieval", it.multilevel.reads.1),
        ]);
    }
    Table { title: "Flash reads of the index for each operation".into(), rows }
}

fn chart(what: &'static str, all: &[Measured]) -> Chart {
    let points = |rate: fn(&Measured) -> Rates| {
        let point = |it: &Measured| (it.value_bytes as f64, rate(it).rate(what));
        all.iter().map(point).collect::<Vec<_>>()
    };
    Chart {
        title: format!("Figure 3: asynchronous {what} by the length of values"),
        x: "bytes of a value",
        y: UNIT,
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Logarithmic,
        series: vec![
            Series::ours("RHIK", points(|it| it.rhik)),
            Series::ours("multi-level", points(|it| it.multilevel)),
        ],
    }
}
