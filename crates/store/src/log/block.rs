//! The open block: entries are copied one after another until no more fit.

use nandex_device::PageBuf;

use super::format::{BLOCK_HEADER_BYTES, GROUP_HEADER_BYTES, put_group};
use crate::StructureId;

/// The group that entries are added to; its header is written when it is complete.
struct OpenGroup {
    at: usize,
    structure: StructureId,
    entry_bytes: u16,
    count: u32,
}

/// A block in memory that still accepts entries.
pub(super) struct OpenBlock {
    buf: PageBuf,
    bytes: usize,
    group: Option<OpenGroup>,
}

impl OpenBlock {
    /// Creates an empty block of the size of `buf`, whose content does not matter.
    pub fn new(buf: PageBuf) -> Self {
        Self { buf, bytes: BLOCK_HEADER_BYTES, group: None }
    }

    /// Returns the size of the largest entry that an empty block of `block_bytes` holds.
    pub fn entry_bytes_max(block_bytes: usize) -> usize {
        let space = block_bytes - BLOCK_HEADER_BYTES - GROUP_HEADER_BYTES;
        space.min(usize::from(u16::MAX))
    }

    /// The number of bytes in use, including the header.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an entry of `entry_bytes` bytes, given in parts; returns false when it does not fit.
    pub fn push(&mut self, structure: StructureId, entry: &[&[u8]], entry_bytes: u16) -> bool {
        if self.open_group(structure, entry_bytes, 1) == 0 {
            return false;
        }
        for part in entry {
            self.copy(part);
        }
        true
    }

    /// Adds as many of the entries as fit, and returns the number of bytes added.
    pub fn push_many(&mut self, structure: StructureId, entry_bytes: u16, entries: &[u8]) -> usize {
        let count = entries.len() / usize::from(entry_bytes);
        let taken = self.open_group(structure, entry_bytes, count) * usize::from(entry_bytes);
        self.copy(&entries[..taken]);
        taken
    }

    /// Closes the last group; the bytes in use are complete but for the block's header.
    pub fn finish(mut self) -> (PageBuf, usize) {
        self.close_group();
        (self.buf, self.bytes)
    }

    /// Counts up to `count` entries into their group, as many as fit; returns their number.
    fn open_group(&mut self, structure: StructureId, entry_bytes: u16, count: usize) -> usize {
        let space = self.buf.len() - self.bytes;
        let same = self
            .group
            .as_ref()
            .is_some_and(|group| group.structure == structure && group.entry_bytes == entry_bytes);
        let head = if same { 0 } else { GROUP_HEADER_BYTES };
        let fit = count.min(space.saturating_sub(head) / usize::from(entry_bytes));
        if fit == 0 {
            return 0;
        }
        if !same {
            self.close_group();
            let at = self.bytes;
            self.group = Some(OpenGroup { at, structure, entry_bytes, count: 0 });
            self.bytes += head;
        }
        let group = self.group.as_mut().expect("a group is open");
        group.count += u32::try_from(fit).expect("a block is shorter than 4 GiB");
        fit
    }

    fn close_group(&mut self) {
        if let Some(group) = self.group.take() {
            put_group(&mut self.buf, group.at, group.structure, group.entry_bytes, group.count);
        }
    }

    fn copy(&mut self, part: &[u8]) {
        let end = self.bytes + part.len();
        self.buf[self.bytes..end].copy_from_slice(part);
        self.bytes = end;
    }
}
