//! The experiments of the HotStorage 2011 deck: the throughput of a cascade filter, compared with Bloom
//! filters on the same flash in the same RAM; and the results that still hold with today's processors.
//!
//! All filters really run, on a simulated X25-M: each key is inserted and found. The drive's virtual time is
//! recorded round by round; a round fills a buffer and does its merge. The stated CPU time is added
//! afterwards, so that one run is enough for several [processors](rounds::Costs).

mod bloom;
mod deck;
mod fan_out;
mod grown;
mod in_ram;
mod insertion;
mod lab;
pub mod layout;
mod lookups;
pub mod policy;
pub mod rounds;

pub(crate) use grown::LOOKUP_CPU_NS;
pub(crate) use in_ram::{JUMP_NS, NEXT_NS};
pub(crate) use rounds::Costs;

use crate::Experiment;

/// Returns all experiments, in the deck's order, with its open questions at the end.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(insertion::Insertion),
        Box::new(lookups::Lookups),
        Box::new(in_ram::InRam),
        Box::new(deck::Deck),
        Box::new(fan_out::FanOut),
    ]
}
