//! FastCDC (Xia et al., IEEE TPDS 2020), through the crate `fastcdc`.
//!
//! A gear hash adds one byte by a shift and an addition, so byte i has left a 64-bit hash after 64 more. A
//! cut is where masked bits of the hash are zero. Until the average size two more bits must be zero than
//! after it ("normalised chunking", level 1 on either side), which makes the sizes more equal. Nothing is
//! hashed before `min_bytes`.

use std::borrow::Cow;

use ::fastcdc::v2020::{Normalization, cut_gear, get_gear_with_seed, select_masks};

use super::Chunking;

/// The masks and tables of one average size.
#[derive(Clone, Debug)]
pub(super) struct FastCdc {
    min_bytes: usize,
    average_bytes: usize,
    max_bytes: usize,
    mask_before: u64,
    mask_after: u64,
    gear: Cow<'static, [u64]>,
    gear_shifted: Cow<'static, [u64]>,
}

impl FastCdc {
    pub(super) fn new(chunking: &Chunking) -> Self {
        let (mask_before, mask_after) =
            select_masks(chunking.average_bytes(), Normalization::Level1);
        let (gear, gear_shifted) = get_gear_with_seed(0);
        Self {
            min_bytes: chunking.min_bytes(),
            average_bytes: chunking.average_bytes(),
            max_bytes: chunking.max_bytes(),
            mask_before,
            mask_after,
            gear,
            gear_shifted,
        }
    }

    pub(super) fn first_len(&self, data: &[u8]) -> usize {
        let (_hash, length) = cut_gear(
            data,
            self.min_bytes,
            self.average_bytes,
            self.max_bytes,
            self.mask_before,
            self.mask_after,
            self.mask_before << 1,
            self.mask_after << 1,
            &self.gear,
            &self.gear_shifted,
        );
        length
    }
}
