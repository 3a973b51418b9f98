//! The list of all chosen constants: those that were fitted, and behind them those that were assumed.

use super::Source::FittedTo;
use super::{
    BERKELEY_WAN, BUFFERHASH_INSERTS, CHIP_READ, COUNTING_STAGES, COUNTING_TOKENS, CRUCIAL_READS,
    CRUCIAL_SHEET_READS, CRUCIAL_WORST, CRUCIAL_WRITES, CostField, DECK_INSERTS, Field, Fit,
    INTEL_FLUSH, INTEL_INSERT, INTEL_PER_DOLLAR, INTEL_READ, MULTILEVEL_READS, Place,
    TRANSCEND_FLUSH, TRANSCEND_READ,
};
use crate::Paper;
use crate::slicehash::workers;

/// Presets that experiments use.
#[cfg(test)]
pub(super) const PRESETS: [&str; 13] = [
    "intel-x18m-paper",
    "transcend-ts32-paper",
    "deskstar-7k80",
    "flash-chip-paper",
    "transcend-ts32",
    "intel-x18m",
    "crucial-m4-paper",
    "crucial-m4",
    "intel-x25m",
    "mlc-1-paper",
    "mlc-2-paper",
    "slc-paper",
    "pm983",
];

pub(super) const NSDI: &[Paper] = &[Paper::BufferHash];
pub(super) const ANCS: &[Paper] = &[Paper::SliceHash];
pub(super) const DECK: &[Paper] = &[Paper::Cascade];
pub(super) const BIGDATA: &[Paper] = &[Paper::Counting];
pub(super) const HPDC: &[Paper] = &[Paper::Rhik];

const TABLE_4: &str = "utilization of 8 cores at the rates of Figure 5 (ANCS 2014, Table 4)";

/// Creates a constant of a preset.
const fn of(
    papers: &'static [Paper],
    name: &'static str,
    (preset, field): (&'static str, Field),
    (about, fitted_to): (&'static str, &'static str),
) -> Fit {
    Fit { name, about, source: FittedTo(fitted_to), papers, place: Place::Preset(preset, field) }
}

/// Creates a fitted cost of the paper's formulas.
const fn cost(
    name: &'static str,
    (preset, field): (&'static str, CostField),
    (about, fitted_to): (&'static str, &'static str),
) -> Fit {
    Fit {
        name,
        about,
        source: FittedTo(fitted_to),
        papers: NSDI,
        place: Place::Cost(preset, field),
    }
}

/// Creates another fitted constant.
const fn other(
    papers: &'static [Paper],
    name: &'static str,
    place: Place,
    (about, fitted_to): (&'static str, &'static str),
) -> Fit {
    Fit { name, about, source: FittedTo(fitted_to), papers, place }
}

pub(crate) const NSDI_PROCESSOR: Fit = other(
    NSDI,
    "nsdi-processor",
    Place::Time(crate::bufferhash::CPU_NS),
    ("the processor's time of an operation of BufferHash", INTEL_INSERT),
);
pub(crate) const WAN_BERKELEY: Fit = other(
    NSDI,
    "wan-berkeley",
    Place::Time(crate::bufferhash::BERKELEY_WAN_NS),
    ("Berkeley DB's time of an operation behind a WAN optimizer", BERKELEY_WAN),
);
pub(crate) const INTEL_PRICE: Fit = other(
    NSDI,
    "intel-price",
    Place::Number(crate::bufferhash::INTEL_DOLLARS, "dollars"),
    ("the price of the Intel SSD", INTEL_PER_DOLLAR),
);
pub(crate) const SLICEHASH_LOOKUP: Fit = other(
    ANCS,
    "slicehash-lookup",
    Place::Time(workers::SLICEHASH_LOOKUP_NS),
    ("the processor's time of a lookup of SliceHash", TABLE_4),
);
pub(crate) const SLICEHASH_INSERT: Fit = other(
    ANCS,
    "slicehash-insert",
    Place::Time(workers::SLICEHASH_INSERT_NS),
    ("the processor's time of an insert of SliceHash", TABLE_4),
);
pub(crate) const BUFFERHASH_LOOKUP: Fit = other(
    ANCS,
    "bufferhash-lookup",
    Place::Time(workers::BUFFERHASH_LOOKUP_NS),
    ("the processor's time of a lookup of BufferHash with threads", TABLE_4),
);
pub(crate) const BUFFERHASH_INSERT: Fit = other(
    ANCS,
    "bufferhash-insert",
    Place::Time(workers::BUFFERHASH_INSERT_NS),
    ("the processor's time of an insert of BufferHash with threads", BUFFERHASH_INSERTS),
);
pub(crate) const DECK_MERGE: Fit = other(
    DECK,
    "deck-merge",
    Place::Rows("cascade, deck: a fingerprint in a merge"),
    ("the processor's time of a fingerprint in a merge", DECK_INSERTS),
);
pub(crate) const LEVELS: Fit = other(
    HPDC,
    "multilevel-first",
    Place::Pages(crate::rhik::FIRST_PAGES),
    ("pages of the first level, each next one twice as long", MULTILEVEL_READS),
);
pub(crate) const TOKEN_OFFSET: Fit = other(
    BIGDATA,
    "token-offset",
    Place::Rows("counting, tokens: offset"),
    ("offset of the law of tokens", COUNTING_STAGES),
);
pub(crate) const TOKEN_POWER: Fit = other(
    BIGDATA,
    "token-power",
    Place::Rows("counting, tokens: exponent"),
    ("power of the law of tokens", COUNTING_TOKENS),
);

/// The fitted constants, in the order of the papers.
pub(super) const FITTED: &[Fit] = &[
    of(
        NSDI,
        "chip-transfer",
        ("flash-chip-paper", Field::Transfer),
        ("flash-chip-paper: a byte over the pins", CHIP_READ),
    ),
    of(
        NSDI,
        "intel-read",
        ("intel-x18m-paper", Field::ReadLatency),
        ("intel-x18m-paper: what the host waits for a read", INTEL_READ),
    ),
    of(
        NSDI,
        "intel-transfer",
        ("intel-x18m-paper", Field::Transfer),
        ("intel-x18m-paper: a byte over a bus", "0.31 ms for a read of 128 KiB (ANCS 2014, 5.4)"),
    ),
    of(
        NSDI,
        "intel-program",
        ("intel-x18m-paper", Field::Program),
        ("intel-x18m-paper: a program", "0.83 ms for a write of 128 KiB (ANCS 2014, 5.4)"),
    ),
    of(
        NSDI,
        "intel-erase",
        ("intel-x18m-paper", Field::Erase),
        ("intel-x18m-paper: an erase", INTEL_FLUSH),
    ),
    NSDI_PROCESSOR,
    cost(
        "formula-chip-read",
        ("flash-chip", CostField::Read),
        ("Figures 3 and 4: a read of a page of the chip", CHIP_READ),
    ),
    cost(
        "formula-intel-read",
        ("intel-x18m", CostField::Read),
        ("Figures 3 and 4: a read of 4 KiB of the Intel SSD", INTEL_READ),
    ),
    cost(
        "formula-intel-write",
        ("intel-x18m", CostField::Write),
        (
            "Figure 4: a write of 128 KiB of the Intel SSD",
            "0.83 ms for a write of 128 KiB (ANCS 2014, 5.4)",
        ),
    ),
    cost(
        "formula-intel-erase",
        ("intel-x18m", CostField::Erase),
        ("Figure 4: what an erase adds to a write of the Intel SSD", INTEL_FLUSH),
    ),
    of(
        NSDI,
        "transcend-read",
        ("transcend-ts32-paper", Field::ReadLatency),
        ("transcend-ts32-paper: what the host waits for a read", TRANSCEND_READ),
    ),
    of(
        NSDI,
        "transcend-program",
        ("transcend-ts32-paper", Field::Program),
        ("transcend-ts32-paper: a program", TRANSCEND_FLUSH),
    ),
    of(
        NSDI,
        "disk-controller",
        ("deskstar-7k80", Field::Controller),
        (
            "deskstar-7k80: the controller's time of a request",
            "13.0 ms for a random read (the drive's specification)",
        ),
    ),
    of(
        NSDI,
        "x18m-read",
        ("intel-x18m", Field::Read),
        ("intel-x18m: a read of the array", "85 us for a read (the drive's data sheet)"),
    ),
    of(
        NSDI,
        "x18m-transfer",
        ("intel-x18m", Field::Transfer),
        ("intel-x18m: a byte over a bus", "85 us for a read (the drive's data sheet)"),
    ),
    of(
        NSDI,
        "x18m-write",
        ("intel-x18m", Field::WriteLatency),
        (
            "intel-x18m: what the host waits for a write",
            "115 us for a write (the drive's data sheet)",
        ),
    ),
    of(
        NSDI,
        "x18m-program",
        ("intel-x18m", Field::Program),
        ("intel-x18m: a program", "70 MB/s of writes (reviews)"),
    ),
    WAN_BERKELEY,
    INTEL_PRICE,
    of(
        DECK,
        "x25m-read",
        ("intel-x25m", Field::Read),
        ("intel-x25m: a read of the array", "65 us for a read (the drive's data sheet)"),
    ),
    of(
        DECK,
        "x25m-transfer",
        ("intel-x25m", Field::Transfer),
        ("intel-x25m: a byte over a bus", "65 us for a read (the drive's data sheet)"),
    ),
    of(
        DECK,
        "x25m-write",
        ("intel-x25m", Field::WriteLatency),
        (
            "intel-x25m: what the host waits for a write",
            "85 us for a write (the drive's data sheet)",
        ),
    ),
    of(
        DECK,
        "x25m-program",
        ("intel-x25m", Field::Program),
        ("intel-x25m: a program", "100 MB/s of writes (the drive's data sheet)"),
    ),
    of(
        DECK,
        "x25m-spare",
        ("intel-x25m", Field::Spare),
        (
            "intel-x25m: blocks that the host does not see",
            "8600 random writes/s (the drive's data sheet)",
        ),
    ),
    DECK_MERGE,
    of(
        BIGDATA,
        "mlc1-read",
        ("mlc-1-paper", Field::Read),
        ("mlc-1-paper: a read of the array", "65 us for a read (BigData 2013, Table 1)"),
    ),
    of(
        BIGDATA,
        "mlc1-write",
        ("mlc-1-paper", Field::WriteLatency),
        (
            "mlc-1-paper: what the host waits for a write",
            "110 us for a write (BigData 2013, Table 1)",
        ),
    ),
    of(
        BIGDATA,
        "mlc1-program",
        ("mlc-1-paper", Field::Program),
        ("mlc-1-paper: a program", "35 MB/s of writes (BigData 2013, Table 1)"),
    ),
    of(
        BIGDATA,
        "mlc2-read",
        ("mlc-2-paper", Field::Read),
        ("mlc-2-paper: a read of the array", "65 us for a read (BigData 2013, Table 1)"),
    ),
    of(
        BIGDATA,
        "mlc2-write",
        ("mlc-2-paper", Field::WriteLatency),
        (
            "mlc-2-paper: what the host waits for a write",
            "85 us for a write (BigData 2013, Table 1)",
        ),
    ),
    of(
        BIGDATA,
        "mlc2-program",
        ("mlc-2-paper", Field::Program),
        ("mlc-2-paper: a program", "70 MB/s of writes (BigData 2013, Table 1)"),
    ),
    of(
        BIGDATA,
        "slc-read",
        ("slc-paper", Field::Read),
        ("slc-paper: a read of the array", "75 us for a read (BigData 2013, Table 1)"),
    ),
    of(
        BIGDATA,
        "slc-write",
        ("slc-paper", Field::WriteLatency),
        ("slc-paper: what the host waits for a write", "85 us for a write (BigData 2013, Table 1)"),
    ),
    of(
        BIGDATA,
        "slc-program",
        ("slc-paper", Field::Program),
        ("slc-paper: a program", "170 MB/s of writes (BigData 2013, Table 1)"),
    ),
    TOKEN_OFFSET,
    TOKEN_POWER,
    of(
        ANCS,
        "m4-transfer",
        ("crucial-m4-paper", Field::Transfer),
        (
            "crucial-m4-paper: a byte over one of 8 buses, which serve a command at a time",
            CRUCIAL_READS,
        ),
    ),
    of(
        ANCS,
        "m4-read",
        ("crucial-m4-paper", Field::Read),
        ("crucial-m4-paper: a read of the array, which goes on meanwhile", CRUCIAL_WORST),
    ),
    of(
        ANCS,
        "m4-program",
        ("crucial-m4-paper", Field::Program),
        ("crucial-m4-paper: a program", CRUCIAL_WRITES),
    ),
    of(
        ANCS,
        "m4-sheet-controller",
        ("crucial-m4", Field::Controller),
        ("crucial-m4: the controller's time of a request", CRUCIAL_SHEET_READS),
    ),
    of(
        ANCS,
        "m4-sheet-link",
        ("crucial-m4", Field::Link),
        ("crucial-m4: a byte over the link", "415 MB/s of reads (reviews)"),
    ),
    SLICEHASH_LOOKUP,
    SLICEHASH_INSERT,
    BUFFERHASH_LOOKUP,
    BUFFERHASH_INSERT,
    of(
        HPDC,
        "pm983-read",
        ("pm983", Field::ReadLatency),
        ("pm983: what the host waits for a read", "85 us for a read (the drive's data sheet)"),
    ),
    of(
        HPDC,
        "pm983-write",
        ("pm983", Field::WriteLatency),
        ("pm983: what the host waits for a write", "50 us for a write (the drive's data sheet)"),
    ),
    of(
        HPDC,
        "pm983-program",
        ("pm983", Field::Program),
        ("pm983: a program", "2000 MB/s of writes (the drive's data sheet)"),
    ),
    of(
        HPDC,
        "pm983-spare",
        ("pm983", Field::Spare),
        (
            "pm983: blocks that the host does not see",
            "50 000 random writes/s (the drive's data sheet)",
        ),
    ),
    LEVELS,
];
