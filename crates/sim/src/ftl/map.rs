//! The place of each host page: a table over the initial content.

use super::Layout;
use super::initial::Initial;

/// A discarded page; it has no place.
const GONE: u32 = u32::MAX;

/// The place of each host page. Costs four bytes for each, and none before the page is touched.
#[derive(Debug)]
pub(super) struct PageMap {
    initial: Initial,
    /// Place plus one; 0 is where `initial` says.
    places: Vec<u32>,
}

impl PageMap {
    pub fn new(layout: &Layout, initial: Initial) -> Self {
        Self { initial, places: vec![0; layout.units as usize] }
    }

    pub fn initial(&self) -> &Initial {
        &self.initial
    }

    pub fn find(&self, layout: &Layout, unit: u32) -> Option<u32> {
        match self.places[unit as usize] {
            0 => self.initial.place(layout, unit),
            GONE => None,
            place => Some(place - 1),
        }
    }

    pub fn set(&mut self, unit: u32, place: u32) {
        self.places[unit as usize] = place + 1;
    }

    pub fn forget(&mut self, unit: u32) {
        self.places[unit as usize] = GONE;
    }
}
