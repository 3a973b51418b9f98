//! The policies of full structures, in the words of the structures that have one as a parameter. The numbers on flash
//! follow the order of the words.
//! flash follow the order of the words.

use super::{Choice, kept_as};
use crate::WhenFull;

/// The policy of a structure of slices: when full it evicts its oldest entries, or rejects new ones.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct FifoOrReject(WhenFull);

kept_as!(FifoOrReject, WhenFull);

impl Choice for FifoOrReject {
    const FORM: &'static str = "fifo or reject";
    const WORDS: &'static [(&'static str, Self)] =
        &[("fifo", Self(WhenFull::EvictOldest)), ("reject", Self(WhenFull::Refuse))];
}

/// The policy of a filter that keeps all of its keys: when full it takes more, at a higher rate, or rejects them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct GrowOrRefuse(WhenFull);

kept_as!(GrowOrRefuse, WhenFull);

impl Choice for GrowOrRefuse {
    const FORM: &'static str = "grow or refuse";
    const WORDS: &'static [(&'static str, Self)] =
        &[("grow", Self(WhenFull::Grow)), ("refuse", Self(WhenFull::Refuse))];
}
