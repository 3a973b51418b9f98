//! The extents of a value log: the places of its segments, and the length of the segments of each extent.
//!
//! A log begins with one extent. A log that grows gets more of them, and the longer it is the longer new segments are,
//! so that there are few of them at every size. Places of segments, slots, are numbered over all extents.

use nandex_device::PageId;

use crate::space::Extent;

use super::config::{RESERVE_SEGMENTS, SEGMENTS_MAX, ValuesConfig};
use super::format::PAYLOAD_BYTES;

/// Segments that were added together, all of one length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentGroup {
    /// The number of pages of each.
    pub segment_pages: u32,
    /// The number of segments.
    pub segments: u32,
}

impl SegmentGroup {
    /// The number of pages of all of them.
    #[must_use]
    pub fn pages(self) -> u64 {
        u64::from(self.segments) * u64::from(self.segment_pages)
    }
}

/// The number of pages of the longest segments that a log gets by growing.
pub(super) const GROWN_SEGMENT_PAGES_MAX: u32 = 8192;

/// The least number of segments that a log is divided into; the second one is for short segments. A write ends with its
/// segment.
const SEGMENTS_GOOD: u64 = 64;
const SMALL_SEGMENTS_GOOD: u64 = 32;
const SMALL_SEGMENT_PAGES_MAX: u32 = 256;

/// The reciprocal of the share of a log that it grows by, so that little of it is unused.
const GROWTH_PART: u64 = 8;

#[derive(Clone, Copy, Debug)]
struct GroupExtent {
    group: SegmentGroup,
    extent: Extent,
    first_slot: u32,
}

/// The extents of a value log, in the order in which they were added.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    all: Vec<GroupExtent>,
}

impl Extents {
    /// Creates one extent for each group. The caller has checked that they fit.
    pub(super) fn new(groups: impl IntoIterator<Item = (SegmentGroup, Extent)>) -> Self {
        let mut extents = Self { all: Vec::new() };
        for (group, extent) in groups {
            extents.push(group, extent);
        }
        extents
    }

    /// Adds an extent, and returns the slots of its segments.
    pub(super) fn push(&mut self, group: SegmentGroup, extent: Extent) -> std::ops::Range<u32> {
        let first_slot = self.slots();
        self.all.push(GroupExtent { group, extent, first_slot });
        first_slot..first_slot + group.segments
    }

    /// The number of segments.
    pub(super) fn slots(&self) -> u32 {
        self.all.last().map_or(0, |last| last.first_slot + last.group.segments)
    }

    /// The number of pages of all segments.
    pub(super) fn pages(&self) -> u64 {
        self.all.iter().map(|it| it.group.pages()).sum()
    }

    /// Returns the groups that growth has added.
    pub(super) fn added(&self) -> Vec<SegmentGroup> {
        self.all.iter().skip(1).map(|it| it.group).collect()
    }

    /// Returns the pages of each group.
    pub(super) fn list(&self) -> Vec<Extent> {
        self.all.iter().map(|it| it.extent).collect()
    }

    fn of(&self, slot: u32) -> Option<&GroupExtent> {
        let after = self.all.partition_point(|it| it.first_slot <= slot);
        let found = self.all.get(after.checked_sub(1)?)?;
        (slot - found.first_slot < found.group.segments).then_some(found)
    }

    /// Returns the first page of a segment. A slot that does not exist has that of the log, for error texts.
    pub(super) fn first_page(&self, slot: u32) -> PageId {
        match self.of(slot) {
            Some(it) => {
                let before = u64::from(slot - it.first_slot) * u64::from(it.group.segment_pages);
                it.extent.start.plus(before)
            }
            None => self.all.first().map_or(PageId(0), |first| first.extent.start),
        }
    }

    /// Returns the number of pages of a segment; 0 for a slot that does not exist.
    pub(super) fn segment_pages(&self, slot: u32) -> u32 {
        self.of(slot).map_or(0, |it| it.group.segment_pages)
    }

    /// Returns the number of bytes of records that a segment holds.
    pub(super) fn segment_bytes(&self, slot: u32) -> u64 {
        payload(self.segment_pages(slot))
    }

    /// The number of pages of the longest segments.
    pub(super) fn longest_pages(&self) -> u32 {
        self.all.iter().map(|it| it.group.segment_pages).max().unwrap_or(0)
    }

    /// Returns the groups of segments by which the log may grow so that a record of this many bytes fits, the best
    /// first. The later ones take less space, down to one segment.
    pub(super) fn growths(&self, whole_bytes: u64) -> Vec<SegmentGroup> {
        let longest = self.longest_pages();
        let needed = lengthened(longest, |pages| payload(pages) < whole_bytes);
        let total = self.pages();
        let good = lengthened(needed, |pages| {
            let is_small = pages < SMALL_SEGMENT_PAGES_MAX;
            let count = if is_small { SMALL_SEGMENTS_GOOD } else { SEGMENTS_GOOD };
            u64::from(pages) * 2 * count <= total
        });
        let least = |pages| if pages > longest { RESERVE_SEGMENTS as u32 + 1 } else { 1 };
        let part = total / GROWTH_PART / u64::from(good).max(1);
        let mut count = u32::try_from(part).unwrap_or(SEGMENTS_MAX).max(least(good));
        let mut all = Vec::new();
        loop {
            all.push(SegmentGroup { segment_pages: good, segments: count });
            if count == least(good) {
                break;
            }
            count = (count / 2).max(least(good));
        }
        if good > needed {
            all.push(SegmentGroup { segment_pages: needed, segments: least(needed) });
        }
        let left = SEGMENTS_MAX.saturating_sub(self.slots());
        all.retain(|it| it.segments <= left && payload(it.segment_pages) >= whole_bytes);
        all
    }
}

/// Returns the number of pages of a segment, doubled while it is too short and growth makes longer ones.
fn lengthened(mut pages: u32, is_short: impl Fn(u32) -> bool) -> u32 {
    while pages < GROWN_SEGMENT_PAGES_MAX && is_short(pages) {
        pages = (2 * pages).min(GROWN_SEGMENT_PAGES_MAX);
    }
    pages
}

/// Returns the number of bytes of records on `pages` pages.
pub(super) fn payload(pages: u32) -> u64 {
    u64::from(pages) * PAYLOAD_BYTES as u64
}

impl From<&ValuesConfig> for SegmentGroup {
    fn from(config: &ValuesConfig) -> Self {
        Self { segment_pages: config.segment_pages, segments: config.segments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(segment_pages: u32, segments: u32) -> SegmentGroup {
        SegmentGroup { segment_pages, segments }
    }

    fn extents(groups: &[SegmentGroup]) -> Extents {
        let at = |number: u64, group: &SegmentGroup| Extent {
            start: PageId(1_000_000 * number),
            pages: group.pages(),
        };
        Extents::new((1..).zip(groups).map(|(number, group)| (*group, at(number, group))))
    }

    #[test]
    fn slots_are_numbered_over_all_extents() {
        let extents = extents(&[group(6, 5), group(6, 1), group(12, 3)]);
        assert_eq!((extents.slots(), extents.pages()), (9, 72));
        let first = |slot| extents.first_page(slot).0;
        assert_eq!(
            [0, 4, 5, 6, 8].map(first),
            [1_000_000, 1_000_024, 2_000_000, 3_000_000, 3_000_024]
        );
        let pages = [0, 5, 6, 8, 9, u32::MAX].map(|slot| extents.segment_pages(slot));
        assert_eq!(pages, [6, 6, 12, 12, 0, 0]);
        assert_eq!(extents.first_page(9), PageId(1_000_000));
        assert_eq!(extents.added(), [group(6, 1), group(12, 3)]);
    }

    #[test]
    fn a_log_grows_by_an_eighth_and_its_segments_stay_few() {
        for (first, few) in [(16, 500), (256, 400)] {
            let mut log = extents(&[group(first, 5)]);
            while log.pages() < 1 << 38 {
                let growths = log.growths(0);
                let Some(best) = growths.first() else { break };
                let part = log.pages() / GROWTH_PART;
                assert!(best.pages() <= part.max(first.into()), "{best:?}");
                if 2 * best.pages() < part {
                    break;
                }
                assert!(
                    growths.is_sorted_by_key(|it| std::cmp::Reverse(it.pages())),
                    "{growths:?}"
                );
                log.push(*best, Extent { start: PageId(0), pages: best.pages() });
                let good = (log.pages() / u64::from(GROWN_SEGMENT_PAGES_MAX)).max(400);
                assert!(u64::from(log.slots()) < good + few, "{} of {}", log.slots(), log.pages());
                assert!(log.all.len() < 200);
            }
            assert!(
                log.pages() * 4096 > 16 << 40,
                "{} pages until its slots are used up",
                log.pages()
            );
            assert!(log.slots() <= SEGMENTS_MAX);
        }
    }

    #[test]
    fn a_record_longer_than_every_segment_gets_longer_ones_and_their_reserve() {
        let log = extents(&[group(256, 5)]);
        assert_eq!(log.growths(payload(256)), [group(256, 1)]);
        assert_eq!(log.growths(payload(256) + 1), [group(512, 3)]);
        assert_eq!(log.growths(17 << 20), [group(8192, 3)]);
        assert!(log.growths(payload(8192) + 1).is_empty());
    }

    #[test]
    fn where_space_is_scarce_less_is_asked_for() {
        let log = extents(&[group(256, 64)]);
        assert_eq!(log.growths(0), [group(256, 8), group(256, 4), group(256, 2), group(256, 1)]);
        let log = extents(&[group(256, 128)]);
        assert_eq!(log.growths(0), [group(512, 8), group(512, 4), group(512, 3), group(256, 1)]);
    }
}
