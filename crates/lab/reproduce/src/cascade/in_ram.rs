//! Quotient filters and a Bloom filter in RAM: memory touched by each operation.

use nandex::raw::quotient::{Counts, QuotientFilter, Shape};
use nandex::raw::store::fingerprint::Universe;
use nandex::raw::store::run::Entry;
use nandex_sim::workload::SplitMix64;

use super::bloom::HASHES;
use super::lab::RATE;
use super::layout::{Layout, Lines, Slots, lines_of};
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table, fits, vary};

/// See the [module](self).
pub struct InRam;

/// Keys at full size: 600 MB of filter.
const KEYS: u64 = 512 << 20;
/// Operations that are averaged.
const SAMPLES: u64 = 4_000;
/// The fills of the filter with three bits, and of that by rank and select.
const FILLS: [f64; 5] = [0.25, 0.5, 0.75, 0.9, 0.94];
/// Bits of a Bloom filter for each key at that rate.
const BLOOM_BITS: f64 = 11.54;

/// The rate at which the deck compares sizes.
const DECK_RATE: f64 = 0.001;
/// The size of the deck's quotient filter at this rate, over a Bloom filter's.
const DECK_SIZE: f64 = 1.2;
/// Bits of each slot in the head of a block of 64: 144 of them.
const HEAD_BITS_EACH: f64 = 144.0 / 64.0;
/// The time of a line that a processor must request, in nanoseconds: assumed, as for filters of BufferHash.
pub const JUMP_NS: f64 = 60.0;
/// The time of a line that follows another, which the processor prefetches: assumed.
pub const NEXT_NS: f64 = 5.0;

/// The memory touched by an operation, on average.
#[derive(Clone, Copy, Default)]
struct Touched {
    lines: f64,
    jumps: f64,
}

/// The measurements of each operation.
struct Measured {
    insert: Touched,
    absent: Touched,
    present: Touched,
}

fn mean(all: impl Iterator<Item = Lines>) -> Touched {
    let (mut count, mut lines, mut jumps) = (0_u64, 0_u64, 0_u64);
    for it in all {
        (count, lines, jumps) = (count + 1, lines + it.count(), jumps + it.jumps());
    }
    let each = |sum: u64| sum as f64 / count.max(1) as f64;
    Touched { lines: each(lines), jumps: each(jumps) }
}

impl Experiment for InRam {
    fn name(&self) -> &'static str {
        "in-ram"
    }

    fn title(&self) -> &'static str {
        "Quotient filters in RAM"
    }

    fn reference(&self) -> &'static str {
        "the slide \"Conclusions\": in RAM, 3x faster inserts, same lookups"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let slots = scale.of(KEYS);
        let seed = scale.seed();
        let mut plain = Vec::new();
        let mut fast = Vec::new();
        for fill in FILLS {
            let (shape, held) = filled(slots, fill, seed)?;
            let bits = u64::from(shape.slot_bits());
            plain.push(measure(Slots::Plain { bits: bits + 3 }, shape, &held, seed));
            fast.push(measure(Slots::Blocks { bits }, shape, &held, seed));
        }
        let bloom = bloom(slots, seed);
        let setup = vec![
            format!(
                "Counted are cache lines of 64 bytes, and jumps: lines that are not the one \
                 behind another, which a processor fetches only when it is asked for them. \
                 Filters of {slots} slots are really filled; where their fingerprints are, and \
                 so what an operation touches, follows from the fingerprints that they list.",
            ),
            format!(
                "Means of {SAMPLES} operations at a fill. A Bloom filter of {HASHES} hash \
                 functions, with 11.54 bits for each key, is full.",
            ),
            format!(
                "How long a line takes depends on the machine. The table of times has {JUMP_NS} ns for \
                 a jump and {NEXT_NS} ns for a line behind another, which are assumed, and \
                 leaves the \
                 processor's own work out.",
            ),
        ];
        Ok(Outcome {
            setup,
            tables: vec![table(&plain, &fast, &bloom), time(&plain, &fast, &bloom), size(slots)?],
            charts: vec![chart(&plain, &fast, &bloom)],
        })
    }
}

fn shape(slots: u64, fill: f64, rate: f64) -> Result<Shape> {
    let universe = Universe::for_rate((slots as f64 * 0.75) as u64, rate)?;
    Ok(Shape::new(universe, slots, Counts::One, (slots as f64 * fill) as u64)?)
}

/// Fills a filter with random fingerprints: returns its shape, and the quotient of each in ascending order.
/// The place of a fingerprint follows from these, in either layout.
fn filled(slots: u64, fill: f64, seed: u64) -> Result<(Shape, Vec<u64>)> {
    let shape = shape(slots, fill, RATE)?;
    let mut filter = QuotientFilter::new(shape);
    let mut rng = SplitMix64::stream(seed, 600);
    while !filter.is_full() {
        filter.add(shape.split().universe().of(rng.next_u64()), 1)?;
    }
    let quotients = |it: Entry| (0..it.count).map(move |_| shape.split().quotient(it.fingerprint));
    Ok((shape, filter.iter().flat_map(quotients).collect()))
}

fn measure(slots: Slots, shape: Shape, held: &[u64], seed: u64) -> Measured {
    let split = shape.split();
    let layout = Layout::new(slots, split.quotients(), held.iter().copied());
    let mut rng = SplitMix64::stream(seed, 700);
    let mut any = || rng.below(split.quotients());
    let new: Vec<u64> = (0..SAMPLES).map(|_| any()).collect();
    let mut rng = SplitMix64::stream(seed, 800);
    let there = (0..SAMPLES).map(|_| held[rng.below(held.len() as u64) as usize]);
    Measured {
        insert: mean(new.iter().map(|quotient| layout.insert(*quotient))),
        absent: mean(new.iter().map(|quotient| layout.lookup(*quotient))),
        present: mean(there.map(|quotient| layout.lookup(quotient))),
    }
}

/// Measures a Bloom filter with as many keys as three quarters of the slots.
fn bloom(slots: u64, seed: u64) -> Measured {
    let keys = slots * 3 / 4;
    let bits = (keys as f64 * BLOOM_BITS) as u64;
    let mut set = vec![false; bits as usize];
    let places = |key: u64| {
        let mut rng = SplitMix64::stream(seed, key);
        (0..HASHES).map(move |_| rng.below(bits))
    };
    for key in 0..keys {
        places(key).for_each(|bit| set[bit as usize] = true);
    }
    let absent = |key: u64| {
        let mut goes_on = true;
        lines_of(places(key).take_while(|bit| {
            // The bit that is not set is read too.
            std::mem::replace(&mut goes_on, set[*bit as usize])
        }))
    };
    Measured {
        insert: mean((0..SAMPLES).map(|key| lines_of(places(keys + key)))),
        absent: mean((0..SAMPLES).map(|key| absent(keys + key))),
        present: mean((0..SAMPLES).map(|key| lines_of(places(key)))),
    }
}

/// The index of the fill that corresponds to the deck's unknown one: its space for a rate of 0.4 % is that of
/// three quarters.
const DECK_FILL: usize = 2;
const CASCADE_FILL: usize = 3;

fn table(plain: &[Measured], fast: &[Measured], bloom: &Measured) -> Table {
    let all = [
        ("quotient filter with three bits, 75 % full", &plain[DECK_FILL]),
        ("quotient filter by rank and select, 90 % full", &fast[CASCADE_FILL]),
        ("quotient filter by rank and select, 94 % full", &fast[CASCADE_FILL + 1]),
        ("Bloom filter", bloom),
    ];
    let mut rows = Vec::new();
    for (name, measured) in all {
        for (what, touched) in [
            ("insert", measured.insert),
            ("absent key", measured.absent),
            ("key that is there", measured.present),
        ] {
            rows.push(Row::measured(format!("{name}, {what}: lines"), "", touched.lines));
            rows.push(Row::measured(format!("{name}, {what}: jumps"), "", touched.jumps));
        }
    }
    let quotient = &plain[DECK_FILL];
    rows.push(
        Row::measured("jumps of an insert: Bloom filter over quotient filter", "", bloom.insert.jumps / quotient.insert.jumps)
            .paper(3.0)
            .why("The deck has measured time, with the processor's work, of which a quotient filter has more; only waits for memory are counted here."),
    );
    rows.push(
        Row::measured("jumps of a lookup, absent key: Bloom filter over quotient filter", "", bloom.absent.jumps / quotient.absent.jumps)
            .paper(1.0)
            .why("A lookup of an absent key in a Bloom filter ends at the first bit that is not set, the second on average."),
    );
    Table { title: "Memory touched by an operation".into(), rows }
}

/// Returns the times of operations by the lines that they touch.
fn time(plain: &[Measured], fast: &[Measured], bloom: &Measured) -> Table {
    let jump_ns = vary::number(&fits::RAM_JUMP, JUMP_NS);
    let next_ns = vary::number(&fits::RAM_NEXT, NEXT_NS);
    let ns = |it: Touched| it.jumps * jump_ns + (it.lines - it.jumps) * next_ns;
    let mut rows = Vec::new();
    for (name, quotient, is_decks) in [
        ("quotient filter with three bits, 75 % full", &plain[DECK_FILL], true),
        ("quotient filter by rank and select, 94 % full", &fast[CASCADE_FILL + 1], false),
    ] {
        for (what, ours, theirs, printed) in [
            ("insert", quotient.insert, bloom.insert, 3.0),
            ("lookup, absent key", quotient.absent, bloom.absent, 1.0),
            ("lookup, key that is there", quotient.present, bloom.present, 1.0),
        ] {
            rows.push(Row::assumed(format!("{name}, {what}"), "ns", ns(ours), fits::RAM_JUMP.name));
            let over = Row::assumed(
                format!("Bloom filter over {name}, {what}"),
                "",
                ns(theirs) / ns(ours),
                fits::RAM_JUMP.name,
            );
            rows.push(match is_decks {
                true => over.paper(printed).why("The deck's times have the work of its processor of 2009 in them, of which a quotient filter has more; here is the wait for memory alone."),
                false => over,
            });
        }
    }
    Table { title: "Time of an operation, by its lines".into(), rows }
}

/// Returns the bits of a key at the deck's rate, over those of a Bloom filter.
fn size(slots: u64) -> Result<Table> {
    let bits = f64::from(shape(slots, FILLS[DECK_FILL], DECK_RATE)?.slot_bits());
    let bloom = -DECK_RATE.ln() / std::f64::consts::LN_2.powi(2);
    let plain = (bits + 3.0) / FILLS[DECK_FILL];
    let fast = (bits + HEAD_BITS_EACH) / FILLS[CASCADE_FILL + 1];
    let rows = vec![
        Row::formula("Bloom filter", "bits/key", bloom),
        Row::assumed(
            "quotient filter with three bits, 75 % full",
            "bits/key",
            plain,
            fits::DECK_FILL.name,
        ),
        Row::assumed(
            "quotient filter with three bits over Bloom filter",
            "",
            plain / bloom,
            fits::DECK_FILL.name,
        )
        .paper(DECK_SIZE)
        .why("The deck does not print the fill; a remainder has whole bits."),
        Row::predicted("quotient filter by rank and select, 94 % full", "bits/key", fast),
        Row::predicted("quotient filter by rank and select over Bloom filter", "", fast / bloom),
    ];
    Ok(Table { title: "Size at a rate of false positives of 0.1 %".into(), rows })
}

fn chart(plain: &[Measured], fast: &[Measured], bloom: &Measured) -> Chart {
    let curve = |name: &str, of: fn(&Measured) -> f64, all: &[Measured]| {
        Series::ours(name, FILLS.into_iter().zip(all.iter().map(of)).collect())
    };
    let level = |name: &str, lines: f64| {
        Series::ours(name, vec![(FILLS[0], lines), (FILLS[FILLS.len() - 1], lines)])
    };
    Chart {
        title: "Lines of an operation against the fill".into(),
        x: "share of slots in use",
        y: "lines",
        x_scaling: Scaling::Linear,
        y_scaling: Scaling::Linear,
        series: vec![
            curve("three bits, insert", |it| it.insert.lines, plain),
            curve("three bits, absent key", |it| it.absent.lines, plain),
            curve("rank and select, insert", |it| it.insert.lines, fast),
            curve("rank and select, absent key", |it| it.absent.lines, fast),
            level("Bloom filter, insert", bloom.insert.lines),
            level("Bloom filter, absent key", bloom.absent.lines),
        ],
    }
}
