//! Inserts on a drive on which the table takes as large a share as the paper's, so that the drive must clean.

use nandex::Table as _;

use super::lab::{Setup, incarnations_only};
use super::player;
use crate::full::{PROGRAMMED, Rest, Ring, by_scale};
use crate::tape::{Act, Tape};
use crate::{Drive, Experiment, Latencies, Outcome, Result, Row, Scale, Table, fits};

/// See the [module](self).
pub struct FullDrive;

/// The rounds of the ring before the measurement, and the flushes that are measured.
const LONG: Effort = Effort { laps: 4, flushes: 256 };
/// The effort from a scale of 4096 on.
const SHORT: Effort = Effort { laps: 3, flushes: 64 };

/// The amount of use of a drive.
#[derive(Clone, Copy)]
struct Effort {
    laps: u32,
    flushes: u64,
}

impl Effort {
    fn of(scale: Scale) -> Self {
        by_scale(scale, LONG, SHORT)
    }
}

/// A table on a part of a drive.
struct Place {
    name: &'static str,
    percent: u64,
    rest: Rest,
    why: &'static str,
}

/// 32 GB of the 80 GB of the Intel SSD, and more.
const INTEL: [Place; 4] = [
    Place {
        name: "40 % of the drive, the rest never written",
        percent: 40,
        rest: Rest::Unwritten,
        why: "",
    },
    Place {
        name: "40 % of the drive, the rest full of other data",
        percent: 40,
        rest: Rest::Written,
        why: IN_ORDER,
    },
    Place {
        name: "80 % of the drive, the rest full of other data",
        percent: 80,
        rest: Rest::Written,
        why: "",
    },
    Place { name: "all of the drive", percent: 100, rest: Rest::Unwritten, why: "" },
];
/// 32 GB of the 32 GB of the Transcend SSD.
const TRANSCEND: Place =
    Place { name: "all of the drive", percent: 100, rest: Rest::Unwritten, why: BLOCKS };

const IN_ORDER: &str = "The ring is written in order, so all pages of a block are overwritten before it is cleaned, and \
     cleaning moves hardly any, however full the drive is.";
const BLOCKS: &str = "The drive maps blocks of 64 pages, and a segment of 35 ends inside one: it copies what a block \
     lacks where the ring begins again.";
const EVERY: &str =
    "As in Figure 6: the drive is made so that each buffer takes the paper's longest.";

impl Experiment for FullDrive {
    fn name(&self) -> &'static str {
        "full-drive"
    }

    fn title(&self) -> &'static str {
        "Inserts on drives as full as the paper's"
    }

    fn reference(&self) -> &'static str {
        "sections 7.1.1 and 7.2.1"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let small = inserts(scale)?;
        let tables = [intel(&small, scale)?, transcend(&small, scale)?];
        Ok(Outcome { setup: setup(Effort::of(scale)), tables: tables.into(), charts: Vec::new() })
    }
}

fn setup(effort: Effort) -> Vec<String> {
    vec![
        format!(
            "The paper's table takes 32 GB of flash: 40 % of the Intel SSD and all of the Transcend \
             SSD. Drives have 64 blocks in each plane here, so that planes and blocks keep their \
             sizes, and the table's ring takes that part of what the host sees. Its flushes are \
             those of a small table, one after another in the ring, incarnations alone. The ring \
             was written {} times in no time; the inserts of {} flushes are measured.",
            effort.laps, effort.flushes
        ),
        "The rest of the drive was never written, or was written once, before the table. Then the \
         drive has only its spare blocks to clean with."
            .into(),
    ]
}

/// The inserts of a small full table.
fn inserts(scale: Scale) -> Result<Tape> {
    let setup = Setup::paper(scale);
    let mut taped = setup.open()?;
    for key in 1..=setup.capacity() {
        taped.table.insert(&key.to_le_bytes(), &key.to_le_bytes())?;
    }
    taped.forget();
    for key in 0..setup.capacity() / 4 {
        let key = setup.capacity() + 1 + key;
        taped.insert(key, key)?;
    }
    Ok(incarnations_only(&taped.take_tape()))
}

/// The costs of a table on a drive.
struct OnDrive {
    inserts: Latencies,
    programmed: f64,
}

impl OnDrive {
    fn new(small: &Tape, drive: Drive, place: &Place, scale: Scale) -> Result<Self> {
        let effort = Effort::of(scale);
        let mut drive = drive.ssd()?;
        let part = (place.percent, place.rest);
        let (mut ring, programmed) = Ring::aged(&mut drive, part, small, effort.laps);
        let tape = ring.tape(small, effort.flushes);
        let inserts = player().play(&tape, &mut drive).of(Act::Insert, 0);
        Ok(Self { inserts, programmed })
    }
}

fn intel(small: &Tape, scale: Scale) -> Result<Table> {
    let mut rows = Vec::new();
    for place in INTEL {
        let on = OnDrive::new(small, Drive::INTEL, &place, scale)?;
        let name = |what: &str| format!("{}: {what}", place.name);
        rows.extend([
            Row::fitted(name("mean"), "ms", on.inserts.mean_ms(), fits::INTEL_INSERT).paper(0.006),
            Row::fitted(name("the longest"), "ms", on.inserts.max_ms(), fits::INTEL_FLUSH)
                .paper(2.72),
            Row::measured(name(PROGRAMMED), "", on.programmed).why(place.why),
        ]);
    }
    Ok(Table { title: "Inserts on the Intel SSD".into(), rows })
}

fn transcend(small: &Tape, scale: Scale) -> Result<Table> {
    let place = &TRANSCEND;
    let on = OnDrive::new(small, Drive::TRANSCEND, place, scale)?;
    let name = |what: &str| format!("{}: {what}", place.name);
    let longest = name("the longest");
    let rows = vec![
        Row::measured(name("mean"), "ms", on.inserts.mean_ms()).paper(0.007).why(EVERY),
        Row::fitted(longest, "ms", on.inserts.max_ms(), fits::TRANSCEND_FLUSH)
            .paper(30.0)
            .why(place.why),
        Row::measured(name(PROGRAMMED), "", on.programmed),
    ];
    Ok(Table { title: "Inserts on the Transcend SSD".into(), rows })
}
