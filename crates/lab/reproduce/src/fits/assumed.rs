//! The constants that nobody printed or measured, but that were taken by judgement.

use super::Source::Assumed;
use super::list::{BIGDATA, DECK, HPDC, NSDI};
use super::{CostField, Fit, Place};
use crate::cascade::{self, Costs};
use crate::{Paper, bufferhash, counting, rhik};

/// Creates an assumed number of the code.
const fn number(
    papers: &'static [Paper],
    name: &'static str,
    (value, unit): (f64, &'static str),
    (about, reason): (&'static str, &'static str),
) -> Fit {
    Fit { name, about, source: Assumed(reason), papers, place: Place::Number(value, unit) }
}

/// Creates a reading of the paper's text: it has no number that could be halved.
const fn reading(
    papers: &'static [Paper],
    name: &'static str,
    taken: &'static str,
    (about, reason): (&'static str, &'static str),
) -> Fit {
    Fit { name, about, source: Assumed(reason), papers, place: Place::Reading(taken) }
}

/// Creates an assumed cost of the paper's formulas.
const fn cost(
    name: &'static str,
    (preset, field): (&'static str, CostField),
    (about, reason): (&'static str, &'static str),
) -> Fit {
    Fit { name, about, source: Assumed(reason), papers: NSDI, place: Place::Cost(preset, field) }
}

pub(crate) const FILTER_LINE: Fit = number(
    NSDI,
    "filter-line",
    (bufferhash::LINE_NS, "ns"),
    ("a word of a filter, which is a cache line", "a cache miss of machines of 2010"),
);
pub(crate) const MERGE_KEY: Fit = number(
    NSDI,
    "merge-key",
    (bufferhash::MERGE_CPU_NS as f64, "ns"),
    ("the processor's time of an entry that a merge in order moves", "a comparison and a copy"),
);
pub(crate) const BERKELEY_FILE: Fit = number(
    NSDI,
    "berkeley-file",
    (bufferhash::FILE_OVER_CACHE as f64, "pages/page"),
    (
        "pages of Berkeley DB's file for each page of its cache",
        "32 GB of flash and 4 GB of DRAM, as the paper's own table has; it does not print Berkeley DB's",
    ),
);

const PROCESSOR: &str = "a rate of a current processor, divided between buffer and merge";

pub(crate) const CASCADE_INSERT: Fit = number(
    DECK,
    "cascade-insert",
    (Costs::CASCADE.insert_ns, "ns"),
    ("the processor's time of a key in a buffer of the cascade filter", PROCESSOR),
);
pub(crate) const CASCADE_MERGE: Fit = number(
    DECK,
    "cascade-merge",
    (Costs::CASCADE.merge_ns, "ns"),
    ("the processor's time of a fingerprint in a merge of the cascade filter", PROCESSOR),
);
pub(crate) const PAGES_INSERT: Fit = number(
    DECK,
    "pages-insert",
    (Costs::PAGES.insert_ns, "ns"),
    ("the processor's time of a key in the queue of a page-blocked Bloom filter", PROCESSOR),
);
pub(crate) const PAGES_SWEEP: Fit = number(
    DECK,
    "pages-sweep",
    (Costs::PAGES.merge_ns, "ns"),
    ("the processor's time of a key in a sweep of a page-blocked Bloom filter", PROCESSOR),
);
pub(crate) const BITS_INSERT: Fit = number(
    DECK,
    "bits-insert",
    (Costs::BITS.insert_ns, "ns"),
    ("the processor's time of a key in the queue of a buffered Bloom filter", PROCESSOR),
);
pub(crate) const BITS_SWEEP: Fit = number(
    DECK,
    "bits-sweep",
    (Costs::BITS.merge_ns, "ns"),
    ("the processor's time of a key in a sweep of a buffered Bloom filter", PROCESSOR),
);
pub(crate) const CACHED_INSERT: Fit = number(
    DECK,
    "cached-insert",
    (Costs::CACHED.insert_ns, "ns"),
    ("the processor's time of a key whose bits are set in cached pages", PROCESSOR),
);
pub(crate) const DECK_INSERT: Fit = number(
    DECK,
    "deck-insert",
    (Costs::DECK_INSERT_NS, "ns"),
    (
        "the processor's time of a key in a buffer, on the deck's processor",
        "six times a current one's",
    ),
);
pub(crate) const FILTER_LOOKUP: Fit = number(
    DECK,
    "filter-lookup",
    (cascade::LOOKUP_CPU_NS, "ns"),
    ("the processor's time of a lookup in any filter", "a ninetieth of the drive's time of a page"),
);
pub(crate) const RAM_JUMP: Fit = number(
    DECK,
    "ram-jump",
    (cascade::JUMP_NS, "ns"),
    ("a cache line that a processor must request", "a cache miss, as for filters of BufferHash"),
);
pub(crate) const RAM_NEXT: Fit = number(
    DECK,
    "ram-next",
    (cascade::NEXT_NS, "ns"),
    ("a cache line that follows another", "it is prefetched"),
);
pub(crate) const DECK_FILL: Fit = reading(
    DECK,
    "deck-fill",
    "75 %",
    (
        "the fill of the deck's quotient filter in RAM",
        "with it its space for a rate of 0.4 % is what the deck has; the deck does not print it",
    ),
);

pub(crate) const LARGER_DRIVE: Fit = number(
    BIGDATA,
    "larger-drive",
    (counting::LARGER_TIMES as f64, "times"),
    (
        "the size of the drive over that of the table",
        "the paper does not print how full its drives are",
    ),
);

pub(crate) const RHIK_LEFT: Fit = number(
    HPDC,
    "rhik-left",
    (rhik::LEFT_PART as f64, "parts"),
    (
        "parts of the DRAM beside its directory, of which RHIK's write buffers take all but one",
        "the library's own advice; the paper does not print it",
    ),
);
pub(crate) const MULTILEVEL_BUFFERS: Fit = number(
    HPDC,
    "multilevel-buffers",
    (rhik::BUFFERS_PART as f64, "parts"),
    (
        "parts of the DRAM, of which the multi-level index's write buffers take one",
        "the table's own advice; it is not published",
    ),
);
pub(crate) const DIRECTORY_DRAM: Fit = number(
    HPDC,
    "directory-dram",
    (rhik::DIRECTORY_PART, "of DRAM"),
    ("the DRAM that RHIK's directory may take", "the rest is for write buffers and record pages"),
);
pub(crate) const TABLE_SPARE: Fit = number(
    HPDC,
    "table-spare",
    (rhik::SPARE, "of tables"),
    (
        "the flash beside RHIK's tables, for their rewrites",
        "an eighth; the paper does not print it",
    ),
);

/// The assumed constants, in the order of the papers.
pub(super) const ASSUMED: &[Fit] = &[
    FILTER_LINE,
    MERGE_KEY,
    BERKELEY_FILE,
    cost(
        "formula-chip-write",
        ("flash-chip", CostField::Write),
        (
            "Figure 4: a write of a page of the chip",
            "large-block SLC: 0.2 ms, and 0.21 ms over the pins",
        ),
    ),
    cost(
        "formula-chip-erase",
        ("flash-chip", CostField::Erase),
        ("Figure 4: an erase of a block of the chip", "large-block SLC: 1.5 ms"),
    ),
    cost(
        "formula-intel-long-write",
        ("intel-x18m", CostField::WriteByte),
        ("Figure 4: a byte of a long write of the Intel SSD", "225 MB/s"),
    ),
    reading(
        NSDI,
        "objects-repeat",
        "each object by its own degree, 0 to twice the mean",
        (
            "how much of an object repeats, in Figure 10; in Figure 9 all repeat alike",
            "the paper's objects are not published; with objects that are alike an index would slow all or none",
        ),
    ),
    CASCADE_INSERT,
    CASCADE_MERGE,
    PAGES_INSERT,
    PAGES_SWEEP,
    BITS_INSERT,
    BITS_SWEEP,
    CACHED_INSERT,
    DECK_INSERT,
    FILTER_LOOKUP,
    RAM_JUMP,
    RAM_NEXT,
    DECK_FILL,
    LARGER_DRIVE,
    reading(
        BIGDATA,
        "data-blocks",
        "205",
        (
            "blocks of the data segment",
            "Table 2: 85,690 operations on blocks in 209 merges; 100 MB are 191",
        ),
    ),
    reading(
        BIGDATA,
        "change-blocks",
        "103, 52 and 26",
        ("blocks of change segments of 50 %, 25 % and 12.5 %", "rounded up, as Table 2 comes out"),
    ),
    reading(
        BIGDATA,
        "partial-page",
        "the next stage fills it up",
        (
            "a page of the change segment that is filled in part",
            "the text leaves it open; Table 2 decided it",
        ),
    ),
    reading(
        BIGDATA,
        "last-merge",
        "it is merged",
        (
            "what RAM and change segment have at the end",
            "the text leaves it open; Table 2 decided it",
        ),
    ),
    RHIK_LEFT,
    MULTILEVEL_BUFFERS,
    DIRECTORY_DRAM,
    TABLE_SPARE,
];
