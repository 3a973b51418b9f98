//! The operations that a table receives each second, and the share of a device's time that they take.
//!
//! The papers give the time of a single operation. These figures are shares of a device at its best: random reads at
//! its full depth, sequential I/O at its full bandwidth, one after the other.

use super::CostPreset;
use crate::{Error, Result};

/// The number of entries that a table is for, and the RAM that it may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Entries it must hold on flash.
    pub entries: u64,
    /// RAM it may take, in bytes.
    pub ram_bytes: u64,
}

/// The operations received each second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Inserts, updates and removals a second.
    pub inserts_per_s: f64,
    /// Lookups a second.
    pub lookups_per_s: f64,
    /// The share of lookups whose key is absent, 0 to 1.
    pub miss_share: f64,
    /// The share of inserts, updates and removals whose key is present already, 0 to 1, spread evenly over the keys. A
    /// new key that replaces a removed one counts too.
    pub update_share: f64,
}

impl Default for Load {
    /// Returns no rates, every second lookup for an absent key, and no updates.
    fn default() -> Self {
        Self { inserts_per_s: 0.0, lookups_per_s: 0.0, miss_share: 0.5, update_share: 0.0 }
    }
}

impl Load {
    /// Returns the share of operations that are inserts; one half if no rate is given.
    #[must_use]
    pub fn insert_share(&self) -> f64 {
        let all = self.inserts_per_s + self.lookups_per_s;
        if all > 0.0 { self.inserts_per_s / all } else { 0.5 }
    }

    /// Returns the mean of the cost of an insert of a new key and that of an update, weighted by the share of updates.
    fn mean_of(&self, insert: f64, update: f64) -> f64 {
        insert + self.update_share * (update - insert)
    }

    /// Returns whether the rates of operations are given.
    #[must_use]
    pub fn has_rates(&self) -> bool {
        self.inserts_per_s + self.lookups_per_s > 0.0
    }

    /// Fails for rates that are not numbers in range.
    ///
    /// # Errors
    /// [`Error::Config`], naming the number.
    pub fn check(&self) -> Result<()> {
        let refuse = |field, reason| Err(Error::Config { field, reason });
        for (field, rate) in
            [("inserts per second", self.inserts_per_s), ("lookups per second", self.lookups_per_s)]
        {
            if !(0.0..=1e12).contains(&rate) {
                return refuse(field, format!("{rate}; expected 0 to 1e12"));
            }
        }
        for (field, share) in
            [("share of misses", self.miss_share), ("share of updates", self.update_share)]
        {
            if !(0.0..=1.0).contains(&share) {
                return refuse(field, format!("{share}; expected 0 to 1"));
            }
        }
        Ok(())
    }
}

/// The average costs of a table's operations on its device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperationCosts {
    /// Pages read by a lookup that finds its key.
    pub reads_per_hit: f64,
    /// Pages read by a lookup that does not find its key.
    pub reads_per_miss: f64,
    /// Bytes that an insert reads in large chunks.
    pub insert_read_bytes: f64,
    /// Bytes that an insert writes in large chunks, including those of the log.
    pub insert_write_bytes: f64,
    /// The cost of an update; `None` if it equals that of an insert.
    pub updates: Option<UpdateCosts>,
}

/// The average cost of updating a present key, once the table has all of its keys and updates are spread evenly over
/// them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateCosts {
    /// Bytes that it reads.
    pub read_bytes: f64,
    /// The number of reads for these bytes; reads shorter than the device's best are no faster than random page reads.
    pub reads: f64,
    /// Bytes that it writes in large chunks, including those of the log.
    pub write_bytes: f64,
}

impl UpdateCosts {
    fn busy_ns(&self, device: &CostPreset) -> f64 {
        let by_bytes = self.read_bytes * 1e9 / device.read_bytes_per_s();
        let by_reads = self.reads / device.reads_per_s * 1e9;
        by_bytes.max(by_reads) + self.write_bytes * 1e9 / device.write_bytes_per_s()
    }
}

impl OperationCosts {
    /// Returns the pages read by a lookup, weighted by hits and misses.
    #[must_use]
    pub fn reads_per_lookup(&self, load: &Load) -> f64 {
        self.reads_per_hit * (1.0 - load.miss_share) + self.reads_per_miss * load.miss_share
    }

    /// Returns how long a lookup keeps the device busy, in nanoseconds: less than its latency, since the device serves
    /// other lookups at the same time.
    #[must_use]
    pub fn lookup_busy_ns(&self, device: &CostPreset, load: &Load) -> f64 {
        self.reads_per_lookup(load) / device.reads_per_s * 1e9
    }

    /// Returns how long an insert keeps the device busy, in nanoseconds: its share of the chunks.
    #[must_use]
    pub fn insert_busy_ns(&self, device: &CostPreset) -> f64 {
        self.insert_read_bytes * 1e9 / device.read_bytes_per_s()
            + self.insert_write_bytes * 1e9 / device.write_bytes_per_s()
    }

    /// Returns the bytes that an update reads; those of an insert if it costs the same.
    #[must_use]
    pub fn update_read_bytes(&self) -> f64 {
        self.updates.map_or(self.insert_read_bytes, |it| it.read_bytes)
    }

    /// Returns the bytes that an update writes, including those of the log; those of an insert if it costs the same.
    #[must_use]
    pub fn update_write_bytes(&self) -> f64 {
        self.updates.map_or(self.insert_write_bytes, |it| it.write_bytes)
    }

    /// Returns how long an update keeps the device busy, in nanoseconds: as long as an insert if it costs the same.
    /// Reads count by their bytes or by their number, whichever takes longer.
    #[must_use]
    pub fn update_busy_ns(&self, device: &CostPreset) -> f64 {
        self.updates.map_or_else(|| self.insert_busy_ns(device), |it| it.busy_ns(device))
    }

    /// Returns how long one of the load's inserts keeps the device busy, in nanoseconds, weighted by the share of
    /// updates.
    #[must_use]
    pub fn write_busy_ns(&self, device: &CostPreset, load: &Load) -> f64 {
        load.mean_of(self.insert_busy_ns(device), self.update_busy_ns(device))
    }

    /// Returns the bytes that one of the load's inserts reads and writes, weighted by the share of updates.
    #[must_use]
    pub fn moved_bytes(&self, load: &Load) -> f64 {
        let insert = self.insert_read_bytes + self.insert_write_bytes;
        load.mean_of(insert, self.update_read_bytes() + self.update_write_bytes())
    }

    /// Returns the share of each second for which the load keeps the device busy; above 1 the device cannot keep up.
    #[must_use]
    pub fn busy_share(&self, device: &CostPreset, load: &Load) -> f64 {
        let inserts = load.inserts_per_s * self.write_busy_ns(device, load);
        let lookups = load.lookups_per_s * self.lookup_busy_ns(device, load);
        (inserts + lookups) / 1e9
    }

    /// Returns how long an operation of the load's mix keeps the device busy, in nanoseconds.
    #[must_use]
    pub fn busy_ns(&self, device: &CostPreset, load: &Load) -> f64 {
        let inserts = load.insert_share();
        inserts * self.write_busy_ns(device, load)
            + (1.0 - inserts) * self.lookup_busy_ns(device, load)
    }

    /// Returns the maximum number of operations a second of the load's mix that the device allows.
    #[must_use]
    pub fn ops_per_s(&self, device: &CostPreset, load: &Load) -> f64 {
        1e9 / self.busy_ns(device, load)
    }

    /// Returns the inserts of new keys a second that the device allows when it does nothing else.
    #[must_use]
    pub fn inserts_per_s(&self, device: &CostPreset) -> f64 {
        1e9 / self.insert_busy_ns(device)
    }

    /// Returns the updates a second that the device allows when it does nothing else.
    #[must_use]
    pub fn updates_per_s(&self, device: &CostPreset) -> f64 {
        1e9 / self.update_busy_ns(device)
    }

    /// Returns the years until a device of `flash_bytes` reaches its number of erases, with perfect wear levelling
    /// (ANCS'14, section 5.4: T = F E r_write / (R B)). Infinite without inserts.
    #[must_use]
    pub fn lifetime_years(&self, device: &CostPreset, load: &Load, flash_bytes: u64) -> f64 {
        let written = load.mean_of(self.insert_write_bytes, self.update_write_bytes());
        let bytes_per_s = written * load.inserts_per_s;
        flash_bytes as f64 * device.erase_cycles / bytes_per_s / SECONDS_PER_YEAR
    }
}

/// Seconds of 365.25 days.
pub(crate) const SECONDS_PER_YEAR: f64 = 365.25 * 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: OperationCosts = OperationCosts {
        reads_per_hit: 1.0,
        reads_per_miss: 0.5,
        insert_read_bytes: 600.0,
        insert_write_bytes: 620.0,
        updates: None,
    };

    /// 100,000 reads a second, 1 GB/s of reads, 0.5 GB/s of writes, 1,000 erases.
    fn device() -> CostPreset {
        let mut device =
            CostPreset { reads_per_s: 1e5, erase_cycles: 1e3, ..CostPreset::default() };
        device.costs.read.byte_ns = 1.0;
        device.costs.write.byte_ns = 2.0;
        device
    }

    #[test]
    fn a_device_is_as_busy_as_its_reads_and_chunks_one_after_the_other() {
        let load =
            Load { inserts_per_s: 1e5, lookups_per_s: 2e4, miss_share: 0.25, ..Load::default() };
        // A lookup: 0.875 reads of 10 us. An insert: 600 ns and 1240 ns.
        assert!((COSTS.lookup_busy_ns(&device(), &load) - 8_750.0).abs() < 1e-6);
        assert!((COSTS.insert_busy_ns(&device()) - 1_840.0).abs() < 1e-6);
        let busy = COSTS.busy_share(&device(), &load);
        assert!((busy - (0.184 + 0.175)).abs() < 1e-9, "{busy}");
        let fastest = COSTS.ops_per_s(&device(), &load);
        assert!((fastest * busy - 1.2e5).abs() < 1e-3, "the mix at a busy share of one: {fastest}");
    }

    #[test]
    fn without_rates_half_of_the_operations_are_inserts() {
        let mean = (COSTS.insert_busy_ns(&device()) + 7_500.0) / 2.0;
        assert!((COSTS.busy_ns(&device(), &Load::default()) - mean).abs() < 1e-6);
        assert_eq!(COSTS.busy_share(&device(), &Load::default()), 0.0);
    }

    #[test]
    fn a_device_lasts_until_all_of_it_was_erased_as_often_as_it_endures() {
        let load = Load { inserts_per_s: 1e3, ..Load::default() };
        // 62 GB a thousand times over, 620 kB a second: 1e8 seconds.
        let years = COSTS.lifetime_years(&device(), &load, 62_000_000_000);
        assert!((years * SECONDS_PER_YEAR - 1e8).abs() < 1.0, "{years}");
        assert!(COSTS.lifetime_years(&device(), &Load::default(), 1).is_infinite());
    }

    #[test]
    fn rates_that_are_none_are_refused_and_named() {
        let text = |load: Load| load.check().unwrap_err().to_string();
        let wrong = Load { inserts_per_s: -1.0, ..Load::default() };
        assert_eq!(text(wrong), "inserts per second: -1; expected 0 to 1e12");
        let wrong = Load { lookups_per_s: f64::NAN, ..Load::default() };
        assert_eq!(text(wrong), "lookups per second: NaN; expected 0 to 1e12");
        let wrong = Load { miss_share: 1.5, ..Load::default() };
        assert_eq!(text(wrong), "share of misses: 1.5; expected 0 to 1");
        for share in [f64::NAN, -0.1, 1.5, f64::INFINITY] {
            let wrong = Load { update_share: share, ..Load::default() };
            assert_eq!(text(wrong), format!("share of updates: {share}; expected 0 to 1"));
        }
    }

    #[test]
    fn updates_count_by_their_share_and_their_reads_by_number_if_they_are_short() {
        let update = UpdateCosts { read_bytes: 2000.0, reads: 0.1, write_bytes: 1000.0 };
        let costs = OperationCosts { updates: Some(update), ..COSTS };
        // Two microseconds of reading, and two of writing.
        assert!((costs.update_busy_ns(&device()) - 4_000.0).abs() < 1e-6);
        let short = UpdateCosts { reads: 0.5, ..update };
        let short = OperationCosts { updates: Some(short), ..COSTS };
        assert!((short.update_busy_ns(&device()) - 7_000.0).abs() < 1e-6);
        let half = Load { inserts_per_s: 1e5, update_share: 0.5, ..Load::default() };
        assert!((costs.write_busy_ns(&device(), &half) - 2_920.0).abs() < 1e-6);
        assert!((costs.busy_share(&device(), &half) - 0.292).abs() < 1e-9);
        assert!((costs.moved_bytes(&half) - 2_110.0).abs() < 1e-6);
        let years = costs.lifetime_years(&device(), &half, 81_000_000_000);
        assert!((years * SECONDS_PER_YEAR - 1e6).abs() < 1.0, "{years}");
        // If an update costs the same as an insert, its share makes no difference.
        let all = Load { update_share: 1.0, ..half };
        assert_eq!(COSTS.busy_share(&device(), &all), 1e5 * COSTS.insert_busy_ns(&device()) / 1e9);
        assert_eq!(COSTS.updates_per_s(&device()), COSTS.inserts_per_s(&device()));
    }
}
