//! Chooses the place of a full set that a new entry takes: S3-FIFO within a set of seven.
//!
//! A new entry is on **probation**: unless it is looked up, the next new one takes its place. So keys that occur once
//! pass through one place of seven, and a scan does not disturb the others. An entry that was looked up moves to the
//! **main** places, a ring with a hand: the hand passes over entries that were used since, up to three times, and stops
//! at the first that was not. An entry that leaves probation unused is remembered for a while by a byte of its key, a
//! **ghost**; if it comes again, it goes to the main places at once (Yang and others, "FIFO queues are all you need for
//! cache eviction", SOSP'23).

use nandex_store::entries::KeyState;

/// Places of a set.
pub(super) const WAYS: usize = 7;

/// Ghosts of a set.
pub(super) const GHOSTS: usize = 4;

/// The maximum number of uses that are counted.
const USES_MAX: u64 = 3;

/// Bits of a way: its kind, its queue, and its uses.
const WAY_BITS: usize = 5;
const IS_TAKEN: u64 = 1;
const IS_ABSENT: u64 = 1 << 1;
const IS_MAIN: u64 = 1 << 2;
const USE: u64 = 1 << 3;
const USES: u64 = USES_MAX * USE;

/// The position of the hand, followed by that of the next ghost.
const HAND_SHIFT: usize = WAYS * WAY_BITS;
const GHOST_SHIFT: usize = HAND_SHIFT + 3;

/// The states of a set's ways, a word.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct States(pub u64);

/// The ghosts of a set, a byte each; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Ghosts(pub u32);

impl States {
    #[inline]
    fn way(self, way: usize) -> u64 {
        self.0 >> (way * WAY_BITS)
    }

    /// Returns the content of a way: a key with its value, an absent key, or nothing.
    #[inline]
    pub fn held(self, way: usize) -> KeyState<()> {
        match self.way(way) & (IS_TAKEN | IS_ABSENT) {
            IS_TAKEN => KeyState::Live(()),
            bits if bits & IS_TAKEN == 0 => KeyState::Unknown,
            _ => KeyState::Removed,
        }
    }

    /// Returns the states after a use of a way; `None` if that is already counted.
    #[inline]
    pub fn used(self, way: usize) -> Option<Self> {
        (self.uses(way) < USES_MAX).then(|| Self(self.0 + (USE << (way * WAY_BITS))))
    }

    /// Returns whether the entry of a way was looked up.
    pub fn was_used(self, way: usize) -> bool {
        self.is_main(way) || self.uses(way) > 0
    }

    fn uses(self, way: usize) -> u64 {
        (self.way(way) & USES) / USE
    }

    fn is_main(self, way: usize) -> bool {
        self.way(way) & IS_MAIN != 0
    }

    /// Sets the content of a way; its queue and uses stay.
    pub fn hold(&mut self, way: usize, held: KeyState<()>) {
        let bits = match held {
            KeyState::Unknown => 0,
            KeyState::Removed => IS_TAKEN | IS_ABSENT,
            KeyState::Live(()) => IS_TAKEN,
        };
        self.set(way, IS_TAKEN | IS_ABSENT, bits);
    }

    fn set(&mut self, way: usize, mask: u64, bits: u64) {
        self.0 = self.0 & !(mask << (way * WAY_BITS)) | bits << (way * WAY_BITS);
    }

    /// Returns whether any way is free.
    #[inline]
    pub fn has_free(self) -> bool {
        self.free().is_some()
    }

    fn free(self) -> Option<usize> {
        (0..WAYS).find(|way| !self.held(*way).is_known())
    }

    /// Returns the way for a new entry, after emptying it. An entry with a ghost goes to the main places. Notes the
    /// ghost of an entry that leaves probation, whose byte `ghost_of` returns.
    pub fn take(
        &mut self,
        ghosts: &mut Ghosts,
        ghost: u8,
        ghost_of: impl Fn(usize) -> u8,
    ) -> usize {
        let is_back = ghosts.take(ghost);
        let way = self.free().unwrap_or_else(|| self.evict(ghosts, ghost_of));
        self.set(way, IS_TAKEN | IS_ABSENT | IS_MAIN | USES, if is_back { IS_MAIN } else { 0 });
        way
    }

    fn evict(&mut self, ghosts: &mut Ghosts, ghost_of: impl Fn(usize) -> u8) -> usize {
        while let Some(way) = self.after_hand().find(|way| !self.is_main(*way)) {
            if self.uses(way) == 0 {
                let at = (self.0 >> GHOST_SHIFT) as usize % GHOSTS;
                ghosts.note(at, ghost_of(way));
                self.0 = self.0 & !(3 << GHOST_SHIFT) | (((at + 1) % GHOSTS) as u64) << GHOST_SHIFT;
                return way;
            }
            self.set(way, IS_MAIN | USES, IS_MAIN);
        }
        self.evict_main()
    }

    /// Returns the first way from the hand on that was not used since the hand last passed it.
    fn evict_main(&mut self) -> usize {
        loop {
            let way = self.hand();
            self.0 = self.0 & !(7 << HAND_SHIFT) | (((way + 1) % WAYS) as u64) << HAND_SHIFT;
            if self.uses(way) == 0 {
                return way;
            }
            self.0 -= USE << (way * WAY_BITS);
        }
    }

    fn hand(self) -> usize {
        (self.0 >> HAND_SHIFT) as usize % 8 % WAYS
    }

    fn after_hand(self) -> impl Iterator<Item = usize> {
        (0..WAYS).map(move |way| (self.hand() + way) % WAYS)
    }
}

impl Ghosts {
    /// Removes a ghost, and returns whether it was there.
    fn take(&mut self, ghost: u8) -> bool {
        let mut bytes = self.0.to_le_bytes();
        let at = bytes.iter().position(|it| *it == ghost);
        at.into_iter().for_each(|at| bytes[at] = 0);
        self.0 = u32::from_le_bytes(bytes);
        at.is_some()
    }

    fn note(&mut self, at: usize, ghost: u8) {
        let mut bytes = self.0.to_le_bytes();
        bytes[at] = ghost;
        self.0 = u32::from_le_bytes(bytes);
    }
}
