//! Flash translation layers: they know where each host page lies, and turn writes into work for the flash.
//!
//! A layer changes its maps at once and hands out the work that follows; the SSD lets that work take its
//! time, in order, plane by plane. So a layer knows no time, and the SSD no mapping.

mod blocks;
mod initial;
mod layout;
mod page;
mod permutation;
mod steady;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

pub(crate) use layout::Layout;
pub(crate) use page::PageFtl;

/// Where a host page lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place {
    /// The plane, counted over the whole device.
    pub plane: u32,
    /// The flash page, counted over the whole device.
    pub flash_page: u64,
}

/// Something that a plane has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// Which plane.
    pub plane: u32,
    /// What it does.
    pub kind: WorkKind,
}

/// What a plane does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkKind {
    /// Programs a flash page of so many host pages.
    Program {
        /// The flash page, counted over the whole device.
        flash_page: u64,
        /// Host pages that the host is waiting for; the rest is moved data or padding.
        units: u32,
    },
    /// Moves what is valid out of a block and erases it.
    Clean(Clean),
}

/// What the cleaning of a block takes.
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
    /// Was it to level wear?
    pub for_wear: bool,
}

/// What a layer has done since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FtlCounts {
    /// Host pages written by the host.
    pub host_writes: u64,
    /// Flash pages programmed, for the host and by cleaning.
    pub programs: u64,
    /// Host pages moved by cleaning.
    pub moved: u64,
    /// Blocks cleaned.
    pub cleans: u64,
    /// Of these, to level wear.
    pub migrations: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl FtlCounts {
    /// Bytes programmed per byte that the host wrote; 1 where it wrote nothing.
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
    /// Where a host page lies; nothing where it was never written or is discarded.
    fn place(&self, unit: u32) -> Option<Place>;

    /// Takes a host page, and hands out the work that this completes.
    fn write(&mut self, unit: u32, out: &mut Vec<Work>);

    /// Programs the flash page that holds this host page, if it is begun and not full.
    fn pad(&mut self, unit: u32, out: &mut Vec<Work>);

    /// Programs all flash pages that are begun and not full.
    fn pad_all(&mut self, out: &mut Vec<Work>);

    /// Forgets a host page.
    fn discard(&mut self, unit: u32, out: &mut Vec<Work>);

    /// What a plane may do while it has nothing else to do.
    fn idle(&mut self, plane: u32, out: &mut Vec<Work>);

    /// What has been done so far.
    fn counts(&self) -> FtlCounts;

    /// Erases of each block, plane by plane.
    fn erases(&self) -> &[u32];
}
