//! Figure 9: the effective bandwidth improvement, by the speed of the link.

use super::super::CPU_NS;
use super::index::{BufferHashRun, DirectDrive, ObjectTimes, berkeley, direct};
use super::link::Link;
use super::objects::{CHUNK_BYTES, Redundancy, Spread, Trace};
use crate::{
    Chart, Drive, Experiment, Filled, Origin, Outcome, Result, Row, Scale, Scaling, Series, Table,
    fits, vary,
};

/// See the [module](self).
pub struct Figure9;

/// Chunks of a trace.
const CHUNKS: u64 = 1 << 26;
/// Speeds of the link, in Mb/s.
const SPEEDS: [u64; 7] = [10, 20, 50, 100, 200, 400, 500];
/// The traces, and their improvement with an index that takes no time.
const TRACES: [(Redundancy, f64); 2] = [(Redundancy(50), 2.0), (Redundancy(15), 1.18)];

/// The time of an operation with which an index keeps a link of 10 Mb/s just full, at half of the bytes.
pub const BERKELEY_WAN_NS: u64 = 1_250_000;

/// Returns [`BERKELEY_WAN_NS`] with its variation.
pub fn berkeley_wan_ns() -> u64 {
    vary::value(&fits::WAN_BERKELEY, BERKELEY_WAN_NS)
}

/// The drive of the figure, and the other one.
pub const TRANSCEND: DirectDrive =
    DirectDrive { drive: Drive::TRANSCEND, bytes: 32e9, filled: Filled::Once };
const INTEL: DirectDrive =
    DirectDrive { drive: Drive::INTEL, bytes: 80e9, filled: Filled::ForEver };

/// Indexes that change their pages in place.
type InPlace = fn(&Trace, DirectDrive, Scale) -> Result<ObjectTimes>;
const IN_PLACE: [(&str, DirectDrive, InPlace); 4] = [
    ("Berkeley DB, Transcend", TRANSCEND, berkeley),
    ("Berkeley DB, Intel", INTEL, berkeley),
    ("without buffers, Transcend", TRANSCEND, direct),
    ("without buffers, Intel", INTEL, direct),
];

/// The times of a trace in an index.
struct Indexed {
    name: &'static str,
    times: ObjectTimes,
}

/// A trace, and all indexes that it went through.
struct Measured {
    redundancy: Redundancy,
    trace: Trace,
    ideal: f64,
    success_rate: f64,
    indexes: Vec<Indexed>,
}

impl Experiment for Figure9 {
    fn name(&self) -> &'static str {
        "figure-9"
    }

    fn title(&self) -> &'static str {
        "A WAN optimizer against the speed of its link"
    }

    fn reference(&self) -> &'static str {
        "section 8.1, scenario 1, Figure 9"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let measure = |(redundancy, ideal)| Measured::new(redundancy, ideal, scale);
        let all = TRACES.into_iter().map(measure).collect::<Result<Vec<_>>>()?;
        Ok(Outcome {
            setup: setup(&all),
            tables: all.iter().map(improvements).chain([chunks(&all)]).collect(),
            charts: all.iter().map(chart).collect(),
        })
    }
}

fn setup(all: &[Measured]) -> Vec<String> {
    let found = |it: &Measured| format!("{:.1} %", 100.0 * it.success_rate);
    vec![
        format!(
            "All objects are there at once. The engine looks up all chunks of an object, hands what \
             is left to the link, and puts the chunks' fingerprints in; then comes the next \
             object. Improvement is the time of all bytes on the link over that of the \
             compressed ones. A chunk has {CHUNK_BYTES} bytes, as section 3 has 10,000 \
             fingerprints a second at 500 Mb/s; one that was sent before becomes a SHA-1 of 20 \
             bytes. {} us of the processor for each operation, one operation at a time.",
            CPU_NS as f64 / 1000.0
        ),
        format!(
            "The paper's traces are not published, but their redundancy is. Here every chunk was \
             sent before by that chance, which is its lookup's to find it: {} of them are found, \
             each among the last half of the table's entries, so most are on flash. Repeats in \
             real traces are younger, and more of them in RAM. Objects have 8 to 1,280 chunks, by \
             a power law.",
            all.iter().map(found).collect::<Vec<_>>().join(" and ")
        ),
        "Berkeley DB's hash table is that of Figure 7, 32 GB with a page cache of an eighth of it: a \
         chunk that repeats is any of its keys, and one that does not is new. Next to it are a \
         table without buffers, which asks the drive for a page at each lookup and for one more \
         at each insert, and an index of 1.25 ms an operation, the longest with which the paper's \
         close to 2 x at 10 Mb/s can come about. The paper's Table 3 has 10.3 ms an operation for \
         Berkeley DB, so its two numbers contradict each other, perhaps since the fingerprints of \
         these traces were few and in its cache."
            .into(),
    ]
}

impl Measured {
    fn new(redundancy: Redundancy, ideal: f64, scale: Scale) -> Result<Self> {
        let chunks = scale.of(CHUNKS);
        let trace = Trace::new(redundancy, Spread::Evenly, chunks, scale.seed());
        let run = BufferHashRun::new(&trace, scale)?;
        let mut indexes = Vec::new();
        for (name, drive) in [
            ("BufferHash, Transcend", Drive::TRANSCEND),
            ("BufferHash, Transcend by its parts", Drive::TRANSCEND_SHEET),
            ("BufferHash, Intel", Drive::INTEL),
        ] {
            indexes.push(Indexed { name, times: run.on(drive)? });
        }
        for (name, on, times) in IN_PLACE {
            indexes.push(Indexed { name, times: times(&trace, on, scale)? });
        }
        let times = ObjectTimes::constant(&trace, berkeley_wan_ns());
        indexes.push(Indexed { name: "Berkeley DB of 1.25 ms", times });
        let success_rate = run.success_rate;
        Ok(Self { redundancy, trace, ideal, success_rate, indexes })
    }

    fn improvement(&self, index: &Indexed, speed: u64) -> f64 {
        Link(speed).improvement(&self.trace, &index.times)
    }
}

fn title(measured: &Measured) -> String {
    format!("Effective bandwidth improvement, {} % redundancy", measured.redundancy.0)
}

fn improvements(measured: &Measured) -> Table {
    let ideal = Row::input("an index that takes no time", "", measured.trace.ideal());
    let mut rows = vec![ideal.paper(measured.ideal)];
    for index in &measured.indexes {
        for speed in SPEEDS {
            let what = format!("{}, {speed} Mb/s", index.name);
            let ours = measured.improvement(index, speed);
            rows.push(compared(measured, (index.name, speed), what, ours));
        }
    }
    Table { title: title(measured), rows }
}

/// Returns a row next to the text's statement on this index at this speed.
fn compared(measured: &Measured, (name, speed): (&str, u64), what: String, ours: f64) -> Row {
    let is_half = measured.ideal == 2.0;
    let origin = match name {
        "Berkeley DB of 1.25 ms" => Origin::Fitted { fitted_to: fits::BERKELEY_WAN },
        _ => Origin::Measured,
    };
    let row = Row::of(origin, what, "", ours);
    match (name, speed) {
        ("BufferHash, Transcend" | "BufferHash, Transcend by its parts", 100) => {
            row.paper(measured.ideal).why("The paper: close to ideal.")
        }
        ("BufferHash, Transcend" | "BufferHash, Transcend by its parts", 200) => {
            row.paper_at_least(1.0).why("The paper: reasonable.")
        }
        ("BufferHash, Transcend" | "BufferHash, Transcend by its parts", 400) if is_half => row
            .paper_at_most(1.0)
            .why("The paper: a bottleneck, obsolete. The drive by its parts reads a page in 0.2 ms, the other in 0.6 ms; its last row of Table 3 has 0.3."),
        ("BufferHash, Intel", 500) if is_half => row.paper(measured.ideal).why(
            "The paper: close to ideal up to 500 Mb/s. At 0.15 ms for a read that takes chunks of 11 KB, or repeats that RAM still has.",
        ),
        ("Berkeley DB of 1.25 ms", 10) if is_half => row.paper(measured.ideal),
        ("Berkeley DB, Transcend", 10) if is_half => row
            .paper(measured.ideal)
            .why("An operation must take at most 1.25 ms for it."),
        ("Berkeley DB of 1.25 ms" | "Berkeley DB, Transcend", 50..) if is_half => {
            row.paper_at_most(1.0).why("The paper: drastically reduced.")
        }
        _ => row,
    }
}

fn chunks(all: &[Measured]) -> Table {
    let mut rows = Vec::new();
    for measured in all {
        let percent = measured.redundancy.0;
        for index in &measured.indexes {
            let ms = index.times.chunk_ms(&measured.trace);
            let what = format!("{percent} % redundancy, {}", index.name);
            rows.push(Row::measured(what.clone(), "ms", ms));
            // The time of the link for a chunk's compressed bytes.
            let bits = CHUNK_BYTES as f64 * 8.0 / measured.trace.ideal();
            let what = format!("{what}: keeps a link full of up to");
            rows.push(Row::measured(what, "Mb/s", bits / ms / 1e3));
        }
    }
    Table { title: "A chunk's lookup and insert in the index, mean".into(), rows }
}

fn chart(measured: &Measured) -> Chart {
    let points = |index: &Indexed| {
        let point = |speed: u64| (speed as f64, measured.improvement(index, speed));
        SPEEDS.into_iter().map(point).collect::<Vec<_>>()
    };
    let ours = measured.indexes.iter().map(|it| Series::ours(it.name, points(it)));
    let mut series: Vec<Series> = ours.collect();
    series.push(Series::paper("paper, BufferHash", vec![(100.0, measured.ideal)]));
    if measured.ideal == 2.0 {
        series.push(Series::paper("paper, Berkeley DB", vec![(10.0, measured.ideal)]));
    }
    Chart {
        title: format!("Figure 9: {}", title(measured).to_lowercase()),
        x: "link, Mb/s",
        y: "improvement",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Linear,
        series,
    }
}
