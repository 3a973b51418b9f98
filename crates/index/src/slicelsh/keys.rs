//! The placement of buckets: the hash of a key determines the partition, the slice and the place in a buffer.

use nandex_store::hash::{KeyHash, KeyHasher};

/// An entry: an id in the bucket of a key of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Pair {
    pub table: u8,
    pub key: u64,
    pub id: u64,
}

/// The parameters that determine the placement of buckets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketPlacing {
    pub hasher: KeyHasher,
    pub tables: u32,
    pub partitions: u32,
    pub slices: u32,
}

impl BucketPlacing {
    /// The hash of a bucket key. It is the same for all tables.
    #[inline]
    pub(super) fn hash(&self, key: u64) -> KeyHash {
        self.hasher.hash(&key.to_le_bytes())
    }

    /// The partition of a bucket: the first bits of its hash.
    #[inline]
    pub(super) const fn partition_of(&self, hash: KeyHash) -> usize {
        // The shift is split so that a single partition (0 bits) works too.
        (hash.place >> 1 >> (63 - self.partitions.trailing_zeros())) as usize
    }

    /// Returns the slice of a bucket in its table, from bits that neither the partition nor the buffer uses.
    #[inline]
    pub(super) const fn slice_of(&self, hash: KeyHash) -> u32 {
        (((hash.filter >> 32) * self.slices as u64) >> 32) as u32
    }
}
