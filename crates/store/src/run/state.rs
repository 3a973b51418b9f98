//! The state of a run in a checkpoint. The bytes are drawn in docs/reference/format.md.

use super::page::{PAGE_ENTRIES_MAX, SPACE_BYTES};
use super::{Run, RunPlace, RunShape};
use crate::Result;
use crate::bytes::Reader;
use crate::fingerprint::Universe;
use crate::page::StructureId;
use crate::space::Extent;
use nandex_device::PageId;

/// The version of these bytes and of the run's pages.
pub const RUN_VERSION: u8 = 1;

impl Run {
    /// Appends everything needed to find the run's pages again.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let RunPlace { extent, generation, .. } = self.place;
        out.push(RUN_VERSION);
        let fields = [
            extent.start.0,
            extent.pages,
            generation,
            self.shape.slot_pages,
            self.used_pages,
            self.entries,
            self.tombstones,
            self.count_bytes,
        ];
        for field in fields {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&self.sum.to_le_bytes());
    }

    /// Decodes what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the bytes are not a run of this universe: every field is checked
    /// against the others.
    pub fn decode(structure: StructureId, universe: Universe, from: &mut Reader) -> Result<Self> {
        let version = from.u8()?;
        if version != RUN_VERSION {
            return Err(from.refuse(format!("version {RUN_VERSION}"), version));
        }
        let extent = Extent { start: PageId(from.u64()?), pages: from.u64()? };
        let place = RunPlace { structure, extent, generation: from.u64()? };
        let (slot_pages, used_pages) = (from.u64()?, from.u64()?);
        if !(1..=used_pages).contains(&slot_pages) || used_pages > extent.pages {
            let expected = format!("1 to {used_pages} slots, and pages in use of {}", extent.pages);
            return Err(from.refuse(expected, format!("{slot_pages} slots")));
        }
        // The byte addresses of a device's pages must not overflow.
        if extent.start.0.checked_add(extent.pages).is_none_or(|end| end > u64::MAX / 4096) {
            return Err(from.refuse("an extent of a device", format!("{extent:?}")));
        }
        let spare_pages = extent.pages - slot_pages;
        let shape = RunShape { universe, slot_pages, spare_pages };
        if let Err(error) = shape.validate() {
            return Err(from.refuse("a shape of a run", error));
        }
        let (entries, tombstones) = (from.u64()?, from.u64()?);
        let (count_bytes, sum) = (from.u64()?, from.u128()? as i128);
        let split = shape.split();
        let run = Self { place, shape, split, used_pages, entries, tombstones, count_bytes, sum };
        match run.contradiction() {
            Some(expected) => Err(from.refuse(expected, format!("{run:?}"))),
            None => Ok(run),
        }
    }

    /// Returns the condition that these numbers violate, if any.
    fn contradiction(&self) -> Option<&'static str> {
        let entries_max = self.used_pages.saturating_mul(PAGE_ENTRIES_MAX as u64);
        if self.entries > entries_max.min(self.shape.universe.size()) {
            return Some("as many entries as pages and universe hold");
        }
        if self.tombstones > self.entries {
            return Some("no more tombstones than entries");
        }
        let count_bytes_max = self.used_pages.saturating_mul(SPACE_BYTES as u64);
        let (above, below) =
            (i128::from(self.entries - self.tombstones), i128::from(self.tombstones));
        if self.count_bytes > count_bytes_max
            || self.count_bytes == 0 && (below > 0 || self.sum != above)
        {
            return Some("counts that fit their bytes");
        }
        let least = above + below * i128::from(i64::MIN);
        let most = above * i128::from(i64::MAX) - below;
        if !(least..=most).contains(&self.sum) {
            return Some("a sum of that many counts");
        }
        None
    }
}
