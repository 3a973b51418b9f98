//! Flash translation layers: they map each host page to its place, and turn writes into work for the flash.
//!
//! A layer changes its maps at once and returns the resulting work; the SSD performs that work in time, in
//! order, plane by plane. So a layer knows no time, and the SSD no mapping.

mod blocks;
mod grown;
mod initial;
mod layout;
mod log_block;
mod map;
mod page;
mod permutation;
mod raw;
mod steady;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

use crate::Request;
use crate::spec::{FtlKind, Spec};
use crate::ssd::Fill;

pub(crate) use layout::Layout;
use log_block::LogBlockFtl;
use page::PageFtl;
use raw::RawFlash;

/// Creates the layer of a description, with this content. Small writes bring log blocks to their steady state
/// at once, so for that layer a full device is as good as a steady one.
pub(crate) fn layer(spec: &Spec, fill: Fill) -> Box<dyn Ftl> {
    match (spec.ftl.kind, fill) {
        (FtlKind::Page, Fill::Empty) => Box::new(PageFtl::empty(spec)),
        (FtlKind::Page, Fill::Sequential) => Box::new(PageFtl::full(spec)),
        (FtlKind::Page, Fill::Steady { seed }) => Box::new(PageFtl::steady(spec, seed)),
        (FtlKind::LogBlock { log_blocks }, fill) => {
            Box::new(LogBlockFtl::new(spec, log_blocks, fill != Fill::Empty))
        }
        (FtlKind::Raw, fill) => Box::new(RawFlash::new(spec, fill != Fill::Empty)),
    }
}

/// The place of a host page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place {
    /// The plane, counted over the whole device.
    pub plane: u32,
    /// The flash page, counted over the whole device.
    pub flash_page: u64,
}

/// Work for a plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// The plane.
    pub plane: u32,
    /// The kind of work.
    pub kind: WorkKind,
}

/// The kind of a plane's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkKind {
    /// Programs a flash page of `units` host pages.
    Program {
        /// The number of the flash page, counted over the whole device.
        flash_page: u64,
        /// The host pages that the host is waiting for; the rest is moved data or padding.
        units: u32,
    },
    /// Moves the valid pages out of a block and erases it.
    Clean(Clean),
    /// Erases a block for the host, which waits for it.
    Erase,
}

/// The work of cleaning a block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Clean {
    /// Flash pages read.
    pub reads: u32,
    /// Flash pages programmed.
    pub programs: u32,
    /// Host pages moved.
    pub units: u32,
    /// Blocks erased.
    pub erases: u32,
    /// Whether it serves wear levelling.
    pub for_wear: bool,
}

/// The work of a layer since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FtlCounts {
    /// Host pages written by the host.
    pub host_writes: u64,
    /// Flash pages programmed, for the host and by cleaning.
    pub programs: u64,
    /// Host pages moved by cleaning.
    pub moved: u64,
    /// Blocks cleaned, or log blocks merged.
    pub cleans: u64,
    /// Of these, merges that turned a log block, written in order, into a data block.
    pub switch_merges: u64,
    /// Of these, merges that filled up a log block whose written part was in order.
    pub partial_merges: u64,
    /// Of these, merges into a new block.
    pub full_merges: u64,
    /// Of these, for wear levelling.
    pub migrations: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl FtlCounts {
    /// Returns the bytes programmed per byte that the host wrote; 1 if it wrote nothing.
    #[must_use]
    pub fn write_amplification(&self, page_units: u32) -> f64 {
        if self.host_writes == 0 {
            return 1.0;
        }
        (self.programs * u64::from(page_units)) as f64 / self.host_writes as f64
    }
}

/// A flash translation layer.
pub(crate) trait Ftl: Send + Debug {
    /// Returns the place of a host page; `None` if it was never written or is discarded.
    fn place(&self, unit: u32) -> Option<Place>;

    /// Takes a host page, and adds the work that this completes.
    fn write(&mut self, unit: u32, out: &mut Vec<Work>);

    /// Programs the flash page of this host page, if it is open and not full.
    fn pad(&mut self, unit: u32, out: &mut Vec<Work>);

    /// Programs all open flash pages.
    fn pad_all(&mut self, out: &mut Vec<Work>);

    /// Unmaps a host page.
    fn discard(&mut self, unit: u32, out: &mut Vec<Work>);

    /// Adds work that an idle plane may do.
    fn idle(&mut self, plane: u32, out: &mut Vec<Work>);

    /// Returns the reason why the layer refuses a request, and the remedy.
    fn refuses(&self, _request: &Request) -> Option<String> {
        None
    }

    /// Announces a request; called with each request when it is submitted, in that order.
    fn expect(&mut self, _request: &Request) {}

    /// Returns the work done so far.
    fn counts(&self) -> FtlCounts;

    /// Returns the erases of each block, plane by plane.
    fn erases(&self) -> &[u32];

    /// Returns the bytes of RAM of its tables.
    fn ram_bytes(&self) -> usize;
}
