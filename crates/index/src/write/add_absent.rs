//! Adds of absent keys in structures whose updates add up: if several threads add the same key, exactly one succeeds.
//!
//! As [in tables](super::absent): a lookup without a lock, then an update under the partition's lock if the lookup's
//! answer is still valid there. Otherwise the key is looked up again.

use super::buffer::LogCodec;
use super::update::Update;
use super::{Core, LOCKED_MAX, Layout, PartitionState, by_partition};
use crate::Result;

/// A layout that can add keys if they are absent.
pub(crate) trait AddsAbsent: Layout {
    /// A key, and the state of its partition noted before the lookup.
    type Noted;

    /// Notes a key, and returns its partition.
    ///
    /// # Errors
    /// A key of the wrong width.
    fn note(core: &Core<Self>, key: &[u8]) -> Result<(usize, Self::Noted)>;

    /// Returns which of these keys are present.
    ///
    /// # Errors
    /// A failed read, damage.
    fn are_there(core: &Core<Self>, keys: &[&[u8]]) -> Result<Vec<bool>>;

    /// Returns the update that adds a key.
    fn update<'n>(core: &Core<Self>, noted: &'n Self::Noted) -> Update<'n, Self>;

    /// Fails for updates of a partition that has no space left in a full structure.
    ///
    /// # Errors
    /// A structure that may not grow is full.
    fn check_space(_core: &Core<Self>, _updates: &[Update<'_, Self>]) -> Result<()> {
        Ok(())
    }

    /// Returns whether a key, which was absent, is certainly still absent. `None` if it must be looked up again.
    fn is_absent(
        core: &Core<Self>,
        noted: &Self::Noted,
        state: &PartitionState<Self>,
    ) -> Option<bool>;
}

impl<L: AddsAbsent> Core<L> {
    /// Adds one occurrence of each absent key, in order, acknowledges them, and returns which these are.
    pub(crate) fn add_absent(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let mut is_new = vec![false; keys.len()];
        for (keys, is_new) in keys.chunks(LOCKED_MAX).zip(is_new.chunks_mut(LOCKED_MAX)) {
            let mut waiting: Vec<_> = (0..keys.len()).collect();
            while !waiting.is_empty() {
                waiting = self.add_where_absent(keys, &waiting, is_new)?;
            }
        }
        self.acknowledge()?;
        Ok(is_new)
    }

    /// Looks up the keys at these positions and adds those that are absent. Returns the positions that must be looked
    /// up again.
    fn add_where_absent(
        &self,
        keys: &[&[u8]],
        positions: &[usize],
        is_new: &mut [bool],
    ) -> Result<Vec<usize>> {
        let asked: Vec<_> = positions.iter().map(|position| keys[*position]).collect();
        // Of equal keys the later one is noted first: it is never certain if the earlier one is not.
        let noted = asked.iter().rev().map(|key| L::note(self, key));
        let mut noted = noted.collect::<Result<Vec<_>>>()?;
        noted.reverse();
        let found = L::are_there(self, &asked)?;
        let absent = (0u32..).zip(&noted).zip(found).filter(|(_, found)| !found);
        let absent: Vec<_> = absent.map(|((number, (index, _)), _)| (*index, number)).collect();
        if absent.is_empty() {
            return Ok(Vec::new());
        }
        let updates: Vec<_> = noted.iter().map(|(_, key)| L::update(self, key)).collect();
        let _reservation = self.wait_for_log(self.codec.logged_bytes(&updates))?;
        let mut open = Vec::new();
        by_partition(self.partitions.len(), absent.iter().copied(), |index, numbers| {
            let some: Vec<_> = numbers.iter().map(|number| updates[*number as usize]).collect();
            L::check_space(self, &some)?;
            self.apply_where(index, &some, |state, at| {
                let number = numbers[at] as usize;
                let may = L::is_absent(self, &noted[number].1, state);
                is_new[positions[number]] = may == Some(true);
                if may.is_none() {
                    open.push(positions[number]);
                }
                may == Some(true)
            })
        })?;
        open.sort_unstable();
        Ok(open)
    }
}
