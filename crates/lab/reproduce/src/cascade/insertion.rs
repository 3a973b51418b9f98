//! Insertion throughput: the deck's first curve.

use super::bloom::{Bloom, HASHES, Kind};
use super::grown::Grown;
use super::lab::{FILTER_OVER_RAM, Measures};
use super::rounds::{Costs, Point, Round, rate, rates, timeline};
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table, fits};

/// See the [module](self).
pub struct Insertion;

/// A fan-out and its name.
pub const FAN_OUTS: [(Option<u32>, &str); 3] = [
    (Some(2), "cascade filter, fan-out 2, as published"),
    (Some(8), "cascade filter, two levels, fan-out 8"),
    (None, "cascade filter, one wide level"),
];
/// Inserts a second of the deck's cascade filter.
pub const DECK_INSERTS_PER_S: f64 = 670_000.0;
/// The rate of the deck's cascade filter over that of its other filters.
pub const DECK_GAIN: f64 = 40.0;
/// Parts of a curve.
const PARTS: u32 = 48;
/// The rounds of Bloom filters: queues that are filled, or hundreds of keys.
const BLOOM_ROUNDS: u64 = 5;

/// The rounds of a filter.
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// Its rounds.
    pub rounds: Vec<Round>,
    /// Their cost on the processor.
    pub costs: Costs,
    /// The assumed constant of the processor that decides most of its cost, by name.
    pub processor: &'static str,
    /// The times that a key is written, and the bytes written for each, for a cascade filter.
    pub written: Option<(f64, f64)>,
}

impl Measured {
    /// Measures a cascade filter with all keys.
    pub fn cascade(grown: &Grown, name: &'static str) -> Self {
        Self {
            name,
            rounds: grown.rounds.clone(),
            costs: Costs::cascade(),
            processor: fits::CASCADE_INSERT.name,
            written: Some((grown.writes_per_key(), grown.bytes_per_key())),
        }
    }

    /// Measures a Bloom filter in its steady state, which takes some more keys for it.
    pub fn bloom(bloom: &mut Bloom) -> Result<Self> {
        let kind = bloom.kind();
        let rounds = bloom.insert(BLOOM_ROUNDS)?;
        let (name, costs, processor) = (kind.name(), kind.costs(), kind.processor());
        Ok(Self { name, rounds, costs, processor, written: None })
    }

    /// Returns the keys a second, by today's processor.
    pub fn per_s(&self) -> f64 {
        self.per_s_with(self.costs)
    }

    /// Returns the keys a second, by a processor with these costs.
    pub fn per_s_with(&self, costs: Costs) -> f64 {
        rate(&timeline(&self.rounds, costs))
    }

    /// Returns the keys a second if the processor took no time.
    pub fn device_per_s(&self) -> f64 {
        self.per_s_with(Costs { insert_ns: 0.0, merge_ns: 0.0, ..self.costs })
    }
}

/// Returns the setup, in sentences.
pub fn setup(measures: &Measures, bloom_pages: u64) -> Result<Vec<String>> {
    let buffer_entries = measures.config(None)?.buffer_entries;
    let ram_bits = measures.ram_bits()?;
    let kib = |bytes: u64| bytes / 1024;
    let flash_bytes = measures.ram_bytes * FILTER_OVER_RAM;
    Ok(vec![
        format!(
            "The deck inserts 8.4 billion hashes into a filter of 16 GB with 0.994 GB of RAM, on \
             an Intel X25-M of 160 GB. Here it is 1/{} of the keys, {}, and the ratio of 16 is \
             kept: a cascade filter of {} KiB on flash, and {} KiB of RAM for whoever holds a \
             filter. False positives: 1 in 256, which is about what 16 GB for 8.4 billion are to \
             a quotient filter.",
            measures.scale.times(),
            measures.keys,
            kib(flash_bytes),
            kib(measures.ram_bytes),
        ),
        format!(
            "A cascade filter divides its RAM between two buffers of {buffer_entries} \
             fingerprints, of which one fills while the other is merged. At the deck's size a \
             fingerprint takes {ram_bits:.1} bits in RAM and 10.6 on flash, so all keys are {} \
             buffers, not 16. Merges go in chunks of 128 KiB (the structure's own are 1 MiB). \
             It has one part, as the deck's; with more, which the structure takes by itself, \
             less RAM would do. What a checkpoint takes by itself, some ms whatever the size, is \
             left out.",
            measures.keys / buffer_entries.max(1),
        ),
        format!(
            "Bloom filters have {HASHES} hash functions, 11.6 bits for each key, {bloom_pages} \
             pages, and the same RAM. They are measured when all keys are in, as the deck \
             measured its own in their steady state.",
        ),
        "All of them run on the simulated drive, preset intel-x25m: the 160 GB model, written \
         once in order before. Its time is virtual; the processor's is stated and added to it: \
         for a cascade filter 65 ns for each insert and 8 ns for each fingerprint that a merge \
         writes, by a second thread; for Bloom filters 120 ns where bits are set in cached \
         pages, 90 ns where bits are queued, 28 ns where keys are. These were measured on a \
         processor of 2023 at 2 GHz. A merge reads, works and writes in chunks, so the slower \
         of processor and drive decides."
            .into(),
    ])
}

impl Experiment for Insertion {
    fn name(&self) -> &'static str {
        "insertion"
    }

    fn title(&self) -> &'static str {
        "Insertion throughput"
    }

    fn reference(&self) -> &'static str {
        "the slides on insertion throughput"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let measures = Measures::deck(scale)?;
        let mut all = Vec::new();
        for (fan_out, name) in FAN_OUTS {
            let grown = Grown::full(measures, fan_out)?;
            all.push(Measured::cascade(&grown, name));
        }
        let mut bloom_pages = 0;
        for kind in Kind::ALL {
            let mut bloom = Bloom::full(kind, measures)?;
            bloom_pages = bloom.pages();
            all.push(Measured::bloom(&mut bloom)?);
        }
        let mut setup = setup(&measures, bloom_pages)?;
        setup.push(
            "A Bloom filter has all its pages from the beginning on, so its rate is the same for \
             the first key and the last, and is drawn as a line."
                .into(),
        );
        Ok(Outcome {
            setup,
            tables: vec![table(&all), without_processor(&all)],
            charts: vec![over_time(&all, scale), over_keys(&all, measures.keys)],
        })
    }
}

fn table(all: &[Measured]) -> Table {
    let mut rows = Vec::new();
    for measured in all {
        let row = Row::assumed(measured.name, "inserts/s", measured.per_s(), measured.processor);
        rows.push(match measured.name {
            name if name == FAN_OUTS[0].1 => row.paper(DECK_INSERTS_PER_S).why(
                "The deck is bound by its processor, and so it is here: by the 65 ns of an insert on a newer one, while a second thread merges. The experiment deck has a slow one too.",
            ),
            name if name == Kind::PageBlocked.name() => {
                row.why("The honest strongest baseline; the deck does not have it.")
            }
            _ => row,
        });
        if let Some((writes, bytes)) = measured.written {
            rows.push(Row::measured(
                format!("{}: times a key is written", measured.name),
                "",
                writes,
            ));
            rows.push(Row::measured(
                format!("{}: written for each key", measured.name),
                "B",
                bytes,
            ));
        }
    }
    Table { title: "Inserts, drive and processor".into(), rows }
}

fn without_processor(all: &[Measured]) -> Table {
    let rows = all
        .iter()
        .map(|measured| Row::measured(measured.name, "inserts/s", measured.device_per_s()))
        .collect();
    Table { title: "Inserts if the processor took no time".into(), rows }
}

/// Charts cascade filters alone: the others would take weeks for as many keys.
fn over_time(all: &[Measured], scale: Scale) -> Chart {
    let hours = |point: Point| point.ns * f64::from(scale.times()) / 3.6e12;
    let series = all.iter().filter(|it| it.written.is_some()).map(|measured| {
        let rates = rates(&timeline(&measured.rounds, measured.costs), PARTS);
        Series::ours(measured.name, rates.into_iter().map(|(at, rate)| (hours(at), rate)).collect())
    });
    Chart {
        title: "Inserts over time".into(),
        x: "time at the deck's size, hours",
        y: "inserts/s",
        x_scaling: Scaling::Linear,
        y_scaling: Scaling::Linear,
        series: series.collect(),
    }
}

fn over_keys(all: &[Measured], keys: u64) -> Chart {
    let share = |at: Point| at.keys / keys as f64;
    let mut series: Vec<Series> = all
        .iter()
        .filter(|measured| measured.name != Kind::OnePage.name())
        .map(|measured| {
            if measured.written.is_none() {
                let rate = measured.per_s();
                return Series::ours(measured.name, vec![(0.0, rate), (1.0, rate)]);
            }
            let rates = rates(&timeline(&measured.rounds, measured.costs), PARTS);
            let points = rates.into_iter().map(|(at, rate)| (share(at), rate)).collect();
            Series::ours(measured.name, points)
        })
        .collect();
    series.push(Series::paper("deck, cascade filter", vec![(1.0, DECK_INSERTS_PER_S)]));
    series.push(Series::paper("deck, its others", vec![(1.0, DECK_INSERTS_PER_S / DECK_GAIN)]));
    Chart {
        title: "Inserts while the filter grows".into(),
        x: "share of all keys that are in",
        y: "inserts/s",
        x_scaling: Scaling::Linear,
        y_scaling: Scaling::Logarithmic,
        series,
    }
}
