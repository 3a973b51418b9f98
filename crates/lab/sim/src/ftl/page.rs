//! The page-mapped translation layer: log-structured planes with cleaning.
//!
//! ```text
//!   host page --map--> place ----------+
//!   place --owner--> host page         |          a place holds what counts
//!                                      v          if map[owner[place]] == place
//!   plane:  | sealed | sealed | open .. ->   | free | free |
//!             ^ the victim's valid pages move to the open block, then it is erased
//! ```

use super::blocks::Blocks;
use super::grown::GrownTable;
use super::initial::Initial;
use super::map::PageMap;
use super::steady;
use super::{Clean, Ftl, FtlCounts, Layout, Place, Work, WorkKind};
use crate::spec::{Mapping, Spec, Victim};

/// The number of no block, or no page.
const NONE: u32 = u32::MAX;
/// The limit, in percent of the mean remaining life, below which a worn block takes cold data.
const MIGRATE_BELOW_PERCENT: u64 = 85;
/// The limit, in percent of the mean remaining life, below which a worn block rests, unless chance lets it be
/// cleaned.
const REST_BELOW_PERCENT: u64 = 80;

/// The page-mapped layer: see the [module](self).
#[derive(Debug)]
pub(crate) struct PageFtl {
    layout: Layout,
    map: PageMap,
    /// The host page at each place, plus one; 0 is the initial content, in a block never erased.
    owner: GrownTable,
    blocks: Blocks,
    open: Vec<Open>,
    mapping: Mapping,
    victim: Victim,
    clean_at: u32,
    background: bool,
    erases_max: u32,
    /// The domain of the next chunk, and the rest of the present one.
    domain: u32,
    chunk_left: u32,
    /// The next plane of each domain.
    turn: Vec<u32>,
    rng: u64,
    counts: FtlCounts,
}

/// The block that a plane is writing.
#[derive(Clone, Copy, Debug)]
struct Open {
    block: u32,
    /// The next unit in it.
    next: u32,
    /// Host units in the open flash page.
    host_units: u32,
}

impl PageFtl {
    /// Creates an empty device.
    pub fn empty(spec: &Spec) -> Self {
        Self::with(spec, Initial::Empty)
    }

    /// Creates a device on which every page was written once, in order.
    pub fn full(spec: &Spec) -> Self {
        let mut ftl = Self::with(spec, Initial::Full);
        let layout = &ftl.layout;
        let slots = Initial::slots(layout);
        let full = |block: u32| (slots - block * layout.block_units).min(layout.block_units);
        let valid: Vec<u32> = (0..slots.div_ceil(layout.block_units)).map(full).collect();
        ftl.fill(&valid);
        ftl
    }

    /// Creates a device as after endless random writes, in time and memory for its blocks alone.
    pub fn steady(spec: &Spec, seed: u64) -> Self {
        let initial = steady::steady(spec, &Layout::new(spec), seed);
        let mut ftl = Self::with(spec, initial);
        let Initial::Steady(steady) = ftl.map.initial() else { unreachable!("made so just now") };
        let valid = steady.valid();
        ftl.fill(&valid);
        ftl
    }

    /// Seals the first blocks of each plane with these numbers of valid pages.
    fn fill(&mut self, valid: &[u32]) {
        for plane in 0..self.layout.planes() {
            for (block, &valid) in (0..).zip(valid) {
                self.blocks.fill(self.layout.block(plane, block), valid);
            }
        }
    }

    /// Returns the valid pages of a plane's sealed blocks, the one sealed first in front.
    pub fn valid_by_age(&self, plane: u32) -> Vec<u32> {
        self.blocks.by_age(plane).map(|block| self.blocks.valid(block)).collect()
    }

    fn with(spec: &Spec, initial: Initial) -> Self {
        let layout = Layout::new(spec);
        let victim = spec.ftl.victim;
        Self {
            map: PageMap::new(initial),
            owner: GrownTable::default(),
            blocks: Blocks::new(layout.planes(), layout.blocks, layout.block_units, victim),
            open: vec![Open { block: NONE, next: 0, host_units: 0 }; layout.planes() as usize],
            mapping: spec.ftl.mapping,
            victim,
            clean_at: spec.clean_at_blocks(),
            background: spec.ftl.background,
            erases_max: spec.erases_max,
            domain: layout.domains() - 1,
            chunk_left: 0,
            turn: vec![0; layout.domains() as usize],
            rng: 1,
            counts: FtlCounts::default(),
            layout,
        }
    }

    fn find(&self, unit: u32) -> Option<u32> {
        self.map.find(&self.layout, unit)
    }

    /// Returns the host page whose present place this is.
    fn holds(&self, place: u32) -> Option<u32> {
        let unit = match self.owner.get(place) {
            0 if self.blocks.erases()[self.layout.block_of_place(place) as usize] > 0 => {
                return None;
            }
            0 => self.map.initial().owner(&self.layout, place)?,
            unit => unit - 1,
        };
        (self.find(unit) == Some(place)).then_some(unit)
    }

    /// Returns the plane of the host's next unit.
    fn plane_for(&mut self, unit: u32) -> u32 {
        match self.mapping {
            Mapping::Lba => {
                self.domain = unit / self.layout.chunk_units % self.layout.domains();
            }
            Mapping::WriteOrder if self.chunk_left == 0 => {
                self.domain = (self.domain + 1) % self.layout.domains();
                self.chunk_left = self.layout.chunk_units;
            }
            Mapping::WriteOrder => {}
        }
        self.chunk_left = self.chunk_left.saturating_sub(1);
        for _ in 0..self.layout.domains() {
            let planes = self.layout.planes_of(self.domain).len() as u32;
            for _ in 0..planes {
                let turn = self.turn[self.domain as usize];
                let plane = self.layout.planes_of(self.domain)[turn as usize];
                if self.has_space(plane) {
                    return plane;
                }
                self.turn[self.domain as usize] = (turn + 1) % planes;
            }
            self.domain = (self.domain + 1) % self.layout.domains();
        }
        unreachable!("spare blocks leave space in some plane")
    }

    fn has_space(&mut self, plane: u32) -> bool {
        let open = self.open[plane as usize];
        let is_within = open.block != NONE && open.next < self.layout.block_units;
        is_within || self.blocks.free_count(plane) > self.clean_at || self.blocks.has_gain(plane)
    }

    /// Puts a unit into the plane's open block, which has space; returns whether that fills a flash page.
    fn put(&mut self, plane: u32, unit: u32) -> bool {
        let block_units = self.layout.block_units;
        let open = &mut self.open[plane as usize];
        let place = open.block * self.layout.block_units + open.next;
        open.next += 1;
        self.owner.set(place, unit + 1);
        self.map.set(unit, place);
        self.blocks.gain(open.block);
        let is_page_full = open.next.is_multiple_of(self.layout.page_units);
        if open.next == block_units {
            let block = open.block;
            self.blocks.seal(block);
        }
        is_page_full
    }

    /// Gives the plane an open block with space, and cleans if too few are free.
    fn make_space(&mut self, plane: u32, out: &mut Vec<Work>) {
        let index = plane as usize;
        if self.open[index].block != NONE && self.open[index].next < self.layout.block_units {
            return;
        }
        self.take_block(plane);
        while self.blocks.free_count(plane) < self.clean_at {
            let Some(work) = self.clean(plane, out) else { break };
            out.push(work);
        }
        if self.open[index].next == self.layout.block_units {
            self.take_block(plane);
        }
    }

    fn take_block(&mut self, plane: u32) {
        let block = self.blocks.open(plane);
        self.open[plane as usize] = Open { block, next: 0, host_units: 0 };
    }

    /// Cleans the next block, if cleaning any frees space.
    fn clean(&mut self, plane: u32, out: &mut Vec<Work>) -> Option<Work> {
        let victim = match self.victim {
            Victim::WearAware => self.rested_victim(plane)?,
            Victim::Greedy | Victim::Fifo => self.blocks.victim(plane)?,
        };
        let mut clean = Clean { erases: 1, ..Clean::default() };
        self.move_out(victim, &mut clean, out);
        self.blocks.erase(victim);
        if self.victim == Victim::WearAware && self.is_worn(victim, MIGRATE_BELOW_PERCENT) {
            self.migrate(victim, &mut clean, out);
        }
        self.counts.cleans += 1;
        self.counts.erases += u64::from(clean.erases);
        self.counts.moved += u64::from(clean.units);
        self.counts.migrations += u64::from(clean.for_wear);
        Some(Work { plane, kind: WorkKind::Clean(clean) })
    }

    /// Moves the valid pages of a block to the plane's open one.
    fn move_out(&mut self, block: u32, clean: &mut Clean, out: &mut Vec<Work>) {
        let plane = block / self.layout.blocks;
        let first = block * self.layout.block_units;
        let mut last_page = NONE;
        for place in first..first + self.layout.block_units {
            if self.blocks.valid(block) == 0 {
                break;
            }
            let Some(unit) = self.holds(place) else { continue };
            let page = place / self.layout.page_units;
            clean.reads += u32::from(page != last_page);
            last_page = page;
            if self.open[plane as usize].next == self.layout.block_units {
                self.take_block(plane);
            }
            self.blocks.lose(block);
            clean.units += 1;
            if !self.put(plane, unit) {
                continue;
            }
            if self.open[plane as usize].host_units > 0 {
                self.finish_page(plane, out);
            } else {
                clean.programs += 1;
                self.counts.programs += 1;
            }
        }
    }

    /// Moves the oldest data onto a worn block, so that it rests.
    fn migrate(&mut self, worn: u32, clean: &mut Clean, out: &mut Vec<Work>) {
        let plane = worn / self.layout.blocks;
        let Some(cold) = self.blocks.coldest(plane) else { return };
        if self.is_worn(cold, MIGRATE_BELOW_PERCENT) {
            return;
        }
        let begun = self.open[plane as usize];
        self.blocks.open_this(worn);
        self.open[plane as usize] = Open { block: worn, next: 0, host_units: 0 };
        self.move_out(cold, clean, out);
        let end = self.open[plane as usize].next;
        if !end.is_multiple_of(self.layout.page_units) {
            clean.programs += 1;
            self.counts.programs += 1;
        }
        if end < self.layout.block_units {
            self.blocks.seal(worn);
        }
        self.open[plane as usize] = begun;
        self.blocks.erase(cold);
        clean.erases += 1;
        clean.for_wear = true;
    }

    /// Returns the emptiest block whose wear allows cleaning now.
    fn rested_victim(&mut self, plane: u32) -> Option<u32> {
        let first = self.blocks.emptiest(plane)?;
        let mut block = first;
        loop {
            if !self.is_worn(block, REST_BELOW_PERCENT) || self.may_be_worn_more(block) {
                return Some(block);
            }
            match self.blocks.after(block) {
                Some(next) => block = next,
                None => return Some(first),
            }
        }
    }

    /// Returns whether the block has less than `percent` percent of the average remaining life.
    fn is_worn(&self, block: u32, percent: u64) -> bool {
        let left = self.life_left(block) * self.blocks.erases().len() as u64 * 100;
        left < percent * self.life_left_of_all()
    }

    fn life_left(&self, block: u32) -> u64 {
        u64::from(self.erases_max.saturating_sub(self.blocks.erases()[block as usize]))
    }

    fn life_left_of_all(&self) -> u64 {
        let all = u64::from(self.erases_max) * self.blocks.erases().len() as u64;
        all.saturating_sub(self.counts.erases)
    }

    /// Returns whether a worn block may be cleaned, with a chance that shrinks with its life.
    fn may_be_worn_more(&mut self, block: u32) -> bool {
        let count = self.blocks.erases().len() as u64;
        let limit = REST_BELOW_PERCENT * self.life_left_of_all() / count / 100;
        self.rng = self.rng.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.rng >> 33) % limit.max(1) < self.life_left(block)
    }

    fn forget(&mut self, unit: u32) {
        if let Some(place) = self.find(unit) {
            self.blocks.lose(self.layout.block_of_place(place));
        }
        self.map.forget(unit);
    }
}

impl Ftl for PageFtl {
    fn place(&self, unit: u32) -> Option<Place> {
        let place = self.find(unit)?;
        let plane = self.layout.plane_of_place(place);
        Some(Place { plane, flash_page: u64::from(place / self.layout.page_units) })
    }

    fn write(&mut self, unit: u32, out: &mut Vec<Work>) {
        let plane = self.plane_for(unit);
        self.make_space(plane, out);
        self.forget(unit);
        self.counts.host_writes += 1;
        self.open[plane as usize].host_units += 1;
        if self.put(plane, unit) {
            self.finish_page(plane, out);
        }
    }

    fn pad(&mut self, unit: u32, out: &mut Vec<Work>) {
        if let Some(place) = self.place(unit) {
            self.pad_plane(place.plane, out);
        }
    }

    fn pad_all(&mut self, out: &mut Vec<Work>) {
        (0..self.layout.planes()).for_each(|plane| self.pad_plane(plane, out));
    }

    fn discard(&mut self, unit: u32, _out: &mut Vec<Work>) {
        self.forget(unit);
    }

    fn idle(&mut self, plane: u32, out: &mut Vec<Work>) {
        let free = self.blocks.free_count(plane);
        let open = self.open[plane as usize];
        let has_begun = open.block != NONE && open.next < self.layout.block_units;
        if self.background && has_begun && (1..=2 * self.clean_at).contains(&free) {
            let work = self.clean(plane, out);
            out.extend(work);
        }
    }

    fn counts(&self) -> FtlCounts {
        self.counts
    }

    fn erases(&self) -> &[u32] {
        self.blocks.erases()
    }

    fn ram_bytes(&self) -> usize {
        self.map.ram_bytes() + self.owner.ram_bytes() + self.blocks.ram_bytes()
    }
}

impl PageFtl {
    fn pad_plane(&mut self, plane: u32, out: &mut Vec<Work>) {
        let open = &mut self.open[plane as usize];
        if open.host_units == 0 {
            return;
        }
        open.next = open.next.next_multiple_of(self.layout.page_units);
        if open.next == self.layout.block_units {
            let block = open.block;
            self.blocks.seal(block);
        }
        self.finish_page(plane, out);
        self.chunk_left = 0;
    }

    /// Programs a flash page of the host, which is full, or gets no further pages.
    fn finish_page(&mut self, plane: u32, out: &mut Vec<Work>) {
        self.counts.programs += 1;
        let open = &mut self.open[plane as usize];
        let units = std::mem::take(&mut open.host_units);
        let last =
            u64::from(open.block) * u64::from(self.layout.block_units) + u64::from(open.next) - 1;
        let flash_page = last / u64::from(self.layout.page_units);
        let (domain, _) = self.layout.domain_of(plane);
        let turn = &mut self.turn[domain as usize];
        *turn = (*turn + 1) % self.layout.planes_of(domain).len() as u32;
        out.push(Work { plane, kind: WorkKind::Program { flash_page, units } });
    }
}

#[cfg(test)]
impl PageFtl {
    /// Returns the owner of a host page's place, by the other table.
    pub fn owner_of(&self, unit: u32) -> Option<u32> {
        self.holds(self.find(unit)?)
    }

    pub fn valid(&self, block: u32) -> u32 {
        self.blocks.valid(block)
    }
}
