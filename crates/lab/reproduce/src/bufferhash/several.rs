//! Several SSDs: partitions on separate drives, as in section 5.2, or pages striped over all drives.

use std::sync::Arc;

use nandex::BufferHash;
use nandex::device::Device;
use nandex_sim::Model;
use nandex_sim::workload::SplitMix64;

use super::cpu_ns;
use super::lab::{SUPER_TABLES, Setup, incarnations_only};
use crate::slicehash::workers::{Span, THREADS, WorkerModel};
use crate::tape::{Act, Tape, TapedDevice};
use crate::{Drive, Experiment, Filled, Outcome, Result, Row, Scale, Table};

/// See the [module](self).
pub struct Several;

const UNIT: &str = "operations/s";
/// The numbers of drives: each divides the number of super tables, which is a power of two.
const DRIVES: [u32; 3] = [1, 2, 4];
/// The minimum number of super tables: two on each drive.
const SUPER_TABLES_MIN: u64 = 8;
/// The pages that go to a drive before the next one: a quarter of an incarnation.
const STRIPE_PAGES: u64 = 8;
/// Lookups that are measured.
const LOOKUPS: u64 = 20_000;

/// The use of drives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// Each super table, with its incarnations, is on one drive.
    ByPartition,
    /// The pages of one table are striped over all drives.
    Striped,
}

impl Spread {
    const fn name(self) -> &'static str {
        match self {
            Self::ByPartition => "by partition",
            Self::Striped => "striped",
        }
    }
}

impl Experiment for Several {
    fn name(&self) -> &'static str {
        "several-drives"
    }

    fn title(&self) -> &'static str {
        "Several drives"
    }

    fn reference(&self) -> &'static str {
        "section 5.2"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let mut rows = Vec::new();
        let mut flushed = Vec::new();
        let mut one: Option<Rates> = None;
        for drives in DRIVES {
            for spread in [Spread::ByPartition, Spread::Striped] {
                if drives == 1 && spread == Spread::Striped {
                    continue;
                }
                let rates = rates(drives, spread, scale)?;
                let first = *one.get_or_insert(rates);
                let name = match drives {
                    1 => "1 drive".to_owned(),
                    _ => format!("{drives} drives, {}", spread.name()),
                };
                rows.extend([
                    Row::measured(format!("{name}: lookups"), UNIT, rates.lookups),
                    Row::measured(format!("{name}: inserts"), UNIT, rates.inserts),
                    Row::measured(format!("{name}: 50/50"), UNIT, rates.mixed),
                    Row::measured(
                        format!("{name}: lookups over 1 drive"),
                        "",
                        rates.lookups / first.lookups,
                    ),
                    Row::measured(
                        format!("{name}: inserts over 1 drive"),
                        "",
                        rates.inserts / first.inserts,
                    ),
                ]);
                flushed.extend([
                    Row::measured(format!("{name}: requests of a flush"), "", rates.writes),
                    Row::measured(format!("{name}: a flush alone"), "ms", rates.flush_ms),
                    Row::measured(
                        format!("{name}: inserts without a processor"),
                        UNIT,
                        rates.drive_inserts,
                    ),
                    Row::measured(
                        format!("{name}: inserts without a processor, over 1 drive"),
                        "",
                        rates.drive_inserts / first.drive_inserts,
                    ),
                ]);
            }
        }
        Ok(Outcome {
            setup: setup(),
            tables: vec![
                Table { title: "32 threads for each Intel SSD".into(), rows },
                Table { title: "Flushes".into(), rows: flushed },
            ],
            charts: Vec::new(),
        })
    }
}

fn setup() -> Vec<String> {
    vec![
        format!(
            "The paper says that partitions \"naturally support using multiple SSDs in parallel\" and has no \
             number for it. By partition: as many tables as drives share the keys by hash, each \
             with its super tables on a drive of its own. Striped: one table, of whose pages \
             {STRIPE_PAGES} go to each drive in turn, so that a flush is written by several."
        ),
        format!(
            "For each drive 32 threads take the next operation as soon as theirs has ended and write the buffers that \
             they fill; {} us of the processor for each operation, on eight cores. All looked up \
             are keys on flash. Reads and incarnations alone are played; drives are written once \
             in order before.",
            super::CPU_NS as f64 / 1000.0
        ),
    ]
}

/// The operations a second.
#[derive(Clone, Copy)]
struct Rates {
    lookups: f64,
    inserts: f64,
    mixed: f64,
    /// The inserts a second, if the processor takes no time.
    drive_inserts: f64,
    /// The time of a flush while nothing else is done.
    flush_ms: f64,
    /// The requests of each flush.
    writes: f64,
}

/// Tables that share the keys.
struct Shared {
    tables: Vec<BufferHash>,
    device: TapedDevice,
}

impl Shared {
    fn new(drives: u32, spread: Spread, scale: Scale) -> Result<(Self, u64)> {
        let device = TapedDevice::new();
        let all = scale.of(SUPER_TABLES).max(SUPER_TABLES_MIN) as u32;
        let count = if spread == Spread::ByPartition { drives } else { 1 };
        let setup = Setup { super_tables: all / count, ..Setup::paper(scale) };
        let member = |number: u32| Arc::new(device.member(number.into())) as Arc<dyn Device>;
        let tables = (0..count).map(|number| setup.create(member(number)));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        Ok((Self { tables, device }, u64::from(count) * setup.capacity()))
    }

    fn table(&self, key: u64) -> &BufferHash {
        let hash = SplitMix64::new(key).next_u64();
        &self.tables[(hash % self.tables.len() as u64) as usize]
    }

    fn insert(&self, key: u64, tape: &mut Tape) -> Result<()> {
        self.table(key).insert_u64(key, key)?;
        self.device.take(Act::Insert, tape);
        Ok(())
    }

    fn lookup(&self, key: u64, tape: &mut Tape) -> Result<()> {
        self.table(key).get_u64(key)?;
        self.device.take(Act::Lookup, tape);
        Ok(())
    }
}

fn rates(drives: u32, spread: Spread, scale: Scale) -> Result<Rates> {
    let (shared, capacity) = Shared::new(drives, spread, scale)?;
    let mut filling = Tape::default();
    (1..=capacity).try_for_each(|key| shared.insert(key, &mut filling))?;
    let [mut lookups, mut inserts, mut mixed] = [(); 3].map(|()| Tape::default());
    let mut rng = SplitMix64::stream(scale.seed(), 16);
    let mut any = || 1 + rng.below(capacity * 3 / 4);
    (0..LOOKUPS).try_for_each(|_| shared.lookup(any(), &mut lookups))?;
    let first = capacity + 1;
    let half = capacity / 2;
    for key in first..first + half {
        shared.insert(key, &mut inserts)?;
    }
    for key in first + half..first + 2 * half {
        // Later entries are younger than all entries that were evicted for them.
        shared.lookup(key - 1 - capacity / 4, &mut mixed)?;
        shared.insert(key, &mut mixed)?;
    }
    let on_drives = |tape: &Tape| {
        let bare = incarnations_only(tape);
        if spread == Spread::Striped { bare.striped(drives.into(), STRIPE_PAGES) } else { bare }
    };
    let tapes = [lookups, inserts, mixed].map(|tape| on_drives(&tape));
    let pages = tapes.iter().map(Tape::page_count).max().unwrap_or(0);
    let model = WorkerModel {
        lookup_cpu_ns: cpu_ns(),
        insert_cpu_ns: cpu_ns(),
        chunks: STRIPE_PAGES as usize,
        window: THREADS * drives as usize,
        merges: THREADS * drives as usize,
        ..WorkerModel::buffer_hash()
    };
    let rate = |tape: &Tape, model: WorkerModel| -> Result<f64> {
        let drive = || Drive::INTEL.model(scale, Filled::Once, pages);
        let mut models: Vec<Box<dyn Model>> =
            (0..drives).map(|_| drive()).collect::<Result<_>>()?;
        Ok(model.work(tape, &mut models).operations_per_s)
    };
    let [lookups, inserts, mixed] = &tapes;
    let flushes = inserts.operations().filter(|it| !it.1.is_empty());
    let (count, writes) =
        flushes.fold((0, 0), |(count, writes), it| (count + 1, writes + it.1.len()));
    let per_flush = inserts.len() as f64 / f64::from(count.max(1));
    let free = WorkerModel { insert_cpu_ns: 0, span: Span::Whole, ..model };
    let alone = rate(inserts, WorkerModel { window: 1, ..free })?;
    Ok(Rates {
        flush_ms: 1e3 * per_flush / alone,
        drive_inserts: rate(inserts, free)?,
        lookups: rate(lookups, model)?,
        inserts: rate(inserts, model)?,
        mixed: rate(mixed, model)?,
        writes: writes as f64 / f64::from(count.max(1)),
    })
}
