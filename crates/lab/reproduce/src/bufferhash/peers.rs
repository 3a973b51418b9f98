//! Figure 7: the latencies of Berkeley DB's hash table, and of its rivals.

use super::berkeley::{Berkeley, Inserted};
use super::direct::{DISK_BYTES, Direct, DirectRun, Lookups, operations, share_of};
use super::lab::{Setup, aged};
use super::player;
use super::workload::Workload;
use crate::tape::Act;
use crate::{
    Chart, Drive, Experiment, Filled, Latencies, Outcome, Result, Row, Scale, Scaling, Series,
    Table,
};

/// See the [module](self).
pub struct Figure7;

/// The number of lookups and inserts of BufferHash that are measured.
const OPERATIONS: u64 = 1 << 27;

/// A drive, its bytes, its initial state, and the paper's numbers of Berkeley DB on it.
struct Compared {
    drive: Drive,
    bytes: f64,
    filled: Filled,
    lookup_ms: f64,
    insert_ms: f64,
    /// The shares of lookups and inserts that take more than 5 ms.
    slow: [f64; 2],
}

const COMPARED: [Compared; 2] = [
    Compared {
        drive: Drive::DISK,
        bytes: DISK_BYTES,
        filled: Filled::Once,
        lookup_ms: 6.8,
        insert_ms: 7.0,
        slow: [0.6, 0.4],
    },
    Compared {
        drive: Drive::INTEL,
        bytes: 80e9,
        filled: Filled::ForEver,
        lookup_ms: 4.6,
        insert_ms: 4.8,
        slow: [0.4, 0.4],
    },
];

impl Experiment for Figure7 {
    fn name(&self) -> &'static str {
        "figure-7"
    }

    fn title(&self) -> &'static str {
        "Berkeley DB on a disk and on an SSD"
    }

    fn reference(&self) -> &'static str {
        "section 7.2.2, Figure 7"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let run =
            Workload::lookup_then_insert(0.4).run(&Setup::paper(scale), scale.of(OPERATIONS))?;
        let mut outcome = Outcome { setup: setup(), ..Outcome::default() };
        for peer in &COMPARED {
            let mut model = aged(peer.drive, scale, run.taped.tape())?;
            let ours = player().play(run.taped.tape(), &mut *model);
            let ours = [ours.of(Act::Lookup, run.from), ours.of(Act::Insert, run.from)];
            let in_place = InPlace::run(peer, scale)?;
            outcome.tables.push(compare(peer, &in_place, &ours));
            outcome.charts.push(chart(peer, &in_place, &ours));
        }
        Ok(outcome)
    }
}

fn setup() -> Vec<String> {
    vec![
        "Berkeley DB's hash table is made again as far as its requests go: linear \
         hashing with pages of 4 KiB, filled as its manual advises, its buckets half of \
         the file's pages, over a page cache of an eighth of the file. A page that is not \
         in the cache is read in place of the one that was used least recently, which is \
         written first if it was changed. Log, locks and the operating system's page \
         cache are left out; an operation takes the processor as long as one of \
         BufferHash. The cache's size is assumed: the paper prints 4 GB of DRAM for 32 GB \
         of its own table, and nothing of Berkeley DB's."
            .into(),
        "The paper inserts each key after its lookup, when the key's page is in the \
         cache. The rows of other keys are not its workload: they insert a key that was \
         not looked up. So no number of the paper stands next to them."
            .into(),
        "A table without buffers reads a page for a lookup, and reads and writes one for \
         an insert: no cache, no log. Drives begin full, the SSD as after random writes \
         without end."
            .into(),
    ]
}

/// Tables that change their pages in place.
struct InPlace {
    /// Berkeley DB, which inserts the key of the lookup before.
    same_key: DirectRun,
    /// Berkeley DB, which inserts another key.
    other_key: DirectRun,
    /// Without cache and buffers.
    direct: DirectRun,
}

impl InPlace {
    fn run(peer: &Compared, scale: Scale) -> Result<Self> {
        let (drive_share, seed) = (share_of(peer.bytes), scale.seed());
        let count = operations(scale);
        let model = || peer.drive.model(scale, peer.filled, 0);
        let berkeley = |inserted| -> Result<DirectRun> {
            let table = Berkeley { drive_share, success_rate: 0.4, seed };
            Ok(table.play(player(), &mut *model()?, count, inserted))
        };
        let direct = Direct { drive_share, seed };
        Ok(Self {
            same_key: berkeley(Inserted::SameKey)?,
            other_key: berkeley(Inserted::OtherKey)?,
            direct: direct.play(player(), &mut *model()?, count, Lookups::BeforeInserts),
        })
    }
}

/// Returns the reasons why lookups and inserts of the same keys differ from the paper's.
const fn why_same_key(peer: &Compared) -> [&'static str; 2] {
    let inserts = "The key's page is still in the cache. The paper's inserts take as long as its \
             lookups, which does not follow from a cache that writes back.";
    let lookups = match peer.filled {
        Filled::ForEver => {
            "A lookup that misses writes an earlier insert's page back before it reads, and \
             waits for the cleaning; a page read alone takes 0.15 ms. So writes slow lookups \
             down as the paper has it, but less, and few of them for 5 ms. The spare space, \
             6.9 % here, is not printed, and was not varied."
        }
        _ => {
            "A lookup that misses seeks twice: it writes an earlier insert's page back and reads its own."
        }
    };
    [lookups, inserts]
}

/// Returns the caveat on lookups and inserts of different keys.
const fn why_other_key(peer: &Compared) -> [&'static str; 2] {
    let why = match peer.filled {
        Filled::ForEver => {
            "Not the paper's workload. Lookups and inserts share the writing back, and both \
             wait for the cleaning."
        }
        _ => {
            "Not the paper's workload. Lookups and inserts share the writing back; how many \
             miss follows from the assumed size of the cache."
        }
    };
    [why; 2]
}

fn compare(peer: &Compared, in_place: &InPlace, ours: &[Latencies; 2]) -> Table {
    let InPlace { same_key, other_key, direct } = in_place;
    let mut rows = berkeley_rows("Berkeley DB", same_key, Some(peer), why_same_key(peer));
    rows.extend(berkeley_rows("Berkeley DB, other keys", other_key, None, why_other_key(peer)));
    let [lookups, inserts] = ours;
    for (what, latencies) in [
        ("without buffers: mean of lookups", &direct.lookups),
        ("without buffers: mean of inserts", &direct.inserts),
        ("BufferHash: mean of lookups", lookups),
        ("BufferHash: mean of inserts", inserts),
    ] {
        rows.push(Row::measured(what, "ms", latencies.mean_ms()));
    }
    Table { title: peer.drive.name.into(), rows }
}

/// Returns the means and the shares of slow operations, of lookups and then of inserts, each with its reason,
/// and next to the paper's numbers if it ran the same.
fn berkeley_rows(
    name: &str,
    run: &DirectRun,
    papers: Option<&Compared>,
    why: [&'static str; 2],
) -> Vec<Row> {
    let printed = papers
        .map_or([None; 4], |it| [it.lookup_ms, it.slow[0], it.insert_ms, it.slow[1]].map(Some));
    let slow = |all: &Latencies| 1.0 - all.share_within_ms(5.0);
    let rows = [("lookups", &run.lookups, why[0]), ("inserts", &run.inserts, why[1])];
    let rows = rows.into_iter().flat_map(|(kind, all, why)| {
        [
            Row::measured(format!("{name}: mean of {kind}"), "ms", all.mean_ms()).why(why),
            Row::measured(format!("{name}: {kind} above 5 ms"), "", slow(all)).why(why),
        ]
    });
    let with_papers = |(row, printed): (Row, Option<f64>)| match printed {
        Some(value) => row.paper(value),
        None => row,
    };
    rows.zip(printed).map(with_papers).collect()
}

fn chart(peer: &Compared, in_place: &InPlace, ours: &[Latencies; 2]) -> Chart {
    let InPlace { same_key, other_key, direct } = in_place;
    let [lookups, inserts] = ours;
    let within = peer.slow.map(|slow| 1.0 - slow);
    Chart {
        title: format!("{}: share that takes no longer", peer.drive.name),
        x: "latency, ms",
        y: "share",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Linear,
        series: vec![
            Series::ours("Berkeley DB, lookups", same_key.lookups.distribution()),
            Series::ours("Berkeley DB, other keys, lookups", other_key.lookups.distribution()),
            Series::ours("Berkeley DB, other keys, inserts", other_key.inserts.distribution()),
            Series::ours("without buffers, lookups", direct.lookups.distribution()),
            Series::ours("without buffers, inserts", direct.inserts.distribution()),
            Series::ours("BufferHash, lookups", lookups.distribution()),
            Series::ours("BufferHash, inserts", inserts.distribution()),
            Series::paper("paper, Berkeley DB, lookups", vec![(5.0, within[0])]),
            Series::paper("paper, Berkeley DB, inserts", vec![(5.0, within[1])]),
        ],
    }
}
