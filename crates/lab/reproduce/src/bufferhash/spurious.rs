//! Figure 5: false-positive reads per lookup, over the split of the RAM into buffers and filters.

use nandex::raw::bufferhash::filter::{Columns, FilterShape, IncarnationFilter, Slices, WORDS_MAX};
use nandex::raw::bufferhash::model::paper::{Split, Store};
use nandex_sim::workload::SplitMix64;

use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table};

/// See the [module](self).
pub struct Figure5;

const MIB: f64 = 1024.0 * 1024.0;
/// The paper's RAM, in MiB.
const RAM_MIB: f64 = 4096.0;
/// The paper's flash: 32 GiB of entries that take 32 bytes each, since hash tables are half full.
const CLAM: Store = Store { flash_bytes: 32.0 * 1024.0 * MIB, entry_bytes: 32.0 };
/// Sizes of all buffers together that are measured, in MiB.
const MEASURED_MIB: [f64; 10] =
    [32.0, 64.0, 128.0, 192.0, 256.0, 384.0, 512.0, 1024.0, 2048.0, 3072.0];
/// Entries of each filter, as in a buffer of the paper.
const ENTRIES: u32 = 4096;
/// The minimum number of spurious reads; with fewer the measurement is too random.
const HITS_WANTED: f64 = 400.0;
/// The maximum number of keys to look up.
const ASKED_MAX: f64 = 4e9;

impl Experiment for Figure5 {
    fn name(&self) -> &'static str {
        "figure-5"
    }

    fn title(&self) -> &'static str {
        "Spurious lookup rate against memory for buffers"
    }

    fn reference(&self) -> &'static str {
        "section 7.1.1, Figure 5; the model is that of section 6.4"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let measured = MEASURED_MIB.iter().map(|&mib| Ok((mib, measure(mib, scale)?)));
        let measured: Vec<(f64, f64)> = measured.collect::<Result<_>>()?;
        Ok(Outcome {
            setup: vec![
                "4 GiB of RAM and 32 GiB of flash are divided into as many filters of as many bits per \
                 entry as the size of the buffers leaves; of each number of filters and bits, \
                 filters of \
                 4096 entries are built, in groups of at most 256, and asked for keys that are in none."
                    .into(),
                format!(
                    "The number of keys asked for is such that some {HITS_WANTED} answers are wrong, divided \
                     by the scale and at least 20,000: rates below 0.001 carry a few percent of chance."
                ),
            ],
            tables: vec![table(&measured)],
            charts: vec![chart(measured)],
        })
    }
}

fn split(buffers_mib: f64) -> Split {
    Split { buffer_bytes: buffers_mib * MIB, filter_bytes: (RAM_MIB - buffers_mib) * MIB }
}

fn table(measured: &[(f64, f64)]) -> Table {
    let at = |mib: f64| measured.iter().find(|point| point.0 == mib).map_or(0.0, |point| point.1);
    let best = measured.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
    let rows = vec![
        Row::formula("best size of buffers, by the model", "MiB", CLAM.buffer_bytes_best() / MIB)
            .paper(266.0),
        Row::measured("best size of buffers, of those measured", "MiB", best.unwrap_or_default().0)
            .paper(256.0)
            .why("With as many hash functions our filters gain less than the formula has it, so that larger buffers and smaller filters do better: see the next row."),
        Row::measured("spurious rate at 256 MiB, measured", "", at(256.0)).paper(0.0001)
            .why("A key's bits are in an arithmetic progression, from two halves of one hash. With 20 hash functions that is more often the same for two keys than 20 independent bits would be: a filter errs once in 670,000 where the formula says once in 1.8 million. The paper gives one digit."),
        Row::formula("spurious rate at 256 MiB, by the model", "", CLAM.spurious_reads(split(256.0)))
            .paper(0.0001),
        Row::measured("spurious rate at 2048 MiB, measured", "", at(2048.0)).paper(0.01)
            .why("The paper gives one digit: 16 filters of 2^-11.09 make 0.0073."),
        Row::formula("spurious rate at 2048 MiB, by the model", "", CLAM.spurious_reads(split(2048.0)))
            .paper(0.01),
    ];
    Table { title: "False-positive reads per lookup".into(), rows }
}

fn chart(measured: Vec<(f64, f64)>) -> Chart {
    let sizes = (0..=60).map(|step| 0.125 * (3072.0_f64 / 0.125).powf(f64::from(step) / 60.0));
    let model = sizes.map(|mib| (mib, CLAM.spurious_reads(split(mib)))).collect();
    Chart {
        title: "Spurious rate over the memory for buffers".into(),
        x: "memory for all buffers, MiB",
        y: "false-positive reads per lookup",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Logarithmic,
        series: vec![
            Series::ours("model of section 6", model),
            Series::ours("measured", measured),
            Series::paper("paper, in the text", vec![(256.0, 0.0001), (2048.0, 0.01)]),
        ],
    }
}

/// Queries as many filters as there are incarnations next to the buffers, with the bits that the RAM allows.
fn measure(buffers_mib: f64, scale: Scale) -> Result<f64> {
    let incarnations = CLAM.incarnations(buffers_mib * MIB).round() as usize;
    let bits = (RAM_MIB - buffers_mib) * MIB * 8.0 / CLAM.entries();
    let rate = CLAM.spurious_reads(split(buffers_mib));
    let wanted =
        (HITS_WANTED / rate * f64::from(Scale::DEFAULT) / f64::from(scale.times())).min(ASKED_MAX);
    let asked = (wanted as u64).max(20_000);
    let groups = incarnations.div_ceil(64 * WORDS_MAX);
    let mut hits = 0;
    for group in 0..groups {
        let columns = (incarnations - group * 64 * WORDS_MAX).min(64 * WORDS_MAX);
        hits += false_positives(columns, bits, asked / groups as u64, scale.seed() + group as u64)?;
    }
    Ok(hits as f64 * groups as f64 / asked as f64)
}

/// Returns the share of `asked` absent keys for which one of `columns` filters has a false positive.
fn false_positives(columns: usize, bits: f64, asked: u64, seed: u64) -> Result<u64> {
    let words = u32::try_from(columns.div_ceil(64)).unwrap_or(u32::MAX);
    let filter = IncarnationFilter::new(FilterShape::bloom(ENTRIES, bits, words)?);
    let slices = Slices::new(filter.shape());
    let mut rng = SplitMix64::stream(seed, 5);
    let mut live: Columns = [0; WORDS_MAX];
    for column in 0..columns {
        let keys: Vec<u64> = (0..ENTRIES).map(|_| rng.next_u64()).collect();
        slices.or_column(column, &filter.build(&keys).bits);
        live[column / 64] |= 1 << (column % 64);
    }
    let yes = |hash| {
        filter.candidates(&slices, hash, &live).iter().map(|it| it.count_ones()).sum::<u32>()
    };
    Ok((0..asked).map(|_| u64::from(yes(rng.next_u64()))).sum())
}
