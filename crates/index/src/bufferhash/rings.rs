//! The location of incarnations: one ring for all super tables, or a ring each on a separate chip.
//!
//! ```text
//!   Placement::Shared, on the volume:            | 0 | 2 | 1 | 0 | 3 | 1 | ...   one ring, as they come
//!
//!   Placement::Chip, on a device of its own:     | 0 . . | 1 . . | 2 . . | 3 . . |
//!                                                  each super table goes round in its own part
//! ```
//!
//! The first suits an SSD. The second is the design of NSDI'10 (section 5.2) for a flash chip without translation
//! layer: segments are whole erase blocks, and a discard erases a block just before it is written again. A durable
//! checkpoint has evicted its contents before, so a power cut between erase and write loses nothing. Everything that is
//! overwritten in place (superblocks, checkpoints, snapshots, the log) stays on the volume's device.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use nandex_device::{Device, PageBuf, PageId};
use nandex_store::buffer::page_of;
use nandex_store::bytes::Reader;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::ring::{Ring, RingShape, SegmentId, SegmentTag};
use nandex_store::space::Extent;
use nandex_store::{Structure, Volume};

use super::{Config, Inner, Placement};
use crate::{Error, OpenOptions, Result};

/// The incarnations that are checked before a chip is rejected as another table's; one of them may be damaged.
const PROOFS_MAX: usize = 8;

/// The rings of a table, and the device they are on.
#[derive(Debug)]
pub(super) struct Rings {
    rings: Vec<Ring>,
    /// The heads of the rings at the last capture.
    captured: Vec<AtomicU64>,
    device: Arc<dyn Device>,
    is_chip: bool,
    /// The segments that each ring keeps free ahead of its head.
    reserve_segments: u64,
}

/// Returns the device of the segments.
///
/// # Errors
/// [`Error::Config`] if a chip is missing, or passed to a table that has none.
pub(super) fn device(
    volume: &Volume,
    config: &Config,
    options: &OpenOptions,
) -> Result<Arc<dyn Device>> {
    let refuse = |reason: &str| Err(Error::Config { field: "chip", reason: reason.into() });
    match (config.placement, &options.chip) {
        (Placement::Shared, None) => Ok(Arc::clone(volume.device())),
        (Placement::Chip { .. }, Some(chip)) => Ok(Arc::clone(chip)),
        (Placement::Chip { .. }, None) => {
            refuse("the table keeps its incarnations on a chip; give it in the runtime options")
        }
        (Placement::Shared, Some(_)) => {
            refuse("the table keeps its incarnations on the volume; open it without a chip")
        }
    }
}

/// Grows the chip of a table, if it has one, to the length that its incarnations need.
///
/// # Errors
/// As [`device`], and no space.
pub(super) fn grow_chip(volume: &Volume, config: &Config, options: &OpenOptions) -> Result<()> {
    let device = device(volume, config, options)?;
    if let Placement::Chip { .. } = config.placement {
        device.grow(config.ring_pages())?;
    }
    Ok(())
}

impl Rings {
    /// Creates empty rings for a new table, otherwise restores those of its checkpoint.
    ///
    /// # Errors
    /// As [`device`]; a chip that is too short; damage in the checkpoint's bytes.
    pub(super) fn restore(
        volume: &Volume,
        structure: &Structure,
        config: &Config,
        options: &OpenOptions,
        reader: &mut Reader<'_>,
    ) -> Result<Self> {
        let device = device(volume, config, options)?;
        let is_chip = config.placement != Placement::Shared;
        if is_chip && device.page_count() < config.ring_pages() {
            let (found, wanted) = (device.page_count(), config.ring_pages());
            let reason =
                format!("the chip has {found} pages and the table has {wanted} on its own");
            return Err(Error::Config { field: "chip", reason });
        }
        let (start, count) =
            if is_chip { (PageId(0), config.super_tables) } else { (structure.extent()?.start, 1) };
        let segments = config.segments / u64::from(count);
        let shape = RingShape { segments, ..config.ring_shape() };
        let pages = config.ring_pages() / u64::from(count);
        let mut rings = Vec::with_capacity(count as usize);
        for index in 0..u64::from(count) {
            let extent = Extent { start: start.plus(index * pages), pages };
            let (id, epoch) = (structure.id, volume.epoch());
            rings.push(if structure.state.is_empty() {
                Ring::create(id, extent, shape, epoch)
            } else {
                Ring::restore(id, extent, shape, epoch, reader)?
            });
        }
        Ok(Self {
            captured: rings.iter().map(|_| AtomicU64::new(0)).collect(),
            rings,
            device,
            is_chip,
            reserve_segments: config.reserve_segments / u64::from(count),
        })
    }

    /// Returns the device of the segments.
    pub(super) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The ring of a super table.
    #[inline]
    pub(super) fn of(&self, index: usize) -> &Ring {
        if self.rings.len() == 1 { &self.rings[0] } else { &self.rings[index] }
    }

    /// Every ring.
    pub(super) fn all(&self) -> &[Ring] {
        &self.rings
    }

    /// The segments that each ring keeps free ahead of its head.
    pub(super) fn reserve_segments(&self) -> u64 {
        self.reserve_segments
    }

    /// Returns all segments with entries, ring by ring, oldest first; `None` if one is in the ring of the wrong super
    /// table.
    pub(super) fn segments(&self) -> Option<Vec<(SegmentId, SegmentTag)>> {
        let mut all = Vec::new();
        for (index, ring) in self.rings.iter().enumerate() {
            let segments = ring.segments();
            if self.is_chip && segments.iter().any(|(_, tag)| tag.owner as usize != index) {
                return None;
            }
            all.extend(segments);
        }
        Some(all)
    }

    /// Prepares a segment for writing: erases its blocks if they are a chip's.
    ///
    /// # Errors
    /// A failed erase.
    pub(super) fn prepare(&self, index: usize, id: SegmentId) -> nandex_device::Result<()> {
        if self.is_chip {
            let ring = self.of(index);
            let first = ring.page(id, 0);
            let end = first.plus(u64::from(ring.shape().segment_pages));
            self.device.discard(first..end)?;
        }
        Ok(())
    }

    /// Makes writes to a chip durable; checkpoints sync the volume's own device.
    ///
    /// # Errors
    /// A failed sync.
    pub(super) fn sync(&self) -> nandex_device::Result<()> {
        if self.is_chip { self.device.sync() } else { Ok(()) }
    }

    /// Encodes the maps of all rings for the checkpoint.
    pub(super) fn capture(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (ring, captured) in self.rings.iter().zip(&self.captured) {
            let capture = ring.capture();
            captured.store(capture.mark, Release);
            bytes.extend(capture.bytes);
        }
        bytes
    }

    /// Notes that the checkpoint of the last capture is durable.
    pub(super) fn committed(&self) {
        for (ring, captured) in self.rings.iter().zip(&self.captured) {
            ring.committed(captured.load(Acquire));
        }
    }

    /// Their RAM in bytes.
    pub(super) fn ram_bytes(&self) -> usize {
        self.rings.iter().map(Ring::ram_bytes).sum()
    }
}

impl Inner {
    /// Verifies that a chip belongs to the table. A page does not name its volume, but its keys are where this volume's
    /// secret hash key puts them. One valid incarnation is enough.
    ///
    /// # Errors
    /// [`Error::Config`] if none does.
    pub(super) fn prove_chip(&self) -> Result<()> {
        if !self.layout.rings.is_chip {
            return Ok(());
        }
        let newest =
            |index: usize| self.partitions[index].read().level.newest_first().first().copied();
        let tables =
            (0..self.partitions.len()).filter_map(|index| Some((index, newest(index)?.1.id)));
        let mut doubt = None;
        for (index, id) in tables.take(PROOFS_MAX) {
            match self.is_own(index, id) {
                Ok(true) => return Ok(()),
                Ok(false) => doubt = Some("its keys are where another volume puts them".into()),
                Err(error) => doubt = Some(error.to_string()),
            }
        }
        let Some(doubt) = doubt else { return Ok(()) };
        let reason = format!(
            "the chip does not hold the table's newest incarnations ({doubt}); give the one that the \
             table was created with"
        );
        Err(Error::Config { field: "chip", reason })
    }

    /// Returns whether there are keys on the first page of this incarnation, and all belong there.
    fn is_own(&self, index: usize, id: SegmentId) -> Result<bool> {
        let label = self.layout.rings.of(index).label(id, 0, PageKind::Data);
        let page = self.layout.rings.device.read(label.page, PageBuf::zeroed(1))?;
        let page = RawPage::new(&page).check(label)?;
        let mut hashes = self
            .entry_layout()
            .entries(page.bytes())
            .map(|(_, entry)| self.hasher.hash(entry.key))
            .peekable();
        let pages = self.layout.config.buffer_pages as usize;
        Ok(hashes.peek().is_some()
            && hashes.all(|hash| self.partition_of(hash) == index && page_of(hash, pages) == 0))
    }
}
