//! The orders in which engines keep their keys.

/// The order in which an engine keeps its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As numbers.
    Number,
    /// As strings of their little-endian bytes.
    Bytes,
    /// By the low bits of the FNV-1 hash of those bytes, starting at zero: by Berkeley DB's buckets.
    Buckets {
        /// Bits in the number of a bucket, 1 to 32.
        bits: u32,
    },
}

impl Order {
    /// Returns the rank of `key` in this order, in the whole range of 64 bits.
    #[must_use]
    pub const fn rank(self, key: u64) -> u64 {
        match self {
            Self::Number => key,
            Self::Bytes => key.swap_bytes(),
            Self::Buckets { bits } => (fnv(key) as u64) << (u64::BITS - bits),
        }
    }
}

const fn fnv(key: u64) -> u32 {
    let (bytes, mut hash, mut place) = (key.to_le_bytes(), 0u32, 0);
    while place < bytes.len() {
        hash = hash.wrapping_mul(16_777_619) ^ bytes[place] as u32;
        place += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySpace;

    fn sorted(order: Order) -> Vec<u64> {
        let mut keys: Vec<u64> = (0..1000).map(|index| KeySpace::new(9).key(index)).collect();
        keys.sort_unstable_by_key(|&key| order.rank(key));
        keys
    }

    #[test]
    fn the_bytes_of_keys_in_byte_order_ascend() {
        assert!(sorted(Order::Bytes).is_sorted_by_key(|key| key.to_le_bytes()));
    }

    #[test]
    fn keys_in_the_order_of_buckets_come_bucket_by_bucket() {
        assert!(sorted(Order::Buckets { bits: 4 }).is_sorted_by_key(|&key| fnv(key) % 16));
        assert_eq!(fnv(1), 1u32.wrapping_mul(16_777_619u32.wrapping_pow(7)));
    }
}
