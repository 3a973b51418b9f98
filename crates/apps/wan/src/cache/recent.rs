//! Containers whose places are not yet in the tables.

use std::collections::HashMap;
use std::sync::Arc;

use nandex::raw::store::values::ValueRef;

use super::place::{Place, VALUE_BYTES, key_of_name};
use crate::container::{Container, KEY_BYTES, Key};
use crate::owner::Owner;

/// The bytes of RAM for an entry of a map, including its spare places.
const ENTRY_RAM_BYTES: usize = 2 * (KEY_BYTES + size_of::<Place>());

/// Entries of the table of names and of the table of anchors.
pub(super) type Entries = (Vec<(Key, [u8; VALUE_BYTES])>, Vec<([u8; 8], [u8; 16])>);

/// The places of some containers.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: HashMap<Key, Place>,
    anchors: HashMap<u64, ValueRef>,
    /// Bytes of content.
    bytes: usize,
}

impl Places {
    /// Returns all entries, in the order of their keys, so that equal runs write equal bytes.
    pub(super) fn entries(&self) -> Entries {
        let mut names: Vec<_> = self.places.iter().map(|(key, it)| (*key, it.encode())).collect();
        let anchor = |(anchor, place): (&u64, &ValueRef)| (anchor.to_le_bytes(), place.encode());
        let mut anchors: Vec<_> = self.anchors.iter().map(anchor).collect();
        names.sort_unstable();
        anchors.sort_unstable();
        (names, anchors)
    }

    /// Adds earlier ones; existing keys take precedence.
    fn add_earlier(&mut self, earlier: &Self) {
        for (key, place) in &earlier.places {
            self.places.entry(*key).or_insert(*place);
        }
        for (anchor, place) in &earlier.anchors {
            self.anchors.entry(*anchor).or_insert(*place);
        }
        self.bytes += earlier.bytes;
    }

    fn entries_max(&self) -> usize {
        self.places.capacity() + self.anchors.capacity()
    }
}

/// The places of recent containers: new ones, and those being moved to the tables.
#[derive(Debug, Default)]
pub(super) struct Recent {
    new: Places,
    leaving: Option<Arc<Places>>,
    added: u64,
}

impl Recent {
    /// Adds a container and all its keys. Of equal chunks and anchors the last counts.
    pub(super) fn add(
        &mut self,
        place: Place,
        (owner, container): (&Owner, &Container),
        anchors: &[u64],
    ) {
        self.new.places.insert(owner.key(&key_of_name(&place.name)), place);
        for (index, chunk) in (0..).zip(container.chunks()) {
            self.new.places.insert(owner.key(&chunk.key), Place { index, ..place });
        }
        self.new.anchors.extend(anchors.iter().map(|anchor| (*anchor, place.reference)));
        self.new.bytes += container.content().len();
    }

    /// Notes the number of containers whose content is new.
    pub(super) fn note_appended(&mut self, containers: u64) {
        self.added += containers;
    }

    pub(super) fn place(&self, key: &Key) -> Option<Place> {
        self.both().find_map(|places| places.places.get(key)).copied()
    }

    pub(super) fn anchor(&self, anchor: u64) -> Option<ValueRef> {
        self.both().find_map(|places| places.anchors.get(&anchor)).copied()
    }

    /// Returns both, the newest first.
    fn both(&self) -> impl Iterator<Item = &Places> {
        [&self.new].into_iter().chain(self.leaving.as_deref())
    }

    /// Returns the bytes of content whose publication has not begun.
    pub(super) fn bytes(&self) -> usize {
        self.new.bytes
    }

    /// Returns the number of containers whose content was ever added.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    pub(super) fn ram_bytes(&self) -> usize {
        self.both().map(Places::entries_max).sum::<usize>() * ENTRY_RAM_BYTES
    }

    /// Takes all new places, which stay visible here until [`end_publishing`](Self::end_publishing); `None` if there
    /// are none.
    pub(super) fn begin_to_publish(&mut self) -> Option<Arc<Places>> {
        if self.new.bytes == 0 {
            return None;
        }
        self.leaving = Some(Arc::new(std::mem::take(&mut self.new)));
        self.leaving.clone()
    }

    /// Drops the places being moved; takes them back if the tables do not have them.
    pub(super) fn end_publishing(&mut self, is_published: bool) {
        let leaving = self.leaving.take();
        if let Some(leaving) = leaving.filter(|_| !is_published) {
            self.new.add_earlier(&leaving);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::{containers_of, key_of};
    use crate::testing::noise;

    fn add(recent: &mut Recent, seed: u64, reference: ValueRef) -> (Key, Place) {
        let bytes = noise(1000, seed);
        let container = containers_of(&[(key_of(&bytes), &bytes)]).remove(0);
        let place = Place { reference, index: 0, name: container.name() };
        recent.add(place, (&Owner::default(), &container), &[seed]);
        (key_of(&bytes), place)
    }

    #[test]
    fn what_is_leaving_is_found_until_the_tables_have_it_and_taken_back_if_they_have_not() {
        let reference = |slot| ValueRef { slot, sequence: 2, offset: 3, bytes: 4 };
        let mut recent = Recent::default();
        assert!(recent.begin_to_publish().is_none());
        let (first, place) = add(&mut recent, 1, reference(1));
        let leaving = recent.begin_to_publish().unwrap();
        assert_eq!((recent.bytes(), leaving.entries().0.len()), (0, 2));
        let (second, _) = add(&mut recent, 2, reference(2));
        assert_eq!((recent.place(&first), recent.anchor(1)), (Some(place), Some(reference(1))));
        assert!(recent.place(&second).is_some());
        // The same content again, in another place, before the first attempt has failed.
        add(&mut recent, 1, reference(3));
        recent.end_publishing(false);
        assert_eq!(recent.bytes(), 3000);
        assert_eq!(recent.anchor(1), Some(reference(3)));
        recent.begin_to_publish().unwrap();
        recent.end_publishing(true);
        assert_eq!((recent.place(&first), recent.place(&second), recent.bytes()), (None, None, 0));
    }
}
