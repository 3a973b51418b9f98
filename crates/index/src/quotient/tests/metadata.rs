//! Every pattern that the metadata of small filters can have: the proof takes those that inserts can make,
//! and no other.

use std::collections::BTreeSet;

use super::super::check::metadata;
use super::super::slots::SlotArray;

/// The metadata of all slots, three bits each.
fn pattern(slots: &SlotArray) -> u64 {
    (0..slots.len()).map(|at| slots.metadata(at) << (3 * at)).sum()
}

fn slots_of(pattern: u64, slots: usize) -> SlotArray {
    let mut array = SlotArray::new(slots, 4);
    (0..slots).for_each(|at| array.set_metadata(at, pattern >> (3 * at) & 7));
    array
}

/// Puts one of the quotient at the end of its run.
fn insert(slots: &mut SlotArray, quotient: usize) {
    let run = slots.run(quotient);
    slots.insert(quotient, &run, run.end, 0);
}

/// The patterns of all multisets of quotients that fit.
fn reachable(slots: usize, quotients: usize) -> BTreeSet<u64> {
    let mut seen = BTreeSet::new();
    let mut next = vec![SlotArray::new(slots, 4)];
    while let Some(array) = next.pop() {
        if !seen.insert(pattern(&array)) {
            continue;
        }
        for quotient in 0..quotients {
            if array.empties(quotient).next().is_some() {
                let mut more = array.clone();
                insert(&mut more, quotient);
                next.push(more);
            }
        }
    }
    seen
}

#[test]
fn the_proof_takes_exactly_the_patterns_that_inserts_make() {
    let mut sizes = Vec::new();
    for slots in 1..=5 {
        for quotients in 1..=slots {
            let reachable = reachable(slots, quotients);
            let legal = |pattern: &u64| metadata(&slots_of(*pattern, slots), quotients).is_ok();
            let accepted: BTreeSet<u64> = (0..1 << (3 * slots)).filter(legal).collect();
            assert_eq!(accepted, reachable, "{slots} slots, {quotients} quotients");
            sizes.push((slots, quotients, accepted.len()));
        }
    }
    let square: Vec<_> = sizes.iter().filter(|size| size.0 == size.1).map(|size| size.2).collect();
    // The Catalan numbers: each pattern is a multiset of quotients that parks, and there is no other.
    assert_eq!(square, [2, 5, 14, 42, 132]);
}

#[test]
fn whatever_inserts_make_deletes_take_apart_in_any_order() {
    for slots in 1..=5 {
        for &before in &reachable(slots, slots) {
            let filled = slots_of(before, slots);
            for quotient in (0..slots).filter(|&at| filled.is_occupied(at)) {
                let run = filled.run(quotient);
                let after: Vec<_> = run
                    .clone()
                    .map(|at| {
                        let mut less = filled.clone();
                        less.remove(quotient, &run, at);
                        metadata(&less, slots).unwrap();
                        pattern(&less)
                    })
                    .collect();
                assert!(after.windows(2).all(|pair| pair[0] == pair[1]), "any of a run will do");
                let mut again = slots_of(after[0], slots);
                insert(&mut again, quotient);
                assert_eq!(pattern(&again), before, "what was taken out is put back");
            }
        }
    }
}

#[test]
fn the_two_patterns_that_no_slot_can_have_are_refused_wherever_they_stand() {
    for at in 0..4 {
        for illegal in [0b010, 0b011] {
            for others in &reachable(4, 4) {
                let bad = others & !(7 << (3 * at)) | illegal << (3 * at);
                let error = metadata(&slots_of(bad, 4), 4).unwrap_err().to_string();
                assert!(error.contains("damaged"), "{error}");
            }
        }
    }
}
