//! Figure 7: Berkeley DB's latencies from the paper, and our measurements to compare with.

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

/// Lookups and inserts of BufferHash that are measured.
const OPERATIONS: u64 = 1 << 27;

/// A drive, its bytes, its initial state, and the paper's numbers of Berkeley DB on it.
struct Compared {
    drive: Drive,
    bytes: f64,
    filled: Filled,
    lookup_ms: f64,
    insert_ms: f64,
    /// Shares of lookups and inserts that take more than 5 ms.
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
        "Berkeley DB, as the paper has it"
    }

    fn reference(&self) -> &'static str {
        "section 7.2.2, Figure 7"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let run =
            Workload::lookup_then_insert(0.4).run(&Setup::paper(scale), scale.of(OPERATIONS))?;
        let mut outcome = Outcome {
            setup: vec![
                "Berkeley DB is not run on the simulator: its rows are the paper's, as printed.".into(),
                "It is compared with a table without buffers, which reads a page for a lookup, and reads and writes one for an \
                 insert: no cache, no log, so it is not Berkeley DB, but asks of the drive \
                 what a hash table on disk \
                 must. And BufferHash."
                    .into(),
            ],
            ..Outcome::default()
        };
        for peer in &COMPARED {
            let mut model = aged(peer.drive, scale, run.taped.tape())?;
            let ours = player().play(run.taped.tape(), &mut *model);
            let ours = [ours.of(Act::Lookup, run.from), ours.of(Act::Insert, run.from)];
            let table = Direct { drive_share: share_of(peer.bytes), seed: scale.seed() };
            let mut model = peer.drive.model(scale, peer.filled, 0)?;
            let direct =
                table.play(player(), &mut *model, operations(scale), Lookups::BeforeInserts);
            outcome.tables.push(compare(peer, &direct, &ours));
            outcome.charts.push(chart(peer, &direct, &ours));
        }
        Ok(outcome)
    }
}

fn compare(peer: &Compared, direct: &DirectRun, ours: &[Latencies; 2]) -> Table {
    let [lookups, inserts] = ours;
    let is_disk = peer.drive == Drive::DISK;
    let lookups_why = match is_disk {
        true => {
            "The paper's number is Berkeley DB's. A seek over two fifths of the disk and half a turn take longer by the drive's specification: Berkeley DB's table had less of it, or a cache."
        }
        false => {
            "The paper's number is Berkeley DB's, whose reads wait for cleaning that outlasts the writes; here each write waits for its own cleaning, and a lookup finds the drive idle."
        }
    };
    let inserts_why = match is_disk {
        true => {
            "The paper's number is Berkeley DB's, which leaves writes to its cache; here the page that was read is written back a turn of 8.3 ms later."
        }
        false => {
            "The paper's number is Berkeley DB's; cleaning decides both, and with it how much spare space the drive has."
        }
    };
    let printed = "As the paper printed it; not run here.";
    let slow = |all: &Latencies| 1.0 - all.share_within_ms(5.0);
    let rows = vec![
        Row::stated("Berkeley DB: mean of lookups", "ms", peer.lookup_ms).why(printed),
        Row::stated("Berkeley DB: mean of inserts", "ms", peer.insert_ms).why(printed),
        Row::predicted("without buffers: mean of lookups", "ms", direct.lookups.mean_ms())
            .paper(peer.lookup_ms)
            .why(lookups_why),
        Row::predicted("without buffers: mean of inserts", "ms", direct.inserts.mean_ms())
            .paper(peer.insert_ms)
            .why(inserts_why),
        Row::predicted("without buffers: lookups above 5 ms", "", slow(&direct.lookups))
            .paper(peer.slow[0])
            .why(lookups_why),
        Row::predicted("without buffers: inserts above 5 ms", "", slow(&direct.inserts))
            .paper(peer.slow[1])
            .why(inserts_why),
        Row::predicted("BufferHash: mean of lookups", "ms", lookups.mean_ms()),
        Row::predicted("BufferHash: mean of inserts", "ms", inserts.mean_ms()),
    ];
    Table { title: peer.drive.name.into(), rows }
}

fn chart(peer: &Compared, direct: &DirectRun, ours: &[Latencies; 2]) -> Chart {
    let [lookups, inserts] = ours;
    let within = peer.slow.map(|slow| 1.0 - slow);
    Chart {
        title: format!("{}: share that takes no longer", peer.drive.name),
        x: "latency, ms",
        y: "share",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Linear,
        series: vec![
            Series::ours("without buffers, lookups", direct.lookups.distribution()),
            Series::ours("without buffers, inserts", direct.inserts.distribution()),
            Series::ours("BufferHash, lookups", lookups.distribution()),
            Series::ours("BufferHash, inserts", inserts.distribution()),
            Series::paper("paper, Berkeley DB, lookups", vec![(5.0, within[0])]),
            Series::paper("paper, Berkeley DB, inserts", vec![(5.0, within[1])]),
        ],
    }
}
