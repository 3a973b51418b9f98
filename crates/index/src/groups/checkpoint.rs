//! The checkpoint state of partitions whose record tables are in groups: the places for snapshots, and a map of each
//! partition's groups.

use std::sync::Arc;

use nandex_device::PageId;
use nandex_store::Structure;
use nandex_store::bytes::Reader;
use nandex_store::space::Extent;

use super::Group;
use crate::Result;
use crate::write::{CapturedMaps, Core, Layout, OnFlash, Retired};

/// The version of the encoded state.
const STATE_VERSION: u8 = 1;

/// Bytes of the state before the maps.
const HEAD_BYTES: usize = 9;

/// The minimum number of bytes that the write path adds for each partition.
const PARTITION_RECORD_BYTES: usize = 32;

/// The map from keys to groups: a partition's directory, or its levels.
pub trait GroupMap: Default {
    /// The map's name in sentences about its table.
    const NAME: &'static str;
    /// The name of what its groups consist of.
    const NOUN: &'static str;

    /// The bytes that it takes in a checkpoint.
    fn encoded_bytes(&self) -> usize;

    /// Encodes it for a checkpoint. docs/reference/format.md draws the bytes.
    fn encode(&self, out: &mut Vec<u8>);

    /// Its groups.
    fn groups(&self) -> impl Iterator<Item = &Arc<Group>>;

    /// Entries of all groups.
    fn entries(&self) -> u64;

    /// RAM in bytes.
    fn ram_bytes(&self) -> u64;

    /// The RAM in bytes that checkpoints take for it: its encoding, and lists of its extents.
    fn checkpoint_ram_bytes(&self) -> u64 {
        self.groups().map(|it| it.checkpoint_ram_bytes()).sum()
    }

    /// Pages of all groups.
    fn pages(&self) -> u64 {
        self.groups().map(|group| group.place.extent.pages).sum()
    }
}

/// The state of a table restored from a checkpoint.
pub(crate) struct RestoredMaps<M> {
    /// The places for snapshots of buffers.
    pub snapshots: Extent,
    /// The map of each partition.
    pub maps: Vec<M>,
}

impl<M: GroupMap> RestoredMaps<M> {
    /// Decodes the map of each of these partitions with `decode`, and the places of snapshots with the given number of
    /// pages, from a checkpoint.
    ///
    /// # Errors
    /// Bytes that contradict the configuration, or pages that are not the table's.
    pub(crate) fn read(
        structure: &Structure,
        (partitions, snapshot_pages): (u32, u64),
        reader: &mut Reader<'_>,
        mut decode: impl FnMut(&mut Reader<'_>) -> Result<M>,
    ) -> Result<Self> {
        if structure.state.is_empty() {
            let snapshots = Extent { start: structure.extent()?.start, pages: snapshot_pages };
            let maps = (0..partitions).map(|_| M::default()).collect();
            return Ok(Self { snapshots, maps });
        }
        let version = reader.u8()?;
        if version != STATE_VERSION {
            let expected = format!("a state of version {STATE_VERSION}");
            return Err(reader.refuse(expected, version).into());
        }
        let snapshots = Extent { start: PageId(reader.u64()?), pages: snapshot_pages };
        let mut own = structure.extents.clone();
        own.sort_by_key(|extent| extent.start);
        let maps = (0..partitions).map(|_| decode(reader)).collect::<Result<Vec<_>>>()?;
        let groups = maps.iter().flat_map(GroupMap::groups).map(|group| group.extent());
        let lost = groups.chain([snapshots]).find(|extent| !is_own(&own, *extent));
        match lost {
            None => Ok(Self { snapshots, maps }),
            Some(lost) => {
                let expected = format!("{} on extents of the structure's own", M::NOUN);
                Err(reader.refuse(expected, format!("{lost:?}")).into())
            }
        }
    }
}

/// Captures the state of a table for the next checkpoint. The caller holds the lock of the maps.
pub(crate) fn capture_maps<L, M>(
    core: &Core<L>,
    snapshots: Extent,
    retired: &Retired<Group>,
) -> CapturedMaps
where
    L: Layout<Level = Arc<M>>,
    M: GroupMap,
{
    let maps: Vec<_> =
        core.partitions.iter().map(|partition| Arc::clone(&partition.read().level)).collect();
    let length = maps.iter().map(|it| it.encoded_bytes()).sum::<usize>();
    let partitions = maps.len() * PARTITION_RECORD_BYTES;
    let mut bytes = Vec::with_capacity(HEAD_BYTES + length + partitions);
    bytes.push(STATE_VERSION);
    bytes.extend_from_slice(&snapshots.start.0.to_le_bytes());
    maps.iter().for_each(|map| map.encode(&mut bytes));
    let groups = || maps.iter().flat_map(|it| it.groups());
    let mut extents = Vec::with_capacity(groups().count() + 1);
    extents.push(snapshots);
    extents.extend(groups().map(|group| group.extent()));
    drop(maps);
    CapturedMaps { bytes, extents: Some(retired.extents(&core.volume, extents)) }
}

/// Returns whether this extent is one of `ordered`, the structure's own extents.
fn is_own(ordered: &[Extent], extent: Extent) -> bool {
    ordered.binary_search_by_key(&extent.start, |it| it.start).is_ok_and(|at| ordered[at] == extent)
}
