//! The channel that will read a page: an estimate from what is known about the device.

use nandex_device::{Geometry, Mapping, PageId};

use super::{Loads, RUN_MAX, Schedule};

/// Pages that were written front to back without a pause, such as a slicetable or an incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequentialWrite {
    /// The first page.
    pub start: PageId,
    /// The number of pages that the device had received before this write, if the caller has counted them: they rotate
    /// the order of the channels. 0 if each write is a whole number of rounds and little else is written, which is the
    /// paper's estimate.
    pub pages_before: u64,
}

impl SequentialWrite {
    /// Returns a write that begins with the first channel, as the paper assumes of every write.
    #[must_use]
    pub const fn at(start: PageId) -> Self {
        Self { start, pages_before: 0 }
    }
}

/// The channels of a device, and the mapping of pages to channels.
///
/// - **By address**: chunk mod N, in the grid of chunks that begins with the first whole one. Always correct.
/// - **By order of writing**, or if the mapping is unknown: the page's chunk, counted from the start of the
///   [`SequentialWrite`] it was written in, mod N. Correct if writes are whole [rounds](Self::align_pages) and little
///   else is written, or if the caller counts all writes.
/// - **Opaque**: a single channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channels {
    count: u32,
    /// Divides the count; 1 if channels share no bus, or all share one.
    buses: u32,
    /// Whether a bus serves one read at a time.
    serial_buses: bool,
    chunk_pages: u64,
    by_address: bool,
    /// The number to add to a page's number to count whole chunks, if the mapping is by address.
    shift_pages: u64,
}

impl Channels {
    /// Returns a single channel, for a device about which nothing is known.
    #[must_use]
    pub const fn opaque() -> Self {
        Self {
            count: 1,
            buses: 1,
            serial_buses: false,
            chunk_pages: 1,
            by_address: true,
            shift_pages: 0,
        }
    }

    /// Returns the channels of a device of this geometry; opaque if the geometry does not give the number of channels
    /// or the size of a chunk, or if no such device can exist ([`Geometry::check`]).
    #[must_use]
    pub fn of(geometry: &Geometry) -> Self {
        let (Some(count), Some(chunk_bytes)) = (geometry.channels, geometry.chunk_bytes) else {
            return Self::opaque();
        };
        if count == 1 || geometry.check().is_err() {
            return Self::opaque();
        }
        let pages = |bytes: u32| u64::from(bytes) / geometry.page_bytes as u64;
        let chunk_pages = pages(chunk_bytes);
        Self {
            count,
            buses: geometry.buses.unwrap_or(1),
            serial_buses: geometry.serial_buses && geometry.buses.is_some_and(|buses| buses > 1),
            chunk_pages,
            by_address: geometry.mapping == Some(Mapping::Lba),
            shift_pages: (chunk_pages - pages(geometry.phase_bytes)) % chunk_pages,
        }
    }

    /// The number of channels: 1 on an opaque device.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The number of buses that the channels share; 1 if they share none, or all share one.
    #[must_use]
    pub const fn buses(&self) -> u32 {
        self.buses
    }

    /// The number of pages in a round of chunks over all channels: a write of a multiple of it keeps the order, so that
    /// the next write begins with the same channel. 1 if there is no order.
    #[must_use]
    pub const fn align_pages(&self) -> u64 {
        self.count as u64 * self.chunk_pages
    }

    /// Returns the channel that will read a page, less than [`count`](Self::count). A page before the write's first
    /// counts as that one. Costs two divisions, and no access to flash.
    #[must_use]
    pub const fn channel(&self, page: PageId, write: SequentialWrite) -> u32 {
        if self.count == 1 {
            return 0;
        }
        let turn = if self.by_address {
            page.0.wrapping_add(self.shift_pages)
        } else {
            page.0.saturating_sub(write.start.0).wrapping_add(write.pages_before)
        };
        (turn / self.chunk_pages % self.count as u64) as u32
    }

    /// Returns the same channels, with the paper's schedule, which spreads reads over them even if buses serve one at a
    /// time.
    #[must_use]
    pub const fn without_runs(self) -> Self {
        Self { serial_buses: false, ..self }
    }

    /// Creates a schedule for these channels with at most `depth` requests in flight.
    #[must_use]
    pub fn schedule<T>(&self, depth: usize) -> Schedule<T> {
        let loads = Loads::new(self.count, self.buses);
        let loads = if self.serial_buses { loads.in_runs(RUN_MAX) } else { loads };
        Schedule::with_loads(loads, depth)
    }
}

#[cfg(test)]
mod tests {
    use nandex_device::CHANNELS_MAX;

    use super::*;

    const KNOWN: Geometry = Geometry {
        channels: Some(4),
        chunk_bytes: Some(8192),
        mapping: Some(Mapping::WriteOrder),
        buses: Some(2),
        ..Geometry::opaque()
    };

    fn of_pages(
        geometry: Geometry,
        pages: std::ops::Range<u64>,
        write: SequentialWrite,
    ) -> Vec<u32> {
        let channels = Channels::of(&geometry);
        pages.map(|page| channels.channel(PageId(page), write)).collect()
    }

    #[test]
    fn chunks_by_address_go_round_the_channels_wherever_a_write_begins() {
        let by_address = Geometry { mapping: Some(Mapping::Lba), ..KNOWN };
        let elsewhere = SequentialWrite { start: PageId(3), pages_before: 5 };
        for write in [SequentialWrite::at(PageId(0)), elsewhere] {
            assert_eq!(of_pages(by_address, 0..9, write), [0, 0, 1, 1, 2, 2, 3, 3, 0]);
        }
        // The first whole chunk begins with page 1, so pages 1 and 2 are together.
        let shifted = Geometry { phase_bytes: 4096, ..by_address };
        assert_eq!(of_pages(shifted, 0..9, elsewhere), [0, 1, 1, 2, 2, 3, 3, 0, 0]);
    }

    #[test]
    fn chunks_by_order_of_writing_are_counted_from_the_start_of_their_write() {
        for mapping in [Some(Mapping::WriteOrder), None] {
            let geometry = Geometry { mapping, ..KNOWN };
            let write = SequentialWrite::at(PageId(100));
            assert_eq!(of_pages(geometry, 100..109, write), [0, 0, 1, 1, 2, 2, 3, 3, 0]);
            let turned = SequentialWrite { start: PageId(100), pages_before: 8 + 3 };
            assert_eq!(of_pages(geometry, 100..106, turned), [1, 2, 2, 3, 3, 0]);
            assert_eq!(of_pages(geometry, 90..92, write), [0, 0]);
        }
    }

    #[test]
    fn a_write_of_whole_rounds_leaves_the_order_of_the_channels_as_it_was() {
        let channels = Channels::of(&KNOWN);
        assert_eq!((channels.count(), channels.buses(), channels.align_pages()), (4, 2, 8));
        for pages_before in 0..24 {
            let start = PageId(64);
            let at = |pages_before| {
                channels.channel(PageId(67), SequentialWrite { start, pages_before })
            };
            assert_eq!(at(pages_before), at(pages_before + channels.align_pages()));
        }
    }

    #[test]
    fn as_many_channels_as_there_may_be_have_space_in_a_schedule() {
        for buses in [None, Some(2), Some(CHANNELS_MAX / 2), Some(CHANNELS_MAX)] {
            let all = Geometry { channels: Some(CHANNELS_MAX), buses, ..KNOWN };
            let mut schedule = Channels::of(&all).schedule(2);
            schedule.push(CHANNELS_MAX - 1, ());
            assert_eq!((schedule.next(), schedule.next()), (Some(()), None));
        }
        // The worst ratio of slots to channels: three channels of a bus take four.
        let wide = Geometry { channels: Some(3 << 13), buses: Some(1 << 13), ..KNOWN };
        assert_eq!(Channels::of(&wide).schedule::<()>(1).waiting(), 0);
        let none = Geometry { channels: Some(CHANNELS_MAX + 1), buses: None, ..KNOWN };
        assert_eq!(Channels::of(&none), Channels::opaque());
    }

    #[test]
    fn a_device_that_does_not_tell_enough_has_one_channel() {
        let vague = [
            Geometry::opaque(),
            Geometry { channels: None, buses: None, ..KNOWN },
            Geometry { chunk_bytes: None, ..KNOWN },
            Geometry { channels: Some(1), buses: None, ..KNOWN },
            Geometry { chunk_bytes: Some(1000), ..KNOWN },
        ];
        for geometry in vague {
            let channels = Channels::of(&geometry);
            assert_eq!(channels, Channels::opaque(), "{geometry:?}");
            assert_eq!(of_pages(geometry, 0..9, SequentialWrite::at(PageId(2))), [0; 9]);
            assert_eq!(channels.align_pages(), 1);
        }
    }
}
