//! What a structure does when it is full, in the words of those that keep it as a parameter. The numbers on flash are
//! those of the words' order.

use super::{Choice, kept_as};
use crate::WhenFull;

/// A structure of slices: a full one evicts its oldest entries, or refuses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct FifoOrReject(WhenFull);

kept_as!(FifoOrReject, WhenFull);

impl Choice for FifoOrReject {
    const FORM: &'static str = "fifo or reject";
    const WORDS: &'static [(&'static str, Self)] =
        &[("fifo", Self(WhenFull::EvictOldest)), ("reject", Self(WhenFull::Refuse))];
}

/// A filter that keeps all of its keys: a full one takes more, at a higher rate, or refuses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct GrowOrRefuse(WhenFull);

kept_as!(GrowOrRefuse, WhenFull);

impl Choice for GrowOrRefuse {
    const FORM: &'static str = "grow or refuse";
    const WORDS: &'static [(&'static str, Self)] =
        &[("grow", Self(WhenFull::Grow)), ("refuse", Self(WhenFull::Refuse))];
}
