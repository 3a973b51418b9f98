//! Figure 4: the cost of an insert, on average and at worst, over the size of a buffer. By formula.

use nandex::raw::model::FlashCosts;

use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table, fits, vary};

/// See the [module](self).
pub struct FlushSizes;

const KIB: f64 = 1024.0;
/// Bytes of a buffer for an entry: 16 in hash tables that are half full.
const ENTRY_BYTES: f64 = 32.0;
/// Sizes of a buffer: powers of two, in KiB.
const SIZES: std::ops::RangeInclusive<u32> = 2..=12;
/// The paper's buffer, which is a block of the chip.
const BLOCK_KIB: f64 = 128.0;
const MS: f64 = 1e6;

impl Experiment for FlushSizes {
    fn name(&self) -> &'static str {
        "figure-4"
    }

    fn title(&self) -> &'static str {
        "Cost of an insert against the size of a buffer"
    }

    fn reference(&self) -> &'static str {
        "sections 6.1 and 6.4, Figure 4"
    }

    fn run(&self, _scale: Scale) -> Result<Outcome> {
        let chip = vary::costs("flash-chip")?;
        let intel = vary::costs("intel-x18m")?;
        Ok(Outcome {
            setup: vec![
                "Nothing is run: C1 + C2 + C3 of section 6.1 on the chip, C1 on the SSD, of which s / B' \
                 are an insert's share. Linear costs are not printed; they are solved from the \
                 times that the papers print, where those say enough, and assumed elsewhere. At \
                 worst a flush of the SSD waits for an erase, as section 7.2.1 has it. Only \
                 flash I/O counts."
                    .into(),
            ],
            tables: vec![on_chip(&chip), on_ssd(&intel)],
            charts: vec![chart("flash chip", &chip), chart("Intel SSD", &intel)],
        })
    }
}

fn sizes() -> impl Iterator<Item = f64> {
    SIZES.map(|power| f64::from(1 << power))
}

fn amortised_ms(costs: &FlashCosts, kib: f64) -> f64 {
    costs.insert_amortised_ns(kib * KIB, ENTRY_BYTES) / MS
}

fn worst_ms(costs: &FlashCosts, kib: f64) -> f64 {
    costs.insert_worst_ns(kib * KIB) / MS
}

/// Returns the cheapest size, the smallest of those whose costs are equal within a thousandth.
fn best_kib(cost: impl Fn(f64) -> f64) -> f64 {
    let least = sizes().map(&cost).fold(f64::INFINITY, f64::min);
    sizes().find(|kib| cost(*kib) <= least * 1.001).unwrap_or(0.0)
}

fn on_chip(chip: &FlashCosts) -> Table {
    let rows = vec![
        Row::formula(
            "the buffer that costs least on average",
            "KiB",
            best_kib(|kib| amortised_ms(chip, kib)),
        )
        .paper(BLOCK_KIB)
        .why("A block. Multiples of it cost as much, but for the share of a command."),
        Row::formula(
            "the buffer that costs least at worst",
            "KiB",
            best_kib(|kib| worst_ms(chip, kib)),
        )
        .paper(BLOCK_KIB)
        .why("Smaller ones leave pages in the block that is erased, which are copied."),
        Row::formula("an insert with 128 KiB, on average", "ms", amortised_ms(chip, BLOCK_KIB)),
        Row::formula("an insert with 128 KiB, at worst", "ms", worst_ms(chip, BLOCK_KIB)),
    ];
    Table { title: "Flash chip".into(), rows }
}

fn on_ssd(intel: &FlashCosts) -> Table {
    let ratio = |cost: fn(&FlashCosts, f64) -> f64| cost(intel, 1024.0) / cost(intel, BLOCK_KIB);
    let rows = vec![
        Row::formula("1 MiB over 128 KiB, on average", "", ratio(amortised_ms))
            .paper_at_most(1.0)
            .why("The paper: a large buffer reduces the average."),
        Row::formula("1 MiB over 128 KiB, at worst", "", ratio(worst_ms))
            .paper_at_least(1.0)
            .why("And increases the worst case."),
        Row::formula("an insert with 128 KiB, on average", "ms", amortised_ms(intel, BLOCK_KIB))
            .why("Of the 0.006 ms of section 7.2.1; the rest is the processor."),
        Row::fitted(
            "an insert with 128 KiB, at worst",
            "ms",
            worst_ms(intel, BLOCK_KIB),
            fits::INTEL_FLUSH,
        )
        .paper(2.72),
    ];
    Table { title: "Intel SSD".into(), rows }
}

fn chart(name: &str, costs: &FlashCosts) -> Chart {
    let curve = |cost: fn(&FlashCosts, f64) -> f64| {
        sizes().map(|kib| (kib, cost(costs, kib))).collect::<Vec<_>>()
    };
    Chart {
        title: format!("Figure 4: an insert on the {name}, by the buffer"),
        x: "a buffer, KiB",
        y: "ms",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Logarithmic,
        series: vec![
            Series::ours("on average", curve(amortised_ms)),
            Series::ours("at worst", curve(worst_ms)),
        ],
    }
}
