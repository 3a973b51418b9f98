//! The size of a device of elements and the times of its parts.

use nandex_sim::spec::HOST_PAGE_BYTES;
use nandex_sim::{Error, Result};

/// Sectors of 512 bytes in a page.
pub(super) const PAGE_SECTORS: u64 = HOST_PAGE_BYTES / 512;

/// The choice of the next block to clean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cleaning {
    /// The block with the fewest valid pages, of equals the one in the highest row (DiskSim's policy 2).
    Greedy,
    /// As greedy, but worn blocks rest (DiskSim's policy 3): see the [module](super).
    WearAware,
}

/// The durations of operations, in picoseconds; each at most a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Array to register: tR.
    pub read_ps: u64,
    /// Register to array: tPROG.
    pub program_ps: u64,
    /// Erasing a block: tBERS.
    pub erase_ps: u64,
    /// A sector and its check code over an element's pins.
    pub sector_ps: u64,
    /// A page over the channel to the host.
    pub link_page_ps: u64,
}

/// A whole device. [`Shape::SUITE`] is that of DiskSim's validation suite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Packages of flash, 1 to 64. Page p of the device is page p / elements of element p mod elements.
    pub elements: u32,
    /// Planes of an element, 1 to 64.
    pub planes: u32,
    /// Blocks of a plane, up to 2^20.
    pub blocks: u32,
    /// Pages of a block, 2 to 2^14. The last one holds the summary and no host data.
    pub pages: u32,
    /// Blocks of a plane that the host does not see, including the one being written: at least
    /// `clean_at_blocks` and two.
    pub spare_blocks: u32,
    /// Free blocks of a plane at which cleaning begins, at least 1.
    pub clean_at_blocks: u32,
    /// The choice of the next block to clean.
    pub cleaning: Cleaning,
    /// The number of erases that a block withstands, at least 1.
    pub erases_max: u32,
    /// Requests at the device, 1 to 65,536; more wait at the host.
    pub depth: u32,
    /// The durations of operations.
    pub times: Times,
}

impl Shape {
    /// The device of all runs of DiskSim's validation suite (`ssdmodel/valid/*.parv`): 8 packages of
    /// Samsung's K9XXG08UXM with 25, 200 and 1500 microseconds, 25 ns a byte and 15 % spare blocks.
    pub const SUITE: Self = Self {
        elements: 8,
        planes: 8,
        blocks: 2048,
        pages: 64,
        spare_blocks: 307,
        clean_at_blocks: 102,
        cleaning: Cleaning::Greedy,
        erases_max: 50,
        depth: 20,
        times: Times {
            read_ps: 25_000_000,
            program_ps: 200_000_000,
            erase_ps: 1_500_000_000,
            sector_ps: 528 * 25_000,
            link_page_ps: PAGE_SECTORS * 238_400,
        },
    };

    /// Returns the pages of a block that hold the host's data.
    #[must_use]
    pub const fn data_pages(&self) -> u32 {
        self.pages - 1
    }

    /// Returns the blocks of an element. This and the next two are valid only if [`check`](Self::check)
    /// succeeds.
    #[must_use]
    pub const fn element_blocks(&self) -> u32 {
        self.planes * self.blocks
    }

    /// Returns the host pages of an element.
    #[must_use]
    pub const fn element_pages(&self) -> u32 {
        self.planes * (self.blocks - self.spare_blocks) * self.data_pages()
    }

    /// Returns the host pages of the device.
    #[must_use]
    pub const fn page_count(&self) -> u64 {
        self.elements as u64 * self.element_pages() as u64
    }

    /// Checks that such a device is possible.
    ///
    /// # Errors
    /// Fails with [`Error::Spec`], with the first impossible field, and the expected value.
    pub fn check(&self) -> Result<()> {
        let counts = [
            ("elements", self.elements, 1, 64),
            ("planes", self.planes, 1, 64),
            ("blocks", self.blocks, 4, 1 << 20),
            ("pages", self.pages, 2, 1 << 14),
            ("clean_at_blocks", self.clean_at_blocks, 1, 1 << 20),
            ("erases_max", self.erases_max, 1, u32::MAX),
            ("depth", self.depth, 1, 1 << 16),
        ];
        for (field, found, min, max) in counts {
            if found < min || found > max {
                return Err(wrong(field, format!("{min} to {max}"), found));
            }
        }
        let factors = [self.elements, self.planes, self.blocks, self.pages].map(u64::from);
        let pages = factors.iter().product::<u64>();
        if pages >= u64::from(u32::MAX) {
            let found = format!("{pages} pages of 4 KiB");
            return Err(wrong("blocks", "less than 16 TiB of flash", found));
        }
        self.check_spare()?;
        self.check_times()
    }

    fn check_spare(&self) -> Result<()> {
        let least = self.clean_at_blocks + 2;
        if self.spare_blocks < least || self.spare_blocks >= self.blocks {
            let expected = format!(
                "from {least} ({} at which cleaning begins, one that is being written, one to gain) to \
                 {} (one of {} for the host)",
                self.clean_at_blocks,
                self.blocks - 1,
                self.blocks
            );
            return Err(wrong("spare_blocks", expected, self.spare_blocks));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<()> {
        let Times { read_ps, program_ps, erase_ps, sector_ps, link_page_ps } = self.times;
        let times = [
            ("read_ps", read_ps),
            ("program_ps", program_ps),
            ("erase_ps", erase_ps),
            ("sector_ps", sector_ps),
            ("link_page_ps", link_page_ps),
        ];
        for (field, found) in times {
            if found > 1_000_000_000_000 {
                return Err(wrong(field, "at most a second, 1000000000000", found));
            }
        }
        Ok(())
    }
}

fn wrong(field: &'static str, expected: impl Into<String>, found: impl ToString) -> Error {
    Error::spec("elements", field, expected, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Shape)) -> String {
        let mut shape = Shape::SUITE;
        change(&mut shape);
        shape.check().expect_err("there can be no such device").to_string()
    }

    #[test]
    fn the_suite_can_be() {
        Shape::SUITE.check().expect("DiskSim runs it");
        assert_eq!(Shape::SUITE.element_pages(), 877_464);
        assert_eq!(Shape::SUITE.page_count(), 7_019_712);
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_would_do() {
        assert_eq!(
            refusal(|shape| shape.elements = 65),
            "elements: elements must be 1 to 64, found 65"
        );
        assert_eq!(refusal(|shape| shape.pages = 1), "elements: pages must be 2 to 16384, found 1");
        assert!(refusal(|shape| shape.planes = 0).contains("planes must be 1 to 64, found 0"));
        assert!(refusal(|shape| shape.blocks = 1 << 20).contains("less than 16 TiB"));
        assert!(refusal(|shape| shape.depth = 0).contains("depth must be 1 to 65536, found 0"));
        assert!(refusal(|shape| shape.erases_max = 0).contains("erases_max must be 1 to"));
        assert!(refusal(|shape| shape.clean_at_blocks = 0).contains("clean_at_blocks must be 1"));
        assert!(refusal(|shape| shape.spare_blocks = 103).contains("from 104 (102 at which"));
        assert!(refusal(|shape| shape.spare_blocks = 2048).contains("to 2047 (one of 2048"));
        assert!(refusal(|shape| shape.times.erase_ps = u64::MAX).contains("at most a second"));
    }
}
