//! The blocks of an element: their states, valid pages and wear, and the choice of the block to clean.

use super::ranks::Ranks;
use super::shape::Shape;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BlockState {
    /// An erased block.
    Free,
    /// A block being written.
    InUse,
    /// A block written to its end, including the summary.
    Sealed,
}

/// The blocks of an element: block b is row b / planes of plane b mod planes.
#[derive(Debug)]
pub(super) struct Blocks {
    planes: u32,
    rows: u32,
    erases_max: u32,
    state: Vec<BlockState>,
    /// The order in which blocks were opened; 0 for a free one.
    sequence: Vec<u64>,
    valid: Vec<u16>,
    erases: Vec<u32>,
    erased_ps: Vec<u64>,
    /// Sealed blocks by row, of each plane.
    sealed: Vec<Ranks>,
    free: Vec<u32>,
    /// The row from which each plane searches for a free block.
    cursor: Vec<u32>,
    opened: u64,
}

impl Blocks {
    /// Creates a set of free blocks.
    pub fn new(shape: &Shape) -> Self {
        let count = shape.element_blocks() as usize;
        let planes = shape.planes as usize;
        Self {
            planes: shape.planes,
            rows: shape.blocks,
            erases_max: shape.erases_max,
            state: vec![BlockState::Free; count],
            sequence: vec![0; count],
            valid: vec![0; count],
            erases: vec![0; count],
            erased_ps: vec![0; count],
            sealed: vec![Ranks::new(shape.data_pages(), shape.blocks); planes],
            free: vec![shape.blocks; planes],
            cursor: vec![0; planes],
            opened: 0,
        }
    }

    pub fn free_count(&self, plane: u32) -> u32 {
        self.free[plane as usize]
    }

    pub fn sequence(&self, block: u32) -> u64 {
        self.sequence[block as usize]
    }

    pub fn valid(&self, block: u32) -> u32 {
        u32::from(self.valid[block as usize])
    }

    pub fn erases(&self, plane: u32) -> impl Iterator<Item = u32> {
        self.rows_of(plane).map(|block| self.erases[block as usize])
    }

    /// Returns the plane's blocks from the first row to the last.
    fn rows_of(&self, plane: u32) -> impl Iterator<Item = u32> + use<> {
        (plane..self.planes * self.rows).step_by(self.planes as usize)
    }

    /// Opens this block, for the initial state of a device.
    pub fn open_this(&mut self, block: u32) {
        self.opened += 1;
        self.state[block as usize] = BlockState::InUse;
        self.sequence[block as usize] = self.opened;
        self.free[(block % self.planes) as usize] -= 1;
    }

    /// Opens the plane's next free block, in cyclic order.
    pub fn open(&mut self, plane: u32) -> u32 {
        let cursor = self.cursor[plane as usize];
        let mut rows = (cursor..self.rows).chain(0..cursor);
        let row =
            rows.find(|row| self.state[(row * self.planes + plane) as usize] == BlockState::Free);
        let row = row.expect("the last free block of a plane is left to cleaning");
        self.cursor[plane as usize] = (row + 1) % self.rows;
        let block = row * self.planes + plane;
        self.open_this(block);
        block
    }

    /// Counts one more valid page of a block that is being written.
    pub fn gain(&mut self, block: u32) {
        self.valid[block as usize] += 1;
    }

    /// Counts one valid page of the block less.
    pub fn lose(&mut self, block: u32) {
        let valid = &mut self.valid[block as usize];
        *valid -= 1;
        if self.state[block as usize] == BlockState::Sealed {
            let (rank, row) = (u32::from(*valid), block / self.planes);
            let sealed = &mut self.sealed[(block % self.planes) as usize];
            sealed.remove(rank + 1, row);
            sealed.insert(rank, row);
        }
    }

    /// Seals a full block, which may be cleaned from then on.
    pub fn seal(&mut self, block: u32) {
        self.state[block as usize] = BlockState::Sealed;
        let (rank, row) = (self.valid(block), block / self.planes);
        self.sealed[(block % self.planes) as usize].insert(rank, row);
    }

    /// Erases a sealed block without valid pages.
    pub fn erase(&mut self, block: u32, at_ps: u64) {
        debug_assert_eq!(self.valid(block), 0, "what is valid moves before an erase");
        let plane = (block % self.planes) as usize;
        self.sealed[plane].remove(0, block / self.planes);
        self.free[plane] += 1;
        let block = block as usize;
        (self.state[block], self.sequence[block]) = (BlockState::Free, 0);
        self.erases[block] = self.erases[block].saturating_add(1);
        self.erased_ps[block] = at_ps;
    }

    /// Gives the pages of a sealed block to a free one; the sealed block has no valid page then.
    pub fn take_over(&mut self, source: u32, target: u32) {
        let plane = (target % self.planes) as usize;
        let (from, to) = (source as usize, target as usize);
        let rank = self.valid(source);
        self.sealed[plane].remove(rank, source / self.planes);
        self.sequence[to] = self.sequence[from];
        self.valid[to] = std::mem::take(&mut self.valid[from]);
        self.free[plane] -= 1;
        self.seal(target);
        self.seal(source);
    }

    /// Returns whether the plane has a sealed block with an invalid page.
    pub fn can_gain(&self, plane: u32) -> bool {
        self.sealed[plane as usize].has_below_last()
    }

    /// Returns the sealed block with the fewest valid pages, of equals the one in the highest row; a worn-out
    /// one only if no other frees anything.
    pub fn emptiest(&self, plane: u32) -> Option<u32> {
        let sealed = &self.sealed[plane as usize];
        let block = |row: u32| row * self.planes + plane;
        let live = sealed.find(|row| !self.is_worn_out(block(row)));
        live.or_else(|| sealed.find(|_| true)).map(block)
    }

    fn is_worn_out(&self, block: u32) -> bool {
        self.erases[block as usize] >= self.erases_max
    }

    /// Collects the candidates of the wear-aware policy: sealed blocks that are not worn out and have at most
    /// as many valid pages as any in a lower row, the highest row first.
    pub fn candidates(&self, plane: u32, out: &mut Vec<u32>) {
        out.clear();
        let mut fewest = u32::MAX;
        for block in self.rows_of(plane) {
            let is_sealed = self.state[block as usize] == BlockState::Sealed;
            if is_sealed && !self.is_worn_out(block) && self.valid(block) <= fewest {
                fewest = self.valid(block);
                out.push(block);
            }
        }
        out.reverse();
    }

    /// Returns the sealed block with valid pages that was erased longest ago, of equals the one in the lowest
    /// row.
    pub fn coldest(&self, plane: u32) -> Option<u32> {
        let blocks = self.rows_of(plane).filter(|&block| {
            self.state[block as usize] == BlockState::Sealed && self.valid(block) > 0
        });
        blocks.min_by_key(|&block| self.erased_ps[block as usize])
    }

    /// Returns the remaining erases of a block.
    pub fn life(&self, block: u32) -> u64 {
        u64::from(self.erases_max.saturating_sub(self.erases[block as usize]))
    }

    /// Returns the remaining erases of all blocks of a plane.
    pub fn plane_life(&self, plane: u32) -> u64 {
        self.rows_of(plane).map(|block| self.life(block)).sum()
    }
}
