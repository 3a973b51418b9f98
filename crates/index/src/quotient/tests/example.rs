//! The worked example of the module's page, replayed step by step.

use nandex_store::fingerprint::Universe;

use super::super::check::check;
use super::super::*;

/// The first eight slots, as the page draws them.
fn drawn(filter: &QuotientFilter) -> String {
    let slot = |at: usize| {
        let stored = filter.slots.stored(at);
        if filter.slots.is_empty(at) {
            return "|       ".to_owned();
        }
        let bits = [filter.slots.is_occupied(at), stored.is_continuation, stored.is_shifted];
        let bits = bits.map(|bit| if bit { "1" } else { "0" }).concat();
        format!("| {bits} {} ", filter.remainder(at))
    };
    (0..8).map(slot).collect::<String>() + "|"
}

#[test]
fn the_worked_example_is_what_a_filter_does() {
    let shape = Shape::new(Universe::new(64).unwrap(), 8, Counts::One, 7).unwrap();
    let mut filter = QuotientFilter::new(shape);
    let steps = ["+14", "+43", "+11", "+25", "+17", "+25", "-14", "-25"];
    let mut expected = Vec::new();
    for step in steps {
        let (sign, octal) = step.split_at(1);
        let count = if sign == "+" { 1 } else { -1 };
        filter.add(u64::from_str_radix(octal, 8).unwrap(), count).unwrap();
        check(&filter).unwrap();
        expected.push(format!("{sign} {octal} {}", drawn(&filter)));
    }
    let page = include_str!("../mod.rs");
    let found = page.lines().map(|line| line.trim_start_matches("//!").trim());
    let is_step = |line: &&str| line.starts_with(['+', '-']) && line.ends_with('|');
    let found: Vec<_> = found.filter(is_step).collect();
    assert_eq!(found, expected, "should be\n{}", expected.join("\n"));
}
