//! Explained latencies add up, and their formulas are those of the description.

use nandex_sim::report::{Explanation, explain};
use nandex_sim::spec::{FtlKind, Mapping};
use nandex_sim::{Done, Fill, Model, Request, RequestKind, Spec, Ssd};

use crate::support::{random, run_mixed};

fn one(spec: &Spec, kind: RequestKind, pages: u32) -> Done {
    let mut ssd = Ssd::new(spec.clone(), Fill::Sequential).unwrap();
    ssd.submit(Request { token: 7, kind, page: 0, pages });
    let mut done = Vec::new();
    while ssd.step(&mut done) {}
    done[0]
}

/// Returns a description in which link, controller and commands take time too.
fn timed() -> Spec {
    let mut spec = Spec::plain();
    spec.host.link_ps_per_byte = 250;
    spec.host.controller_ns = 1_500;
    spec.timing.command_ns = 300;
    spec.timing.transfer_ps_per_byte = 2_500;
    spec
}

#[test]
fn a_read_is_explained_by_the_numbers_of_its_device() {
    let spec = timed();
    let text = explain(&one(&spec, RequestKind::Read, 1), &spec);
    let expected = "\
request 7, read of 1 page from page 0: 63.064 us
  admission            0 ns
  host             2.524 us   controller, for each request = 1.5 us
                              link: 4096 B x 0.25 ns = 1.024 us
  queue                0 ns
  cleaning             0 ns
  bus              10.54 us   commands: 1 x 300 ns = 300 ns
                              data: 4096 B x 2.5 ns = 10.24 us
  array               50 us   reading a page into the register, tR: 1 x 50 us = 50 us
  sum             63.064 us   from 0 ns to 63.064 us
";
    assert_eq!(text, expected);
}

#[test]
fn a_write_is_explained_by_the_numbers_of_its_device() {
    let spec = timed();
    let text = explain(&one(&spec, RequestKind::Write, 1), &spec);
    assert!(text.contains("data: 4096 B x 2.5 ns = 10.24 us"), "{text}");
    assert!(text.contains("programming a page, tPROG: 1 x 200 us = 200 us"), "{text}");
    assert!(text.contains("link: 4096 B x 0.25 ns = 1.024 us"), "{text}");
}

#[test]
fn spare_bytes_on_the_bus_are_in_the_formula() {
    let mut spec = timed();
    spec.timing.spare_bytes_per_sector = 16;
    let text = explain(&one(&spec, RequestKind::Read, 1), &spec);
    assert!(text.contains("data: (4096 + 8 x 16) B x 2.5 ns = 10.56 us"), "{text}");
}

#[test]
fn terms_add_up_to_parts_and_parts_to_the_latency_on_any_device() {
    for seed in 0..60 {
        let mut spec = random(seed);
        spec.timing.whole_page_transfer = seed % 3 == 0;
        let mut ssd = Ssd::new(spec.clone(), Fill::Sequential).unwrap();
        for done in run_mixed(&mut ssd, 300, 16, seed) {
            let explained = Explanation::of(&done, Some(&spec));
            let parts: u64 = explained.parts.iter().map(|part| part.ns).sum();
            assert_eq!(parts, done.finished_ns - done.submitted_ns, "seed {seed}: {explained}");
            for part in &explained.parts {
                let terms: u64 = part.terms.iter().map(|term| term.ns).sum();
                assert_eq!(terms, part.ns, "seed {seed}: {explained}");
            }
        }
    }
}

#[test]
fn what_crosses_the_bus_is_explained_by_commands_and_bytes_on_any_device() {
    for seed in 0..60 {
        let mut spec = random(seed);
        spec.timing.whole_page_transfer = seed % 3 == 0;
        let mut ssd = Ssd::new(spec.clone(), Fill::Sequential).unwrap();
        for done in run_mixed(&mut ssd, 300, 16, seed) {
            let explained = Explanation::of(&done, Some(&spec));
            let bus = &explained.parts[4];
            let is_whole = bus
                .terms
                .iter()
                .all(|term| term.what.starts_with("data") || term.what.starts_with("commands: "));
            assert!(is_whole, "seed {seed}: {explained}");
        }
    }
}

#[test]
fn terms_add_up_on_log_blocks_and_on_a_raw_chip() {
    let mut spec = timed();
    spec.ftl.kind = FtlKind::LogBlock { log_blocks: 4 };
    spec.ftl.mapping = Mapping::Lba;
    let mut ssd = Ssd::new(spec.clone(), Fill::Sequential).unwrap();
    let merged = run_mixed(&mut ssd, 2000, 8, 1);
    assert!(ssd.counters().ftl.cleans > 0, "log blocks were merged");
    (spec.ftl.kind, spec.ftl.spare_permille) = (FtlKind::Raw, 0);
    let erased = one(&spec, RequestKind::Discard, spec.block_units());
    for done in merged.iter().chain([&erased]) {
        let explained = Explanation::of(done, Some(&spec));
        let terms = explained.parts.iter().flat_map(|part| &part.terms);
        assert_eq!(terms.map(|term| term.ns).sum::<u64>(), done.finished_ns - done.submitted_ns);
    }
    let text = explain(&erased, &spec);
    assert!(text.contains("erasing, tBERS: 1 x 1.5 ms = 1.5 ms"), "{text}");
}

#[test]
fn without_a_description_there_are_parts_and_no_formulas() {
    let explained = Explanation::of(&one(&timed(), RequestKind::Read, 1), None);
    let terms: Vec<_> = explained.parts.iter().flat_map(|part| &part.terms).collect();
    assert_eq!(terms.iter().map(|term| term.ns).sum::<u64>(), 63_064);
    assert!(terms.iter().all(|term| !term.what.contains(" x ")));
}
