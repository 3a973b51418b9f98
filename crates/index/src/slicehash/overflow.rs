//! The overflow of a split: entries that an older table had in RAM, and for which a full slice had no space.
//!
//! The older table's log and snapshots keep them only until the partition has its own slicetable. So they are stored in
//! the map with it: they are in RAM next to the slicetable, older than any buffer, and in the checkpoint. The next
//! merge absorbs them. Slices usually hold hundreds of entries and are half full after a split; only slices of a few
//! large entries overflow.

use nandex_store::bytes::Reader;
use nandex_store::entries::{Entry, SlotState};

use super::Config;
use crate::Result;
use crate::any::AnyPair;
use crate::api::Value;

/// Entries of a partition, each key once.
#[derive(Clone, Debug, Default)]
pub(super) struct Overflow(Vec<AnyPair>);

impl Overflow {
    /// Creates the overflow of these entries.
    pub fn new<'e>(entries: impl Iterator<Item = Entry<'e>>) -> Self {
        Self(entries.map(|entry| (entry.key.to_vec(), Value::new(entry.value))).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.0.iter().map(|(key, value)| Entry { state: SlotState::Live, key, value })
    }

    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<Value> {
        self.0.iter().find(|(it, _)| it == key).map(|(_, value)| *value)
    }

    /// The approximate RAM, in bytes.
    pub fn ram_bytes(&self) -> u64 {
        let keys: usize = self.0.iter().map(|(key, _)| key.len()).sum();
        (self.0.capacity() * size_of::<AnyPair>() + keys) as u64
    }

    /// Encodes the overflow of each partition that has some.
    pub fn encode_all<'o>(all: impl Iterator<Item = (u32, &'o Self)>, out: &mut Vec<u8>) {
        let some: Vec<_> = all.filter(|(_, overflow)| !overflow.is_empty()).collect();
        out.extend((some.len() as u32).to_le_bytes());
        for (partition, overflow) in some {
            out.extend(partition.to_le_bytes());
            out.extend((overflow.len() as u32).to_le_bytes());
            overflow.entries().for_each(|entry| {
                out.extend_from_slice(entry.key);
                out.extend_from_slice(entry.value);
            });
        }
    }

    /// Decodes the result of [`encode_all`](Self::encode_all).
    ///
    /// # Errors
    /// Bytes that contradict the configuration.
    pub fn decode_all(config: &Config, reader: &mut Reader<'_>) -> Result<Vec<(u32, Self)>> {
        let (key_bytes, value_bytes) = (config.key_bytes, config.value_bytes);
        let some = reader.count(2 * size_of::<u32>())?;
        let mut all: Vec<(u32, Self)> = Vec::with_capacity(some);
        for _ in 0..some {
            let partition = reader.u32()?;
            if partition >= config.partitions || all.last().is_some_and(|it| it.0 >= partition) {
                let expected = format!("rising numbers of {} partitions", config.partitions);
                return Err(reader.refuse(expected, partition).into());
            }
            let entries = reader.count(key_bytes + value_bytes)?;
            let mut pair = || -> Result<AnyPair> {
                Ok((reader.take(key_bytes)?.to_vec(), Value::new(reader.take(value_bytes)?)))
            };
            all.push((partition, Self((0..entries).map(|_| pair()).collect::<Result<_>>()?)));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;

    use super::*;

    fn of(keys: std::ops::Range<u64>) -> Overflow {
        Overflow(keys.map(|key| (key.to_le_bytes().to_vec(), Value::new(&[7; 8]))).collect())
    }

    fn decode(bytes: &[u8]) -> Result<Vec<(u32, Overflow)>> {
        let config = Config { partitions: 8, ..Config::tiny() };
        Overflow::decode_all(&config, &mut Reader::new(bytes, "overflow", PageId(0)))
    }

    #[test]
    fn overflow_reads_back_and_never_panics_when_cut() {
        let all = [(0, of(0..0)), (3, of(1..4)), (7, of(9..10))];
        let mut bytes = Vec::new();
        Overflow::encode_all(all.iter().map(|(partition, it)| (*partition, it)), &mut bytes);
        assert_eq!(bytes.len(), 4 + 2 * 8 + 4 * 16);
        let read = decode(&bytes).unwrap();
        let entries: Vec<_> = read.iter().map(|(partition, it)| (*partition, it.len())).collect();
        assert_eq!(entries, [(3, 3), (7, 1)]);
        assert_eq!(read[0].1.find(&2u64.to_le_bytes()).as_deref(), Some(&[7; 8][..]));
        assert_eq!(read[0].1.find(&9u64.to_le_bytes()), None);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn partitions_that_there_are_not_are_refused() {
        for partitions in [&[8][..], &[3, 3], &[3, 2]] {
            let overflow = of(0..1);
            let mut bytes = Vec::new();
            let all = partitions.iter().map(|partition| (*partition, &overflow));
            Overflow::encode_all(all, &mut bytes);
            assert!(decode(&bytes).is_err(), "{partitions:?}");
        }
    }
}
