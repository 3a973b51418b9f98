//! The combined channels of several devices.
//!
//! If runs of s chunks go to the M members in turn and s divides the N channels of each, chunk i of the array and chunk
//! i + M x N are on the same channel of the same member, and those between on others: the array has M x N channels with
//! the members' mapping. If s divides their buses too, it has M times as many buses. Any other striping has as many
//! channels, but not in turn.

use std::iter;

use super::label::LABEL_PAGES;
use super::{ArrayOptions, Striping};
use crate::{Geometry, PAGE_BYTES};

impl ArrayOptions {
    /// Returns the channels of an array of `devices` devices, given those of one: the devices are alike, and do not
    /// report their channels.
    ///
    /// If the channels of all devices come in turn, the array has as many channels as all of them. If a run is whole
    /// rounds of one device's channels, the array has the channels of one device, each for the channels of that number
    /// on all devices: reads that go to several devices then count as if they were on one channel. `None` if the place
    /// of a page does not determine its channel, as in an array of partitions.
    #[must_use]
    pub fn channels_of(&self, device: &Geometry, devices: usize) -> Option<Geometry> {
        let first = LABEL_PAGES.next_multiple_of(self.align_pages.max(1));
        let all = together(iter::repeat_n(*device, devices), self.striping);
        let all = behind(all, first);
        if all.channels.is_some() && all.chunk_bytes.is_some() {
            return Some(all);
        }
        let chunks = stripe_chunks(device, self.striping)?;
        let is_whole_rounds = chunks.is_multiple_of(device.channels?.into());
        let one = behind(*device, first);
        (is_whole_rounds && one.chunk_bytes.is_some()).then_some(one)
    }
}

/// Returns the geometry of an array of members with these geometries. Channels and depths add up; the chunk, and with
/// it the place of a channel, is set only if chunk i is on channel i mod their number.
pub(super) fn together(members: impl Iterator<Item = Geometry>, striping: Striping) -> Geometry {
    let members: Vec<Geometry> = members.collect();
    let Some(first) = members.first() else { return Geometry::opaque() };
    if members.len() == 1 {
        return *first;
    }
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    let sum = |each: fn(&Geometry) -> Option<u32>| {
        members.iter().map(each).try_fold(0_u32, |sum, one| sum.checked_add(one?))
    };
    let whole = Geometry {
        channels: sum(|member| member.channels),
        depth: members.iter().map(|member| member.depth).sum(),
        ..Geometry::opaque()
    };
    let are_alike = members.iter().all(|member| member == first);
    match stripe_chunks(first, striping) {
        Some(stripe) if are_alike => {
            let divides = |level: &u32| u64::from(*level).is_multiple_of(stripe);
            let in_turn = first.channels.is_some_and(|channels| divides(&channels));
            let buses = first.buses.filter(divides).and_then(|buses| buses.checked_mul(count));
            Geometry {
                chunk_bytes: first.chunk_bytes.filter(|_| in_turn),
                mapping: first.mapping.filter(|_| in_turn),
                buses: buses.filter(|_| in_turn),
                serial_buses: first.serial_buses,
                ..whole
            }
        }
        _ => whole,
    }
}

/// Returns the geometry after the first `pages` pages of each member. Whole chunks only renumber the channels, in the
/// same order; within a chunk, pages are no longer where the geometry says.
pub(super) fn behind(whole: Geometry, first: u64) -> Geometry {
    let chunk_pages = whole.chunk_bytes.map(|bytes| u64::from(bytes) / PAGE_BYTES as u64);
    if chunk_pages.is_none_or(|pages| first.is_multiple_of(pages)) {
        return whole;
    }
    Geometry { chunk_bytes: None, mapping: None, buses: None, phase_bytes: 0, ..whole }
}

/// Returns the number of chunks in a run of an array, if it is a whole number and they begin where the run does.
fn stripe_chunks(member: &Geometry, striping: Striping) -> Option<u64> {
    let Striping::Extent { pages } = striping else { return None };
    let chunk_pages = u64::from(member.chunk_bytes?) / PAGE_BYTES as u64;
    let is_whole = chunk_pages > 0 && pages.is_multiple_of(chunk_pages) && member.phase_bytes == 0;
    is_whole.then(|| pages / chunk_pages)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::striping::Layout;
    use super::*;
    use crate::{Mapping, PageId};

    const MEMBER: Geometry = Geometry {
        channels: Some(12),
        chunk_bytes: Some(8192),
        mapping: Some(Mapping::Lba),
        buses: Some(4),
        depth: 16,
        ..Geometry::opaque()
    };

    fn of(members: usize, pages: u64) -> Geometry {
        together([MEMBER].into_iter().cycle().take(members), Striping::Extent { pages })
    }

    /// Returns whether pages that share one of `parts` parts also share a part on the members, each of which has
    /// `of_member` parts.
    fn is_true(members: usize, pages: u64, parts: u32, of_member: u32) -> bool {
        let layout = Layout { striping: Striping::Extent { pages }, members, first: 0 };
        let mut seen = HashMap::new();
        (0..4096).all(|page| {
            let place = layout.place(PageId(page));
            let real = (place.member, place.page.0 / 2 % u64::from(of_member));
            *seen.entry(page / 2 % u64::from(parts)).or_insert(real) == real
        }) && seen.values().collect::<std::collections::HashSet<_>>().len() == seen.len()
    }

    #[test]
    fn channels_and_buses_of_an_array_are_told_where_they_come_in_turn_and_only_there() {
        let mut told = 0;
        for members in 2..5 {
            for pages in 1..60 {
                let all = of(members, pages);
                assert_eq!(all.channels, Some(12 * members as u32));
                assert_eq!(all.depth, 16 * members);
                let is_in_turn = is_true(members, pages, all.channels.unwrap(), 12);
                assert_eq!(all.chunk_bytes.is_some(), is_in_turn, "{members} by {pages}");
                assert_eq!(all.mapping.is_some(), is_in_turn);
                if let Some(buses) = all.buses {
                    assert!(is_true(members, pages, buses, 4), "{members} by {pages}");
                    told += 1;
                }
            }
        }
        assert_eq!(told, 9);
    }

    #[test]
    fn behind_a_part_of_a_chunk_the_place_of_a_channel_is_not_told() {
        assert_eq!(behind(MEMBER, 256), MEMBER);
        let cut = behind(MEMBER, 3);
        assert_eq!((cut.channels, cut.chunk_bytes, cut.mapping), (Some(12), None, None));
        assert_eq!((cut.buses, cut.check().is_ok()), (None, true));
    }

    #[test]
    fn members_that_differ_and_partitions_tell_how_many_channels_there_are_and_no_more() {
        let other = Geometry { channels: Some(10), ..MEMBER };
        let all = together([MEMBER, other].into_iter(), Striping::Extent { pages: 2 });
        assert_eq!((all.channels, all.chunk_bytes, all.mapping), (Some(22), None, None));
        let all = together([MEMBER, MEMBER].into_iter(), Striping::Partition { pages: 24 });
        assert_eq!((all.channels, all.chunk_bytes, all.buses), (Some(24), None, None));
        let all = together([MEMBER, Geometry::opaque()].into_iter(), Striping::Extent { pages: 2 });
        assert_eq!((all.channels, all.depth), (None, 48));
    }

    #[test]
    fn channels_that_were_found_out_are_of_all_devices_in_turn_or_of_each_in_whole_rounds() {
        let told = |pages| ArrayOptions::new(Striping::Extent { pages }).channels_of(&MEMBER, 3);
        let in_turn = told(2).unwrap();
        assert_eq!(
            (in_turn.channels, in_turn.buses, in_turn.chunk_bytes),
            (Some(36), Some(12), Some(8192))
        );
        assert_eq!(told(24).unwrap().channels, Some(36));
        // A round is 24 pages. Pages whose chunks have the same number mod 12 are on one channel of some device.
        for pages in [48, 240] {
            assert_eq!(told(pages), Some(MEMBER), "{pages}");
            let layout = Layout { striping: Striping::Extent { pages }, members: 3, first: 256 };
            let mut seen = HashMap::new();
            for page in 0..4096 {
                let own = layout.place(PageId(page)).page.0 / 2 % 12;
                assert_eq!(*seen.entry(page / 2 % 12).or_insert(own), own, "{pages}, {page}");
            }
            assert_eq!(seen.len(), 12);
        }
        for pages in [1, 10, 25, 36] {
            assert_eq!(told(pages), None, "{pages}");
        }
        let parts = ArrayOptions::new(Striping::Partition { pages: 240 });
        assert_eq!(parts.channels_of(&MEMBER, 3), None);
        let cut =
            ArrayOptions { align_pages: 3, ..ArrayOptions::new(Striping::Extent { pages: 24 }) };
        assert_eq!(cut.channels_of(&MEMBER, 3), None);
        let shifted = Geometry { phase_bytes: 4096, ..MEMBER };
        assert_eq!(
            ArrayOptions::new(Striping::Extent { pages: 24 }).channels_of(&shifted, 3),
            None
        );
    }

    #[test]
    fn a_single_member_tells_all_it_knows() {
        let only = Geometry { phase_bytes: 4096, ..MEMBER };
        assert_eq!(together([only].into_iter(), Striping::Extent { pages: 5 }), only);
    }
}
