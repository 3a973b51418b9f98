//! Lengths and parts of values, read without the rest of them.

use std::ops::Range;

use super::format::{ENTRY_HEADER_BYTES, HEADER_BYTES, only_pair};
use super::read::Asked;
use super::{Inner, LargeTable};
use crate::Result;
use crate::api::Table;

/// A part of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValuePart {
    /// The bytes in the requested range, as far as the value has them.
    pub bytes: Vec<u8>,
    /// The bytes of the whole value.
    pub value_bytes: u64,
}

impl<T: Table + 'static> LargeTable<T> {
    /// Returns the bytes of a value in this range; fewer if the value ends before.
    ///
    /// Costs the table's lookup, and one operation that reads the record's pages up to the end of the range.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_part(&self, key: &[u8], range: Range<u64>) -> Result<Option<ValuePart>> {
        self.inner.check_key(key)?;
        self.inner.part(key, range)
    }

    /// Returns the bytes of the values of all `keys`, in their order; `None` for an absent key. The reads overlap.
    ///
    /// Costs the table's lookups, and a read of the first page of each record.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn value_lengths(&self, keys: &[&[u8]]) -> Result<Vec<Option<u64>>> {
        keys.iter().try_for_each(|key| self.inner.check_key(key))?;
        self.inner.lengths(keys)
    }
}

fn header_bytes(key: &[u8]) -> usize {
    HEADER_BYTES + ENTRY_HEADER_BYTES + key.len()
}

impl<T: Table> Inner<T> {
    fn part(&self, key: &[u8], range: Range<u64>) -> Result<Option<ValuePart>> {
        let print = self.fingerprint(key);
        if let Asked::Known(value) = self.ask_cache(&print, key) {
            return Ok(value?.map(|value| cut(&value, value.len() as u64, range)));
        }
        let Some(reference) = self.locate(&print)? else { return Ok(None) };
        let wanted = usize::try_from(range.end).unwrap_or(usize::MAX);
        let limit = header_bytes(key).saturating_add(wanted);
        let start = self.values.read_start(reference, limit)?;
        if let Some(start) = &start
            && let Some((found, value_bytes)) = only_pair(start, &print)
            && found == key
        {
            return Ok(Some(cut(&start[header_bytes(key)..], value_bytes.into(), range)));
        }
        // Several keys share the record, or it has moved.
        let value = self.find(&print, key)?;
        Ok(value.map(|value| cut(&value, value.len() as u64, range)))
    }

    fn lengths(&self, keys: &[&[u8]]) -> Result<Vec<Option<u64>>> {
        let mut lengths = vec![None; keys.len()];
        let mut misses = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let print = self.fingerprint(key);
            match self.known_of(&print, key) {
                Some(known) => lengths[index] = known.value_bytes,
                None => misses.push((index, print)),
            }
        }
        let located =
            self.locate_many(&misses.iter().map(|(_, print)| *print).collect::<Vec<_>>())?;
        let wanted = misses.iter().zip(&located);
        let wanted: Vec<_> = wanted
            .filter_map(|((index, _), at)| Some(((*at)?, header_bytes(keys[*index]))))
            .collect();
        let mut starts = self.values.read_starts(&wanted)?.into_iter();
        for ((index, print), at) in misses.into_iter().zip(located) {
            let start = at.and_then(|_| starts.next().flatten());
            let only = start.as_deref().and_then(|start| only_pair(start, &print));
            let key = keys[index];
            lengths[index] = match (at, only) {
                (None, _) => None,
                (Some(_), Some((found, value_bytes))) if found == key => Some(value_bytes.into()),
                (Some(_), _) => self.find(&print, key)?.map(|value| value.len() as u64),
            };
        }
        Ok(lengths)
    }
}

/// Returns a range of a value, given its first bytes.
fn cut(bytes: &[u8], value_bytes: u64, range: Range<u64>) -> ValuePart {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let (start, end) = (place(range.start), place(range.end));
    ValuePart { bytes: bytes[start..end.max(start)].to_vec(), value_bytes }
}
