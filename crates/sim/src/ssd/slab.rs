//! Numbered places for things that come and go, without an allocation each time.

use std::ops::{Index, IndexMut};

/// No place.
pub(crate) const NONE: u32 = u32::MAX;

/// Things by number; the number of one that has gone is given to the next.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub fn new() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }

    pub fn insert(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.things[number as usize] = thing;
            return number;
        }
        self.things.push(thing);
        u32::try_from(self.things.len() - 1).expect("memory ends before the numbers do")
    }

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
