//! The tables, figures and claims of each paper, and their counterparts here: experiments, or the reason why
//! none exists.

use crate::Paper;

/// A table, figure or section of a paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exhibit {
    /// Its place in the paper, such as "Figure 6".
    pub place: &'static str,
    /// Its content, in a few words.
    pub about: &'static str,
    /// Its counterpart here.
    pub shown: Shown,
}

/// The counterpart of an exhibit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// The experiment of this name.
    By(&'static str),
    /// None, as nothing was measured for it: it is a drawing or a list of names.
    Nothing(&'static str),
    /// None, as it cannot be reproduced here, for this reason.
    NotHere(&'static str),
}

const DRAWING: Shown = Shown::Nothing("A drawing of the structure; nothing is measured.");
const NOTATION: Shown = Shown::Nothing("Names of the formulas' variables; nothing is measured.");

const fn by(place: &'static str, about: &'static str, experiment: &'static str) -> Exhibit {
    Exhibit { place, about, shown: Shown::By(experiment) }
}

const fn not_here(place: &'static str, about: &'static str, reason: &'static str) -> Exhibit {
    Exhibit { place, about, shown: Shown::NotHere(reason) }
}

const fn other(place: &'static str, about: &'static str, shown: Shown) -> Exhibit {
    Exhibit { place, about, shown }
}

/// Returns the exhibits of a paper, in its order. They include each of its experiments.
#[must_use]
pub const fn exhibits(paper: Paper) -> &'static [Exhibit] {
    match paper {
        Paper::BufferHash => BUFFERHASH,
        Paper::SliceHash => SLICEHASH,
        Paper::Cascade => CASCADE,
        Paper::Counting => COUNTING,
        Paper::Rhik => RHIK,
    }
}

const BUFFERHASH: &[Exhibit] = &[
    by("Section 3", "two indexes merged", "merge"),
    other("Figure 1", "a super table", DRAWING),
    other("Figure 2", "several super tables", DRAWING),
    other("Table 1", "notation of the cost analysis", NOTATION),
    by("Figure 3", "I/O overhead against the size of Bloom filters", "figure-3"),
    by("Figure 4", "cost of an insert against the size of a buffer", "figure-4"),
    by("Figure 5", "spurious lookups against memory for buffers", "figure-5"),
    by("Table 2", "flash reads of lookups", "table-2"),
    by("Figure 6", "latencies on different media", "figure-6"),
    by("Section 7.1.1", "inserts on drives as full as the paper's", "full-drive"),
    by("Figure 7", "latencies of Berkeley DB", "figure-7"),
    not_here(
        "Section 7.2.2",
        "the B-tree of Berkeley DB",
        "The paper omits its numbers, saying only that they are worse than those of the hash table.",
    ),
    by("Table 3", "latency against the share of lookups", "table-3"),
    by("Section 7.3.1", "without buffers", "no-buffering"),
    by("Section 7.3.1", "without Bloom filters", "no-filters"),
    by("Section 7.3.1", "without bit-slicing", "no-bit-slicing"),
    by("Figure 8", "eviction policies", "figure-8"),
    by("Section 5.2", "several SSDs", "several-drives"),
    by("Figure 9", "a WAN optimizer against the speed of its link", "figure-9"),
    by("Figure 10", "objects through a WAN optimizer", "figure-10"),
    not_here(
        "Section 8",
        "the traces of the WAN optimizer",
        "They are traffic of a university and of its web server, and were not published. Figures 9 and 10 have \
         generated objects of the redundancies that are printed.",
    ),
    by("Sections 1, 2 and 9", "operations a second for each dollar and watt", "cost"),
    by("Conclusions", "which survive other constants and a drive of today", "conclusions"),
];

const SLICEHASH: &[Exhibit] = &[
    by("Table 1", "hash tables on flash", "table-1"),
    other("Figure 1", "architecture of an SSD", DRAWING),
    by("Figure 2", "concurrent reads and writes", "figure-2"),
    other("Figures 3 and 4", "SliceHash and its partitions", DRAWING),
    other("Table 2", "notation of the cost analysis", NOTATION),
    by("Section 5.4", "the analysis", "analysis"),
    by("Figure 5", "SliceHash, BufferHash with threads, and SILT", "figure-5"),
    not_here(
        "Section 7.2",
        "SILT",
        "It is another structure, which this project does not have; its rows are stated, as printed.",
    ),
    by("Table 3", "RAM under inserts", "table-3"),
    by("Table 4", "utilization of the processor", "table-4"),
    by("Figure 6", "lookups without knowledge of channels", "figure-6"),
    by("Section 7.3", "lookups without slices", "no-slices"),
    by("Table 5", "RAM against performance", "table-5"),
    by("Figure 5b and Table 5", "inserts on a drive that is full", "full-drive"),
    by("Table 6", "several drives", "table-6"),
    by("Section 7.5", "SliceBloom", "slicebloom"),
    by("Section 7.5", "SliceLSH", "slicelsh"),
    by("Section 8", "the log on the drive of the table", "own-log"),
    by("Conclusions", "which survive other constants and a drive of today", "conclusions"),
];

const CASCADE: &[Exhibit] = &[
    other("Slides 2 to 8", "Bloom filters, flash and thrashing", DRAWING),
    by("Insertion throughput", "inserts while a filter grows", "insertion"),
    by("Lookup throughput", "lookups while a filter grows", "lookups"),
    by("Conclusions", "quotient filters in RAM", "in-ram"),
    by("Summary of our results", "670,000 inserts and 530 lookups a second", "deck"),
    by("Cascade filter", "writes and reads against the fan-out", "fan-out"),
    not_here(
        "Future work",
        "real index workloads",
        "The deck has no numbers for them; it names them as work to come.",
    ),
    by("Conclusions", "which survive other constants and a drive of today", "conclusions"),
];

const COUNTING: &[Exhibit] = &[
    other("Figures 1 and 2", "the tables and their buffers", DRAWING),
    other(
        "Table 1",
        "configurations of SSDs",
        Shown::Nothing(
            "Times that simulated drives are made of: the presets `mlc-1-paper`, `mlc-2-paper` and `slc-paper`.",
        ),
    ),
    by("Section 3.3", "the tokens of the data sets", "tokens"),
    not_here(
        "Section 3.3",
        "the data sets themselves",
        "Which Wikipedia articles were chosen at random is not printed, and no text comes with nandex: tokens are \
         drawn by a law that is fitted to the printed counts. --corpus runs the designs on a text of yours.",
    ),
    by("Figure 3", "time of queries", "figure-3"),
    by("Figure 4", "cost of I/O", "figure-4"),
    by("Section 3.5", "a table without a buffer", "no-buffer"),
    by("Table 2", "operations on blocks and pages", "table-2"),
    by("Figure 5", "cleans", "figure-5"),
    by("Conclusions", "which survive other constants and a drive of today", "conclusions"),
];

const RHIK: &[Exhibit] = &[
    by("Figure 1", "write bandwidth against the index", "figure-1"),
    by("Section 1", "keys that a drive can have", "capacity"),
    other("Figure 2", "re-configurable indexing", DRAWING),
    by("Figure 3", "asynchronous stores and retrievals", "figure-3"),
    by("Figure 4", "flash reads of an index access", "figure-4"),
    not_here(
        "Section 1",
        "the Samsung PM983 with its KV firmware",
        "Its firmware is not published: a model of the drive stands for it, with the multi-level index that the \
         paper describes.",
    ),
    not_here(
        "Section 3",
        "the IBM Cloud Object Store traces",
        "They may not be passed on; Figure 4 has requests that are generated from their published totals.",
    ),
    by("Conclusions", "which survive other constants and a drive of today", "conclusions"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;

    #[test]
    fn every_experiment_shows_an_exhibit_and_every_exhibit_that_is_shown_has_one() {
        for paper in Paper::ALL {
            let names: Vec<_> = experiments(paper).iter().map(|it| it.name()).collect();
            let shown = exhibits(paper).iter().filter_map(|exhibit| match exhibit.shown {
                Shown::By(name) => Some(name),
                Shown::Nothing(_) | Shown::NotHere(_) => None,
            });
            let mut shown: Vec<_> = shown.collect();
            shown.sort_unstable();
            let mut sorted = names.clone();
            sorted.sort_unstable();
            assert_eq!(shown, sorted, "{paper:?}");
        }
    }
}
