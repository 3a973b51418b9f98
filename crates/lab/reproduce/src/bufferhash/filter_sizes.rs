//! Figure 3: the expected I/O of an unsuccessful lookup, over the size of all Bloom filters. By formula.

use nandex::raw::bufferhash::model::paper::{Split, Store};

use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table, vary};

/// See the [module](self).
pub struct FilterSizes;

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * MIB;
/// Flash, in GiB: the paper's, and as much again.
const FLASH_GIB: [f64; 2] = [32.0, 64.0];
/// Bytes of flash for an entry: 16 in hash tables that are half full.
const ENTRY_BYTES: f64 = 32.0;
/// The overhead that the text states.
const TARGET_NS: f64 = 1e6;
/// The devices whose page reads are the overhead.
const DEVICES: [(&str, &str); 2] = [("flash chip", "flash-chip"), ("Intel", "intel-x18m")];

impl Experiment for FilterSizes {
    fn name(&self) -> &'static str {
        "figure-3"
    }

    fn title(&self) -> &'static str {
        "Expected I/O against the size of Bloom filters"
    }

    fn reference(&self) -> &'static str {
        "section 6.4, Figure 3"
    }

    fn run(&self, _scale: Scale) -> Result<Outcome> {
        let mut rows = Vec::new();
        let mut series = Vec::new();
        for (name, preset) in DEVICES {
            let read_ns = vary::costs(preset)?.page_read_ns();
            rows.extend(of_device(name, read_ns));
            series.extend(FLASH_GIB.map(|gib| {
                Series::ours(format!("{name}, {gib} GiB of flash"), curve(gib, read_ns))
            }));
        }
        series.push(Series::paper("paper, in the text: at most", vec![(1024.0, 1.0)]));
        Ok(Outcome {
            setup: vec![
                "Nothing is run: C = F/B (1/2)^(b s ln 2 / F) c_r, with buffers of the best size, F / (s \
                 (ln 2)^2) bits, and page reads of the paper's times. 32 bytes of flash for \
                 each entry, as the text has it. The text's 1 GB is taken as 1 GiB."
                    .into(),
            ],
            tables: vec![Table {
                title: "Time of false-positive reads in a lookup, by formula".into(),
                rows,
            }],
            charts: vec![Chart {
                title: "Figure 3: expected I/O over the memory for filters".into(),
                x: "memory for all filters, MiB",
                y: "ms of false-positive reads in a lookup",
                x_scaling: Scaling::Logarithmic,
                y_scaling: Scaling::Logarithmic,
                series,
            }],
        })
    }
}

fn store(flash_gib: f64) -> Store {
    Store { flash_bytes: flash_gib * GIB, entry_bytes: ENTRY_BYTES }
}

fn overhead_ms(store: Store, filter_bytes: f64, read_ns: f64) -> f64 {
    let buffer_bytes = store.buffer_bytes_best();
    store.lookup_ns(Split { buffer_bytes, filter_bytes }, read_ns) / 1e6
}

fn of_device(name: &str, read_ns: f64) -> Vec<Row> {
    let mut rows = Vec::new();
    for gib in FLASH_GIB {
        let store = store(gib);
        let is_papers = gib == FLASH_GIB[0];
        let named = |what: &str| format!("{name}, {gib} GiB of flash: {what}");
        let at_one =
            Row::formula(named("with 1 GiB of filters"), "ms", overhead_ms(store, GIB, read_ns));
        let needed = Row::formula(
            named("filters for 1 ms"),
            "MiB",
            store.filter_bytes_for(TARGET_NS, read_ns) / MIB,
        );
        rows.extend(match is_papers {
            true => [at_one.paper_at_most(1.0), needed.paper_at_most(1024.0)],
            false => [at_one, needed],
        });
        let twice = overhead_ms(store, 2.0 * GIB, read_ns);
        rows.push(Row::formula(named("with 2 GiB of filters"), "ms", twice).why(
            "The paper: the benefit of larger filters diminishes. There is little left to save.",
        ));
    }
    rows
}

fn curve(flash_gib: f64, read_ns: f64) -> Vec<(f64, f64)> {
    let store = store(flash_gib);
    let sizes = (0..=40).map(|step| 64.0 * 64.0_f64.powf(f64::from(step) / 40.0));
    sizes.map(|mib| (mib, overhead_ms(store, mib * MIB, read_ns))).collect()
}
