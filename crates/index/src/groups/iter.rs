//! Iteration: partition by partition, group by group, each key once.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use nandex_store::entries::SlotState;
use nandex_store::proven::{FailedRead, read_each};

use super::{Group, GroupMap, GroupStructure, Grouped};
use crate::any::AnyPair;
use crate::api::Value;
use crate::write::Core;
use crate::{Damage, Error};

/// A pair, or a page that has none.
type Item = std::result::Result<AnyPair, Damage>;

/// Iterates over all entries of a table, until one fails.
#[derive(Debug)]
pub struct GroupIter<'t, S: GroupStructure> {
    items: GroupItems<'t, S>,
    failed: bool,
}

/// All entries of a table, and its damaged pages.
#[derive(Debug)]
pub struct GroupItems<'t, S: GroupStructure> {
    inner: &'t Core<Grouped<S>>,
    on_failure: FailedRead,
    /// The partition that comes next.
    partition: usize,
    /// What is left of the current one: its groups, and the keys that newer buffers know.
    groups: Vec<Arc<Group>>,
    group: usize,
    buffered: HashSet<Vec<u8>>,
    ready: VecDeque<Item>,
}

impl<'t, S: GroupStructure> GroupItems<'t, S> {
    fn new(inner: &'t Core<Grouped<S>>, on_failure: FailedRead) -> Self {
        Self {
            inner,
            on_failure,
            partition: 0,
            groups: Vec::new(),
            group: 0,
            buffered: HashSet::new(),
            ready: VecDeque::new(),
        }
    }

    /// Takes the buffers and the groups of the next partition, of one moment; false when there is none.
    fn begin_partition(&mut self) -> bool {
        let Some(partition) = self.inner.partitions.get(self.partition) else { return false };
        self.partition += 1;
        self.buffered.clear();
        let state = partition.read();
        let (buffers, lost) = state.buffers_past_damage();
        for buffer in buffers {
            let of_pages = buffer.page_entries().map(|(_, _, entry)| entry);
            for entry in of_pages.chain(buffer.stash_entries()) {
                if self.buffered.insert(entry.key.to_vec()) && entry.state == SlotState::Live {
                    self.ready.push_back(Ok((entry.key.to_vec(), Value::new(entry.value))));
                }
            }
        }
        let slots = self.inner.entry_layout().slots();
        self.ready.extend(lost.iter().map(|lost| Err(lost.as_damage(slots))));
        (self.groups, self.group) = (state.level.groups().cloned().collect(), 0);
        true
    }

    fn read_group(&mut self, group: &Group) {
        let labels: Vec<_> =
            (0..group.notes.len() as u64).map(|it| group.place.label(it)).collect();
        let records = self.inner.layout.records;
        let device = &**self.inner.volume.device();
        read_each(device, &labels, self.on_failure, &mut |at, page| match page {
            Err(error) => {
                let damage = Damage::new(labels[at].page, records.slots(), error);
                self.ready.push_back(Err(damage));
            }
            Ok(page) => {
                for slot in records.used(page.body()) {
                    let key = records.key(page.body(), slot);
                    if !self.buffered.contains(key) {
                        let value = Value::new(records.value(page.body(), slot));
                        self.ready.push_back(Ok((key.to_vec(), value)));
                    }
                }
            }
        });
    }
}

impl<S: GroupStructure> Iterator for GroupItems<'_, S> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            match self.groups.get(self.group).cloned() {
                Some(group) => {
                    self.group += 1;
                    self.read_group(&group);
                }
                None if !self.begin_partition() => return None,
                None => {}
            }
        }
    }
}

impl<'t, S: GroupStructure> GroupIter<'t, S> {
    pub(super) fn new(inner: &'t Core<Grouped<S>>) -> Self {
        Self { items: GroupItems::new(inner, FailedRead::Ends), failed: false }
    }

    /// The same from the start, past damage.
    pub(super) fn past_damage(self) -> GroupItems<'t, S> {
        GroupItems::new(self.items.inner, FailedRead::Splits)
    }
}

impl<S: GroupStructure> Iterator for GroupIter<'_, S> {
    type Item = std::result::Result<AnyPair, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.items.next()?;
        self.failed = item.is_err();
        Some(item.map_err(|damage| damage.error))
    }
}
