//! A pass over partitions, group by group. A key is in at most one group.

use std::sync::Arc;

use nandex_store::entries::{Entry, SlotState};

use super::{Group, GroupMap, GroupStructure, Grouped};
use crate::scan::{Found, Scan, Visitor, read, visit_buffers};
use crate::write::Core;
use crate::{Damage, Result};

/// Lists a table. A portion is a partition, with its buffers and groups at one moment.
pub(super) struct Partitions<'t, S: GroupStructure> {
    core: &'t Core<Grouped<S>>,
    /// The next partition.
    next: usize,
    /// The remaining groups of the current partition.
    groups: std::vec::IntoIter<Arc<Group>>,
}

impl<'t, S: GroupStructure> Partitions<'t, S> {
    pub(super) fn new(core: &'t Core<Grouped<S>>) -> Self {
        Self { core, next: 0, groups: Vec::new().into_iter() }
    }

    fn visit_group(&self, group: &Group, visitor: &mut dyn Visitor) -> Result<()> {
        let labels: Vec<_> =
            (0..group.notes.len() as u64).map(|it| group.place.label(it)).collect();
        let records = self.core.layout.records;
        let device = &**self.core.volume.device();
        read(device, &labels, visitor.reads(), &mut |at, page| match page {
            Ok(page) => records.used(page.body()).try_for_each(|slot| {
                let (key, value) =
                    (records.key(page.body(), slot), records.value(page.body(), slot));
                visitor.oldest(Entry { state: SlotState::Live, key, value })
            }),
            Err(error) => visitor.damage(Damage::new(labels[at].page, records.slots(), error)),
        })
    }
}

impl<S: GroupStructure> Scan for Partitions<'_, S> {
    fn advance(&mut self, found: &mut Found) -> Result<bool> {
        if let Some(group) = self.groups.next() {
            self.visit_group(&group, found)?;
            return Ok(true);
        }
        let Some(partition) = self.core.partitions.get(self.next) else { return Ok(false) };
        self.next += 1;
        found.begin();
        let state = partition.read();
        visit_buffers(&state, self.core.entry_layout().slots(), found, &|_| true)?;
        self.groups = state.level.groups().cloned().collect::<Vec<_>>().into_iter();
        Ok(true)
    }
}
