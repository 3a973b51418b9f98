//! The containers of a stream by numbers, which both sides count alike.
//!
//! A name is sent once, when a frame first refers to a container of an earlier stream. Containers that a frame makes
//! get the next numbers, without being named. So a reference takes a byte or two.

use std::collections::{HashMap, VecDeque};

use crate::container::Name;

/// Numbers that an encoder refers to, from the last one back.
const REFERRED_MAX: u64 = 1 << 20;

/// Numbers that are kept: frames that wait for an answer may refer to earlier ones.
const KEPT_MAX: usize = 2 << 20;

/// Names by numbers, and numbers by names.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    /// The number of the first name that is kept.
    first: u64,
    names: VecDeque<Option<Name>>,
    numbers: HashMap<Name, u64>,
}

impl Dictionary {
    /// The next number.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.names.len() as u64
    }

    /// Gives the next number to a container, whose name may not be known yet.
    pub(crate) fn push(&mut self, name: Option<Name>) -> u64 {
        let number = self.next();
        self.names.push_back(name);
        if let Some(name) = name {
            self.numbers.insert(name, number);
        }
        if self.names.len() > KEPT_MAX {
            let gone = self.names.pop_front().flatten();
            if let Some(gone) = gone.filter(|gone| self.numbers.get(gone) == Some(&self.first)) {
                self.numbers.remove(&gone);
            }
            self.first += 1;
        }
        number
    }

    /// Notes the name of a container that has its number already.
    pub(crate) fn set(&mut self, number: u64, name: Name) {
        let index = number.checked_sub(self.first).and_then(|it| usize::try_from(it).ok());
        if let Some(place) = index.and_then(|index| self.names.get_mut(index)) {
            *place = Some(name);
        }
    }

    /// The name of a number; `None` if there is no such number, it is too old, or its name is not known.
    pub(crate) fn name(&self, number: u64) -> Option<Name> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        *self.names.get(index)?
    }

    /// The number of a name, if a frame may refer to it by that.
    pub(crate) fn number(&self, name: &Name) -> Option<u64> {
        let number = *self.numbers.get(name)?;
        (number + REFERRED_MAX > self.next()).then_some(number)
    }

    /// Takes a name away from its number: it is not there.
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
        assert_eq!(
            (both.push(Some(name(7))), both.push(None), both.push(Some(name(7)))),
            (0, 1, 2)
        );
        assert_eq!((both.name(0), both.name(1), both.name(3)), (Some(name(7)), None, None));
        assert_eq!(both.number(&name(7)), Some(2));
        both.set(1, name(8));
        assert_eq!(both.name(1), Some(name(8)));
        both.forget(&name(7));
        assert_eq!(both.number(&name(7)), None);
    }

    #[test]
    fn an_old_number_is_forgotten_by_whoever_refers_before_whoever_reads() {
        let mut both = Dictionary::default();
        for number in 0..REFERRED_MAX {
            both.push(Some(name(number)));
        }
        assert_eq!((both.number(&name(0)), both.number(&name(1))), (None, Some(1)));
        assert_eq!(both.name(0), Some(name(0)));
        for number in 0..REFERRED_MAX + 1 {
            both.push(Some(name(REFERRED_MAX + number)));
        }
        assert_eq!((both.name(0), both.name(1)), (None, Some(name(1))));
        assert_eq!(both.numbers.len(), both.names.len());
    }
}
