//! The costs of flash operations, in the linear form of NSDI'10, section 6.1.
//!
//! Sizes are in bytes and costs in nanoseconds, both as floats: the formulas are continuous.

/// The cost a + b x of an operation on x bytes (section 6.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// a: nanoseconds per operation.
    pub fixed_ns: f64,
    /// b: nanoseconds per byte.
    pub byte_ns: f64,
}

impl Linear {
    /// Nanoseconds for `bytes`.
    #[must_use]
    pub fn ns(&self, bytes: f64) -> f64 {
        self.fixed_ns + self.byte_ns * bytes
    }

    /// Returns the cost that charges `ns` for `bytes`: `byte_ns` per byte and the rest fixed.
    #[must_use]
    pub const fn through(bytes: f64, ns: f64, byte_ns: f64) -> Self {
        Self { fixed_ns: ns - byte_ns * bytes, byte_ns }
    }
}

/// The layer that erases blocks and copies the pages that must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A bare flash chip: the table does, and pays C2 and C3.
    Chip,
    /// An SSD: its translation layer does; the cost is part of its writes.
    Ssd,
}

/// The costs of a flash device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashCosts {
    /// Chip or SSD.
    pub medium: Medium,
    /// S_p: bytes of a flash page or an SSD sector.
    pub page_bytes: f64,
    /// S_b: bytes of a flash block; not used for an SSD.
    pub block_bytes: f64,
    /// a_r + b_r x.
    pub read: Linear,
    /// a_w + b_w x.
    pub write: Linear,
    /// a_e + b_e x. For an SSD, a_e is the additional time of a write if no block is erased: the worst case, not the
    /// average.
    pub erase: Linear,
}

impl FlashCosts {
    /// c_r: one page or sector read (section 6.2).
    #[must_use]
    pub fn page_read_ns(&self) -> f64 {
        self.read.ns(self.page_bytes)
    }

    /// n_i = ceil(B' / S_p): pages of an incarnation.
    #[must_use]
    pub fn pages(&self, flush_bytes: f64) -> f64 {
        (flush_bytes / self.page_bytes).ceil()
    }

    /// n_b = S_b / S_p: pages of a block.
    #[must_use]
    pub fn block_pages(&self) -> f64 {
        self.block_bytes / self.page_bytes
    }

    /// C1 = a_w + b_w n_i S_p: writing one buffer.
    #[must_use]
    pub fn flush_write_ns(&self, flush_bytes: f64) -> f64 {
        self.write.ns(self.pages(flush_bytes) * self.page_bytes)
    }

    /// C2 = min(1, n_i / n_b) (a_e + b_e ceil(n_i / n_b) S_b): erasing for one buffer.
    #[must_use]
    pub fn flush_erase_ns(&self, flush_bytes: f64) -> f64 {
        let blocks = self.pages(flush_bytes) / self.block_pages();
        blocks.min(1.0) * self.erase.ns(blocks.ceil() * self.block_bytes)
    }

    /// C3 = a_r + p' b_r S_p + a_w + p' b_w S_p with p' = (n_b - n_i) mod n_b: saving the pages of other
    /// incarnations in the erased blocks. As in the paper, the fixed costs are charged even for p' = 0.
    #[must_use]
    pub fn flush_copy_ns(&self, flush_bytes: f64) -> f64 {
        let block = self.block_pages();
        let copied_bytes = (block - self.pages(flush_bytes)).rem_euclid(block) * self.page_bytes;
        self.read.ns(copied_bytes) + self.write.ns(copied_bytes)
    }

    /// A flush on average: C1 + C2 + C3 on a chip, C1 on an SSD.
    #[must_use]
    pub fn flush_ns(&self, flush_bytes: f64) -> f64 {
        let write = self.flush_write_ns(flush_bytes);
        match self.medium {
            Medium::Chip => {
                write + self.flush_erase_ns(flush_bytes) + self.flush_copy_ns(flush_bytes)
            }
            Medium::Ssd => write,
        }
    }

    /// C_worst: an insert that finds the buffer full. C1 + C2 + C3 on a chip; on an SSD C1, and the wait for an
    /// erase if its measured worst case has one (section 7.2.1).
    #[must_use]
    pub fn insert_worst_ns(&self, flush_bytes: f64) -> f64 {
        let wait_ns = match self.medium {
            Medium::Chip => 0.0,
            Medium::Ssd => self.erase.fixed_ns,
        };
        self.flush_ns(flush_bytes) + wait_ns
    }

    /// C_amortised = C_flush s / B': the flushes' share of one insert. `entry_bytes` is s.
    #[must_use]
    pub fn insert_amortised_ns(&self, flush_bytes: f64, entry_bytes: f64) -> f64 {
        self.flush_ns(flush_bytes) * entry_bytes / flush_bytes
    }
}
