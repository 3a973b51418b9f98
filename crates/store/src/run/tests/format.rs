//! The bytes of docs/reference/format.md: a change here makes every run unreadable.

use super::super::encode::{Candidates, Filled, fill};
use super::*;
use crate::page::PAGE_BODY_BYTES;

fn example() -> Vec<Entry> {
    let all = [(3, 1), (10, -2), (11, 1), (600, 1)];
    all.into_iter().map(|(fingerprint, count)| Entry { fingerprint, count }).collect()
}

/// Returns the bytes of the block of text that follows these words.
fn drawn(after: &str) -> Vec<u8> {
    let page = include_str!("../../../../../docs/reference/format.md");
    let block = page.split_once(after).unwrap().1;
    let block = block.split_once("```text").unwrap().1.split_once("```").unwrap().0;
    block.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_page_that_is_drawn_is_the_page_that_is_written() {
    let mut body = vec![0xff; PAGE_BODY_BYTES];
    let mut seen = Candidates::default();
    seen.see(0, &example());
    let filled = fill(&mut body, 0, 640, &example(), &seen);
    assert_eq!((filled.entries, filled.count_bytes), (4, 6));
    let drawn = drawn("For example, the fingerprints 3, 10 with a count of -2");
    let hex: Vec<_> = body[..drawn.len()].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(body[..drawn.len()], drawn, "{}", hex.join(" "));
    assert!(body[drawn.len()..].iter().all(|&byte| byte == 0));
    let mut all = Vec::new();
    RunPage::parse(&body).unwrap().read(&mut all).unwrap();
    assert_eq!(all, example());
}

#[test]
fn a_state_has_its_fields_where_they_are_drawn() {
    let shape = RunShape { universe: universe(1000), slot_pages: 2, spare_pages: 2 };
    let extent = Extent { start: PageId(5), pages: 4 };
    let place = RunPlace { structure: STRUCTURE, extent, generation: 6 };
    let mut run = Run::empty(place, shape);
    run.used_pages = 3;
    let mut seen = Candidates::default();
    seen.see(0, &example());
    run.add(Filled { entries: 4, count_bytes: 6 }, seen.exceptions(4));
    let mut bytes = Vec::new();
    run.encode(&mut bytes);
    let mut expected = vec![1];
    expected.extend([5_u64, 4, 6, 2, 3, 4, 1, 6].iter().flat_map(|field| field.to_le_bytes()));
    expected.extend(1_i128.to_le_bytes());
    assert_eq!(bytes, expected);
}
