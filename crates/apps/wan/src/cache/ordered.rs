//! Finds the places of chunks that recur in an earlier order: most of them in the tables of their containers.
//!
//! ```text
//!   chunks of a segment   0 1 2 3 4 5 6 7 8 9 ..      looked up: 0, 8, ..       a page each
//!                         |               |
//!   their containers     [0 1 2 3 4 5] [6 7 8 9 ..]    their tables have the places of the others: a read each
//! ```

use std::collections::HashMap;
use std::ops::Deref;

use nandex::raw::store::values::ValueRef;

use super::{Cache, Place, View};
use crate::Result;
use crate::container::{Key, Name};

/// One in this many chunks is looked up first.
const LOOKED_UP_FIRST: usize = 8;

impl<C: Deref<Target = Cache>> View<C> {
    /// Returns the places of a segment's chunks in its order, in containers that `may_refer` allows and whose content
    /// still exists.
    ///
    /// Costs a lookup of one chunk in eight, a read of the beginning of each container of these, and lookups of the
    /// chunks that are in none of them: nearly no read for absent ones.
    pub(crate) fn find_in_order(
        &self,
        keys: &[Key],
        may_refer: impl Fn(&Name) -> bool,
    ) -> Result<Vec<Option<Place>>> {
        let mut places = vec![None; keys.len()];
        let first = (0..keys.len()).step_by(LOOKED_UP_FIRST).collect();
        self.find_at(first, keys, (&mut places, &may_refer))?;
        let neighbors = self.neighbors(&places)?;
        for (place, key) in places.iter_mut().zip(keys) {
            *place = place.or_else(|| neighbors.get(key).copied());
        }
        let is_unknown = |at: &usize| places[*at].is_none() && !at.is_multiple_of(LOOKED_UP_FIRST);
        let others = (0..keys.len()).filter(is_unknown).collect();
        self.find_at(others, keys, (&mut places, &may_refer))?;
        Ok(places)
    }

    /// Looks up the keys at these positions.
    fn find_at(
        &self,
        positions: Vec<usize>,
        keys: &[Key],
        (places, may_refer): (&mut [Option<Place>], impl Fn(&Name) -> bool),
    ) -> Result<()> {
        let asked: Vec<Key> = positions.iter().map(|at| keys[*at]).collect();
        for (at, place) in positions.into_iter().zip(self.find(&asked)?) {
            places[at] = place.filter(|place| may_refer(&place.name));
        }
        Ok(())
    }

    /// Returns the places of all chunks of the containers of these, according to their tables, by the chunks' keys.
    fn neighbors(&self, places: &[Option<Place>]) -> Result<HashMap<Key, Place>> {
        let mut containers: Vec<(ValueRef, Name)> =
            places.iter().flatten().map(|place| (place.reference, place.name)).collect();
        containers.sort_unstable();
        containers.dedup();
        let references: Vec<ValueRef> =
            containers.iter().map(|(reference, _)| *reference).collect();
        let mut neighbors = HashMap::new();
        for ((reference, name), keys) in
            containers.into_iter().zip(self.cache.keys_in(&references)?)
        {
            let keys = keys.filter(|(tag, found, _)| *tag == self.owner.tag() && *found == name);
            let keys = keys.map(|(_, _, keys)| keys).unwrap_or_default();
            let placed = (0..).zip(keys);
            neighbors.extend(placed.map(|(index, key)| (key, Place { reference, index, name })));
        }
        Ok(neighbors)
    }
}
