//! One package of flash: the places of its pages, its cleaning, and the time of both.

use std::collections::VecDeque;

use super::blocks::Blocks;
use super::shape::{Cleaning, PAGE_SECTORS, Shape};
use nandex_sim::workload::SplitMix64;

/// The number of no page.
const NONE: u32 = u32::MAX;

/// The work of an element.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Pages read and written for the host.
    pub pages: u64,
    /// Blocks erased.
    pub cleans: u64,
    /// Valid pages moved to the block being written by cleaning.
    pub moved: u64,
    /// Blocks whose data moved onto a worn block.
    pub migrations: u64,
    /// Valid pages moved by that.
    pub migrated: u64,
    /// Blocks that a write of the host filled, so that it programmed their summary as well.
    pub sealed_by_host: u64,
    /// Blocks that a page moved by cleaning filled.
    pub sealed_by_cleaning: u64,
    /// Time spent cleaning, migrations included, in picoseconds.
    pub clean_ps: u64,
    /// Time spent on the host's pages, in picoseconds.
    pub busy_ps: u64,
}

/// A page of a request that is waiting for its element.
#[derive(Clone, Copy, Debug)]
struct Page {
    request: u32,
    logical: u32,
    reads: bool,
    /// Time spent cleaning before it arrived, to compute the part of its waiting that was due to cleaning.
    cleaned_ps: u64,
}

/// A page that its element has served.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Served {
    pub request: u32,
    pub started_ps: u64,
    /// The part of its waiting in which the element was cleaning.
    pub cleaning_ps: u64,
    pub bus_ps: u64,
    pub array_ps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Plane {
    /// The next page to be programmed; a block's last page if that block is sealed.
    active: u32,
    /// The number of the block of the active page, kept when it is sealed.
    sequence: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    Nothing,
    Cleaning,
    Serving(Served),
}

/// A step on the flash, for tests of the order of programs.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Program(u32),
    Erase(u32),
    /// The block takes over another one's pages.
    TakeOver(u32),
}

#[derive(Debug)]
pub(super) struct Element {
    shape: Shape,
    /// The physical page of each logical one.
    map: Vec<u32>,
    /// The logical page that is valid in each physical one.
    owner: Vec<u32>,
    pub blocks: Blocks,
    planes: Vec<Plane>,
    plane_to_write: u32,
    plane_to_clean: u32,
    queue: VecDeque<Page>,
    doing: Doing,
    /// The end of the present or last cleaning.
    clean_until_ps: u64,
    rng: SplitMix64,
    candidates: Vec<u32>,
    pub counts: Counts,
    #[cfg(test)]
    pub steps: Vec<Step>,
}

impl Element {
    /// Maps every logical page, in order, and begins one block of each plane.
    pub fn new(shape: &Shape, rng: SplitMix64) -> Self {
        let pages = (shape.element_blocks() * shape.pages) as usize;
        let begun = Plane { active: 0, sequence: 0 };
        let mut element = Self {
            shape: *shape,
            map: Vec::with_capacity(shape.element_pages() as usize),
            owner: vec![NONE; pages],
            blocks: Blocks::new(shape),
            planes: vec![begun; shape.planes as usize],
            plane_to_write: 0,
            plane_to_clean: 0,
            queue: VecDeque::new(),
            doing: Doing::Nothing,
            clean_until_ps: 0,
            rng,
            candidates: Vec::new(),
            counts: Counts::default(),
            #[cfg(test)]
            steps: Vec::new(),
        };
        element.fill();
        element
    }

    fn fill(&mut self) {
        let Shape { planes, blocks, pages, spare_blocks, .. } = self.shape;
        let used = planes * (blocks - spare_blocks);
        for block in 0..used {
            self.blocks.open_this(block);
            for page in (block * pages..).take(self.shape.data_pages() as usize) {
                self.owner[page as usize] = self.map.len() as u32;
                self.map.push(page);
                self.blocks.gain(block);
            }
            // The last block stays in use, and is thus never cleaned.
            if block + 1 < used {
                self.blocks.seal(block);
            }
        }
        for plane in 0..planes {
            self.blocks.open_this(used + plane);
            self.begin(plane, used + plane);
        }
    }

    fn begin(&mut self, plane: u32, block: u32) {
        let sequence = self.blocks.sequence(block);
        self.planes[plane as usize] = Plane { active: block * self.shape.pages, sequence };
    }

    pub fn push(&mut self, request: u32, logical: u32, reads: bool, now_ps: u64) {
        let to_come = self.clean_until_ps.saturating_sub(now_ps);
        let cleaned_ps = self.counts.clean_ps - to_come;
        self.queue.push_back(Page { request, logical, reads, cleaned_ps });
    }

    /// Starts the next work, which changes the map at once, and returns the time at which it will end; `None`
    /// while busy, or when nothing is waiting.
    pub fn turn(&mut self, now_ps: u64) -> Option<u64> {
        if self.doing != Doing::Nothing || self.queue.is_empty() {
            return None;
        }
        if let Some(plane) = self.plane_in_need() {
            let cost_ps = self.clean(plane, now_ps);
            self.counts.clean_ps += cost_ps;
            self.clean_until_ps = now_ps + cost_ps;
            self.doing = Doing::Cleaning;
            return Some(self.clean_until_ps);
        }
        let Page { request, logical, reads, cleaned_ps } = self.queue.pop_front()?;
        let times = self.shape.times;
        let page_ps = PAGE_SECTORS * times.sector_ps;
        let (bus_ps, array_ps) =
            if reads { (page_ps, times.read_ps) } else { self.write(logical, page_ps) };
        let cost_ps = bus_ps + array_ps;
        self.counts.pages += 1;
        self.counts.busy_ps += cost_ps;
        let cleaning_ps = self.counts.clean_ps - cleaned_ps;
        let started_ps = now_ps;
        self.doing = Doing::Serving(Served { request, started_ps, cleaning_ps, bus_ps, array_ps });
        Some(now_ps + cost_ps)
    }

    /// Ends the present work, and returns its page if it was one.
    pub fn ended(&mut self) -> Option<Served> {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Serving(served) => Some(served),
            Doing::Nothing | Doing::Cleaning => None,
        }
    }

    /// Returns the next plane in turn that has few free blocks, and a block that frees some pages.
    fn plane_in_need(&mut self) -> Option<u32> {
        let planes = self.shape.planes;
        let mut scan = (self.plane_to_clean..planes).chain(0..self.plane_to_clean);
        let plane = scan.find(|&plane| {
            self.blocks.free_count(plane) <= self.shape.clean_at_blocks
                && self.blocks.can_gain(plane)
        })?;
        self.plane_to_clean = (plane + 1) % planes;
        Some(plane)
    }

    fn clean(&mut self, plane: u32, now_ps: u64) -> u64 {
        let (victim, before_ps) = match self.shape.cleaning {
            Cleaning::Greedy => (None, 0),
            Cleaning::WearAware => self.pick_by_wear(plane, now_ps),
        };
        let victim = victim.or_else(|| self.blocks.emptiest(plane));
        let victim = victim.expect("a plane that can gain has a block to clean");
        before_ps + self.empty(victim, plane, now_ps)
    }

    /// Moves the valid pages to the plane's active block, and erases.
    fn empty(&mut self, victim: u32, plane: u32, now_ps: u64) -> u64 {
        let times = self.shape.times;
        let (mut cost_ps, mut last_ps) = (0, 0);
        let first = victim * self.shape.pages;
        for page in first..first + self.shape.data_pages() {
            if self.blocks.valid(victim) == 0 {
                break;
            }
            let logical = self.owner[page as usize];
            if logical == NONE {
                continue;
            }
            let fills = self.put(logical, plane);
            self.counts.moved += 1;
            self.counts.sealed_by_cleaning += u64::from(fills);
            last_ps = times.read_ps + times.program_ps;
            if fills {
                last_ps += times.sector_ps + times.program_ps;
            }
            cost_ps += last_ps;
        }
        #[cfg(test)]
        self.steps.push(Step::Erase(victim));
        // DiskSim dates an erase as if only the block's last page had moved before it; only the
        // wear-aware policy looks at that.
        self.blocks.erase(victim, now_ps + last_ps + times.erase_ps);
        self.counts.cleans += 1;
        cost_ps + times.erase_ps
    }

    /// Returns the first of the candidates that may be worn further; or, if cold data move onto a worn one,
    /// the block that they leave, with the time that this takes. `None` if greed decides.
    fn pick_by_wear(&mut self, plane: u32, now_ps: u64) -> (Option<u32>, u64) {
        let mut candidates = std::mem::take(&mut self.candidates);
        self.blocks.candidates(plane, &mut candidates);
        let plane_life = self.blocks.plane_life(plane);
        let rows = u64::from(self.shape.blocks);
        let mut picked = (None, 0);
        for (index, &block) in candidates.iter().enumerate() {
            // Comparisons of its life with 85 and 80 % of the mean, in whole numbers.
            let life = self.blocks.life(block) * rows * 100;
            if index + 1 == candidates.len() || life >= 85 * plane_life {
                picked = (Some(block), 0);
                break;
            }
            if let Some(cold) = self.blocks.coldest(plane).filter(|&cold| cold != block) {
                picked = (Some(cold), self.migrate(cold, block, plane, now_ps));
                break;
            }
            let limit = 80 * plane_life;
            if life >= limit || self.rng.below(limit) < life {
                picked = (Some(block), 0);
                break;
            }
        }
        self.candidates = candidates;
        let (block, _) = picked;
        // Cleaning a fully valid block frees nothing: then the emptiest block is taken.
        let gains = |&block: &u32| self.blocks.valid(block) < self.shape.data_pages();
        (block.filter(gains), picked.1)
    }

    /// Empties the worn block and copies the cold one's pages there, page for page.
    fn migrate(&mut self, cold: u32, worn: u32, plane: u32, now_ps: u64) -> u64 {
        let Shape { pages, times, .. } = self.shape;
        let empty_ps = self.empty(worn, plane, now_ps);
        let valid = u64::from(self.blocks.valid(cold));
        for index in 0..self.shape.data_pages() {
            let (from, to) = (cold * pages + index, worn * pages + index);
            let logical = std::mem::replace(&mut self.owner[from as usize], NONE);
            self.owner[to as usize] = logical;
            if logical != NONE {
                self.map[logical as usize] = to;
            }
        }
        #[cfg(test)]
        self.steps.push(Step::TakeOver(worn));
        self.blocks.take_over(cold, worn);
        self.counts.migrations += 1;
        self.counts.migrated += valid;
        empty_ps + valid * (times.read_ps + times.program_ps)
    }

    /// Writes a page, and returns the time on the bus and in the array.
    fn write(&mut self, logical: u32, page_ps: u64) -> (u64, u64) {
        let plane = self.plane_for(logical);
        self.plane_to_write = (plane + 1) % self.shape.planes;
        let times = self.shape.times;
        if !self.put(logical, plane) {
            return (page_ps, times.program_ps);
        }
        self.counts.sealed_by_host += 1;
        (page_ps + times.sector_ps, 2 * times.program_ps)
    }

    /// Returns the plane with the most free pages, of those whose active page is newer than the present copy;
    /// if none of these has space, of all that have.
    fn plane_for(&self, logical: u32) -> u32 {
        let present = self.map[logical as usize];
        let age = match present {
            NONE => (0, 0),
            page => (self.blocks.sequence(page / self.shape.pages), page),
        };
        let plane = self.emptiest(age).or_else(|| self.emptiest((0, 0)));
        plane.expect("spare blocks leave space in one of the planes")
    }

    fn emptiest(&self, newer_than: (u64, u32)) -> Option<u32> {
        let pages = self.shape.pages;
        let mut best = None;
        let mut most = 0;
        let start = self.plane_to_write;
        for plane in (start..self.shape.planes).chain(0..start) {
            let Plane { active, sequence } = self.planes[plane as usize];
            let free = self.blocks.free_count(plane);
            let left = pages - active % pages;
            // The last free block is reserved for cleaning.
            let has_space = left > 1 || free > 1;
            let space = free * pages + left;
            if space > most && has_space && (sequence, active) > newer_than {
                (best, most) = (Some(plane), space);
            }
        }
        best
    }

    /// Programs the plane's active page, and returns whether that fills its block.
    fn put(&mut self, logical: u32, plane: u32) -> bool {
        let (pages, data_pages) = (self.shape.pages, self.shape.data_pages());
        if self.planes[plane as usize].active % pages == data_pages {
            let block = self.blocks.open(plane);
            self.begin(plane, block);
        }
        self.forget(logical);
        let to = self.planes[plane as usize].active;
        #[cfg(test)]
        self.steps.push(Step::Program(to));
        self.owner[to as usize] = logical;
        self.map[logical as usize] = to;
        self.blocks.gain(to / pages);
        self.planes[plane as usize].active = to + 1;
        let fills = (to + 1) % pages == data_pages;
        if fills {
            self.blocks.seal(to / pages);
        }
        fills
    }

    /// Unmaps the logical page.
    pub fn forget(&mut self, logical: u32) {
        let page = std::mem::replace(&mut self.map[logical as usize], NONE);
        if page != NONE {
            self.owner[page as usize] = NONE;
            self.blocks.lose(page / self.shape.pages);
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
