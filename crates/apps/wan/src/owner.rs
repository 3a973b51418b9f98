//! Owners of containers, for several users who do not trust one another but share a cache.
//!
//! An owner's entries have other keys in the index: a digest of the key and of the owner's secret. And each of its
//! containers names its owner. So one owner cannot find another's content, whatever names or fingerprints it knows, and
//! an owner costs no RAM in the cache. Files and pipes have no owner: a user of the cache uses all of it.

use std::fmt;

use crate::container::{Key, beginning};

/// The owner's tag in a container; zeros if it has none.
pub(crate) type Tag = [u8; 16];

/// The tag of containers without an owner.
pub(crate) const NO_TAG: Tag = [0; 16];

/// The owner of the content of a stream, who may refer to it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Owner(Option<Secret>);

#[derive(Clone, PartialEq, Eq)]
struct Secret {
    key: [u8; 32],
    tag: Tag,
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(secret) = self;
        f.debug_tuple("Owner").field(&secret.as_ref().map(|it| it.tag)).finish()
    }
}

impl Owner {
    /// Creates the owner with this secret, or with a name that nothing else has. The same bytes are the same owner, in
    /// every cache.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        let key = blake3::derive_key("nandex wan 1 owner", secret);
        let tag = beginning(&blake3::derive_key("nandex wan 1 owner tag", secret));
        Self(Some(Secret { key, tag }))
    }

    /// Returns the tag of its containers.
    pub(crate) fn tag(&self) -> Tag {
        let Self(secret) = self;
        secret.as_ref().map_or(NO_TAG, |secret| secret.tag)
    }

    /// Returns the key in the index for an entry with this key.
    pub(crate) fn key(&self, key: &Key) -> Key {
        match &self.0 {
            None => *key,
            Some(secret) => beginning(blake3::keyed_hash(&secret.key, key).as_bytes()),
        }
    }

    /// Returns the key in the index for an anchor.
    pub(crate) fn anchor(&self, anchor: u64) -> u64 {
        match &self.0 {
            None => anchor,
            Some(secret) => {
                let digest = blake3::keyed_hash(&secret.key, &anchor.to_le_bytes());
                u64::from_le_bytes(beginning(digest.as_bytes()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_have_keys_of_their_own_and_nobody_has_them_as_they_are() {
        let (one, other, nobody) = (Owner::of(b"one"), Owner::of(b"other"), Owner::default());
        let key = [7; 20];
        assert_eq!((nobody.key(&key), nobody.anchor(9), nobody.tag()), (key, 9, NO_TAG));
        assert_eq!(one, Owner::of(b"one"));
        let of = |owner: &Owner| (owner.key(&key), owner.anchor(9), owner.tag());
        assert_eq!(of(&one), of(&Owner::of(b"one")));
        let (mine, theirs) = (of(&one), of(&other));
        assert!(mine.0 != theirs.0 && mine.1 != theirs.1 && mine.2 != theirs.2);
        assert!(mine.0 != key && mine.1 != 9 && mine.2 != NO_TAG);
    }

    #[test]
    fn what_is_shown_of_an_owner_has_no_secret() {
        let owner = Owner::of(b"secret");
        assert!(!format!("{owner:?}").contains(&format!("{:?}", owner.0.as_ref().unwrap().key)));
    }
}
