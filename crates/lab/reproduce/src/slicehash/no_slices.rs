//! Section 7.3, "Slicing": the cost of lookups with neither slices nor Bloom filters.

use super::lab::{Mix, Setup};
use super::throughput::Part;
use super::workers::WorkerModel;
use crate::bufferhash::lab::Filters;
use crate::{Drive, Experiment, Outcome, Result, Row, Scale, Table};

/// See the [module](self).
pub struct NoSlices;

impl Experiment for NoSlices {
    fn name(&self) -> &'static str {
        "no-slices"
    }

    fn title(&self) -> &'static str {
        "Lookups with neither slices nor Bloom filters"
    }

    fn reference(&self) -> &'static str {
        "section 7.3, Slicing"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let [blind] = Part::of_buffer_hash(Filters::Blind, [Mix::Lookups], scale)?;
        let without = blind.work(WorkerModel::buffer_hash(), Drive::CRUCIAL, scale)?;
        let [slices] = Part::of(Setup::paper(scale), [Mix::Lookups])?;
        let with = slices.work(WorkerModel::in_order_of_arrival(), Drive::CRUCIAL, scale)?;
        let rows = vec![
            Row::measured("BufferHash without filters", "lookups/s", without.operations_per_s)
                .paper(8_000.0),
            Row::measured(
                "SliceHash without knowledge of channels",
                "lookups/s",
                with.operations_per_s,
            )
            .paper(57_000.0)
            .why("See Figure 6: threads that go on at once lose less than the paper's."),
            Row::measured(
                "BufferHash without filters: pages read for each lookup",
                "",
                blind.reads,
            ),
            Row::measured("SliceHash: pages read for each lookup", "", slices.reads),
        ];
        Ok(Outcome {
            setup: vec![
                "BufferHash as in Figure 5, with filters that exclude nothing: a lookup reads \
                 incarnations from the newest to the oldest, one after another, until it finds \
                 its key. Keys of any age are looked up, 32 at a time in order of arrival."
                    .into(),
            ],
            tables: vec![Table { title: "Lookups with 32 threads".into(), rows }],
            charts: Vec::new(),
        })
    }
}
