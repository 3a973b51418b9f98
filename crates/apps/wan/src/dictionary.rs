//! The containers of a stream by numbers, which both sides count alike.
//!
//! A name is sent once, when a frame first refers to a container of an earlier stream. New containers of a frame get
//! the next numbers without names. So a reference takes a byte or two.

use std::collections::{HashMap, VecDeque};

use crate::container::Name;

/// The number of most recent numbers that an encoder refers to.
const REFERRED_MAX: u64 = 1 << 20;

/// The number of numbers stored: frames that wait for an answer may refer to earlier ones.
pub(crate) const KEPT_MAX: usize = 2 << 20;

/// Names by numbers, for a decoder. 17 bytes of RAM each, for 2 million at most.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The number of the first stored name.
    first: u64,
    names: VecDeque<Option<Name>>,
}

impl Names {
    /// Returns the next number.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.names.len() as u64
    }

    /// Assigns the next number to a container, whose name may not be known yet.
    pub(crate) fn push(&mut self, name: Option<Name>) {
        self.names.push_back(name);
        let _ = self.take_oldest(KEPT_MAX);
    }

    /// Removes and returns the oldest number, with its name, if there are more than `kept_max`.
    fn take_oldest(&mut self, kept_max: usize) -> Option<(u64, Option<Name>)> {
        if self.names.len() <= kept_max {
            return None;
        }
        let gone = self.names.pop_front()?;
        self.first += 1;
        Some((self.first - 1, gone))
    }

    /// Notes the name of a container that already has its number.
    pub(crate) fn set(&mut self, number: u64, name: Name) {
        let index = number.checked_sub(self.first).and_then(|it| usize::try_from(it).ok());
        if let Some(place) = index.and_then(|index| self.names.get_mut(index)) {
            *place = Some(name);
        }
    }

    /// Returns the name of a number; `None` if there is no such number, it is too old, or its name is unknown.
    pub(crate) fn name(&self, number: u64) -> Option<Name> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        *self.names.get(index)?
    }
}

/// Names by numbers, and numbers by names, for an encoder. It may keep fewer than a decoder.
#[derive(Debug)]
pub(crate) struct Dictionary {
    kept_max: usize,
    names: Names,
    numbers: HashMap<Name, u64>,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self::keeping(KEPT_MAX)
    }
}

impl Dictionary {
    /// Creates one that stores at most this many numbers, and refers to the newer half of them.
    pub(crate) fn keeping(kept_max: usize) -> Self {
        Self { kept_max, names: Names::default(), numbers: HashMap::new() }
    }

    /// Returns the next number.
    pub(crate) fn next(&self) -> u64 {
        self.names.next()
    }

    /// Assigns the next number to a container.
    pub(crate) fn push(&mut self, name: Name) -> u64 {
        let number = self.next();
        self.names.names.push_back(Some(name));
        self.numbers.insert(name, number);
        if let Some((oldest, Some(gone))) = self.names.take_oldest(self.kept_max)
            && self.numbers.get(&gone) == Some(&oldest)
        {
            self.numbers.remove(&gone);
        }
        number
    }

    /// Returns the name of a number; `None` if there is no such number, or it is too old.
    pub(crate) fn name(&self, number: u64) -> Option<Name> {
        self.names.name(number)
    }

    /// Returns the number of a name, if a frame may refer to it by that.
    pub(crate) fn number(&self, name: &Name) -> Option<u64> {
        let number = *self.numbers.get(name)?;
        let referred_max = REFERRED_MAX.min(self.kept_max as u64 / 2);
        (number + referred_max > self.next()).then_some(number)
    }

    /// Removes a name from its number: the container is missing.
    pub(crate) fn forget(&mut self, name: &Name) {
        self.numbers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> Name {
        u128::from(number).to_le_bytes()
    }

    #[test]
    fn numbers_lead_to_names_and_names_to_the_newest_number() {
        let mut both = Dictionary::default();
        assert_eq!((both.push(name(7)), both.push(name(8)), both.push(name(7))), (0, 1, 2));
        assert_eq!((both.name(0), both.name(1)), (Some(name(7)), Some(name(8))));
        assert_eq!(both.name(3), None);
        assert_eq!(both.number(&name(7)), Some(2));
        both.forget(&name(7));
        assert_eq!(both.number(&name(7)), None);
    }

    #[test]
    fn a_small_dictionary_refers_to_the_newer_half_of_its_numbers() {
        let mut both = Dictionary::keeping(8);
        (0..100).for_each(|number| {
            both.push(name(number));
        });
        assert_eq!((both.number(&name(96)), both.number(&name(97))), (None, Some(97)));
        assert_eq!((both.name(91), both.name(92)), (None, Some(name(92))));
        assert_eq!((both.numbers.len(), both.names.names.len()), (8, 8));
    }

    #[test]
    fn a_name_may_come_after_its_number() {
        let mut names = Names::default();
        names.push(Some(name(7)));
        names.push(None);
        assert_eq!((names.next(), names.name(0), names.name(1)), (2, Some(name(7)), None));
        names.set(1, name(8));
        names.set(2, name(9));
        assert_eq!((names.next(), names.name(1), names.name(2)), (2, Some(name(8)), None));
    }

    #[test]
    fn an_old_number_is_forgotten_by_whoever_refers_before_whoever_reads() {
        let (mut both, mut names) = (Dictionary::default(), Names::default());
        let mut push = |both: &mut Dictionary, number| {
            names.push(Some(name(number)));
            assert_eq!(both.push(name(number)) + 1, names.next());
        };
        (0..REFERRED_MAX).for_each(|number| push(&mut both, number));
        assert_eq!((both.number(&name(0)), both.number(&name(1))), (None, Some(1)));
        assert_eq!(both.name(0), Some(name(0)));
        (0..=REFERRED_MAX).for_each(|number| push(&mut both, REFERRED_MAX + number));
        assert_eq!((both.name(0), both.name(1)), (None, Some(name(1))));
        assert_eq!((names.name(0), names.name(1)), (None, Some(name(1))));
        assert_eq!((both.numbers.len(), names.names.len()), (KEPT_MAX, KEPT_MAX));
    }
}
