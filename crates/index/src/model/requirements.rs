//! The requirements of a table, before the structure is chosen.

use nandex_store::entries::EntryLayout;
use nandex_store::schedule::Channels;

use super::text::{bytes, time};
use super::{CostPreset, DeviceArray, Load, OperationCosts, Policy};
use crate::{Error, Result};

/// The maximum number of entries of a table: some petabytes.
const TABLE_ENTRIES_MAX: u64 = 1 << 48;

/// The use of a table, and the resources that it may take. Each structure sizes itself by these in its row's `advise`,
/// and [`advise`](Self::advise) chooses among all of them.
///
/// ```
/// use nandex::{Requirements, slicehash};
///
/// let requirements = Requirements { ram_bytes: Some(8 << 20), ..Requirements::new(1_000_000, 8, 8) };
/// let advice = requirements.advise()?;
/// println!("{advice}");
/// let slices = slicehash::Config::advised(&requirements)?; // or of one structure, whichever is advised
/// assert!(slices.partitions > 0);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    /// The entries that it must hold on flash.
    pub entries: u64,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// The total RAM that it may take; `None` for as much as it needs.
    pub ram_bytes: Option<u64>,
    /// The flash that it may take; `None` for as much as it needs.
    pub flash_bytes: Option<u64>,
    /// Its operations each second.
    pub load: Load,
    /// The maximum number of pages that a lookup of an absent key may read on average; `None` leaves it to device time.
    pub miss_reads_max: Option<f64>,
    /// The longest device time of an insert that waits for a whole flush, in nanoseconds.
    pub insert_worst_ns_max: Option<f64>,
    /// The policy when flash is full.
    pub policy: Policy,
    /// Full buffers that may wait on flash while inserts arrive in bursts; only some structures support this.
    pub front_runs: u32,
    /// The costs of the device; of each device, if there are several.
    pub device: CostPreset,
    /// Several devices, and their use; `None` for one, or for an array whose devices a table does not distinguish. Only
    /// some structures distinguish them.
    pub array: Option<DeviceArray>,
    /// The channels of the device. If there are several, slicetables and segments are whole rounds of chunks.
    pub channels: Channels,
}

impl Requirements {
    /// Returns the requirements of a table for `entries` entries of these widths on a common NVMe drive, without limits
    /// and rates, that evicts its oldest entries.
    #[must_use]
    pub fn new(entries: u64, key_bytes: u32, value_bytes: u32) -> Self {
        Self {
            entries,
            key_bytes,
            value_bytes,
            ram_bytes: None,
            flash_bytes: None,
            load: Load::default(),
            miss_reads_max: None,
            insert_worst_ns_max: None,
            policy: Policy::Fifo,
            front_runs: 0,
            device: CostPreset::default(),
            array: None,
            channels: Channels::opaque(),
        }
    }

    /// Returns the requirements with at most `bytes` of RAM.
    #[must_use]
    pub fn ram(self, bytes: u64) -> Self {
        Self { ram_bytes: Some(bytes), ..self }
    }

    /// Bytes of key and value.
    #[must_use]
    pub fn entry_bytes(&self) -> u64 {
        u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }

    /// Fails for requirements that no structure can meet: no entries, more than any volume holds, widths that no page
    /// takes, and limits or a load out of range.
    ///
    /// # Errors
    /// [`Error::Config`], naming the number.
    pub fn check(&self) -> Result<()> {
        if !(1..=TABLE_ENTRIES_MAX).contains(&self.entries) {
            return refuse("entries", format!("{}; expected 1 to 2^48", self.entries));
        }
        let widths = (self.key_bytes.try_into(), self.value_bytes.try_into());
        let (key_bytes, value_bytes) =
            (widths.0.unwrap_or(usize::MAX), widths.1.unwrap_or(usize::MAX));
        EntryLayout::new(key_bytes, value_bytes)?;
        check_limit("reads per miss", "pages", self.miss_reads_max)?;
        check_limit("worst insert", "ns", self.insert_worst_ns_max)?;
        self.load.check()
    }

    /// Fails for a policy that `structure` does not support.
    pub fn check_policy(&self, structure: &str, policies: &str, has: bool) -> Result<()> {
        if has {
            return Ok(());
        }
        let policy = self.policy;
        refuse(
            "policy",
            format!(
                "{policy}; a {structure} has {policies}; choose one of these, or another structure"
            ),
        )
    }

    /// Fails for requirements that only some structures support, on behalf of a `structure` that supports none of them.
    pub fn check_no_extras(&self, structure: &str) -> Result<()> {
        self.check_no_front(structure)?;
        self.check_no_array(structure)
    }

    fn check_no_front(&self, structure: &str) -> Result<()> {
        if self.front_runs == 0 {
            return Ok(());
        }
        let runs = self.front_runs;
        refuse(
            "front_runs",
            format!(
                "{runs}; a {structure} has no front table; leave it out, or choose a slicehash"
            ),
        )
    }

    fn check_no_array(&self, structure: &str) -> Result<()> {
        let Some(array) = self.array else { return Ok(()) };
        let reason = format!(
            "{} to be used in a design of their own; a {structure} has none; leave the design out, or choose a slicehash",
            array.devices
        );
        refuse("devices", reason)
    }

    /// Returns the devices that share the load: 1 if a table does not distinguish several.
    pub(crate) fn devices(&self) -> u32 {
        self.array.map_or(1, |array| array.devices)
    }

    /// Fails for more reads of absent keys than were required.
    pub(crate) fn check_miss_reads(&self, found: f64) -> Result<()> {
        match self.miss_reads_max.filter(|most| found > *most) {
            Some(most) => {
                refuse("reads per miss", format!("{most}; in this RAM it reads {found:.4}"))
            }
            None => Ok(()),
        }
    }

    /// Fails if the shortest flush, which takes `least_ns`, is longer than an insert may wait.
    pub fn check_insert_worst(&self, least_ns: f64) -> Result<()> {
        let Some(most) = self.insert_worst_ns_max.filter(|most| least_ns > *most) else {
            return Ok(());
        };
        let reason = format!(
            "{most} ns ({}); this table needs {:.0} ({}) or more on {}",
            time(most),
            least_ns.ceil(),
            time(least_ns),
            self.device.name
        );
        refuse("worst insert", reason)
    }

    /// Returns whether an insert may wait for a flush of this duration.
    pub(crate) fn allows_insert_worst(&self, found_ns: f64) -> bool {
        self.insert_worst_ns_max.is_none_or(|most| found_ns <= most)
    }

    /// Fails for costs with which the device cannot keep up with the load.
    pub fn check_load(&self, costs: &OperationCosts) -> Result<()> {
        let busy = costs.busy_share(&self.device, &self.load);
        if busy <= 1.0 {
            return Ok(());
        }
        refuse("load", format!("it is {busy:.2} times what {} can do", self.device.name))
    }

    /// Fails for more flash than there is.
    pub(crate) fn check_flash(&self, needed: u64) -> Result<()> {
        match self.flash_bytes {
            Some(most) if needed > most => Err(too_little_flash(most, needed)),
            _ => Ok(()),
        }
    }
}

/// Requires only RAM and entries, for 8 + 8 bytes.
impl From<super::Budget> for Requirements {
    fn from(budget: super::Budget) -> Self {
        Self::new(budget.entries, 8, 8).ram(budget.ram_bytes)
    }
}

/// Fails for a limit that is not a number, or that nothing or everything meets.
fn check_limit(field: &'static str, unit: &str, limit: Option<f64>) -> Result<()> {
    match limit.filter(|most| !(*most > 0.0 && most.is_finite())) {
        Some(most) => refuse(field, format!("{most} {unit}; expected a finite number above 0")),
        None => Ok(()),
    }
}

fn refuse(field: &'static str, reason: String) -> Result<()> {
    Err(Error::Config { field, reason })
}

/// Returns the error for too little RAM, which names the least that is enough.
pub fn too_little_ram(found: u64, least: u64) -> Error {
    Error::TooLittleRam { field: "RAM", reason: too_little(found, least) }
}

/// Returns the error for too little flash, which names the least that is enough.
pub(crate) fn too_little_flash(found: u64, least: u64) -> Error {
    Error::Config { field: "flash", reason: too_little(found, least) }
}

fn too_little(found: u64, least: u64) -> String {
    format!("{found} bytes ({}); this table needs {least} or more ({})", bytes(found), bytes(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_structure_can_do_is_refused_and_named() {
        let fine = Requirements::new(1000, 8, 8);
        let text = |it: Requirements| it.check().unwrap_err().to_string();
        for entries in [0, TABLE_ENTRIES_MAX + 1, u64::MAX] {
            let found = text(Requirements { entries, ..fine.clone() });
            assert_eq!(found, format!("entries: {entries}; expected 1 to 2^48"));
        }
        // A limit that was not a number made a choice among no candidates, which panicked.
        for limit in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0] {
            let limit = Some(limit);
            let found = text(Requirements { insert_worst_ns_max: limit, ..fine.clone() });
            assert!(found.starts_with("worst insert: ") && found.contains("finite"), "{found}");
            let found = text(Requirements { miss_reads_max: limit, ..fine.clone() });
            assert!(found.starts_with("reads per miss: ") && found.contains("finite"), "{found}");
        }
        // `advise` rejects what `create` rejects.
        for key_bytes in [0, 4, 33, u32::MAX] {
            let found = text(Requirements { key_bytes, ..fine.clone() });
            assert!(found.starts_with("key_bytes: ") && found.contains("8..=32"), "{found}");
        }
        let found = text(Requirements { value_bytes: 65, ..fine.clone() });
        assert!(found.starts_with("value_bytes: 65"), "{found}");
        let load = Load { miss_share: 2.0, ..Load::default() };
        assert!(text(Requirements { load, ..fine }).starts_with("share of misses"));
    }

    #[test]
    fn too_few_bytes_are_told_in_units_and_exactly() {
        let text = too_little_ram(5 << 20, 40 << 20).to_string();
        assert_eq!(
            text,
            "RAM: 5242880 bytes (5.00 MiB); this table needs 41943040 or more (40.0 MiB)"
        );
    }
}
