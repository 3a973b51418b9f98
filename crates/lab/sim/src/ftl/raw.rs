//! No translation: the host manages the pages of a raw flash chip itself.
//!
//! Host page and physical page are the same, numbered plane by plane and block by block. The host programs
//! the pages of a block in order, each once, and a discard of whole blocks erases them. Other requests are
//! refused, because a chip would damage data. Order is that of submission: pages in flight count as
//! programmed or erased, so a queue of requests for one block is fine.

use super::{Ftl, FtlCounts, Place, Work, WorkKind};
use crate::spec::Spec;
use crate::{Request, RequestKind};

/// A raw flash chip: see the [module](self).
#[derive(Debug)]
pub(crate) struct RawFlash {
    page_units: u32,
    block_units: u32,
    /// Blocks of a plane.
    blocks: u32,
    /// Host pages of each block that are programmed.
    programmed: Vec<u32>,
    erases: Vec<u32>,
    counts: FtlCounts,
}

impl RawFlash {
    /// Creates a chip that is erased, or programmed to its last page.
    pub fn new(spec: &Spec, is_full: bool) -> Self {
        let block_units = spec.block_units();
        let count = (spec.flash.plane_count() * spec.flash.blocks) as usize;
        let programmed = if is_full { block_units } else { 0 };
        Self {
            page_units: spec.flash.page_units(),
            block_units,
            blocks: spec.flash.blocks,
            programmed: vec![programmed; count],
            erases: vec![0; count],
            counts: FtlCounts::default(),
        }
    }

    /// Returns the blocks that a request touches, with its pages in each: block, first, end.
    fn pieces(&self, request: &Request) -> impl Iterator<Item = (usize, u32, u32)> + use<> {
        let units = u64::from(self.block_units);
        let (mut at, end) = (request.page, request.page + u64::from(request.pages));
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (block, first) = (at / units, at % units);
            let last = (end - block * units).min(units);
            at = (block + 1) * units;
            Some((block as usize, first as u32, last as u32))
        })
    }

    fn refuses_write(&self, request: &Request) -> Option<String> {
        let page_units = u64::from(self.page_units);
        let aligned = request.page.is_multiple_of(page_units)
            && request.pages.is_multiple_of(self.page_units);
        if !aligned {
            return Some(format!(
                "flash pages hold {page_units} pages of 4 KiB each and are programmed whole; write \
                 them from a multiple of {page_units} on, in multiples of {page_units}"
            ));
        }
        self.pieces(request).find_map(|(block, first, _)| {
            let next = self.programmed[block];
            let start = block as u64 * u64::from(self.block_units);
            let (page, end) = (start + u64::from(first), start + u64::from(self.block_units));
            if first < next {
                return Some(format!(
                    "page {page} is not erased; discard its whole block, pages {start} to {}, before \
                     it is written again",
                    end - 1
                ));
            }
            (first > next).then(|| {
                format!(
                    "page {page} is out of order; the next page of its block to be written is {}",
                    start + u64::from(next)
                )
            })
        })
    }

    fn refuses_discard(&self, request: &Request) -> Option<String> {
        let units = u64::from(self.block_units);
        let is_whole =
            request.page.is_multiple_of(units) && request.pages.is_multiple_of(self.block_units);
        (!is_whole).then(|| {
            format!(
                "a raw chip erases whole blocks of {units} pages; discard from a multiple of {units} \
                 on, in multiples of {units}"
            )
        })
    }
}

impl Ftl for RawFlash {
    fn place(&self, unit: u32) -> Option<Place> {
        let plane = unit / self.block_units / self.blocks;
        Some(Place { plane, flash_page: u64::from(unit / self.page_units) })
    }

    fn write(&mut self, unit: u32, out: &mut Vec<Work>) {
        self.counts.host_writes += 1;
        if (unit + 1).is_multiple_of(self.page_units) {
            self.counts.programs += 1;
            let plane = unit / self.block_units / self.blocks;
            let flash_page = u64::from(unit / self.page_units);
            let kind = WorkKind::Program { flash_page, units: self.page_units };
            out.push(Work { plane, kind });
        }
    }

    fn pad(&mut self, _unit: u32, _out: &mut Vec<Work>) {}

    fn pad_all(&mut self, _out: &mut Vec<Work>) {}

    fn discard(&mut self, unit: u32, out: &mut Vec<Work>) {
        if unit.is_multiple_of(self.block_units) {
            let block = unit / self.block_units;
            self.erases[block as usize] += 1;
            self.counts.erases += 1;
            out.push(Work { plane: block / self.blocks, kind: WorkKind::Erase });
        }
    }

    fn idle(&mut self, _plane: u32, _out: &mut Vec<Work>) {}

    fn refuses(&self, request: &Request) -> Option<String> {
        match request.kind {
            RequestKind::Read | RequestKind::Sync => None,
            RequestKind::Write => self.refuses_write(request),
            RequestKind::Discard => self.refuses_discard(request),
        }
    }

    fn expect(&mut self, request: &Request) {
        for (block, _, end) in self.pieces(request) {
            match request.kind {
                RequestKind::Read | RequestKind::Sync => {}
                RequestKind::Write => self.programmed[block] = end,
                RequestKind::Discard => self.programmed[block] = 0,
            }
        }
    }

    fn counts(&self) -> FtlCounts {
        self.counts
    }

    fn erases(&self) -> &[u32] {
        &self.erases
    }

    fn ram_bytes(&self) -> usize {
        size_of_val(&self.programmed[..]) + size_of_val(&self.erases[..])
    }
}
