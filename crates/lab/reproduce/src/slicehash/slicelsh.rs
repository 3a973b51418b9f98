//! Section 7.5: SliceLSH, whose tables are on channels of their own, or striped.

use std::sync::Arc;

use nandex::raw::store::hash::mix;
use nandex::raw::store::schedule::Channels;
use nandex::slicelsh::Config;
use nandex::{Neighbors as _, OpenOptions, SliceLsh, WhenFull};
use nandex_sim::workload::SplitMix64;

use super::lab::CHUNK_PAGES;
use super::orders::on_channels;
use super::throughput::Part;
use super::workers::WorkerModel;
use crate::tape::{Act, TapedDevice};
use crate::volume::{LOG_BYTES_MIN, volume};
use crate::{Drive, Experiment, Outcome, Result, Row, Scale, Table, Taped};

/// See the [module](self).
pub struct Lsh;

/// The paper's number of hash tables.
const TABLES: u32 = 10;
/// The number of partitions whose slicetables, of all tables, are 80 GB.
const PARTITIONS: u64 = 16_384;
/// The slices of a table in a partition: 1280 pages of all tables, including pages without a table.
const SLICES: u32 = 120;
/// The mean entries of a full slice, which has space for 253.
const SLICE_MEAN: u32 = 190;
/// The paper's k: 256 MB of RAM and 8 GB of flash for each table.
const INCARNATIONS: u32 = 32;
/// Lookups that are measured.
const LOOKUPS: u64 = 8_000;

/// The places of tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Each on channels of its own.
    Channels,
    /// One after another.
    Striped,
}

impl Place {
    const fn shown(self) -> &'static str {
        match self {
            Self::Channels => "each table on its own channels",
            Self::Striped => "striped",
        }
    }
}

/// The settings of an index.
#[derive(Clone, Copy)]
struct Setup {
    partitions: u32,
    place: Place,
    seed: u64,
}

impl Setup {
    fn paper(scale: Scale, place: Place) -> Self {
        let partitions = u32::try_from(scale.of(PARTITIONS)).unwrap_or(1 << 16);
        Self { partitions, place, seed: scale.seed() }
    }

    fn config(self, channels: &Channels) -> Config {
        let entries_max = SLICES * TABLES * SLICE_MEAN;
        let config = Config {
            tables: TABLES,
            partitions: self.partitions,
            buffer_entries: entries_max / INCARNATIONS,
            slices: SLICES,
            bucket_ids_max: 64,
            policy: WhenFull::EvictOldest,
            entries_max,
            spare_blocks: 6,
            spare_buffers: 4,
            stagger: true,
            ..Config::tiny()
        };
        match self.place {
            Place::Channels => config.placed_on(channels),
            Place::Striped => config,
        }
    }

    fn open(self, channels: &Channels) -> Result<Taped<SliceLsh>> {
        let (device, config) = (TapedDevice::new(), self.config(channels));
        let log_bytes = config.log_bytes_best().max(LOG_BYTES_MIN);
        let volume = volume(Arc::new(device.clone()), self.seed, log_bytes)?;
        let options = OpenOptions {
            flush_threads: Some(0),
            io_chunk_pages: Some(CHUNK_PAGES),
            ..OpenOptions::default()
        };
        Ok(Taped::new(SliceLsh::create_with(&volume, "paper", config, options)?, device))
    }

    /// Performs lookups of documents in an index in which every partition was merged.
    fn lookups(self, channels: &Channels) -> Result<Part> {
        let mut taped = self.open(channels)?;
        let buffer = u64::from(self.config(channels).buffer_entries);
        let documents = 2 * u64::from(self.partitions) * buffer / u64::from(TABLES);
        for id in 0..documents {
            taped.table.insert(id, &bucket_keys(id))?;
        }
        taped.forget();
        let mut rng = SplitMix64::stream(self.seed, 8);
        for _ in 0..LOOKUPS {
            let keys = bucket_keys(rng.below(documents));
            taped.operate(Act::Lookup, |index| Ok(index.candidates(&keys).map(drop)?))?;
        }
        Ok(Part::new(&taped.take_tape(), 0.0, 1))
    }

    /// Returns RAM over flash: a partition's of both.
    fn ram_share(self, channels: &Channels) -> Result<f64> {
        let bytes = |partitions| {
            let stats = Self { partitions, ..self }.open(channels)?.table.stats();
            Ok::<_, crate::Error>(stats.ram_bytes as f64)
        };
        let few = 4;
        let ram_bytes = (bytes(2 * few)? - bytes(few)?) / f64::from(few);
        Ok(ram_bytes / (f64::from(self.config(channels).block_pages()) * 4096.0))
    }
}

/// Returns the buckets of a document, which differ from those of all others.
fn bucket_keys(id: u64) -> [u64; TABLES as usize] {
    std::array::from_fn(|table| mix(id * u64::from(TABLES) + table as u64))
}

impl Experiment for Lsh {
    fn name(&self) -> &'static str {
        "slicelsh"
    }

    fn title(&self) -> &'static str {
        "SliceLSH"
    }

    fn reference(&self) -> &'static str {
        "sections 6 and 7.5"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let channels = Channels::of(&Drive::CRUCIAL.geometry()?);
        let own = Setup::paper(scale, Place::Channels);
        let both = [own, Setup { place: Place::Striped, ..own }];
        let mut parts = Vec::new();
        for setup in both {
            parts.push((setup.place, setup.lookups(&channels)?));
        }
        let placement = own.config(&channels).placement();
        let sizes = vec![
            Row::measured("pages read for each lookup", "", parts[0].1.reads).paper(10.0),
            Row::measured("RAM over flash", "", own.ram_share(&channels)?)
                .paper(1.0 / f64::from(INCARNATIONS))
                .why("An entry has 16 bytes on flash, in slices that are three quarters full, and 25 in a buffer."),
            Row::predicted("share of pages that no table has", "", placement.unused_share())
                .why("Ten tables have three channels each, and two of 32 are left."),
        ];
        let mut tables = Vec::new();
        for way in WAYS {
            let mut rows = Vec::new();
            for (place, part) in &parts {
                rows.push(way.row(*place, part, &channels, scale)?);
            }
            tables.push(Table { title: way.title.into(), rows });
        }
        tables.push(Table { title: "Sizes".into(), rows: sizes });
        Ok(Outcome { setup: described(), tables, charts: Vec::new() })
    }
}

fn described() -> Vec<String> {
    vec![
        "Ten tables, for each of which the paper has 256 MB of RAM and 8 GB of flash: 32 \
         incarnations. In 16,384 partitions, a partition's ten slicetables are 1280 pages. \
         Scaled are the partitions and the drive."
            .into(),
        "Documents share no bucket, and each is looked up by its own ten bucket keys: a page of \
         each table, all asked for at once. Workers are those of Figure 5, 32 reads are in \
         flight, and the processor's time is that of a lookup of SliceHash, since the paper \
         gives none."
            .into(),
        "The worst order has every page of a table on the first of the table's channels where \
         it has its own, and every page of all tables on the first channel where they are \
         striped. That is what hot buckets may come to; the paper says that SliceLSH is the \
         same under all its workloads, and omits the numbers."
            .into(),
    ]
}

/// A way to perform lookups.
struct Way {
    title: &'static str,
    model: fn(Channels) -> WorkerModel,
    is_worst: bool,
    /// The reason why the paper's number, for tables on their own channels, differs; `None` if the paper has
    /// no such number.
    why: Option<&'static str>,
}

const WAYS: [Way; 4] = [
    Way {
        title: "Lookups in the order of the schedule",
        model: |channels| WorkerModel::channel_aware(channels, 1),
        is_worst: false,
        why: Some(BUSES),
    },
    Way {
        title: "Lookups of 32 threads, in order of arrival",
        model: |_| WorkerModel::in_order_of_arrival(),
        is_worst: false,
        why: Some(BUSES),
    },
    Way {
        title: "Lookups of 32 threads in the worst order",
        model: |_| WorkerModel::in_order_of_arrival(),
        is_worst: true,
        why: None,
    },
    Way {
        title: "Lookups one after another",
        model: |channels| WorkerModel { window: 1, ..WorkerModel::channel_aware(channels, 1) },
        is_worst: false,
        why: None,
    },
];

impl Way {
    fn row(&self, place: Place, part: &Part, channels: &Channels, scale: Scale) -> Result<Row> {
        let width = match place {
            Place::Channels => channels.count() / TABLES,
            Place::Striped => channels.count(),
        };
        let first = |channel: u32| channel / width * width;
        let worst = on_channels(&part.tape, *channels, scale.seed(), first);
        let worst = Part::new(&worst, 0.0, 1);
        let part = if self.is_worst { &worst } else { part };
        let rate = part.work((self.model)(*channels), Drive::CRUCIAL, scale)?.operations_per_s;
        let row = Row::measured(place.shown(), "lookups/s", rate);
        Ok(match self.why.filter(|_| place == Place::Channels) {
            Some(why) => row.paper(6_900.0).why(why),
            None => row,
        })
    }
}

/// The reason why tables on channels of their own are not faster.
const BUSES: &str = "The drive has eight buses for its 32 channels, four planes on each, and a bus serves one read at a \
     time. Thirty channels leave two of the buses a plane less to do.";
