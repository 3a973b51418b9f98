//! Section 5.4: the paper's analysis, from the cost model's formulas.

use nandex::raw::slicehash::model::paper::{Design, bufferhash};

use crate::{Experiment, Outcome, Result, Row, Scale, Table};

/// See the [module](self).
pub struct Analysis;

const GIB: f64 = 1_073_741_824.0;
const MS: f64 = 1e6;
const US: f64 = 1e3;

const DESIGN: Design = Design::EXAMPLE;

impl Experiment for Analysis {
    fn name(&self) -> &'static str {
        "analysis"
    }

    fn title(&self) -> &'static str {
        "The paper's analysis, from its formulas"
    }

    fn reference(&self) -> &'static str {
        "section 5.4"
    }

    fn run(&self, _scale: Scale) -> Result<Outcome> {
        Ok(Outcome {
            setup: vec![
                "No experiment: the paper's own formulas with the paper's numbers put in. `nandex advise` has others, \
                 of the structures as they are here."
                    .into(),
            ],
            tables: vec![
                Table { title: "SliceHash".into(), rows: slice_hash() },
                Table { title: "BufferHash".into(), rows: buffer_hash() },
            ],
            charts: Vec::new(),
        })
    }
}

fn slice_hash() -> Vec<Row> {
    // One slicetable of a block: the worst insert that the paper gives.
    let small = Design { partitions: DESIGN.flash_bytes / DESIGN.block_bytes, ..DESIGN };
    let large = Design { flash_bytes: 256.0 * GIB, memory_bytes: 4.0 * GIB, ..DESIGN };
    vec![
        Row::formula("RAM", "B/entry", DESIGN.memory_bytes_per_entry()).paper(0.6),
        Row::formula("an insert, on average", "us", DESIGN.insert_mean_ns() / US).paper(5.7),
        Row::formula("an insert, at worst", "ms", small.insert_worst_ns() / MS).paper(1.14),
        Row::formula("a lookup, on average", "ms", DESIGN.lookup_mean_ns(0.9) / MS).paper(0.16),
        Row::formula("a lookup, at worst", "ms", DESIGN.lookup_worst_ns() / MS).paper(0.3),
        Row::predicted(
            "a lookup of ours, which reads one page",
            "ms",
            DESIGN.lookup_one_page_ns() / MS,
        ),
        Row::formula("inserts for each block written, k = 64", "", large.inserts_per_block_write())
            .paper(102.4),
        Row::formula("lifetime of 256 GB, k = 64", "years", large.lifetime_years()).paper(6.8),
    ]
}

fn buffer_hash() -> Vec<Row> {
    vec![
        Row::formula("an insert, on average", "us", bufferhash::insert_mean_ns(&DESIGN) / US)
            .paper(0.2),
        Row::formula("an insert, at worst", "ms", bufferhash::insert_worst_ns(&DESIGN) / MS)
            .paper(0.83),
        Row::formula("a lookup, at worst", "ms", bufferhash::lookup_worst_ns(&DESIGN) / MS)
            .paper(4.8),
    ]
}
