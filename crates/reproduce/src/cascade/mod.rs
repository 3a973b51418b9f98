//! The experiments of the HotStorage 2011 deck: what a cascade filter takes in and answers, compared with Bloom filters
//! on the same flash in the same RAM; and what of it is still so with today's processors.
//!
//! All filters really run, on a simulated X25-M: each key is inserted and found. The drive's virtual time is
//! noted round by round, a round being what fills a buffer and what is merged then; the processor's time, which
//! is stated, is added to it afterwards, so that one run serves several [processors](rounds::Costs).

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

use crate::Experiment;

/// All experiments, in the deck's order, and what it leaves open at the end.
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
