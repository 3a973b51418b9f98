//! The blocks of all planes: the free ones, the valid units of each, and the next one to clean.

use std::collections::VecDeque;

use crate::spec::Victim;

const NONE: u32 = u32::MAX;

/// The state of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BlockState {
    /// An erased block, which can be written.
    Free,
    /// A block being written.
    Open,
    /// A block written to its end.
    Sealed,
}

/// The set of all blocks of a device, numbered plane by plane.
///
/// Sealed blocks of a plane with the same number of valid units form a list, so that the emptiest is found at
/// once and an overwrite moves a block from one list to the next in constant time.
#[derive(Debug)]
pub(super) struct Blocks {
    per_plane: u32,
    units: u32,
    victim: Victim,
    state: Vec<BlockState>,
    valid: Vec<u16>,
    erases: Vec<u32>,
    /// The number of blocks sealed before it was sealed.
    sealed_at: Vec<u64>,
    next: Vec<u32>,
    previous: Vec<u32>,
    heads: Vec<u32>,
    /// The lowest number of valid units whose list may have a block, for each plane.
    lowest: Vec<u16>,
    free: Vec<VecDeque<u32>>,
    /// Sealed blocks, oldest first; blocks that are no longer sealed, or were sealed again, are skipped.
    oldest: Vec<VecDeque<(u32, u64)>>,
    seals: u64,
}

impl Blocks {
    /// Creates a set of free blocks.
    pub fn new(planes: u32, per_plane: u32, units: u32, victim: Victim) -> Self {
        let count = (planes * per_plane) as usize;
        Self {
            per_plane,
            units,
            victim,
            state: vec![BlockState::Free; count],
            valid: vec![0; count],
            erases: vec![0; count],
            sealed_at: vec![0; count],
            next: vec![NONE; count],
            previous: vec![NONE; count],
            heads: vec![NONE; planes as usize * (units as usize + 1)],
            lowest: vec![units as u16; planes as usize],
            free: (0..planes)
                .map(|plane| (plane * per_plane..(plane + 1) * per_plane).collect())
                .collect(),
            oldest: vec![VecDeque::new(); planes as usize],
            seals: 0,
        }
    }

    /// Returns the bytes of RAM of the lists.
    pub fn ram_bytes(&self) -> usize {
        let of_block =
            size_of::<BlockState>() + size_of::<u16>() + size_of::<u64>() + 3 * size_of::<u32>();
        let free: usize = self.free.iter().map(VecDeque::capacity).sum();
        let oldest: usize = self.oldest.iter().map(VecDeque::capacity).sum();
        of_block * self.state.len()
            + size_of::<u32>() * (self.heads.len() + free)
            + size_of::<(u32, u64)>() * oldest
    }

    pub fn free_count(&self, plane: u32) -> u32 {
        self.free[plane as usize].len() as u32
    }

    pub fn valid(&self, block: u32) -> u32 {
        u32::from(self.valid[block as usize])
    }

    pub fn erases(&self) -> &[u32] {
        &self.erases
    }

    /// Opens the block that has been free for longest.
    pub fn open(&mut self, plane: u32) -> u32 {
        let block = self.free[plane as usize].pop_front();
        let block = block.expect("cleaning leaves a free block before the last is taken");
        self.state[block as usize] = BlockState::Open;
        block
    }

    /// Removes this block from the free ones.
    pub fn open_this(&mut self, block: u32) {
        let free = &mut self.free[(block / self.per_plane) as usize];
        // A device that is filled at once takes its blocks in order.
        let place = free.iter().position(|&other| other == block);
        free.remove(place.expect("only a free block is opened"));
        self.state[block as usize] = BlockState::Open;
    }

    /// Counts one more valid unit of an open block.
    pub fn gain(&mut self, block: u32) {
        debug_assert_eq!(self.state[block as usize], BlockState::Open);
        self.valid[block as usize] += 1;
    }

    /// Counts one valid unit of the block less.
    pub fn lose(&mut self, block: u32) {
        let index = block as usize;
        if self.state[index] != BlockState::Sealed {
            self.valid[index] -= 1;
            return;
        }
        self.unlink(block);
        self.valid[index] -= 1;
        self.link(block);
    }

    /// Seals a full block, which may be cleaned from then on.
    pub fn seal(&mut self, block: u32) {
        self.state[block as usize] = BlockState::Sealed;
        self.seals += 1;
        self.sealed_at[block as usize] = self.seals;
        self.link(block);
        if self.victim != Victim::Greedy {
            self.remember_age(block);
        }
    }

    fn remember_age(&mut self, block: u32) {
        let oldest = &mut self.oldest[(block / self.per_plane) as usize];
        if oldest.len() >= 4 * self.per_plane as usize {
            let (state, sealed_at) = (&self.state, &self.sealed_at);
            oldest.retain(|&(block, at)| {
                state[block as usize] == BlockState::Sealed && sealed_at[block as usize] == at
            });
        }
        oldest.push_back((block, self.seals));
    }

    /// Sets the valid units of a block of a new device, and seals it.
    pub fn fill(&mut self, block: u32, valid: u32) {
        self.open_this(block);
        self.valid[block as usize] = u16::try_from(valid).expect("no more than a block's units");
        self.seal(block);
    }

    /// Erases a block whose valid units have been moved.
    pub fn erase(&mut self, block: u32) {
        let index = block as usize;
        debug_assert_eq!(self.valid[index], 0, "an erase loses nothing");
        if self.state[index] == BlockState::Sealed {
            self.unlink(block);
        }
        self.state[index] = BlockState::Free;
        self.erases[index] += 1;
        self.free[(block / self.per_plane) as usize].push_back(block);
    }

    /// Returns the block to clean next; `None` if no block would free space.
    pub fn victim(&mut self, plane: u32) -> Option<u32> {
        match self.victim {
            Victim::Greedy | Victim::WearAware => self.emptiest(plane),
            Victim::Fifo => self.oldest(plane),
        }
    }

    /// Returns the sealed block with the fewest valid units, unless even that one is full.
    pub fn emptiest(&mut self, plane: u32) -> Option<u32> {
        let lists = plane as usize * (self.units as usize + 1);
        for valid in self.lowest[plane as usize]..self.units as u16 {
            let head = self.heads[lists + valid as usize];
            if head != NONE {
                self.lowest[plane as usize] = valid;
                return Some(head);
            }
        }
        self.lowest[plane as usize] = self.units as u16;
        None
    }

    /// Returns the block after this one in the order of [`emptiest`](Self::emptiest).
    pub fn after(&self, block: u32) -> Option<u32> {
        if self.next[block as usize] != NONE {
            return Some(self.next[block as usize]);
        }
        let lists = (block / self.per_plane) as usize * (self.units as usize + 1);
        let from = self.valid[block as usize] as usize + 1;
        (from..self.units as usize).map(|valid| self.heads[lists + valid]).find(|&b| b != NONE)
    }

    /// Returns the block that was sealed first; a fully valid one is skipped and becomes the youngest.
    pub fn oldest(&mut self, plane: u32) -> Option<u32> {
        self.emptiest(plane)?;
        loop {
            let (block, sealed_at) = *self.oldest[plane as usize].front()?;
            let is_it = self.state[block as usize] == BlockState::Sealed
                && self.sealed_at[block as usize] == sealed_at;
            if is_it && self.valid(block) < self.units {
                return Some(block);
            }
            self.oldest[plane as usize].pop_front();
            if is_it {
                self.oldest[plane as usize].push_back((block, sealed_at));
            }
        }
    }

    /// Returns the sealed block with the oldest data, full or not.
    pub fn coldest(&mut self, plane: u32) -> Option<u32> {
        loop {
            let (block, sealed_at) = *self.oldest[plane as usize].front()?;
            let index = block as usize;
            if self.state[index] == BlockState::Sealed && self.sealed_at[index] == sealed_at {
                return Some(block);
            }
            self.oldest[plane as usize].pop_front();
        }
    }

    /// Returns the sealed blocks of a plane, the one sealed first in front.
    pub fn by_age(&self, plane: u32) -> impl Iterator<Item = u32> {
        let all = plane * self.per_plane..(plane + 1) * self.per_plane;
        let mut sealed: Vec<u32> =
            all.filter(|&block| self.state[block as usize] == BlockState::Sealed).collect();
        sealed.sort_by_key(|&block| self.sealed_at[block as usize]);
        sealed.into_iter()
    }

    /// Returns whether cleaning would free space.
    pub fn has_gain(&mut self, plane: u32) -> bool {
        self.emptiest(plane).is_some()
    }

    fn list_of(&self, block: u32) -> usize {
        let lists = (block / self.per_plane) as usize * (self.units as usize + 1);
        lists + self.valid[block as usize] as usize
    }

    fn link(&mut self, block: u32) {
        let list = self.list_of(block);
        let head = std::mem::replace(&mut self.heads[list], block);
        self.next[block as usize] = head;
        self.previous[block as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = block;
        }
        let lowest = &mut self.lowest[(block / self.per_plane) as usize];
        *lowest = (*lowest).min(self.valid[block as usize]);
    }

    fn unlink(&mut self, block: u32) {
        let (next, previous) = (self.next[block as usize], self.previous[block as usize]);
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        if previous == NONE {
            let list = self.list_of(block);
            self.heads[list] = next;
        } else {
            self.next[previous as usize] = next;
        }
    }
}
