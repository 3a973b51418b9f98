//! The hybrid translation layer of old, cheap drives: blocks for data, and a few log blocks.
//!
//! ```text
//!   address space of a plane:  | logical block 0 | logical block 1 | logical block 2 | ...
//!                                     |                  |
//!   data blocks, every page at        v                  v
//!   its own offset                | 0 1 2 3 |        | 0 1 2 3 |
//!                                                        :
//!   log blocks, each for one                             :
//!   logical block, filled in order                   | 2 0 2 . |
//! ```
//!
//! This is BAST (Kim, Kim, Noh, Min, Cho: "A Space-Efficient Flash Translation Layer for CompactFlash
//! Systems", IEEE Transactions on Consumer Electronics 48(2), 2002). A page goes to its offset in the data
//! block until that offset, or one after it, has been programmed; then to the next place of the block's log
//! block. A log block ends in a merge:
//!
//! - **switch**: it was written in order to its end, so it becomes the data block and the old one is
//!   erased;
//! - **partial**: its written part is in order; the rest is copied after it, then as for a switch;
//! - **full**: the newest pages of both are copied to a free block, and both are erased.
//!
//! A log block is merged as soon as a switch is possible, when it is full and another write arrives, or when
//! another logical block needs a log block: then the least recently written one is merged. So sequential
//! writes cost an erase per block, and small random ones, once the log blocks are used up, a full merge each.
//! FAST (Lee et al., ACM TECS 6(3), 2007) shares log blocks among logical blocks to delay that.
//!
//! Everything happens inside a plane: the address space is striped over planes as by [`Initial`].

use std::collections::VecDeque;

use super::initial::Initial;
use super::map::PageMap;
use super::{Clean, Ftl, FtlCounts, Layout, Place, Work, WorkKind};
use crate::spec::Spec;

#[cfg(test)]
mod tests;

/// The number of no block.
const NONE: u32 = u32::MAX;

/// The log-block layer: see the [module](self).
#[derive(Debug)]
pub(crate) struct LogBlockFtl {
    layout: Layout,
    log_blocks: usize,
    map: PageMap,
    planes: Vec<Plane>,
    /// The place in each block after its last programmed page, or after the last unit of its open page.
    filled: Vec<u32>,
    erases: Vec<u32>,
    /// Planes with an open flash page.
    begun: Vec<u32>,
    /// A count of writes to log blocks.
    clock: u64,
    counts: FtlCounts,
}

#[derive(Debug)]
struct Plane {
    /// The data block of each logical block, or none.
    data: Vec<u32>,
    logs: Vec<Log>,
    /// Erased blocks, longest free first.
    free: VecDeque<u32>,
    /// The block whose flash page is open, and the host pages that are waiting in it.
    begun: (u32, u32),
}

/// A log block.
#[derive(Clone, Copy, Debug)]
struct Log {
    block: u32,
    /// Its logical block.
    of: u32,
    /// The time of its last write.
    used: u64,
}

/// The offset of a host page in a logical block of a plane.
#[derive(Clone, Copy, Debug)]
struct Home {
    plane: u32,
    of: u32,
    offset: u32,
}

/// The target of the next write of a page.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// Its offset in this data block, or a new one.
    Data(u32),
    /// The next place of this log block.
    Log(usize),
    /// The log block of the page, which is full.
    FullLog(usize),
    /// A new log block.
    NewLog,
}

impl LogBlockFtl {
    /// Creates a device with `log_blocks` log blocks in each plane, empty or with every page written once, in
    /// order.
    pub fn new(spec: &Spec, log_blocks: u32, is_full: bool) -> Self {
        let layout = Layout::new(spec);
        let slots = Initial::slots(&layout);
        let logical = slots.div_ceil(layout.block_units);
        let mut filled = vec![0; (layout.planes() * layout.blocks) as usize];
        let plane = |plane: u32| {
            let blocks = layout.block(plane, 0)..layout.block(plane, layout.blocks);
            let used = if is_full { logical } else { 0 };
            let data = (0..logical).map(|of| if is_full { blocks.start + of } else { NONE });
            let free = (blocks.start + used..blocks.end).collect();
            Plane { data: data.collect(), logs: Vec::new(), free, begun: (NONE, 0) }
        };
        let planes: Vec<_> = (0..layout.planes()).map(plane).collect();
        for (index, &block) in planes.iter().flat_map(|plane| plane.data.iter().enumerate()) {
            if block != NONE {
                let left = slots - index as u32 * layout.block_units;
                filled[block as usize] = left.min(layout.block_units);
            }
        }
        Self {
            log_blocks: log_blocks as usize,
            map: PageMap::new(if is_full { Initial::Full } else { Initial::Empty }),
            planes,
            erases: vec![0; filled.len()],
            filled,
            begun: Vec::new(),
            clock: 0,
            counts: FtlCounts::default(),
            layout,
        }
    }

    fn find(&self, unit: u32) -> Option<u32> {
        self.map.find(&self.layout, unit)
    }

    /// Returns the place of a page if all had been written once, in order.
    fn home(&self, unit: u32) -> Home {
        let place = Initial::Full.place(&self.layout, unit).expect("a full device has every page");
        let plane = self.layout.plane_of_place(place);
        let slot = place % self.layout.plane_units();
        let block_units = self.layout.block_units;
        Home { plane, of: slot / block_units, offset: slot % block_units }
    }

    /// Returns the host page at an offset of a logical block, if there is one.
    fn unit_at(&self, plane: u32, of: u32, offset: u32) -> Option<u32> {
        let slot = of * self.layout.block_units + offset;
        Initial::Full.owner(&self.layout, plane * self.layout.plane_units() + slot)
    }

    fn choose(&self, home: Home) -> Target {
        let plane = &self.planes[home.plane as usize];
        let data = plane.data[home.of as usize];
        if data == NONE || home.offset >= self.filled[data as usize] {
            return Target::Data(data);
        }
        match plane.logs.iter().position(|log| log.of == home.of) {
            Some(index) if self.is_full(plane.logs[index].block) => Target::FullLog(index),
            Some(index) => Target::Log(index),
            None => Target::NewLog,
        }
    }

    fn is_full(&self, block: u32) -> bool {
        self.filled[block as usize] == self.layout.block_units
    }

    /// Returns whether a write to this target continues the open flash page of its plane.
    fn goes_on(&self, home: Home, target: Target) -> bool {
        let plane = &self.planes[home.plane as usize];
        let begun = plane.begun.0;
        match target {
            Target::Data(block) => block == begun && self.filled[block as usize] == home.offset,
            Target::Log(index) => plane.logs[index].block == begun,
            Target::FullLog(_) | Target::NewLog => false,
        }
    }

    /// Returns the place where a page will be written, after the necessary merges.
    fn place_for(&mut self, home: Home, out: &mut Vec<Work>) -> u32 {
        let index = home.plane as usize;
        if self.planes[index].begun.0 != NONE && !self.goes_on(home, self.choose(home)) {
            self.pad_plane(home.plane, out);
        }
        if let Target::FullLog(log) = self.choose(home) {
            self.merge(home.plane, log, out);
        }
        let block_units = self.layout.block_units;
        match self.choose(home) {
            Target::Data(NONE) => {
                let block = self.take_free(home.plane);
                self.planes[index].data[home.of as usize] = block;
                block * block_units + home.offset
            }
            Target::Data(block) => block * block_units + home.offset,
            Target::Log(log) | Target::FullLog(log) => self.next_of_log(home.plane, log),
            Target::NewLog => {
                if self.planes[index].logs.len() == self.log_blocks {
                    let oldest = self.least_recent(home.plane);
                    self.merge(home.plane, oldest, out);
                }
                let block = self.take_free(home.plane);
                let logs = &mut self.planes[index].logs;
                logs.push(Log { block, of: home.of, used: 0 });
                let log = logs.len() - 1;
                self.next_of_log(home.plane, log)
            }
        }
    }

    fn next_of_log(&mut self, plane: u32, log: usize) -> u32 {
        self.clock += 1;
        let log = &mut self.planes[plane as usize].logs[log];
        log.used = self.clock;
        log.block * self.layout.block_units + self.filled[log.block as usize]
    }

    fn least_recent(&self, plane: u32) -> usize {
        let logs = self.planes[plane as usize].logs.iter().enumerate();
        let oldest = logs.min_by_key(|(_, log)| log.used);
        oldest.expect("there is at least one log block when all are out").0
    }

    fn take_free(&mut self, plane: u32) -> u32 {
        let block = self.planes[plane as usize].free.pop_front();
        block.expect("spare blocks are more than the log blocks")
    }

    fn erase(&mut self, plane: u32, block: u32, clean: &mut Clean) {
        self.filled[block as usize] = 0;
        self.erases[block as usize] += 1;
        self.planes[plane as usize].free.push_back(block);
        self.counts.erases += 1;
        clean.erases += 1;
    }

    /// Merges a log block's pages and its data block into one data block.
    fn merge(&mut self, plane: u32, log: usize, out: &mut Vec<Work>) {
        let Log { block, of, .. } = self.planes[plane as usize].logs.swap_remove(log);
        let old = self.planes[plane as usize].data[of as usize];
        let end = self.filled[block as usize];
        let mut clean = Clean::default();
        let target = if self.is_in_order(plane, of, block) {
            self.copy(plane, of, (block, end), &mut clean);
            let merges = if clean.units == 0 {
                &mut self.counts.switch_merges
            } else {
                &mut self.counts.partial_merges
            };
            *merges += 1;
            block
        } else {
            let target = self.take_free(plane);
            self.copy(plane, of, (target, 0), &mut clean);
            self.erase(plane, block, &mut clean);
            self.counts.full_merges += 1;
            target
        };
        self.planes[plane as usize].data[of as usize] = target;
        self.erase(plane, old, &mut clean);
        self.counts.cleans += 1;
        self.counts.moved += u64::from(clean.units);
        self.counts.programs += u64::from(clean.programs);
        out.push(Work { plane, kind: WorkKind::Clean(clean) });
    }

    /// Returns whether, up to the log block's end, every page of a logical block is at its own offset.
    fn is_in_order(&self, plane: u32, of: u32, block: u32) -> bool {
        let first = block * self.layout.block_units;
        (0..self.filled[block as usize]).all(|offset| {
            let place = self.unit_at(plane, of, offset).and_then(|unit| self.find(unit));
            place.is_none_or(|place| place == first + offset)
        })
    }

    /// Copies the pages of a logical block from an offset on to their offsets in another block.
    fn copy(&mut self, plane: u32, of: u32, (target, from): (u32, u32), clean: &mut Clean) {
        let Layout { block_units, page_units, .. } = self.layout;
        // The pages last read, of the data and of the log block, and the page last programmed.
        let (mut read, mut programmed) = ([NONE; 2], NONE);
        let data = self.planes[plane as usize].data[of as usize];
        for offset in from..block_units {
            let Some(unit) = self.unit_at(plane, of, offset) else { break };
            let Some(place) = self.find(unit) else { continue };
            let source = usize::from(self.layout.block_of_place(place) != data);
            let page = place / page_units;
            clean.reads += u32::from(std::mem::replace(&mut read[source], page) != page);
            let page = offset / page_units;
            clean.programs += u32::from(std::mem::replace(&mut programmed, page) != page);
            clean.units += 1;
            self.map.set(unit, target * block_units + offset);
            self.filled[target as usize] = (offset + 1).next_multiple_of(page_units);
        }
    }

    fn pad_plane(&mut self, plane: u32, out: &mut Vec<Work>) {
        let block = self.planes[plane as usize].begun.0;
        if block != NONE {
            let filled = &mut self.filled[block as usize];
            *filled = filled.next_multiple_of(self.layout.page_units);
            self.finish_page(plane, out);
        }
    }

    /// Programs the open flash page of a plane, which is full, or gets no further pages.
    fn finish_page(&mut self, plane: u32, out: &mut Vec<Work>) {
        let (block, units) = std::mem::replace(&mut self.planes[plane as usize].begun, (NONE, 0));
        self.begun.retain(|&begun| begun != plane);
        self.counts.programs += 1;
        let pages = u64::from(self.layout.block_units / self.layout.page_units);
        let page = (self.filled[block as usize] - 1) / self.layout.page_units;
        let flash_page = u64::from(block) * pages + u64::from(page);
        out.push(Work { plane, kind: WorkKind::Program { flash_page, units } });
        self.switch_if_done(plane, block, out);
    }

    /// Merges a log block at once if it was written in order to its end.
    fn switch_if_done(&mut self, plane: u32, block: u32, out: &mut Vec<Work>) {
        let logs = &self.planes[plane as usize].logs;
        let Some(index) = logs.iter().position(|log| log.block == block) else { return };
        if self.is_full(block) && self.is_in_order(plane, logs[index].of, block) {
            self.merge(plane, index, out);
        }
    }
}

impl Ftl for LogBlockFtl {
    fn place(&self, unit: u32) -> Option<Place> {
        let place = self.find(unit)?;
        let plane = self.layout.plane_of_place(place);
        Some(Place { plane, flash_page: u64::from(place / self.layout.page_units) })
    }

    fn write(&mut self, unit: u32, out: &mut Vec<Work>) {
        self.counts.host_writes += 1;
        let home = self.home(unit);
        let place = self.place_for(home, out);
        let (block, offset) = (place / self.layout.block_units, place % self.layout.block_units);
        self.map.set(unit, place);
        self.filled[block as usize] = offset + 1;
        let begun = &mut self.planes[home.plane as usize].begun;
        if begun.0 == NONE {
            self.begun.push(home.plane);
        }
        *begun = (block, begun.1 + 1);
        if (offset + 1).is_multiple_of(self.layout.page_units) {
            self.finish_page(home.plane, out);
        }
    }

    /// Programs every open page: without a write buffer they are all of this request.
    fn pad(&mut self, _unit: u32, out: &mut Vec<Work>) {
        self.pad_all(out);
    }

    fn pad_all(&mut self, out: &mut Vec<Work>) {
        while let Some(&plane) = self.begun.first() {
            self.pad_plane(plane, out);
        }
    }

    /// Unmaps the page, which is then not copied; only a merge erases its block.
    fn discard(&mut self, unit: u32, _out: &mut Vec<Work>) {
        self.map.forget(unit);
    }

    fn idle(&mut self, _plane: u32, _out: &mut Vec<Work>) {}

    fn counts(&self) -> FtlCounts {
        self.counts
    }

    fn erases(&self) -> &[u32] {
        &self.erases
    }

    fn ram_bytes(&self) -> usize {
        let of_plane = |plane: &Plane| size_of_val(&plane.data[..]) + 4 * plane.free.capacity();
        let of_blocks = size_of_val(&self.filled[..]) + size_of_val(&self.erases[..]);
        self.map.ram_bytes() + of_blocks + self.planes.iter().map(of_plane).sum::<usize>()
    }
}
