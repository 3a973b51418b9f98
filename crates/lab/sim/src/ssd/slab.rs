//! A store of numbered things that are added and removed without an allocation each time: the requests and
//! operations in flight.

use std::ops::{Index, IndexMut};

/// The number of no place.
pub(crate) const NONE: u32 = u32::MAX;

/// A store of numbered things; the number of a removed one is reused.
///
/// # Panics
/// Panics when it is indexed by an unknown number.
#[derive(Debug)]
pub struct Slab<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds a thing and returns its number.
    ///
    /// # Panics
    /// Panics with 2^32 things.
    pub fn insert(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.things[number as usize] = thing;
            return number;
        }
        self.things.push(thing);
        u32::try_from(self.things.len() - 1).expect("memory ends before the numbers do")
    }

    /// Frees a number.
    pub fn remove(&mut self, number: u32) {
        self.free.push(number);
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.things[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.things[number as usize]
    }
}
