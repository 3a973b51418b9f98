//! The resources of a structure, compared with a fresh one with the same keys.

use std::fmt;

/// The resources of a structure.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figures {
    pub flash_bytes: u64,
    pub ram_bytes: u64,
    /// The RAM after a reopening.
    pub ram_bytes_opened: u64,
    /// The keys, as the structure reports after a flush.
    pub entries: u64,
    /// The reads of the device for each lookup of a present key.
    pub reads: f64,
}

/// The figures divided by those of a fresh structure.
#[derive(Clone, Copy, Debug)]
pub struct Ratios {
    pub flash: f64,
    /// The greater ratio of that before the last close and after it.
    pub ram: f64,
    pub reads: f64,
    /// The error of the number of keys, as a share of the keys.
    pub off: f64,
}

/// The maximum ratios after a life.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub flash: f64,
    pub ram: f64,
    pub reads: f64,
    pub off: f64,
}

/// The bounds of each structure, unless its page states otherwise.
pub const BOUNDS: Bounds = Bounds { flash: 1.5, ram: 1.5, reads: 1.5, off: 0.01 };

impl Ratios {
    /// Compares the figures, with `keys` keys and `pages` pages of flash for a lookup.
    pub fn of(lived: &Figures, fresh: &Figures, (keys, pages): (usize, f64)) -> Self {
        let ratio = |of: fn(&Figures) -> u64| of(lived) as f64 / of(fresh) as f64;
        Self {
            flash: ratio(|it| it.flash_bytes),
            ram: ratio(|it| it.ram_bytes).max(ratio(|it| it.ram_bytes_opened)),
            // The buffers of a fresh one may have all keys.
            reads: lived.reads / fresh.reads.max(pages),
            off: lived.entries.abs_diff(keys as u64) as f64 / keys as f64,
        }
    }

    /// Returns the ratios that exceed their bounds.
    pub fn beyond(&self, bounds: &Bounds, label: &str) -> Option<String> {
        let Bounds { flash, ram, reads, off } = *bounds;
        let is_within =
            self.flash <= flash && self.ram <= ram && self.reads <= reads && self.off <= off;
        (!is_within).then(|| format!("{label}: {self}, and at most {bounds:?}"))
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flash, ram, reads, off } = self;
        write!(f, "flash {flash:.2} ram {ram:.2} reads {reads:.2} off {off:.4}")
    }
}
