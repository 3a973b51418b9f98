//! The on-flash format of a SliceLSH except its slices: updates in the log, snapshots' entries and its configuration.
//! docs/reference/format.md draws all of them.

use nandex_device::PageId;
use nandex_store::bytes::{Reader, get_u16, get_u64, put_u16, put_u64};
use nandex_store::page::PAGE_BODY_BYTES;
use nandex_store::{Log, StructureId};

use super::Config;
use super::buffer::{BucketBuffer, PairUpdate};
use super::keys::{BucketPlacing, Pair};
use crate::Result;
use crate::write::LogCodec;
use crate::write::format::{LOG_PUT, LOG_REMOVE};

/// The bytes of an update before its keys: its kind, and the id.
const UPDATE_HEAD_BYTES: usize = 1 + 8;

/// Bytes before the entries of a snapshot's page: their number, and six that are zero.
const SNAPSHOT_HEAD_BYTES: usize = 8;
/// Bytes of an entry of a snapshot: table and whether it is removed, key, id.
const SNAPSHOT_ENTRY_BYTES: usize = 1 + 8 + 8;
/// Entries of a snapshot's page.
pub(super) const SNAPSHOT_PAGE_ENTRIES: usize =
    (PAGE_BODY_BYTES - SNAPSHOT_HEAD_BYTES) / SNAPSHOT_ENTRY_BYTES;
/// Set in the first byte of an entry that removes its pair; the other bits are the table.
const SNAPSHOT_REMOVED: u8 = 0x80;

/// Returns the bytes in the log of an update of a document with `tables` keys.
pub(super) const fn update_bytes(tables: u32) -> usize {
    UPDATE_HEAD_BYTES + 8 * tables as usize
}

/// An update of a document in the log: its id is added to the buckets of these keys, or removed from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DocumentUpdate<'k> {
    pub id: u64,
    pub removes: bool,
    /// Eight bytes for each table.
    keys: &'k [u8],
}

impl<'k> DocumentUpdate<'k> {
    /// Encodes an update into `out`, whose earlier contents are discarded.
    pub(super) fn encode(out: &mut Vec<u8>, id: u64, keys: &[u64], removes: bool) {
        out.clear();
        out.push(if removes { LOG_REMOVE } else { LOG_PUT });
        out.extend_from_slice(&id.to_le_bytes());
        keys.iter().for_each(|key| out.extend_from_slice(&key.to_le_bytes()));
    }

    /// Reads an update of a document with `tables` keys; `None` for invalid bytes.
    pub(crate) fn decode(bytes: &'k [u8], tables: u32) -> Option<Self> {
        if bytes.len() != update_bytes(tables) {
            return None;
        }
        let removes = match bytes[0] {
            LOG_PUT => false,
            LOG_REMOVE => true,
            _ => return None,
        };
        Some(Self { id: get_u64(bytes, 1), removes, keys: &bytes[UPDATE_HEAD_BYTES..] })
    }

    /// Its pairs, one for each table.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Pair> + use<'k> {
        let id = self.id;
        let keys = self.keys.chunks_exact(8).map(|key| get_u64(key, 0));
        (0u8..).zip(keys).map(move |(table, key)| Pair { table, key, id })
    }
}

/// Reads updates of documents, and splits them into those of partitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentCodec {
    pub(super) placing: BucketPlacing,
}

impl DocumentCodec {
    fn update_of(&self, pair: Pair, removes: bool) -> (usize, PairUpdate) {
        let hash = self.placing.hash(pair.key);
        (self.placing.partition_of(hash), PairUpdate { pair, hash, removes })
    }
}

impl LogCodec<BucketBuffer> for DocumentCodec {
    /// The bytes of a document's updates, which together are one entry.
    fn logged_bytes(&self, updates: &[PairUpdate]) -> u64 {
        let documents = updates.len().div_ceil(self.placing.tables as usize);
        (documents * update_bytes(self.placing.tables)) as u64
    }

    fn append(
        &self,
        _log: &Log,
        _of: (StructureId, usize),
        _updates: &[PairUpdate],
        _records: &mut Vec<u8>,
    ) -> Result<()> {
        unreachable!("a document's updates are logged together, not those of one partition")
    }

    /// Returns the update of its first table.
    fn decode(&self, bytes: &[u8]) -> Option<(usize, PairUpdate)> {
        let document = DocumentUpdate::decode(bytes, self.placing.tables)?;
        Some(self.update_of(document.pairs().next()?, document.removes))
    }

    fn decode_each(
        &self,
        bytes: &[u8],
        visit: &mut dyn FnMut(usize, PairUpdate) -> Result<()>,
    ) -> Result<bool> {
        let document = DocumentUpdate::decode(bytes, self.placing.tables);
        let Some(document) = document else { return Ok(false) };
        for pair in document.pairs() {
            let (index, update) = self.update_of(pair, document.removes);
            visit(index, update)?;
        }
        Ok(true)
    }
}

/// Stores an entry at an index of a snapshot's page, which has all entries before it.
pub(super) fn put_snapshot_entry(body: &mut [u8], at: usize, (pair, removed): (Pair, bool)) {
    let start = SNAPSHOT_HEAD_BYTES + at * SNAPSHOT_ENTRY_BYTES;
    body[start] = if removed { pair.table | SNAPSHOT_REMOVED } else { pair.table };
    put_u64(body, start + 1, pair.key);
    put_u64(body, start + 9, pair.id);
    put_u16(body, 0, u16::try_from(at + 1).expect("a page has fewer than 239 entries"));
}

/// Reads the entries of a snapshot's page; `None` if it has more than it can hold, or one of an invalid table.
pub(crate) fn snapshot_entries(body: &[u8], tables: u32) -> Option<Vec<(Pair, bool)>> {
    let count = usize::from(get_u16(body, 0));
    if count > SNAPSHOT_PAGE_ENTRIES {
        return None;
    }
    let entry = |at: usize| {
        let start = SNAPSHOT_HEAD_BYTES + at * SNAPSHOT_ENTRY_BYTES;
        let table = body[start] & !SNAPSHOT_REMOVED;
        let pair = Pair { table, key: get_u64(body, start + 1), id: get_u64(body, start + 9) };
        (u32::from(table) < tables).then_some((pair, body[start] & SNAPSHOT_REMOVED != 0))
    };
    (0..count).map(entry).collect()
}

/// Decodes a configuration, and nothing after it, from untrusted bytes.
///
/// # Errors
/// Corruption, reported by the reader; a configuration that cannot work.
pub fn decode_config(bytes: &[u8]) -> Result<Config> {
    let mut reader = Reader::new(bytes, "slicelsh configuration", PageId(0));
    let config = Config::decode(&mut reader)?;
    if reader.left() > 0 {
        return Err(reader.refuse("the end of the configuration", reader.left()).into());
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_reads_back_and_has_the_bytes_that_the_page_shows() {
        let mut bytes = Vec::new();
        DocumentUpdate::encode(&mut bytes, 7, &[1, 0x0203], true);
        let words = bytes.chunks(4).map(|word| word.iter().map(|it| format!("{it:02x}")).collect());
        let words = words.collect::<Vec<String>>().join(" ");
        let page = include_str!("../../../../docs/reference/format.md");
        assert!(page.contains(&format!("\n{words}\n")), "{words}");
        let update = DocumentUpdate::decode(&bytes, 2).unwrap();
        assert!(update.removes);
        let pairs: Vec<_> = update.pairs().collect();
        let pair = |table, key| Pair { table, key, id: 7 };
        assert_eq!(pairs, [pair(0, 1), pair(1, 0x0203)]);
        assert_eq!(DocumentUpdate::decode(&bytes, 3), None);
        bytes[0] = 3;
        assert_eq!(DocumentUpdate::decode(&bytes, 2), None);
    }

    #[test]
    fn a_page_of_a_snapshot_reads_back_and_refuses_what_it_cannot_have() {
        let mut body = vec![0; PAGE_BODY_BYTES];
        let pair = |at: u64| (Pair { table: at as u8 % 3, key: at * 9, id: !at }, at % 4 == 1);
        for at in 0..SNAPSHOT_PAGE_ENTRIES {
            put_snapshot_entry(&mut body, at, pair(at as u64));
        }
        let all: Vec<_> = (0..SNAPSHOT_PAGE_ENTRIES as u64).map(pair).collect();
        assert_eq!(snapshot_entries(&body, 3), Some(all));
        assert_eq!(snapshot_entries(&body, 2), None, "an entry of table 2");
        put_u16(&mut body, 0, SNAPSHOT_PAGE_ENTRIES as u16 + 1);
        assert_eq!(snapshot_entries(&body, 3), None);
    }
}
