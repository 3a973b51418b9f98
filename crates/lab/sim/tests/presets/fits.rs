//! Every preset has the figures of its data sheet or its paper; the table of both is printed.

use std::fmt::Write;

use nandex_sim::{Fill, Preset};

use crate::figure_2a::{Order, THREADS, reads_per_second};
use crate::stated::{Row, STATED, Within};

fn row_text(row: &Row, measured: f64) -> String {
    let Row { preset, what, stated, unit, decimals, within } = row;
    let rule = match within {
        Within::Percent(percent) => format!("{percent} %"),
        Within::Digits => "exact".to_owned(),
    };
    let off = (measured / stated - 1.0) * 100.0;
    let digits = decimals + 2;
    format!(
        "{preset:<21} {what:<42} {stated:>9.decimals$} {measured:>12.digits$} {unit:<5} {off:>+6.1} % {rule:>6}\n"
    )
}

#[test]
fn every_preset_does_what_its_data_sheet_or_its_paper_says() {
    let mut table = format!(
        "{:<21} {:<42} {:>9} {:>12} {:<5} {:>8} {:>6}\n",
        "preset", "what", "stated", "measured", "unit", "off", "within"
    );
    let mut wrong = Vec::new();
    for (row, measure) in STATED {
        let measured = measure(&Preset::named(row.preset).unwrap());
        let text = row_text(row, measured);
        table.write_str(&text).unwrap();
        if !row.holds(measured) {
            wrong.push(text);
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "off by more than stated:\n{}", wrong.concat());
}

#[test]
fn the_m4_gains_from_channels_what_figure_2a_shows() {
    let preset = Preset::named("crucial-m4-paper").unwrap();
    let mut table = String::from("threads     best   random    worst  best/worst  best/random\n");
    let (mut over_worst, mut over_random): (f64, f64) = (0.0, 0.0);
    let mut best = 0.0;
    for threads in THREADS {
        best = reads_per_second(&preset, Order::Best, threads);
        let random = reads_per_second(&preset, Order::Random, threads);
        let worst = reads_per_second(&preset, Order::Worst, threads);
        let (per_worst, per_random) = (best / worst, best / random);
        writeln!(
            table,
            "{threads:>7} {best:>8.0} {random:>8.0} {worst:>8.0}  {per_worst:>10.2}  {per_random:>11.2}"
        )
        .unwrap();
        over_worst = over_worst.max(per_worst);
        over_random = over_random.max(per_random);
        assert!(best >= random && random >= worst, "{threads} threads");
    }
    println!("{table}");
    assert!((over_worst / 5.2 - 1.0).abs() < 0.1, "best to worst {over_worst}, the paper 5.2");
    assert!((over_random / 1.5 - 1.0).abs() < 0.1, "best to random {over_random}, the paper 1.5");
    assert!((best / 69_000.0 - 1.0).abs() < 0.1, "{best} reads a second, the paper 69 000");
}

#[test]
fn two_reads_of_the_m4_tell_a_plane_a_bus_and_the_rest_apart() {
    use nandex_sim::{Request, RequestKind};
    let preset = Preset::named("crucial-m4-paper").unwrap();
    // Chunks of two pages: the next of the same plane is 32 chunks on, of the same bus 8, else 1.
    let pair_ns = |chunks: u64| {
        let mut model = preset.build(Fill::Sequential).unwrap();
        for (token, page) in [(0, 0), (1, 2 * chunks)] {
            model.submit(Request { token, kind: RequestKind::Read, page, pages: 1 });
        }
        let mut done = Vec::new();
        while model.step(&mut done) {}
        done.last().unwrap().finished_ns
    };
    let (plane, bus, other) = (pair_ns(32), pair_ns(8), pair_ns(1));
    assert_eq!([bus, bus, bus], [pair_ns(16), pair_ns(24), pair_ns(40)]);
    assert_eq!(plane, pair_ns(64));
    // The plane reads on while the bus works (41 us); the bus alone serves one after the other (75 us more).
    assert_eq!((bus - plane) / 1000, 40, "its transfer of 40.96 us is not hidden");
    assert!(plane > other + 50_000, "{plane} {other}");
}
