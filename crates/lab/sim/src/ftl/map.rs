//! The place of each host page: a table over the initial content.

use super::Layout;
use super::grown::GrownTable;
use super::initial::Initial;

/// The place of a discarded page, which has none.
const GONE: u32 = u32::MAX;

/// The place of each host page. It costs four bytes for each page near a touched one.
#[derive(Debug)]
pub(super) struct PageMap {
    initial: Initial,
    /// The place plus one; 0 means the place in `initial`.
    places: GrownTable,
}

impl PageMap {
    pub fn new(initial: Initial) -> Self {
        Self { initial, places: GrownTable::default() }
    }

    pub fn initial(&self) -> &Initial {
        &self.initial
    }

    pub fn find(&self, layout: &Layout, unit: u32) -> Option<u32> {
        match self.places.get(unit) {
            0 => self.initial.place(layout, unit),
            GONE => None,
            place => Some(place - 1),
        }
    }

    pub fn set(&mut self, unit: u32, place: u32) {
        self.places.set(unit, place + 1);
    }

    pub fn forget(&mut self, unit: u32) {
        self.places.set(unit, GONE);
    }

    /// Returns the bytes of RAM of the table.
    pub fn ram_bytes(&self) -> usize {
        self.places.ram_bytes()
    }
}
