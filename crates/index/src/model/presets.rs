//! The costs of known devices, in the linear form of NSDI'10, section 6.1, their endurance, and their best rates.
//!
//! The papers give few of the constants (NSDI'10's technical report has them). Each preset says which figures
//! are from a paper and which are assumed.

use super::costs::{FlashCosts, Linear, Medium};
use crate::{Error, Result};

const KIB: f64 = 1024.0;
const US: f64 = 1e3;
const MS: f64 = 1e6;

/// A device's costs, by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostPreset {
    /// Its name, as in [`CostPreset::by_name`].
    pub name: &'static str,
    /// The source of its figures.
    pub source: &'static str,
    /// The figures.
    pub costs: FlashCosts,
    /// Random reads of 4 KiB a second, with as many in flight as the device takes.
    pub reads_per_s: f64,
    /// E: the number of times that a block can be erased.
    pub erase_cycles: f64,
}

const ALL: [CostPreset; 5] = [
    CostPreset {
        name: "nvme",
        source: "a common NVMe drive: 80 us per 4 KiB read, 2 GB/s of writes, 20 us to start one, 400,000 reads a second at depth, 3,000 erases (assumed)",
        costs: ssd(
            Linear::through(4.0 * KIB, 80.0 * US, 0.3),
            Linear { fixed_ns: 20.0 * US, byte_ns: 0.5 },
        ),
        reads_per_s: 400_000.0,
        erase_cycles: 3_000.0,
    },
    CostPreset {
        name: "intel-x18m",
        source: "paper: 0.15 ms per read (section 7.2.2), 0.31 ms to read 128 KB and 0.83 ms to write it (ANCS'14, section 5.4), 2.72 ms with an erase (section 7.2.1); assumed: 225 MB/s of long writes, 35,000 reads a second at depth, 10,000 erases",
        costs: INTEL_X18M,
        reads_per_s: 35_000.0,
        erase_cycles: 10_000.0,
    },
    CostPreset {
        name: "transcend-ts32",
        source: "paper: 30 ms to flush 128 KB (section 7.2.1), 0.6 ms for nine of ten lookups (Figure 6); assumed: 100 MB/s of reads, 30 MB/s of writes, no concurrent reads, 10,000 erases",
        costs: ssd(
            Linear::through(4.0 * KIB, 0.6 * MS, 10.0),
            Linear::through(128.0 * KIB, 30.0 * MS, 1000.0 / 30.0),
        ),
        reads_per_s: 1e9 / (0.6 * MS),
        erase_cycles: 10_000.0,
    },
    CostPreset {
        name: "crucial-m4",
        source: "paper: 69,000 reads a second of 32 threads (ANCS'14, section 7.2), 0.15 ms per read (5.4); assumed: 400 MB/s of reads, 175 MB/s of writes, 50 us to start one, 3,000 erases",
        costs: ssd(
            Linear::through(4.0 * KIB, 0.15 * MS, 2.5),
            Linear { fixed_ns: 50.0 * US, byte_ns: 1000.0 / 175.0 },
        ),
        reads_per_s: 69_000.0,
        erase_cycles: 3_000.0,
    },
    // Large-block SLC: 25 us to read a page from the array, 200 us to program it, 1.5 ms to erase a block. Table 2's
    // 0.24 ms then leave 0.21 ms for moving 2 KiB over the bus, which a write also pays. Array and bus times are per
    // page, so they are in b; a is 5 us for the command.
    CostPreset {
        name: "flash-chip",
        source: "paper: 0.24 ms per read (Table 2), blocks of 128 KB; assumed: 2 KiB pages of large-block SLC, 0.2 ms to program, 1.5 ms to erase, 5 us per command, 100,000 erases",
        costs: FlashCosts {
            medium: Medium::Chip,
            page_bytes: 2.0 * KIB,
            block_bytes: 128.0 * KIB,
            read: Linear::through(2.0 * KIB, 0.24 * MS, 0.235 * MS / (2.0 * KIB)),
            write: Linear { fixed_ns: 5.0 * US, byte_ns: 0.41 * MS / (2.0 * KIB) },
            erase: Linear::through(128.0 * KIB, 1.505 * MS, 1.5 * MS / (128.0 * KIB)),
        },
        reads_per_s: 1e9 / (0.48 * MS),
        erase_cycles: 100_000.0,
    },
];

/// The Intel X18-M by its four printed times, like the simulator's preset `intel-x18m-paper`. Table 2 of NSDI'10 has
/// 0.31 ms for a read, which is the time of a block: with it 99.8 % of lookups could not end within 0.176 ms (Figure
/// 6), and the 40 % that read could not have a mean of 0.06 ms.
const INTEL_X18M: FlashCosts = {
    let (page, block) = (4.0 * KIB, 128.0 * KIB);
    let read_byte_ns = (0.31 - 0.15) * MS / (block - page);
    let costs = ssd(
        Linear::through(page, 0.15 * MS, read_byte_ns),
        Linear::through(block, 0.83 * MS, 1000.0 / 225.0),
    );
    FlashCosts { erase: Linear { fixed_ns: (2.72 - 0.83) * MS, byte_ns: 0.0 }, ..costs }
};

/// An SSD of 4 KiB sectors; its erases are part of its writes.
const fn ssd(read: Linear, write: Linear) -> FlashCosts {
    let erase = Linear { fixed_ns: 0.0, byte_ns: 0.0 };
    let page_bytes = 4.0 * KIB;
    FlashCosts { medium: Medium::Ssd, page_bytes, block_bytes: page_bytes, read, write, erase }
}

impl CostPreset {
    /// Every preset.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// Bytes a second that it reads in large chunks.
    #[must_use]
    pub fn read_bytes_per_s(&self) -> f64 {
        1e9 / self.costs.read.byte_ns
    }

    /// Bytes a second that it writes in large chunks, its erases included.
    #[must_use]
    pub fn write_bytes_per_s(&self) -> f64 {
        1e9 / (self.costs.write.byte_ns + self.costs.erase.byte_ns)
    }

    /// Returns the preset with this name.
    ///
    /// # Errors
    /// [`Error::Config`] with a list of the known names.
    pub fn by_name(name: &str) -> Result<Self> {
        ALL.into_iter().find(|preset| preset.name == name).ok_or_else(|| {
            let names = ALL.map(|preset| preset.name).join(", ");
            Error::Config {
                field: "device",
                reason: format!("no preset {name:?}; there are {names}"),
            }
        })
    }
}

impl Default for CostPreset {
    fn default() -> Self {
        ALL[0]
    }
}
