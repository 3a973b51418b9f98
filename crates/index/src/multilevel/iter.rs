//! Iteration: partition by partition, level by level, each key once.

use std::sync::Arc;

use nandex_store::records::RecordLayout;

use super::levels::LevelMap;
use super::{Inner, Leveled};
use crate::Error;
use crate::api::Value;
use crate::write::groups::{Group, GroupItems, GroupIter, RecordGroups};

/// An entry of the iteration: key and value.
pub type Pair = (Vec<u8>, Value);

/// Iterates over all entries of a table; see [`super::Multilevel::iter`].
#[derive(Debug)]
pub struct Iter<'t>(GroupIter<'t, Leveled>);

impl<'t> Iter<'t> {
    pub(super) fn new(inner: &'t Inner) -> Self {
        Self(GroupIter::new(inner))
    }

    /// The same from the start, past damage.
    pub(super) fn past_damage(self) -> GroupItems<'t, Leveled> {
        self.0.past_damage()
    }
}

impl Iterator for Iter<'_> {
    type Item = std::result::Result<Pair, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl RecordGroups for Leveled {
    fn records(&self) -> RecordLayout {
        self.records
    }

    fn groups(map: &Arc<LevelMap>) -> Vec<Arc<Group>> {
        map.groups().cloned().collect()
    }
}
