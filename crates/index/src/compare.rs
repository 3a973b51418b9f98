//! Which structure is the right one for a need, and why.
//!
//! BufferHash writes each entry once and pays for it with filters in RAM; SliceHash reads one page per
//! lookup whatever it finds, takes a quarter of the RAM, and writes each entry anew with every flush of its
//! partition. Both advisors are asked; of those that keep every wish, the one that keeps the device less
//! busy with the stated load is chosen, and at equal cost the one with less RAM.

use std::fmt;

use crate::model::text::{bytes, count, time, years};
use crate::model::{CostPreset, Load, OperationCosts};
use crate::slicehash::model::INCARNATIONS_BEST;
use crate::{AnyConfig, AnyOptions, Error, Result, bufferhash, slicehash};

/// Reads per miss that BufferHash's filters are made for, unless a wish says otherwise or RAM is short.
const MISS_READS: f64 = 0.01;
/// Filters tried for SliceHash where RAM may be left for them: reads per miss, from none on.
const SLICE_MISS_READS: [f64; 7] = [1.0, 0.7, 0.5, 0.3, 0.1, 0.03, 0.01];
/// Device times this close are equal; then less RAM decides.
const EQUAL: f64 = 1.05;

/// A structure to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Structure {
    /// [`crate::BufferHash`].
    BufferHash,
    /// [`crate::SliceHash`].
    SliceHash,
}

impl Structure {
    /// Its name, as in sentences.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BufferHash => "BufferHash",
            Self::SliceHash => "SliceHash",
        }
    }
}

/// What a table is wanted for, whichever it will be.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// Entries it must hold on flash.
    pub entries: u64,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// RAM it may take, all told; `None` for what it needs.
    pub ram_bytes: Option<u64>,
    /// Flash it may take; `None` for what it needs.
    pub flash_bytes: Option<u64>,
    /// What it is asked each second.
    pub load: Load,
    /// Pages read by a lookup of an absent key, at most, on average; `None` leaves it to device time.
    pub miss_reads_max: Option<f64>,
    /// Device time of an insert that waits for a whole flush, at most, in nanoseconds.
    pub insert_worst_ns_max: Option<f64>,
    /// What the device charges.
    pub device: CostPreset,
}

impl Wish {
    /// A table for so many entries of these widths on a common NVMe drive, with no limit and no rates.
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
            device: CostPreset::default(),
        }
    }

    /// Asks both advisors and chooses.
    ///
    /// # Errors
    /// [`Error::Config`] when no structure can do it, with what each says; for RAM and flash that is the
    /// least that would do.
    pub fn compare(&self) -> Result<Comparison> {
        self.load.check()?;
        let (buffered, sliced) = (self.bufferhash(), self.slicehash());
        let chosen = match (&buffered, &sliced) {
            (Err(first), Err(second)) => return Err(neither(first, second)),
            (Ok(_), Err(_)) => Structure::BufferHash,
            (Err(_), Ok(_)) => Structure::SliceHash,
            (Ok(first), Ok(second)) => self.better(
                (&first.operation_costs(), first.ram_bytes),
                (&second.operation_costs(), second.ram_bytes),
            ),
        };
        let wish = self.clone();
        Ok(Comparison { wish, chosen, bufferhash: buffered, slicehash: sliced })
    }

    fn better(
        &self,
        buffered: (&OperationCosts, u64),
        sliced: (&OperationCosts, u64),
    ) -> Structure {
        let busy = |costs: &OperationCosts| costs.busy_ns(&self.device, &self.load);
        let (first, second) = (busy(buffered.0), busy(sliced.0));
        let equal = first <= second * EQUAL && second <= first * EQUAL;
        let is_first = if equal { buffered.1 <= sliced.1 } else { first < second };
        if is_first { Structure::BufferHash } else { Structure::SliceHash }
    }

    /// What a BufferHash would be and cost.
    ///
    /// # Errors
    /// [`Error::Config`] where it cannot do it, with the least that would do.
    pub fn bufferhash(&self) -> Result<bufferhash::model::Advice> {
        let need = bufferhash::model::Need {
            ram_bytes: self.ram_bytes,
            flash_bytes: self.flash_bytes,
            miss_reads_max: self.miss_reads_max.unwrap_or(MISS_READS),
            device: self.device,
            ..bufferhash::model::Need::new(self.entries, self.key_bytes, self.value_bytes)
        };
        let advice = need.advise()?;
        let refuse = |field, reason| Err(Error::Config { field, reason });
        if let Some(most) = self.miss_reads_max.filter(|_| advice.relaxed) {
            let reason = format!("{most}; in this RAM it reads {:.4}", advice.reads_per_miss);
            return refuse("reads per miss", reason);
        }
        if let Some(most) = self.insert_worst_ns_max.filter(|most| advice.insert_worst_ns > *most) {
            let reason = format!("{most} ns; a flush takes {:.0}", advice.insert_worst_ns.ceil());
            return refuse("worst insert", reason);
        }
        let busy = advice.operation_costs().busy_share(&self.device, &self.load);
        if busy > 1.0 {
            let name = self.device.name;
            return refuse("load", format!("it is {busy:.2} times what {name} can do"));
        }
        Ok(advice)
    }

    /// What a SliceHash would be and cost.
    ///
    /// Without filters, or with those that keep the device less busy and leave enough RAM for buffers that
    /// k stays at 32: filters in place of buffers wear flash out. Only a load that cannot be kept up with
    /// otherwise gets them in any case.
    ///
    /// # Errors
    /// As [`bufferhash`](Self::bufferhash).
    pub fn slicehash(&self) -> Result<slicehash::model::Advice> {
        let with = |miss_reads_max: f64| {
            let need = slicehash::model::Need {
                ram_bytes: self.ram_bytes,
                flash_bytes: self.flash_bytes,
                load: self.load,
                miss_reads_max,
                insert_worst_ns_max: self.insert_worst_ns_max,
                device: self.device,
                ..slicehash::model::Need::new(self.entries, self.key_bytes, self.value_bytes)
            };
            need.advise()
        };
        if let Some(most) = self.miss_reads_max {
            return with(most.min(1.0));
        }
        if self.ram_bytes.is_none() {
            return with(1.0);
        }
        let busy = |advice: &slicehash::model::Advice| {
            advice.operation_costs().busy_ns(&self.device, &self.load)
        };
        let able: Vec<_> =
            SLICE_MISS_READS.into_iter().filter_map(|reads| with(reads).ok()).collect();
        let is_spare = |advice: &&slicehash::model::Advice| {
            advice.filter_bytes == 0 || advice.incarnations <= INCARNATIONS_BEST
        };
        let least = |a: &&slicehash::model::Advice, b: &&slicehash::model::Advice| {
            busy(a).total_cmp(&busy(b))
        };
        let best = able.iter().filter(is_spare).min_by(least);
        best.or_else(|| able.iter().min_by(least)).cloned().map_or_else(|| with(1.0), Ok)
    }
}

fn neither(buffered: &Error, sliced: &Error) -> Error {
    let reason = format!("no structure can do it; BufferHash: {buffered}; SliceHash: {sliced}");
    Error::Config { field: "need", reason }
}

/// Both advices, and the choice between them. Prints as the choice, its reasons, both side by side, and the
/// chosen one's report.
#[derive(Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// What was asked.
    pub wish: Wish,
    /// The structure to take.
    pub chosen: Structure,
    /// BufferHash's advice, or why it cannot do it.
    pub bufferhash: Result<bufferhash::model::Advice>,
    /// SliceHash's advice, or why it cannot do it.
    pub slicehash: Result<slicehash::model::Advice>,
}

/// What the two are compared by.
struct Figures {
    name: &'static str,
    costs: OperationCosts,
    ram_bytes: u64,
    flash_bytes: u64,
    insert_worst_ns: f64,
    /// Is RAM too short for the filters that would be best?
    is_short: bool,
}

impl Comparison {
    /// The chosen one as a configuration, evicting in FIFO order.
    ///
    /// # Panics
    /// If `chosen` was set to one that cannot do it.
    #[must_use]
    pub fn config(&self) -> AnyConfig {
        const ABLE: &str = "what is chosen can do it";
        match self.chosen {
            Structure::BufferHash => {
                let advice = self.bufferhash.as_ref().expect(ABLE);
                bufferhash::Config::advised(advice).into()
            }
            Structure::SliceHash => {
                let advice = self.slicehash.as_ref().expect(ABLE);
                slicehash::Config::advised(advice).into()
            }
        }
    }

    /// What to open it with: of a SliceHash, the RAM for filters.
    #[must_use]
    pub fn options(&self) -> AnyOptions {
        let advised = slicehash::RuntimeOptions::advised;
        let slicehash = self.slicehash.as_ref().map_or_else(|_| Default::default(), advised);
        AnyOptions::default().with(slicehash)
    }

    /// Why the chosen one: a sentence each.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        match (self.buffered(), self.sliced()) {
            (Some(one), Some(other)) if self.chosen == Structure::BufferHash => {
                self.differences(&one, &other)
            }
            (Some(other), Some(one)) => self.differences(&one, &other),
            _ => self.refusals(),
        }
    }

    fn refusals(&self) -> Vec<String> {
        let buffered = self.bufferhash.as_ref().err().map(|error| ("BufferHash", error));
        let sliced = self.slicehash.as_ref().err().map(|error| ("SliceHash", error));
        let refused = buffered.into_iter().chain(sliced);
        refused.map(|(name, error)| format!("{name} cannot do it: {error}")).collect()
    }

    fn differences(&self, one: &Figures, other: &Figures) -> Vec<String> {
        let load = &self.wish.load;
        let device = &self.wish.device;
        let short =
            if other.is_short { ", because its filters do not fit into the RAM" } else { "" };
        let moved = |it: &Figures| it.costs.insert_read_bytes + it.costs.insert_write_bytes;
        let rate = |it: &Figures| count(it.costs.ops_per_s(device, load) as u64);
        vec![
            format!(
                "a lookup of this load reads {:.3} pages, with {} {:.3}{short}",
                one.costs.reads_per_lookup(load),
                other.name,
                other.costs.reads_per_lookup(load)
            ),
            format!(
                "an insert moves {:.0} bytes to and from flash, with {} {:.0}",
                moved(one),
                other.name,
                moved(other)
            ),
            format!(
                "so {} can do {} operations a second of this mix, with {} {}",
                device.name,
                rate(one),
                other.name,
                rate(other)
            ),
            format!(
                "RAM is {}, with {} {}",
                bytes(one.ram_bytes),
                other.name,
                bytes(other.ram_bytes)
            ),
        ]
    }

    fn buffered(&self) -> Option<Figures> {
        let advice = self.bufferhash.as_ref().ok()?;
        Some(Figures {
            name: Structure::BufferHash.name(),
            costs: advice.operation_costs(),
            ram_bytes: advice.ram_bytes,
            flash_bytes: advice.flash_bytes,
            insert_worst_ns: advice.insert_worst_ns,
            is_short: advice.relaxed,
        })
    }

    fn sliced(&self) -> Option<Figures> {
        let advice = self.slicehash.as_ref().ok()?;
        Some(Figures {
            name: Structure::SliceHash.name(),
            costs: advice.operation_costs(),
            ram_bytes: advice.ram_bytes,
            flash_bytes: advice.flash_bytes,
            insert_worst_ns: advice.insert_worst_ns,
            is_short: false,
        })
    }

    /// The rows of the table: what, for whom.
    fn rows(&self) -> Vec<(&'static str, [String; 2])> {
        let Wish { entries, load, device, flash_bytes, .. } = &self.wish;
        let both = [self.buffered(), self.sliced()];
        let row = |name, show: &dyn Fn(&Figures) -> String| {
            let cells = both.each_ref().map(|it| it.as_ref().map_or("-".to_owned(), show));
            (name, cells)
        };
        let lifetime = |it: &Figures| {
            let bytes = flash_bytes.unwrap_or(it.flash_bytes);
            years(it.costs.lifetime_years(device, load, bytes))
        };
        let mut rows = vec![
            row("RAM", &|it| bytes(it.ram_bytes)),
            row("  per entry", &|it| format!("{:.2} bytes", it.ram_bytes as f64 / *entries as f64)),
            row("flash", &|it| bytes(it.flash_bytes)),
            row("reads per hit", &|it| format!("{:.4}", it.costs.reads_per_hit)),
            row("reads per miss", &|it| format!("{:.4}", it.costs.reads_per_miss)),
            row("bytes written", &|it| format!("{:.1}", it.costs.insert_write_bytes)),
            row("bytes read", &|it| format!("{:.1}", it.costs.insert_read_bytes)),
            row("inserts/s", &|it| count(it.costs.inserts_per_s(device) as u64)),
            row("insert, worst", &|it| time(it.insert_worst_ns)),
            row("operations/s", &|it| count(it.costs.ops_per_s(device, load) as u64)),
        ];
        if load.has_rates() {
            let busy = |it: &Figures| format!("{:.0} %", it.costs.busy_share(device, load) * 100.0);
            rows.push(row("device busy", &busy));
        }
        if load.inserts_per_s > 0.0 {
            rows.push(row("lifetime", &lifetime));
        }
        rows
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<15} {:>15}", "take", self.chosen.name())?;
        for reason in self.reasons() {
            writeln!(f, "  {reason}")?;
        }
        writeln!(f, "\n{:<15} {:>15}  {:>15}", "", "BufferHash", "SliceHash")?;
        for (name, [buffered, sliced]) in self.rows() {
            writeln!(f, "{name:<15} {buffered:>15}  {sliced:>15}")?;
        }
        writeln!(f, "\n{}", self.chosen.name())?;
        match (self.chosen, &self.bufferhash, &self.slicehash) {
            (Structure::BufferHash, Ok(advice), _) => write!(f, "{advice}"),
            (Structure::SliceHash, _, Ok(advice)) => write!(f, "{advice}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn quarter_billion() -> Wish {
        Wish::new(256_000_000, 8, 8)
    }

    fn lookups(miss_share: f64) -> Load {
        Load { inserts_per_s: 0.0, lookups_per_s: 1000.0, miss_share }
    }

    fn inserts(inserts_per_s: f64) -> Load {
        Load { inserts_per_s, ..Load::default() }
    }

    fn chosen(wish: &Wish) -> (Structure, String) {
        let comparison = wish.compare().unwrap();
        (comparison.chosen, comparison.to_string())
    }

    #[test]
    fn ram_too_small_for_bufferhash_means_slicehash() {
        let wish = Wish { ram_bytes: Some(40 * MIB), ..quarter_billion() };
        let (structure, text) = chosen(&wish);
        assert_eq!(structure, Structure::SliceHash, "{text}");
        assert!(text.contains("BufferHash cannot do it: RAM: 41943040 bytes"), "{text}");
        assert!(text.contains("this table needs"), "{text}");
    }

    #[test]
    fn ram_too_short_for_good_filters_means_slicehash_for_lookups() {
        for miss_share in [0.0, 0.5, 1.0] {
            let ram_bytes = Some(160 * MIB);
            let wish = Wish { ram_bytes, load: lookups(miss_share), ..quarter_billion() };
            let (structure, text) = chosen(&wish);
            assert_eq!(structure, Structure::SliceHash, "{miss_share}: {text}");
            assert!(text.contains("its filters do not fit into the RAM"), "{text}");
        }
    }

    #[test]
    fn inserts_too_many_for_rewriting_slicetables_mean_bufferhash() {
        let wish = Wish { load: inserts(2e7), ..quarter_billion() };
        let (structure, text) = chosen(&wish);
        assert_eq!(structure, Structure::BufferHash, "{text}");
        assert!(text.contains("SliceHash cannot do it: load: 20000000 inserts"), "{text}");
        let wish = Wish { ram_bytes: Some(600 * MIB), load: inserts(1e5), ..quarter_billion() };
        let (structure, text) = chosen(&wish);
        assert_eq!(structure, Structure::BufferHash, "{text}");
        assert!(text.contains("an insert moves"), "{text}");
        assert!(text.contains("device busy") && text.contains("lifetime"), "{text}");
    }

    #[test]
    fn lookups_in_vain_mean_bufferhash_where_its_filters_have_room() {
        let wish = Wish { ram_bytes: Some(600 * MIB), load: lookups(0.9), ..quarter_billion() };
        let (structure, text) = chosen(&wish);
        assert_eq!(structure, Structure::BufferHash, "{text}");
        assert!(text.contains("a lookup of this load reads 0.1"), "{text}");
    }

    #[test]
    fn lookups_in_vain_give_slicehash_filters_where_ram_is_left() {
        let ram_bytes = Some(240 * MIB);
        let wish = Wish { ram_bytes, load: lookups(1.0), ..quarter_billion() };
        let comparison = wish.compare().unwrap();
        let advice = comparison.slicehash.unwrap();
        assert!(advice.filter_bytes > 0 && advice.reads_per_miss < 1.0, "{advice}");
        // Without misses they would only take RAM from the buffers.
        let wish = Wish { ram_bytes, load: inserts(1e4), ..quarter_billion() };
        assert_eq!(wish.compare().unwrap().slicehash.unwrap().filter_bytes, 0);
    }

    #[test]
    fn where_device_time_is_equal_less_ram_is_taken() {
        let wish = Wish { load: lookups(0.0), ..quarter_billion() };
        let comparison = wish.compare().unwrap();
        assert_eq!(comparison.chosen, Structure::SliceHash, "{comparison}");
        let (buffered, sliced) = (comparison.bufferhash.unwrap(), comparison.slicehash.unwrap());
        assert!(sliced.ram_bytes * 3 < buffered.ram_bytes);
    }

    #[test]
    fn a_stated_limit_on_reads_in_vain_binds_both() {
        let ram_bytes = Some(250 * MIB);
        let wish = Wish { miss_reads_max: Some(0.3), ram_bytes, ..quarter_billion() };
        let comparison = wish.compare().unwrap();
        let error = comparison.bufferhash.as_ref().unwrap_err().to_string();
        assert!(error.starts_with("reads per miss: 0.3; in this RAM it reads "), "{error}");
        assert_eq!(comparison.chosen, Structure::SliceHash);
        assert_eq!(comparison.slicehash.unwrap().reads_per_miss, 0.3);
    }

    #[test]
    fn a_bound_on_the_worst_insert_binds_both() {
        let wish = Wish { insert_worst_ns_max: Some(1e3), ..quarter_billion() };
        let error = wish.compare().unwrap_err().to_string();
        assert!(
            error.starts_with("need: no structure can do it; BufferHash: worst insert"),
            "{error}"
        );
        assert!(error.contains("SliceHash: worst insert: 1000 ns; this table needs "), "{error}");
    }

    #[test]
    fn the_table_shows_both_side_by_side() {
        let (_, text) = chosen(&Wish { ram_bytes: Some(600 * MIB), ..quarter_billion() });
        let table: Vec<&str> = text.split("\n\n").nth(1).unwrap().lines().collect();
        assert_eq!(table.len(), 11, "{text}");
        assert!(table.iter().all(|row| row.len() == 48), "{text}");
        assert!(text.starts_with("take                 BufferHash\n"), "{text}");
    }

    fn wishes() -> [Wish; 3] {
        let quarter_billion = Wish::new(256_000_000, 8, 8);
        [
            Wish { ram_bytes: Some(160 << 20), ..quarter_billion.clone() },
            Wish { ram_bytes: Some(900 << 20), ..quarter_billion },
            Wish::new(1_000_000, 20, 12),
        ]
    }

    #[test]
    fn a_configuration_costs_what_the_advice_for_it_says() {
        for wish in wishes() {
            let comparison = wish.compare().unwrap();
            let (buffered, sliced) =
                (comparison.bufferhash.as_ref().unwrap(), comparison.slicehash.as_ref().unwrap());
            for (chosen, advised) in [
                (Structure::BufferHash, buffered.operation_costs()),
                (Structure::SliceHash, sliced.operation_costs()),
            ] {
                // Filters of a SliceHash are no part of its configuration.
                let advised = match chosen {
                    Structure::BufferHash => advised,
                    Structure::SliceHash => OperationCosts { reads_per_miss: 1.0, ..advised },
                };
                let made = Comparison { chosen, ..wish.compare().unwrap() };
                let costs = made.config().operation_costs().unwrap();
                let all = |it: &OperationCosts| {
                    [
                        it.reads_per_hit,
                        it.reads_per_miss,
                        it.insert_read_bytes,
                        it.insert_write_bytes,
                    ]
                };
                for (found, expected) in all(&costs).into_iter().zip(all(&advised)) {
                    let far = (found - expected).abs() > expected * 0.005;
                    assert!(!far, "{chosen:?} of {:?}: {costs:?}, {advised:?}", comparison.wish);
                }
            }
        }
    }
}
