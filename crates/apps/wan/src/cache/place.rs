//! The place of a chunk: the value of the table of names.

use nandex::raw::store::values::{REF_BYTES, ValueRef};

use crate::container::{KEY_BYTES, Key, NAME_BYTES, Name};

/// Bytes of a place.
pub(super) const VALUE_BYTES: usize = REF_BYTES + 2 + NAME_BYTES;

/// The bytes after a container's name in its key, in place of the rest of a chunk's key. Four bytes of a digest equal
/// these once in 2^32, and the name of the container found is compared anyway.
const MARK: [u8; KEY_BYTES - NAME_BYTES] = *b"wanc";

/// A chunk's container, and its index in that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The container's record.
    pub(crate) reference: ValueRef,
    pub(crate) index: u16,
    /// The container's name.
    pub(crate) name: Name,
}

impl Place {
    pub(super) fn encode(&self) -> [u8; VALUE_BYTES] {
        let mut out = [0; VALUE_BYTES];
        let (reference, rest) = out.split_at_mut(REF_BYTES);
        reference.copy_from_slice(&self.reference.encode());
        let (index, name) = rest.split_at_mut(2);
        index.copy_from_slice(&self.index.to_le_bytes());
        name.copy_from_slice(&self.name);
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (reference, rest) = bytes.split_at_checked(REF_BYTES)?;
        let (index, name) = rest.split_first_chunk::<2>()?;
        Some(Self {
            reference: ValueRef::decode(reference)?,
            index: u16::from_le_bytes(*index),
            name: name.try_into().ok()?,
        })
    }
}

/// Returns the key of a container.
pub(super) fn key_of_name(name: &Name) -> Key {
    let mut key = [0; KEY_BYTES];
    key[..NAME_BYTES].copy_from_slice(name);
    key[NAME_BYTES..].copy_from_slice(&MARK);
    key
}

/// Returns the place of a container as a whole: that of its first chunk.
pub(super) fn place_of_container(reference: ValueRef, name: Name) -> Place {
    Place { reference, index: 0, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let reference = ValueRef { slot: 1, sequence: 2, offset: 3, bytes: 4 };
        let place = Place { reference, index: 0x0506, name: [7; NAME_BYTES] };
        assert_eq!(Place::decode(&place.encode()), Some(place));
        assert_eq!(Place::decode(&place.encode()[1..]), None);
        assert_eq!(Place::decode(&[]), None);
    }
}
