//! The conclusions of the papers, each in a sentence, with the rows that decide it.

use super::claim::Bound::{self, AtLeast, AtMost};
use super::claim::On::{self, Drive, Structure};
use super::claim::{Claim, Number};
use crate::Paper;

/// Returns the conclusions of a paper that are relations of two measured numbers.
#[must_use]
pub const fn claims(paper: Paper) -> &'static [Claim] {
    match paper {
        Paper::BufferHash => BUFFERHASH,
        Paper::SliceHash => SLICEHASH,
        Paper::Cascade => CASCADE,
        Paper::Counting => COUNTING,
        Paper::Rhik => RHIK,
    }
}

const fn claim(
    says: &'static str,
    experiment: &'static str,
    number: Number,
    bound: Bound,
    on: On,
) -> Claim {
    Claim { says, experiment, number, bound, on }
}

const fn over(table: &'static str, above: &'static str, below: &'static str) -> Number {
    Number::Over((table, above), (table, below))
}

const fn row(table: &'static str, row: &'static str) -> Number {
    Number::Row(table, row)
}

const BUFFERHASH: &[Claim] = &[
    claim(
        "Lookups of BufferHash on the Intel SSD take a tenth of Berkeley DB's there, or less (7.5)",
        "figure-7",
        over("Intel SSD", "Berkeley DB: mean of lookups", "BufferHash: mean of lookups"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "Inserts of BufferHash on the Intel SSD take a tenth of Berkeley DB's there, or less (7.5)",
        "figure-7",
        over("Intel SSD", "Berkeley DB: mean of inserts", "BufferHash: mean of inserts"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "Lookups of BufferHash on an SSD take a tenth of those on a disk, or less (7.5)",
        "figure-7",
        Number::Over(
            ("Disk", "BufferHash: mean of lookups"),
            ("Intel SSD", "BufferHash: mean of lookups"),
        ),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "An SSD alone is not enough: Berkeley DB's lookups on one take no less than half of those on a disk (7.2.2)",
        "figure-7",
        Number::Over(
            ("Intel SSD", "Berkeley DB: mean of lookups"),
            ("Disk", "Berkeley DB: mean of lookups"),
        ),
        AtLeast(0.5),
        Drive,
    ),
    claim(
        "Inserts without buffers take some 800 times as long; counted from 100 times on (7.3.1)",
        "no-buffering",
        row("Inserts on the Intel SSD", "without buffers over with buffers"),
        AtLeast(100.0),
        Drive,
    ),
    claim(
        "Bloom filters make lookups 10 to 30 times as fast: at 40 % found (7.3.1)",
        "no-filters",
        row("Flash reads", "40 % found, without over with"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "Bloom filters make lookups 10 to 30 times as fast: at 80 % found (7.3.1)",
        "no-filters",
        row("Flash reads", "80 % found, without over with"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "Bit-slicing saves some 20 % of a lookup that RAM answers; counted from 10 % on (7.3.1)",
        "no-bit-slicing",
        row("Memory looked at", "absent key: part of the lookup's time saved"),
        AtLeast(0.1),
        Structure,
    ),
    claim(
        "Inserts are 17 times as fast as lookups; counted from 10 times on (7.2.3)",
        "table-3",
        over("Mean time of an operation", "BufferHash, 1 lookups", "BufferHash, 0 lookups"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "1 to 2 orders of magnitude more lookups a second and dollar than a DRAM-SSD (1, 9)",
        "cost",
        row("For each dollar", "BufferHash over RamSan, lookups"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "1 to 2 orders of magnitude more inserts a second and dollar than a DRAM-SSD (1, 9)",
        "cost",
        row("For each dollar", "BufferHash over RamSan, inserts"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "1 GiB of filters keeps false reads of 32 GiB of flash within 1 ms, on the chip (6.4)",
        "figure-3",
        row("Time of false-positive reads", "flash chip, 32 GiB of flash: with 1 GiB of filters"),
        AtMost(1.0),
        Structure,
    ),
    claim(
        "A buffer of one block costs least on average, on the chip: 128 KiB (6.4)",
        "figure-4",
        row("Flash chip", "the buffer that costs least on average"),
        AtMost(128.0),
        Structure,
    ),
    claim(
        "A larger buffer raises the worst insert on the SSD (6.4)",
        "figure-4",
        row("Intel SSD", "1 MiB over 128 KiB, at worst"),
        AtLeast(1.0),
        Structure,
    ),
    claim(
        "99 % of lookups of absent keys read no flash; counted from 98 % on (7.2.1)",
        "table-2",
        row("Lookups by reads, no key found", "probability of 0 reads"),
        AtLeast(0.98),
        Structure,
    ),
    claim(
        "BufferHash merges in 2 minutes what Berkeley DB on a disk merges in 2 hours (3)",
        "merge",
        row("As many fingerprints", "Intel SSD: BufferHash"),
        AtMost(2.0),
        Drive,
    ),
    claim(
        "A WAN optimizer with BufferHash on the Transcend SSD is close to ideal at 100 Mb/s (8.1)",
        "figure-9",
        over(
            "Effective bandwidth improvement, 50 %",
            "BufferHash, Transcend, 100 Mb/s",
            "an index that takes no time",
        ),
        AtLeast(0.9),
        Drive,
    ),
    claim(
        "One whose index writes in place slows a link of 50 Mb/s down (8.1)",
        "figure-9",
        row("Effective bandwidth improvement, 50 %", "without buffers, Transcend, 50 Mb/s"),
        AtMost(1.0),
        Drive,
    ),
];

const SLICEHASH: &[Claim] = &[
    claim(
        "Lookups of SliceHash are 10 % or more faster than BufferHash's (7.6)",
        "figure-5",
        row("Figure 5a", "SliceHash over BufferHash"),
        AtLeast(1.1),
        Drive,
    ),
    claim(
        "The same against threads that wait for each other (7.6)",
        "figure-5",
        row("Figure 5a", "SliceHash over BufferHash, whose threads wait for each other"),
        AtLeast(1.1),
        Drive,
    ),
    claim(
        "BufferHash is written to much faster, 1100 K inserts a second to 125 K; counted from 4 times on (7.2)",
        "figure-5",
        over("Figure 5b", "BufferHash, 32 threads", "SliceHash"),
        AtLeast(4.0),
        Drive,
    ),
    claim(
        "With half lookups SliceHash does no less than four fifths of BufferHash's rate (7.2)",
        "figure-5",
        row("Figure 5c", "SliceHash over BufferHash"),
        AtLeast(0.8),
        Drive,
    ),
    claim(
        "Random lookups lose 15 % without knowledge of channels, in batches; counted from 10 % on (7.3)",
        "figure-6",
        row("Without over with, in batches", "random"),
        AtMost(0.9),
        Drive,
    ),
    claim(
        "The same as a stream (7.3)",
        "figure-6",
        row("Without over with, as a stream", "random"),
        AtMost(0.9),
        Drive,
    ),
    claim(
        "In the worst order, K = 16, less than half remains, in batches (7.3)",
        "figure-6",
        row("Without over with, in batches", "ordered, K = 16"),
        AtMost(0.5),
        Drive,
    ),
    claim(
        "Without filters slices make lookups 7 times as fast; counted from 5 times on (7.3)",
        "no-slices",
        over(
            "Lookups with 32 threads",
            "SliceHash without knowledge of channels",
            "BufferHash without filters",
        ),
        AtLeast(5.0),
        Drive,
    ),
    claim(
        "Four times the incarnations cost two thirds of the inserts and take a quarter of the RAM: inserts (7.4)",
        "table-5",
        over("Incarnations", "64 incarnations: inserts", "16 incarnations: inserts"),
        AtMost(0.5),
        Drive,
    ),
    claim(
        "Three drives are three times as fast as one; counted from 2.7 times on (7.4)",
        "table-6",
        over("Throughput-oriented", "3 drives: lookups", "1 drive: lookups"),
        AtLeast(2.7),
        Drive,
    ),
    claim(
        "SliceBloom is three times as fast as naive parallelism on one channel; counted from twice on (7.5)",
        "slicebloom",
        row("50 % lookups, 50 % inserts", "SliceBloom over the worst"),
        AtLeast(2.0),
        Drive,
    ),
];

const CASCADE: &[Claim] = &[
    claim(
        "A cascade filter takes inserts 40 times as fast as a buffered Bloom filter; counted from 10 times on",
        "deck",
        row("Inserts", "cascade filter, fan-out 2, over buffered Bloom filter, queued bits"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "The same on a processor as slow as the deck's",
        "deck",
        row(
            "Inserts on a processor as slow",
            "cascade filter, fan-out 2, as published, over buffered Bloom filter, queued bits",
        ),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "It is faster than the strongest Bloom filter that the same flash and RAM allow",
        "deck",
        row("Inserts", "cascade filter, fan-out 2, over page-blocked buffered Bloom filter"),
        AtLeast(1.0),
        Drive,
    ),
    claim(
        "Its lookups are a third as fast as a Bloom filter's; counted from a quarter on",
        "deck",
        row(
            "Lookups of absent keys",
            "cascade filter, fan-out 2, as published, over Bloom filter with one page for each key, cached pages",
        ),
        AtLeast(0.25),
        Drive,
    ),
    claim(
        "In RAM a quotient filter takes inserts 3 times as fast as a Bloom filter, by jumps of memory",
        "in-ram",
        row("Memory touched", "jumps of an insert: Bloom filter over quotient filter"),
        AtLeast(3.0),
        Structure,
    ),
    claim(
        "The same by the time of memory",
        "in-ram",
        row(
            "Time of an operation",
            "Bloom filter over quotient filter with three bits, 75 % full, insert",
        ),
        AtLeast(3.0),
        Structure,
    ),
];

const COUNTING: &[Claim] = &[
    claim(
        "Queries of MDB are an order of magnitude slower than those of MB (3.4)",
        "figure-3",
        row("What the text says of Figure 3", "MDB over MB"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "Queries of MDB-L typically approach those of MB: within twice (3.4)",
        "figure-3",
        row("What the text says of Figure 3", "MDB-L over MB"),
        AtMost(2.0),
        Drive,
    ),
    claim(
        "Queries of MDB-L are faster than those of MDB (3.4)",
        "figure-3",
        row("What the text says of Figure 3", "MDB over MDB-L"),
        AtLeast(1.0),
        Drive,
    ),
    claim(
        "A change segment costs much less I/O than none: MB over MDB-L (3.5)",
        "figure-4",
        row("What the text says of Figure 4", "MB over MDB-L, MLC-1"),
        AtLeast(1.5),
        Drive,
    ),
    claim(
        "A table without a buffer is some 600 times slower; counted from 100 times on (3.5)",
        "no-buffer",
        row("Wiki, MLC-1", "times slower than MB, larger drive"),
        AtLeast(100.0),
        Drive,
    ),
];

const RHIK: &[Claim] = &[
    claim(
        "Write bandwidth of the multi-level index collapses as it grows; counted from 10 times on (1)",
        "figure-1",
        row("Write bandwidth", "multi-level: 2 million over 3100 million"),
        AtLeast(10.0),
        Drive,
    ),
    claim(
        "With 3100 million keys RHIK's write bandwidth is above the multi-level index's (1)",
        "figure-1",
        over("Write bandwidth", "3100 million keys: RHIK", "3100 million keys: multi-level"),
        AtLeast(1.0),
        Drive,
    ),
    claim(
        "A drive of 3.84 TB has 3.1 billion pairs of 1 KiB (1)",
        "capacity",
        row("Keys of a drive", "values of 1024 B"),
        AtLeast(3.1),
        Structure,
    ),
    claim(
        "RHIK reads at most one flash page for an access (3)",
        "figure-4",
        row("RHIK: flash reads", "D: the most, with no page in DRAM"),
        AtMost(1.0),
        Structure,
    ),
    claim(
        "The multi-level index reads 3 to 7 pages for an access to the largest index (3)",
        "figure-4",
        row("Multi-level index: flash reads", "D: mean"),
        AtLeast(3.0),
        Structure,
    ),
    claim(
        "RHIK stores values of 1 KiB faster (3)",
        "figure-3",
        row("Asynchronous stores", "values of 1024 B: RHIK over multi-level"),
        AtLeast(1.0),
        Drive,
    ),
];
