//! One flash package of DiskSim's SSD extension: where its pages lie, what cleaning does, what all costs.

use std::collections::VecDeque;

/// How large an element is. The validation suite's is [`Shape::SUITE`].
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub planes: usize,
    /// Blocks of a plane.
    pub rows: usize,
    /// Pages of a block; the last one is for the summary.
    pub pages: usize,
    /// Blocks of a plane that are free at the start, the one being written among them.
    pub spare_rows: usize,
    /// Cleaning begins at so many free blocks of a plane.
    pub low_rows: i64,
}

impl Shape {
    pub const SUITE: Self =
        Self { planes: 8, rows: 2048, pages: 64, spare_rows: 307, low_rows: 102 };

    const fn blocks(&self) -> usize {
        self.planes * self.rows
    }

    /// Logical pages of an element.
    pub const fn logical(&self) -> usize {
        self.planes * (self.rows - self.spare_rows) * (self.pages - 1)
    }
}

// Picoseconds.
const READ: u64 = 25_000_000;
const PROGRAM: u64 = 200_000_000;
const ERASE: u64 = 1_500_000_000;
/// 512 bytes and 16 of check code, at 25 ns each.
const SECTOR: u64 = 13_200_000;
const PAGE: u64 = 8 * SECTOR;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    InUse,
    Sealed,
}

#[derive(Clone, Debug)]
struct Block {
    state: State,
    /// The order in which blocks were opened; 0 for a free one.
    sequence: u64,
    valid: usize,
}

/// What an element has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    pub pages: u64,
    pub cleans: u64,
    pub moved: u64,
    pub clean_ps: u64,
    pub busy_ps: u64,
}

/// A page that waits for its element.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub request: u64,
    pub reads: bool,
    pub logical: usize,
}

/// What an element turns to next, and for how long.
#[derive(Clone, Copy, Debug)]
pub enum Turn {
    Clean(u64),
    Serve(Page, u64),
}

#[derive(Debug)]
pub struct Element {
    shape: Shape,
    /// The physical page of each logical one.
    map: Vec<usize>,
    /// The logical page that is valid in each physical one.
    owner: Vec<Option<usize>>,
    /// Block b is row b / planes of plane b % planes.
    blocks: Vec<Block>,
    free: Vec<i64>,
    /// The next physical page of each plane.
    active: Vec<usize>,
    /// The row from which each plane looks for a free block.
    cursor: Vec<usize>,
    sequence: u64,
    plane_to_write: usize,
    plane_to_clean: usize,
    pub queue: VecDeque<Page>,
    pub is_busy: bool,
    pub counts: Counts,
}

impl Element {
    /// Every logical page is mapped, in order; one block of each plane is begun.
    pub fn new(shape: Shape) -> Self {
        let free = Block { state: State::Free, sequence: 0, valid: 0 };
        let spare = i64::try_from(shape.spare_rows).unwrap();
        let mut element = Self {
            shape,
            map: Vec::with_capacity(shape.logical()),
            owner: vec![None; shape.blocks() * shape.pages],
            blocks: vec![free; shape.blocks()],
            free: vec![spare; shape.planes],
            active: vec![0; shape.planes],
            cursor: vec![0; shape.planes],
            sequence: 0,
            plane_to_write: 0,
            plane_to_clean: 0,
            queue: VecDeque::new(),
            is_busy: false,
            counts: Counts::default(),
        };
        element.fill();
        element
    }

    fn fill(&mut self) {
        let used = self.shape.planes * (self.shape.rows - self.shape.spare_rows);
        for block in 0..used {
            self.begin(block);
            for page in (block * self.shape.pages..).take(self.shape.pages - 1) {
                self.owner[page] = Some(self.map.len());
                self.map.push(page);
            }
            self.blocks[block].valid = self.shape.pages - 1;
            // The last one stays in use, and is thus never cleaned.
            if block + 1 < used {
                self.blocks[block].state = State::Sealed;
            }
        }
        for plane in 0..self.shape.planes {
            self.begin(used + plane);
            self.active[plane] = (used + plane) * self.shape.pages;
            self.free[plane] -= 1;
        }
    }

    fn begin(&mut self, block: usize) {
        self.sequence += 1;
        let block = &mut self.blocks[block];
        (block.state, block.sequence) = (State::InUse, self.sequence);
    }

    /// What to do now, which is done to the map at once; `None` while busy, or when nothing waits.
    pub fn turn(&mut self) -> Option<Turn> {
        if self.is_busy || self.queue.is_empty() {
            return None;
        }
        self.is_busy = true;
        if let Some(plane) = self.plane_in_need() {
            let cost = self.clean(plane);
            self.counts.clean_ps += cost;
            return Some(Turn::Clean(cost));
        }
        let page = self.queue.pop_front()?;
        let cost = if page.reads { READ + PAGE } else { PAGE + self.write(page.logical) };
        self.counts.pages += 1;
        self.counts.busy_ps += cost;
        Some(Turn::Serve(page, cost))
    }

    fn plane_in_need(&mut self) -> Option<usize> {
        let planes = self.shape.planes;
        let mut scan = (self.plane_to_clean..planes).chain(0..self.plane_to_clean);
        let plane = scan.find(|&plane| self.free[plane] <= self.shape.low_rows)?;
        self.plane_to_clean = (plane + 1) % planes;
        Some(plane)
    }

    fn clean(&mut self, plane: usize) -> u64 {
        let sealed = (plane..self.shape.blocks()).step_by(self.shape.planes);
        let sealed = sealed.filter(|&block| self.blocks[block].state == State::Sealed);
        // Of equals the highest row: `min_by_key` takes the first, so look from the end.
        let victim = sealed.rev().min_by_key(|&block| self.blocks[block].valid).unwrap();
        let mut cost = ERASE;
        for page in (victim * self.shape.pages..).take(self.shape.pages - 1) {
            if let Some(logical) = self.owner[page] {
                cost += READ + self.put(logical, plane);
                self.counts.moved += 1;
            }
        }
        assert_eq!(self.blocks[victim].valid, 0, "all that was valid has moved");
        self.blocks[victim] = Block { state: State::Free, sequence: 0, valid: 0 };
        self.free[plane] += 1;
        self.counts.cleans += 1;
        cost
    }

    fn write(&mut self, logical: usize) -> u64 {
        let plane = self.plane_for(logical);
        self.plane_to_write = (plane + 1) % self.shape.planes;
        self.put(logical, plane)
    }

    /// The plane with the most free pages, of those whose active page is newer than the present copy.
    fn plane_for(&self, logical: usize) -> usize {
        let planes = self.shape.planes;
        let present = self.map[logical];
        let age = |page: usize| (self.blocks[page / self.shape.pages].sequence, page);
        let room = |plane: usize| {
            let left = self.shape.pages - self.active[plane] % self.shape.pages;
            self.free[plane] * i64::try_from(self.shape.pages).unwrap()
                + i64::try_from(left).unwrap()
        };
        let scan = (self.plane_to_write..planes).chain(0..self.plane_to_write);
        let newer = scan.filter(|&plane| age(self.active[plane]) > age(present));
        // Of equals the first: `max_by_key` takes the last, so look from the end.
        let newer: Vec<usize> = newer.collect();
        newer.into_iter().rev().max_by_key(|&plane| room(plane)).unwrap()
    }

    /// Programs the plane's active page, and the summary where that fills the block.
    fn put(&mut self, logical: usize, plane: usize) -> u64 {
        let pages = self.shape.pages;
        if self.active[plane] % pages == pages - 1 {
            self.open(plane);
        }
        let (from, to) = (self.map[logical], self.active[plane]);
        assert_eq!(self.owner[from], Some(logical), "map and owners agree");
        self.owner[from] = None;
        self.blocks[from / pages].valid -= 1;
        self.owner[to] = Some(logical);
        self.blocks[to / pages].valid += 1;
        self.map[logical] = to;
        self.active[plane] = to + 1;
        if (to + 1) % pages < pages - 1 {
            return PROGRAM;
        }
        self.blocks[to / pages].state = State::Sealed;
        PROGRAM + SECTOR + PROGRAM
    }

    /// Gives the plane a new active block: the next free one, round and round.
    fn open(&mut self, plane: usize) {
        let rows = self.shape.rows;
        let block = |row: usize| row * self.shape.planes + plane;
        let mut scan = (self.cursor[plane]..rows).chain(0..self.cursor[plane]);
        let row = scan.find(|&row| self.blocks[block(row)].state == State::Free).unwrap();
        let block = block(row);
        self.cursor[plane] = (row + 1) % rows;
        self.begin(block);
        self.active[plane] = block * self.shape.pages;
        self.free[plane] -= 1;
    }
}
