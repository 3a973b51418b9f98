//! Containers whose places the tables do not have yet.

use std::collections::HashMap;

use nandex::store::values::ValueRef;

use super::place::{Place, VALUE_BYTES, key_of_name};
use crate::container::{Container, KEY_BYTES, Key};

/// Bytes of RAM for an entry of a map, its spare places among them.
const ENTRY_RAM_BYTES: usize = 2 * (KEY_BYTES + size_of::<Place>());

/// Entries of the table of names and of the table of anchors.
pub(super) type Entries = (Vec<(Key, [u8; VALUE_BYTES])>, Vec<([u8; 8], [u8; 16])>);

/// Places of recent containers.
#[derive(Debug, Default)]
pub(super) struct Recent {
    places: HashMap<Key, Place>,
    anchors: HashMap<u64, ValueRef>,
    bytes: usize,
    added: u64,
}

impl Recent {
    /// Adds a container and all that leads to it. Of equal chunks and anchors the last counts.
    pub(super) fn add(&mut self, place: Place, container: &Container, anchors: &[u64]) {
        self.places.insert(key_of_name(&place.name), place);
        for (index, chunk) in (0..).zip(container.chunks()) {
            self.places.insert(chunk.key, Place { index, ..place });
        }
        self.anchors.extend(anchors.iter().map(|anchor| (*anchor, place.reference)));
        self.bytes += container.content().len();
        self.added += 1;
    }

    pub(super) fn place(&self, key: &Key) -> Option<Place> {
        self.places.get(key).copied()
    }

    pub(super) fn anchor(&self, anchor: u64) -> Option<ValueRef> {
        self.anchors.get(&anchor).copied()
    }

    /// Bytes of content.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Containers that were ever added.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    pub(super) fn ram_bytes(&self) -> usize {
        (self.places.capacity() + self.anchors.capacity()) * ENTRY_RAM_BYTES
    }

    /// All entries, in the order of their keys, so that equal runs write equal bytes.
    pub(super) fn entries(&self) -> Entries {
        let mut names: Vec<_> = self.places.iter().map(|(key, it)| (*key, it.encode())).collect();
        let anchor = |(anchor, place): (&u64, &ValueRef)| (anchor.to_le_bytes(), place.encode());
        let mut anchors: Vec<_> = self.anchors.iter().map(anchor).collect();
        names.sort_unstable();
        anchors.sort_unstable();
        (names, anchors)
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.anchors.clear();
        self.bytes = 0;
    }
}
