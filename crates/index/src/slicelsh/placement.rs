//! The placement of slices in a group of slicetables: the mapping from pages of a block to slices of tables.
//!
//! A block holds the slicetables of all tables of one partition. Striped, they follow one another. If the channels of
//! the device are known, each table's chunks are on their own channels (ANCS'14, section 6), so that the reads of a
//! lookup, one for each table, never wait for each other. A round has a chunk for each channel:
//!
//! ```text
//!   striped:                | table 0 | table 1 | table 2 |
//!
//!   placed on 4 channels,   channel     0        1        2        3
//!   chunks of two pages:    round 0  | 0a 0b  | 1a 1b  | 2a 2b  |  -  -  |     0a: table 0, slice a
//!                           round 1  | 0c 0d  | 1c 1d  | 2c 2d  |  -  -  |
//! ```
//!
//! With at least twice as many channels as tables a table has two or more, and its chunks alternate between them. With
//! more tables than channels, tables take turns: table i is on channel i mod channels. Places that no table uses are
//! empty pages; [`Placement::unused_share`] returns their share.

/// The layout of the slices of all tables in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    tables: u64,
    slices: u64,
    chunk_pages: u64,
    channels: u64,
    /// Channels of each table.
    width: u64,
    /// Tables of each channel.
    layers: u64,
}

impl Placement {
    /// Creates the placement of tables with `slices` slices on `channels` channels, in chunks of `chunk_pages` pages.
    /// One channel means that the device's channels are unknown: tables are striped.
    ///
    /// # Panics
    /// If any of them is 0.
    #[must_use]
    pub fn new(tables: u32, slices: u32, (channels, chunk_pages): (u32, u32)) -> Self {
        let all = [tables, slices, channels, chunk_pages];
        assert!(all.iter().all(|number| *number > 0), "a configuration has validated {all:?}");
        let [tables, slices, channels, chunk_pages] = all.map(u64::from);
        let (width, layers) = ((channels / tables).max(1), tables.div_ceil(channels));
        Self { tables, slices, chunk_pages, channels, width, layers }
    }

    /// Returns whether the tables are striped, because the channels are unknown.
    #[must_use]
    pub const fn is_striped(&self) -> bool {
        self.channels == 1
    }

    /// Pages of a block.
    #[must_use]
    pub const fn block_pages(&self) -> u64 {
        if self.is_striped() {
            return self.tables * self.slices;
        }
        let rounds = self.slices.div_ceil(self.chunk_pages).div_ceil(self.width) * self.layers;
        rounds * self.channels * self.chunk_pages
    }

    /// The share of a block's pages that no table uses.
    #[must_use]
    pub fn unused_share(&self) -> f64 {
        1.0 - (self.tables * self.slices) as f64 / self.block_pages() as f64
    }

    /// The page of a slice of a table, counted from the block's first.
    #[inline]
    #[must_use]
    pub const fn page(&self, table: u8, slice: u32) -> u64 {
        let (table, slice) = (table as u64, slice as u64);
        if self.is_striped() {
            return table * self.slices + slice;
        }
        let (chunk, offset) = (slice / self.chunk_pages, slice % self.chunk_pages);
        let round = chunk / self.width * self.layers + table / self.channels;
        let channel = table % self.channels * self.width + chunk % self.width;
        (round * self.channels + channel) * self.chunk_pages + offset
    }

    /// Returns the table and the slice of a page; `None` for a page that no table uses.
    #[must_use]
    pub fn slice_of(&self, page: u64) -> Option<(u8, u32)> {
        let (table, slice) = if self.is_striped() {
            (page / self.slices, page % self.slices)
        } else {
            let (chunk, offset) = (page / self.chunk_pages, page % self.chunk_pages);
            let (round, channel) = (chunk / self.channels, chunk % self.channels);
            let (turn, layer) = (round / self.layers, round % self.layers);
            let chunk = turn * self.width + channel % self.width;
            (layer * self.channels + channel / self.width, chunk * self.chunk_pages + offset)
        };
        let is_there = table < self.tables && slice < self.slices;
        is_there.then_some((table as u8, slice as u32))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn placements() -> impl Iterator<Item = (u32, u32, u32, u32)> {
        let tables = [1, 3, 4, 10, 64];
        let of = move |(slices, channels, chunk_pages)| {
            tables.map(|tables| (tables, slices, channels, chunk_pages))
        };
        let shapes = [(1, 1, 1), (12, 1, 7), (13, 4, 2), (40, 16, 3), (7, 32, 4), (100, 10, 1)];
        shapes.into_iter().flat_map(of)
    }

    #[test]
    fn each_slice_has_a_page_and_each_page_leads_back() {
        for (tables, slices, channels, chunk_pages) in placements() {
            let placement = Placement::new(tables, slices, (channels, chunk_pages));
            let mut pages = BTreeSet::new();
            for table in 0..tables as u8 {
                for slice in 0..slices {
                    let page = placement.page(table, slice);
                    assert!(page < placement.block_pages());
                    assert_eq!(placement.slice_of(page), Some((table, slice)));
                    pages.insert(page);
                }
            }
            assert_eq!(pages.len() as u32, tables * slices);
            for page in 0..placement.block_pages() {
                assert_eq!(placement.slice_of(page).is_some(), pages.contains(&page));
            }
            let unused = placement.block_pages() - pages.len() as u64;
            let share = unused as f64 / placement.block_pages() as f64;
            assert!((placement.unused_share() - share).abs() < 1e-9);
        }
    }

    /// The channel of a page is its chunk, counted from the block's first, mod the channels.
    #[test]
    fn a_table_has_channels_of_its_own_as_long_as_there_are_enough() {
        for (tables, slices, channels, chunk_pages) in placements().filter(|it| it.2 > 1) {
            let placement = Placement::new(tables, slices, (channels, chunk_pages));
            let mut tables_of: BTreeMap<u64, BTreeSet<u8>> = BTreeMap::new();
            for table in 0..tables as u8 {
                let channel = |slice| {
                    placement.page(table, slice) / u64::from(chunk_pages) % u64::from(channels)
                };
                let own: BTreeSet<u64> = (0..slices).map(channel).collect();
                assert!(own.len() as u32 <= (channels / tables).max(1));
                for channel in own {
                    tables_of.entry(channel).or_default().insert(table);
                }
            }
            let most = tables_of.values().map(BTreeSet::len).max().unwrap();
            assert!(most as u32 <= tables.div_ceil(channels), "{tables} on {channels}");
        }
    }

    #[test]
    fn ten_tables_fill_ten_channels_and_leave_six_of_sixteen_unused() {
        let unused = |channels| Placement::new(10, 80, (channels, 8)).unused_share();
        assert!(unused(10).abs() < 1e-9 && unused(5).abs() < 1e-9 && unused(1).abs() < 1e-9);
        assert!((unused(16) - 6.0 / 16.0).abs() < 1e-9);
        assert!((unused(20)).abs() < 1e-9);
    }
}
