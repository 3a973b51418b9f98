//! The description of a simulated SSD: sizes, times and policies, as plain numbers.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Bytes in a host page, the unit of requests and of the mapping.
pub const HOST_PAGE_BYTES: u64 = 4096;

/// A description of a whole SSD.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Its name in presets and reports.
    pub name: String,
    /// The modelled device and the sources of the numbers.
    pub about: String,
    /// The number of erases that a block withstands.
    pub erases_max: u32,
    /// The host side.
    pub host: Host,
    /// The numbers of its parts.
    pub flash: Flash,
    /// The durations of operations.
    pub timing: Timing,
    /// The parts that can work at the same time.
    pub parallel: Parallel,
    /// The mapping from logical pages to physical ones.
    pub ftl: Ftl,
}

/// The side of a device that faces the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The requests that the device takes at once (NCQ); more wait in the host.
    pub depth: u32,
    /// The time of the link for each byte, in picoseconds; 0 for a link that takes no time.
    pub link_ps_per_byte: u64,
    /// Whether data can go both ways at once.
    pub duplex: bool,
    /// The time of the controller for each request, one after the other: the inverse of the maximum IOPS.
    pub controller_ns: u64,
    /// The further latency of a read, which keeps nothing busy.
    pub read_latency_ns: u64,
    /// The further latency of a write, which keeps nothing busy.
    pub write_latency_ns: u64,
    /// The bytes of the write-back buffer; 0 for a device that ends a write when it is on the flash.
    pub buffer_bytes: u64,
    /// Whether the buffer outlives a power cut (so that a sync has nothing to do).
    pub buffer_is_safe: bool,
}

/// The numbers of parts. All counts are per one of the level above.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Buses between controller and packages.
    pub channels: u32,
    /// Packages on each channel.
    pub packages: u32,
    /// Dies in each package.
    pub dies: u32,
    /// Planes on each die.
    pub planes: u32,
    /// Blocks in each plane.
    pub blocks: u32,
    /// Pages in each block.
    pub pages: u32,
    /// Bytes in a page: a multiple of 4096.
    pub page_bytes: u32,
}

/// The durations of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Array to register: tR.
    pub read_ns: u64,
    /// Register to array: tPROG.
    pub program_ns: u64,
    /// Erasing a block: tBERS.
    pub erase_ns: u64,
    /// Command and address cycles on the bus, for each read or program.
    pub command_ns: u64,
    /// Time of the bus for each byte, in picoseconds.
    pub transfer_ps_per_byte: u64,
    /// Bytes that cross the bus with each 512 of data (a check code, for example).
    pub spare_bytes_per_sector: u32,
    /// Whether a read transfers the whole flash page over the bus, even if the host wants less of it.
    pub whole_page_transfer: bool,
}

/// A level of the tree of flash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// All flash on one bus.
    Channel,
    /// A package.
    Package,
    /// A die, which takes one command at a time.
    Die,
    /// A plane.
    Plane,
}

/// The parts that can work at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// The part that works independently, and on one operation at a time. `Channel` is a controller that does
    /// not interleave packages; `Die` is the usual ability of flash; `Plane` is a die whose planes are
    /// independent.
    pub unit: Level,
    /// Whether the array can work for the next operation of the same kind on the same plane while the
    /// register's data are on the bus (cache read, cache program).
    pub pipelined: bool,
    /// Whether neighbouring operations of the same kind on different planes of a die can share one array time
    /// (two-plane commands). Only if the unit is the die.
    pub two_plane: bool,
}

/// The distribution of the address space's chunks over domains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// The i-th written chunk goes to domain i mod N (ANCS'14, section 4.2).
    WriteOrder,
    /// Chunk i of the address space goes to domain i mod N.
    Lba,
}

/// The choice of the next block to clean.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The block with the fewest valid pages.
    Greedy,
    /// The block that was filled first.
    Fifo,
    /// As greedy, but blocks that are worn more than the others rest, and cold data move onto them.
    WearAware,
}

/// The layer between the host's pages and the flash.
///
/// In a file it is `kind = "page"`, `kind = "raw"` or `kind = { log-block = { log_blocks = 16 } }`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FtlKind {
    /// A page can be anywhere: log-structured planes with cleaning.
    Page,
    /// Pages are at their offset in the block of their part of the address space. Overwrites go to a few log
    /// blocks, each for one such block, which are merged in the end (BAST: Kim et al., IEEE Transactions on
    /// Consumer Electronics 48(2), 2002).
    LogBlock {
        /// Log blocks of each plane; they are some of the spare blocks.
        log_blocks: u32,
    },
    /// No layer: the host programs pages itself, in order inside each block, and erases whole blocks by
    /// discarding them. Blocks are numbered plane by plane.
    Raw,
}

/// The mapping from logical pages to physical ones.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ftl {
    /// The kind of layer. The fields below on cleaning apply to [`FtlKind::Page`] alone, and a raw chip uses
    /// none of them.
    pub kind: FtlKind,
    /// The distribution of chunks over domains.
    pub mapping: Mapping,
    /// The target of a chunk: a domain. Inside a domain pages use the planes in turn.
    pub domain: Level,
    /// Bytes in a chunk: a multiple of 4096.
    pub chunk_bytes: u32,
    /// Blocks that the host does not see, in thousandths of all.
    pub spare_permille: u32,
    /// Free blocks of a plane at which cleaning begins, in thousandths of its blocks (at least one).
    pub clean_at_permille: u32,
    /// The choice of the next block to clean.
    pub victim: Victim,
    /// Whether valid pages move inside their plane without crossing the bus.
    pub copy_back: bool,
    /// Whether a unit without other work cleans, up to twice the free blocks at which cleaning begins.
    pub background: bool,
}

impl Flash {
    /// Returns the number of planes in all.
    #[must_use]
    pub const fn plane_count(&self) -> u32 {
        self.channels * self.packages * self.dies * self.planes
    }

    /// Returns the total number of parts of a level.
    #[must_use]
    pub const fn count(&self, level: Level) -> u32 {
        match level {
            Level::Channel => self.channels,
            Level::Package => self.channels * self.packages,
            Level::Die => self.channels * self.packages * self.dies,
            Level::Plane => self.plane_count(),
        }
    }

    /// Returns the host pages in a flash page.
    #[must_use]
    pub const fn page_units(&self) -> u32 {
        self.page_bytes / HOST_PAGE_BYTES as u32
    }
}

impl Timing {
    /// Returns the time of the bus for `bytes` bytes of data.
    #[must_use]
    pub const fn transfer_ns(&self, bytes: u64) -> u64 {
        let wire = bytes + bytes.div_ceil(512) * self.spare_bytes_per_sector as u64;
        (wire * self.transfer_ps_per_byte).div_ceil(1000)
    }
}

impl Host {
    /// Returns the time of the link for `bytes` bytes.
    #[must_use]
    pub const fn link_ns(&self, bytes: u64) -> u64 {
        (bytes * self.link_ps_per_byte).div_ceil(1000)
    }
}

impl Spec {
    /// Returns a small SSD in which only flash takes time, as a start for a description: four dies of two
    /// planes on two channels, 64 MiB of flash.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            name: "plain".into(),
            about: "a small SSD to begin a description from".into(),
            host: Host {
                depth: 32,
                link_ps_per_byte: 0,
                duplex: false,
                controller_ns: 0,
                read_latency_ns: 0,
                write_latency_ns: 0,
                buffer_bytes: 0,
                buffer_is_safe: false,
            },
            flash: Flash {
                channels: 2,
                packages: 1,
                dies: 2,
                planes: 2,
                blocks: 64,
                pages: 32,
                page_bytes: 4096,
            },
            timing: Timing {
                read_ns: 50_000,
                program_ns: 200_000,
                erase_ns: 1_500_000,
                command_ns: 0,
                transfer_ps_per_byte: 10_000,
                spare_bytes_per_sector: 0,
                whole_page_transfer: false,
            },
            parallel: Parallel { unit: Level::Die, pipelined: false, two_plane: false },
            ftl: Ftl {
                kind: FtlKind::Page,
                mapping: Mapping::WriteOrder,
                domain: Level::Plane,
                chunk_bytes: 4096,
                spare_permille: 200,
                clean_at_permille: 30,
                victim: Victim::Greedy,
                copy_back: true,
                background: false,
            },
            erases_max: 10_000,
        }
    }

    /// Returns the host pages in a block.
    #[must_use]
    pub const fn block_units(&self) -> u32 {
        self.flash.page_units() * self.flash.pages
    }

    /// Returns the host pages in all blocks.
    #[must_use]
    pub const fn raw_units(&self) -> u64 {
        let blocks = self.flash.plane_count() as u64 * self.flash.blocks as u64;
        blocks * self.block_units() as u64
    }

    /// Returns the blocks of each plane that the host sees.
    #[must_use]
    pub const fn host_blocks(&self) -> u32 {
        (self.flash.blocks as u64 * (1000 - self.ftl.spare_permille as u64) / 1000) as u32
    }

    /// Returns the host pages of the device: all without the spare blocks, in whole rounds of chunks over all
    /// domains and of pages over all planes; all pages on a raw chip.
    #[must_use]
    pub const fn page_count(&self) -> u64 {
        if matches!(self.ftl.kind, FtlKind::Raw) {
            return self.raw_units();
        }
        let planes = self.flash.plane_count() as u64;
        let domains = self.flash.count(self.ftl.domain) as u64;
        let chunk_units = self.ftl.chunk_bytes as u64 / HOST_PAGE_BYTES;
        let pages_round = planes / domains * self.flash.page_units() as u64;
        let round = domains * lcm(chunk_units, pages_round);
        planes * self.host_blocks() as u64 * self.block_units() as u64 / round * round
    }

    /// Returns the free blocks of a plane at which cleaning begins.
    #[must_use]
    pub const fn clean_at_blocks(&self) -> u32 {
        let blocks = (self.flash.blocks as u64 * self.ftl.clean_at_permille as u64 / 1000) as u32;
        if blocks == 0 { 1 } else { blocks }
    }

    /// Checks that this device is possible.
    ///
    /// # Errors
    /// Fails with [`Error::Spec`], with the first impossible field and its expected values.
    pub fn check(&self) -> Result<()> {
        let flash = &self.flash;
        let counts = [
            ("flash.channels", flash.channels, 1024),
            ("flash.packages", flash.packages, 64),
            ("flash.dies", flash.dies, 64),
            ("flash.planes", flash.planes, 64),
            ("flash.blocks", flash.blocks, 1 << 20),
            ("flash.pages", flash.pages, 1 << 14),
            ("host.depth", self.host.depth, 1 << 16),
            ("erases_max", self.erases_max, u32::MAX),
        ];
        for (field, found, max) in counts {
            if found == 0 || found > max {
                return Err(self.wrong(field, format!("1 to {max}"), found));
            }
        }
        let planes = [flash.channels, flash.packages, flash.dies, flash.planes];
        let planes = planes.map(u64::from).iter().product::<u64>();
        if planes > 1 << 16 {
            return Err(self.wrong("flash", "at most 65536 planes in all", planes));
        }
        self.check_sizes()?;
        match self.ftl.kind {
            FtlKind::Page => {
                let clean_at = self.clean_at_blocks();
                let what = format!(
                    "{clean_at} at which cleaning begins, one that is being written, one to gain"
                );
                self.check_spare(clean_at + 2, &what)
            }
            FtlKind::LogBlock { log_blocks } => self.check_log_blocks(log_blocks),
            FtlKind::Raw => self.check_raw(),
        }
    }

    fn check_sizes(&self) -> Result<()> {
        for (field, found) in
            [("flash.page_bytes", self.flash.page_bytes), ("ftl.chunk_bytes", self.ftl.chunk_bytes)]
        {
            if found == 0 || found > 1 << 20 || u64::from(found) % HOST_PAGE_BYTES != 0 {
                return Err(self.wrong(field, "a multiple of 4096 up to 1048576", found));
            }
        }
        if self.block_units() == 0 || self.block_units() > u32::from(u16::MAX) {
            let expected = "blocks of 1 to 65535 pages of 4 KiB";
            return Err(self.wrong("flash.pages", expected, self.block_units()));
        }
        if self.raw_units() >= u64::from(u32::MAX) - 1 {
            let found = format!("{} pages of 4 KiB", self.raw_units());
            return Err(self.wrong("flash", "less than 16 TiB of flash", found));
        }
        if self.parallel.two_plane && self.parallel.unit != Level::Die {
            let found = format!("{:?}", self.parallel.unit);
            return Err(self.wrong("parallel.unit", "Die, where two_plane is set", found));
        }
        Ok(())
    }

    fn check_log_blocks(&self, log_blocks: u32) -> Result<()> {
        if log_blocks == 0 || log_blocks >= self.flash.blocks {
            let expected = format!("1 to {}, one fewer than the blocks", self.flash.blocks - 1);
            return Err(self.wrong("ftl.kind.log_blocks", expected, log_blocks));
        }
        if self.ftl.mapping != Mapping::Lba {
            let expected = "Lba: log blocks belong to a part of the address space";
            return Err(self.wrong("ftl.mapping", expected, format!("{:?}", self.ftl.mapping)));
        }
        self.check_spare(log_blocks + 1, &format!("{log_blocks} log blocks, one to merge into"))
    }

    fn check_raw(&self) -> Result<()> {
        if self.host.buffer_bytes != 0 {
            let expected = "0: a raw chip keeps nothing in a write buffer";
            return Err(self.wrong("host.buffer_bytes", expected, self.host.buffer_bytes));
        }
        if self.ftl.spare_permille != 0 {
            let expected = "0: a raw chip hides no blocks";
            return Err(self.wrong("ftl.spare_permille", expected, self.ftl.spare_permille));
        }
        Ok(())
    }

    /// Checks the number of spare blocks of each plane.
    fn check_spare(&self, least: u32, what: &str) -> Result<()> {
        if self.ftl.spare_permille >= 1000 {
            return Err(self.wrong(
                "ftl.spare_permille",
                "less than 1000",
                self.ftl.spare_permille,
            ));
        }
        let spare = self.flash.blocks - self.host_blocks();
        if spare < least {
            let blocks = self.flash.blocks;
            let expected =
                format!("at least {least} spare blocks in each plane of {blocks}: {what}");
            return Err(self.wrong("ftl.spare_permille", expected, format!("{spare} blocks")));
        }
        if self.page_count() == 0 {
            let expected = "space for a chunk in each domain in addition to the spare blocks";
            return Err(self.wrong("flash.blocks", expected, self.flash.blocks));
        }
        Ok(())
    }

    fn wrong(
        &self,
        field: &'static str,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Error {
        Error::spec(&self.name, field, expected, found)
    }
}

/// Returns the least common multiple.
const fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
