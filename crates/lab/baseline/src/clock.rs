//! A bounded set of names in RAM with clock replacement.

use std::collections::HashMap;
use std::hash::Hash;

/// A bounded map from names to values, with clock replacement.
///
/// A name that was used since the clock's hand last passed it stays for another round.
#[derive(Debug, Default)]
pub struct Clock<K, V> {
    len_max: usize,
    slots_of: HashMap<K, usize>,
    slots: Vec<Slot<K, V>>,
    hand: usize,
}

#[derive(Debug)]
struct Slot<K, V> {
    name: K,
    value: V,
    is_used: bool,
}

impl<K: Copy + Eq + Hash, V: Default> Clock<K, V> {
    /// Creates an empty map of at most `len_max` names; 0 for none.
    #[must_use]
    pub fn new(len_max: usize) -> Self {
        Self { len_max, slots_of: HashMap::new(), slots: Vec::new(), hand: 0 }
    }

    /// Returns the value of a present name, if `is_right` accepts it, and marks it as used.
    pub fn get(&mut self, name: K, is_right: impl FnOnce(&V) -> bool) -> Option<&V> {
        let slot = &mut self.slots[*self.slots_of.get(&name)?];
        if !is_right(&slot.value) {
            return None;
        }
        slot.is_used = true;
        Some(&slot.value)
    }

    /// Inserts a name and marks it as used; replaces another if the map is full. Returns the slot's value,
    /// which is the name's last value, that of the replaced name, or the default; `None` if the map takes no
    /// names.
    pub fn put(&mut self, name: K) -> Option<&mut V> {
        if self.len_max == 0 {
            return None;
        }
        let at = match self.slots_of.get(&name) {
            Some(at) => *at,
            None if self.slots.len() < self.len_max => {
                self.slots_of.insert(name, self.slots.len());
                self.slots.push(Slot { name, value: V::default(), is_used: true });
                self.slots.len() - 1
            }
            None => self.replace(name),
        };
        let slot = &mut self.slots[at];
        slot.is_used = true;
        Some(&mut slot.value)
    }

    /// Gives the name the slot of one that was not used since the hand passed it.
    fn replace(&mut self, name: K) -> usize {
        while std::mem::replace(&mut self.slots[self.hand].is_used, false) {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        let at = self.hand;
        self.hand = (at + 1) % self.slots.len();
        let old = std::mem::replace(&mut self.slots[at].name, name);
        self.slots_of.remove(&old);
        self.slots_of.insert(name, at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(clock: &mut Clock<u64, u64>, name: u64) -> bool {
        clock.get(name, |_| true).is_some()
    }

    #[test]
    fn names_that_are_used_stay() {
        let mut clock = Clock::<u64, u64>::new(2);
        assert!(!has(&mut clock, 7));
        [7, 8, 9].into_iter().for_each(|name| *clock.put(name).unwrap() = name);
        // All were used, so the hand goes round once and takes the first.
        assert!(has(&mut clock, 9) && !has(&mut clock, 7));
        // 9 was used since the hand passed it, and 8 was not.
        assert_eq!(clock.put(10).copied(), Some(8), "the value of the one that has gone");
        assert!(has(&mut clock, 9) && has(&mut clock, 10) && !has(&mut clock, 8));
    }

    #[test]
    fn a_value_that_is_not_right_is_not_used() {
        let mut clock = Clock::<u64, u64>::new(2);
        [7, 8, 9].into_iter().for_each(|name| *clock.put(name).unwrap() = name);
        assert!(clock.get(8, |value| *value == 1).is_none());
        clock.put(10);
        assert!(has(&mut clock, 9) && !has(&mut clock, 8));
    }

    #[test]
    fn a_clock_of_no_names_has_none() {
        let mut clock = Clock::<u64, u64>::new(0);
        assert!(clock.put(7).is_none());
        assert!(!has(&mut clock, 7));
    }
}
