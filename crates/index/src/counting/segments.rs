//! The segments of a partition at one moment: its data segment, and those staged since it was written.

use std::sync::Arc;

use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::space::Extent;

use super::segment::Segment;
use crate::Result;
use crate::write::OnFlash;

/// The most staged segments of a partition: a lookup uses a bit for each.
pub(super) const STAGED_MAX: usize = 60;

/// The segments of a partition at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionSegments {
    /// The data segment, the paper's H_D.
    pub data: Option<Arc<Segment>>,
    /// The partition's share of S_E, oldest first.
    pub staged: Vec<Arc<Segment>>,
    /// The number of subtractions and removals in the buffers that it has taken since it was opened.
    pub deletes: u64,
}

impl PartitionSegments {
    /// Returns all segments, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.staged.iter().rev().chain(&self.data)
    }

    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        self.newest_first().map(|segment| segment.extent())
    }

    /// Returns the number of entries, each once per segment that has it.
    pub(super) fn entries(&self) -> u64 {
        self.newest_first().map(|segment| segment.content.entries).sum()
    }

    /// Returns the pages of the change segment that it takes.
    pub(super) fn staged_pages(&self) -> u64 {
        self.staged.iter().map(|segment| segment.pages()).sum()
    }

    pub(super) fn data_pages(&self) -> u64 {
        self.data.as_ref().map_or(0, |data| data.pages())
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let count = u8::try_from(self.staged.len()).expect("at most 60 staged segments");
        out.push(u8::from(self.data.is_some()));
        out.push(count);
        self.data.iter().chain(&self.staged).for_each(|segment| segment.encode(out));
    }

    /// Decodes the segments of a partition in a checkpoint from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    pub(super) fn decode(structure: StructureId, reader: &mut Reader<'_>) -> Result<Self> {
        let has_data = match reader.u8()? {
            0 => false,
            1 => true,
            other => return Err(reader.refuse("0 or 1 data segment", other).into()),
        };
        let count = usize::from(reader.u8()?);
        if count > STAGED_MAX {
            return Err(reader
                .refuse(format!("at most {STAGED_MAX} staged segments"), count)
                .into());
        }
        let mut segment = || Segment::decode(structure, reader).map(Arc::new);
        let data = has_data.then(&mut segment).transpose()?;
        let staged = (0..count).map(|_| segment()).collect::<Result<_>>()?;
        Ok(Self { data, staged, deletes: 0 })
    }
}
