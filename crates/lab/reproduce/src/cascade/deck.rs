//! The deck's own numbers, next to nandex's.

use super::bloom::{Bloom, Kind};
use super::grown::{Grown, Looked};
use super::insertion::{DECK_GAIN, DECK_INSERTS_PER_S, FAN_OUTS, Measured, setup};
use super::lab::Measures;
use super::lookups::{DECK_LOOKUPS_PER_S, DECK_PART};
use super::rounds::Costs;
use crate::{Experiment, Outcome, Result, Row, Scale, Table, fits, vary};

/// See the [module](self).
pub struct Deck;

/// The measurements of one filter.
struct Both {
    inserts: Measured,
    lookups_per_s: f64,
    reads: f64,
}

impl Both {
    fn new(inserts: Measured, looked: Looked) -> Self {
        Self { inserts, lookups_per_s: looked.single_per_s(), reads: looked.reads }
    }
}

impl Experiment for Deck {
    fn name(&self) -> &'static str {
        "deck"
    }

    fn title(&self) -> &'static str {
        "The deck's summary of results"
    }

    fn reference(&self) -> &'static str {
        "the slide \"Summary of Our Results\""
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let measures = Measures::deck(scale)?;
        let mut cascades = Vec::new();
        for (fan_out, name) in FAN_OUTS {
            let mut grown = Grown::full(measures, fan_out)?;
            let absent = grown.last_lookups()?.absent;
            cascades.push(Both::new(Measured::cascade(&grown, name), absent));
        }
        let in_parts = measures.in_parts()?;
        let mut grown = Grown::full(in_parts, Some(2))?;
        let absent = grown.last_lookups()?.absent;
        let parts =
            Both::new(Measured::cascade(&grown, "cascade filter, fan-out 2, in parts"), absent);
        let mut blooms = Vec::new();
        let mut bloom_pages = 0;
        for kind in Kind::ALL {
            let mut bloom = Bloom::full(kind, measures)?;
            bloom_pages = bloom.pages();
            let absent = bloom.last_lookups()?.absent;
            blooms.push(Both::new(Measured::bloom(&mut bloom)?, absent));
        }
        let mut setup = setup(&measures, bloom_pages)?;
        setup.push(
            "Which Bloom filters the deck compares with it does not say; a queue of bits, after \
             Canim et al., is the best that it explains, and stands for them here. Lookups are \
             made when all keys are in, as the deck's were; the experiment lookups has them while \
             a filter grows."
                .into(),
        );
        setup.push(format!(
            "All filters have one part, as the deck's, except in the table of parts: there the same \
             RAM has the buffers of {} parts, of which two are full at a time. The structure takes \
             64 at the deck's size.",
            in_parts.parts
        ));
        let tables = vec![
            inserts(&cascades, &blooms),
            lookups(&cascades, &blooms),
            several_parts(&cascades[0], &parts, &blooms, in_parts.parts),
            slow(&cascades, &blooms),
        ];
        Ok(Outcome { setup, tables, charts: Vec::new() })
    }
}

fn inserts(cascades: &[Both], blooms: &[Both]) -> Table {
    let rate = |both: &Both| both.inserts.per_s();
    let (published, one) = (&cascades[0], &cascades[2]);
    let [plain, _, buffered, strongest] = blooms else { unreachable!("there are four kinds") };
    let mut rows = vec![
        Row::assumed("cascade filter, fan-out 2", "inserts/s", rate(published), fits::CASCADE_INSERT.name).paper(DECK_INSERTS_PER_S).why(
            "The deck is bound by a processor of 2009 at 2.4 GHz; here it is the 65 ns of an insert on a newer one, while a second thread merges. See the last table for a slow one.",
        ),
        Row::assumed("cascade filter, fan-out 2, over buffered Bloom filter, queued bits", "", rate(published) / rate(buffered), fits::CASCADE_INSERT.name)
            .paper(DECK_GAIN)
            .why("The one is 15 times as fast here, the other six times. The deck's others take 17 K inserts a second, about one for each page written, as its queues were small; this one's queue is all the RAM, with 32 pages in flight."),
        Row::assumed("cascade filter, fan-out 2, over page-blocked buffered Bloom filter", "", rate(published) / rate(strongest), fits::CASCADE_INSERT.name)
            .why("The honest strongest baseline, nothing but sequential I/O chunks, which the deck does not have."),
        Row::assumed("cascade filter, fan-out 2, over plain Bloom filter", "", rate(published) / rate(plain), fits::CASCADE_INSERT.name),
    ];
    for both in &cascades[1..] {
        let name = both.inserts.name;
        rows.push(Row::assumed(name, "inserts/s", rate(both), fits::CASCADE_INSERT.name));
        rows.push(Row::assumed(
            format!("{name}, over page-blocked buffered Bloom filter"),
            "",
            rate(both) / rate(strongest),
            fits::CASCADE_INSERT.name,
        ));
    }
    rows.push(
        Row::assumed(
            "one wide level over fan-out 2",
            "",
            rate(one) / rate(published),
            fits::CASCADE_INSERT.name,
        )
        .why("Each key is written more often: what one read for each lookup costs."),
    );
    Table { title: "Inserts".into(), rows }
}

fn lookups(cascades: &[Both], blooms: &[Both]) -> Table {
    let (published, one) = (&cascades[0], &cascades[2]);
    let [plain, one_page, ..] = blooms else { unreachable!("there are four kinds") };
    let mut rows = vec![
        Row::measured("cascade filter, fan-out 2", "lookups/s", published.lookups_per_s)
            .paper(DECK_LOOKUPS_PER_S)
            .why("530 a second are 1.9 ms: about six pages of 0.31 ms each. The drive's data sheet has 0.065 ms for one; what else was done the deck does not say."),
        Row::measured("cascade filter, fan-out 2: pages read for each lookup", "", published.reads)
            .why("Levels that are not empty when all keys are in; each is asked for an absent key."),
    ];
    for both in cascades {
        for (bloom, why) in [
            (
                plain,
                "The Bloom filter's bits are anywhere: an absent key reads two pages on average, less those in RAM.",
            ),
            (one_page, "The Bloom filter reads one page, or none if RAM has it."),
        ] {
            let row = Row::measured(
                format!("{}, over {}", both.inserts.name, bloom.inserts.name),
                "",
                both.lookups_per_s / bloom.lookups_per_s,
            );
            let is_published = both.inserts.name == published.inserts.name;
            rows.push(if is_published { row.paper(DECK_PART).why(why) } else { row });
        }
    }
    rows.push(Row::measured(
        "cascade filter, one wide level, over fan-out 2",
        "",
        one.lookups_per_s / published.lookups_per_s,
    ));
    Table { title: "Lookups of absent keys, one after another, when all keys are in".into(), rows }
}

/// Compares the deck's filter in parts, as the structure divides it, with one part.
fn several_parts(one: &Both, parts: &Both, blooms: &[Both], count: u32) -> Table {
    let rate = |both: &Both| both.inserts.per_s();
    let written = |both: &Both| both.inserts.written.map_or(0.0, |it| it.0);
    let [plain, one_page, buffered, _] = blooms else { unreachable!("there are four kinds") };
    let as_one = "As with one part: see the tables above.";
    let levels = "How many levels of a part are not empty depends on the moment, as with one part, and differs from \
         part to part: a lookup reads a page of each.";
    let rows = vec![
        Row::input("parts", "", f64::from(count)),
        Row::assumed("inserts", "inserts/s", rate(parts), fits::CASCADE_INSERT.name).paper(DECK_INSERTS_PER_S).why(as_one),
        Row::assumed("inserts over one part", "", rate(parts) / rate(one), fits::CASCADE_INSERT.name),
        Row::measured("inserts if the processor took no time, over one part", "", parts.inserts.device_per_s() / one.inserts.device_per_s())
            .why("Runs of a part are short here, some pages, and a merge asks for each level of one; at the deck's size they are megabytes."),
        Row::assumed(format!("inserts over {}", buffered.inserts.name), "", rate(parts) / rate(buffered), fits::CASCADE_INSERT.name).paper(DECK_GAIN).why(as_one),
        Row::measured("times a key is written, over one part", "", written(parts) / written(one))
            .why("Buffers fill one after another, so the RAM of two full ones holds those of all parts: fewer and larger merges."),
        Row::measured("lookups", "lookups/s", parts.lookups_per_s).paper(DECK_LOOKUPS_PER_S).why(levels),
        Row::measured("pages read for each lookup", "", parts.reads),
        Row::measured(format!("lookups over {}", plain.inserts.name), "", parts.lookups_per_s / plain.lookups_per_s)
            .paper(DECK_PART)
            .why(levels),
        Row::measured(format!("lookups over {}", one_page.inserts.name), "", parts.lookups_per_s / one_page.lookups_per_s)
            .paper(DECK_PART)
            .why(levels),
    ];
    Table { title: "Fan-out 2 in parts, as the structure has them".into(), rows }
}

/// Compares all filters on a processor that is fitted to the deck's.
fn slow(cascades: &[Both], blooms: &[Both]) -> Table {
    let passes = cascades[0].inserts.written.map_or(1.0, |(writes, _)| writes);
    let fitted = Costs::fitted(DECK_INSERTS_PER_S, passes);
    let costs = Costs { merge_ns: fitted.merge_ns * vary::factor(&fits::DECK_MERGE), ..fitted };
    let rate = |both: &Both| both.inserts.per_s_with(costs);
    let (buffered, strongest) = (&blooms[2].inserts, &blooms[3].inserts);
    let published = rate(&cascades[0]);
    let mut rows = vec![
        Row::fitted("a fingerprint in a merge", "ns", costs.merge_ns, fits::DECK_INSERTS)
            .why("With 400 ns for an insert (assumed) and one thread, fan-out 2 takes as many on a drive that takes no time."),
        Row::fitted(cascades[0].inserts.name, "inserts/s", published, fits::DECK_INSERTS)
            .paper(DECK_INSERTS_PER_S)
            .why("The drive has time to spare, so the deck's \"CPU bound\" holds."),
        Row::fitted(format!("{}, over {}", cascades[0].inserts.name, buffered.name), "", published / buffered.per_s(), fits::DECK_INSERTS)
            .paper(DECK_GAIN)
            .why("A queue as large as the RAM and 32 pages in flight make the buffered filter six times what the deck's others are."),
        Row::fitted(format!("{}, over {}", cascades[0].inserts.name, strongest.name), "", published / strongest.per_s(), fits::DECK_INSERTS)
            .why("The deck's cascade filter is hardly faster than the strongest Bloom filter on its drive would have been."),
    ];
    rows.extend(
        cascades[1..].iter().map(|both| {
            Row::fitted(both.inserts.name, "inserts/s", rate(both), fits::DECK_INSERTS)
        }),
    );
    rows.push(
        Row::assumed(strongest.name, "inserts/s", strongest.per_s(), fits::PAGES_SWEEP.name).why(
            "Bound by the drive, so as before. On such a processor wide levels do not pay; on one whose merges take 8 ns they do.",
        ),
    );
    Table { title: "Inserts on a processor as slow as the deck's".into(), rows }
}
