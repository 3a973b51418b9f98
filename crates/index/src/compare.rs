//! The advice: which structure suits given requirements, and why.
//!
//! Every row of the [`registry`](mod@crate::registry) that creates tables gives a prediction, except baselines, which
//! are never recommended. Of the structures that keep every limit, the advice is the one that keeps the device least
//! busy under the stated load; among those within 5 % of it, the one with the least RAM.

use std::fmt;

use crate::model::text::{bytes, count, time, years};
use crate::model::{Policy, Prediction, Requirements};
use crate::registry::{self, Row};
use crate::{Error, Result};

/// The ratio up to which device times count as equal; then less RAM decides.
const EQUAL: f64 = 1.05;

/// The advice for requirements: each structure's prediction, and the recommended structure. Prints as the choice, its
/// reasons, all structures side by side, and the chosen one's report.
#[derive(Debug)]
#[non_exhaustive]
pub struct Advice {
    /// The requirements.
    pub requirements: Requirements,
    /// Each structure's answer, in the order of the registry.
    pub candidates: Vec<Candidate>,
    chosen: usize,
}

/// A structure's answer.
#[derive(Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The structure's row.
    pub row: &'static Row,
    /// Its prediction, or why it cannot meet the requirements.
    pub answer: Result<Prediction>,
}

/// A candidate that can meet them.
#[derive(Clone, Copy)]
struct Able<'a> {
    row: &'static Row,
    prediction: &'a Prediction,
}

impl Requirements {
    /// Compares all structures and chooses one.
    ///
    /// [`Error::Config`] if no structure can meet them, with the reason for each; for RAM and flash that is the least
    /// that would be enough.
    pub fn advise(&self) -> Result<Advice> {
        self.check()?;
        let ask = |(row, table): (&'static Row, &registry::TableRow)| Candidate {
            row,
            answer: (table.advise)(self),
        };
        let grows = self.policy == Policy::Grow;
        let able =
            registry::tables().filter(|(_, table)| table.grows == grows && !table.is_baseline);
        let candidates: Vec<_> = able.map(ask).collect();
        match self.choose(&candidates) {
            Some(chosen) => Ok(Advice { requirements: self.clone(), candidates, chosen }),
            None => Err(none_can(&candidates)),
        }
    }

    /// Returns the prediction of the structure of one kind.
    ///
    /// # Errors
    /// [`Error::Config`] if it cannot meet them, with what would be enough; a kind that is not a table.
    pub fn advise_one(&self, kind: &str) -> Result<Prediction> {
        match registry::tables().find(|(row, _)| row.kind == kind) {
            Some((_, table)) => (table.advise)(self),
            None => Err(Error::Config {
                field: "structure",
                reason: format!("{kind:?} is no kind of table that this nandex knows"),
            }),
        }
    }

    fn choose(&self, candidates: &[Candidate]) -> Option<usize> {
        let able = |(at, candidate): (usize, &Candidate)| {
            let prediction = candidate.answer.as_ref().ok()?;
            let busy_ns = prediction.costs.busy_ns(&self.device, &self.load);
            Some((at, busy_ns, prediction.ram_bytes()))
        };
        let able: Vec<_> = candidates.iter().enumerate().filter_map(able).collect();
        let least_ns = able.iter().map(|(_, busy_ns, _)| *busy_ns).fold(f64::INFINITY, f64::min);
        let equal = able.iter().filter(|(_, busy_ns, _)| *busy_ns <= least_ns * EQUAL);
        equal.min_by_key(|(_, _, ram_bytes)| *ram_bytes).map(|(at, _, _)| *at)
    }
}

fn none_can(candidates: &[Candidate]) -> Error {
    let mut reason = "no structure can do it".to_owned();
    for Candidate { row, answer } in candidates {
        let refusal = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
        reason.push_str(&format!("; {}: {refusal}", row.name));
    }
    let lacks_ram = |it: &Candidate| matches!(it.answer, Err(Error::TooLittleRam { .. }));
    match candidates.iter().any(lacks_ram) {
        true => Error::TooLittleRam { field: "need", reason },
        false => Error::Config { field: "need", reason },
    }
}

impl Candidate {
    fn able(&self) -> Option<Able<'_>> {
        self.answer.as_ref().ok().map(|prediction| Able { row: self.row, prediction })
    }
}

impl Advice {
    /// Returns the prediction of the chosen structure.
    #[must_use]
    pub fn chosen(&self) -> &Prediction {
        self.candidates[self.chosen].answer.as_ref().expect("what was chosen can do it")
    }

    /// Returns the prediction of the chosen structure, by value.
    #[must_use]
    pub fn into_chosen(mut self) -> Prediction {
        let chosen = self.candidates.swap_remove(self.chosen);
        chosen.answer.expect("what was chosen can do it")
    }

    /// Returns the row of the chosen structure.
    #[must_use]
    pub fn row(&self) -> &'static Row {
        self.candidates[self.chosen].row
    }

    fn others(&self) -> impl Iterator<Item = &Candidate> {
        let others = self.candidates.iter().enumerate().filter(|(at, _)| *at != self.chosen);
        others.map(|(_, candidate)| candidate)
    }

    /// Returns the reasons for the choice, a sentence each: what it does better than others, and why others cannot meet
    /// the requirements.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let others: Vec<_> = self.others().filter_map(Candidate::able).collect();
        let mut reasons = if others.is_empty() { Vec::new() } else { self.differences(&others) };
        let refusal = |it: &Candidate| {
            let error = it.answer.as_ref().err()?;
            Some(format!("{} cannot do it: {error}", it.row.name))
        };
        reasons.extend(self.others().filter_map(refusal));
        reasons
    }

    fn differences(&self, others: &[Able<'_>]) -> Vec<String> {
        let Requirements { load, device, .. } = &self.requirements;
        let mine = self.chosen();
        let with = |show: &dyn Fn(&Prediction) -> String| {
            let with = |it: &Able<'_>| format!("with {} {}", it.row.name, show(it.prediction));
            others.iter().map(with).collect::<Vec<_>>().join(", ")
        };
        let reads = |it: &Prediction| format!("{:.3}", it.costs.reads_per_lookup(load));
        let reads_why = |it: &Prediction| {
            let why = it.compromise.map(|why| format!(", because {why}")).unwrap_or_default();
            reads(it) + &why
        };
        let moved = |it: &Prediction| format!("{:.0}", it.costs.moved_bytes(load));
        let moves =
            if load.update_share > 0.0 { "insert or update of this load" } else { "insert" };
        let rate = |it: &Prediction| count(it.ops_per_s() as u64);
        let ram = |it: &Prediction| bytes(it.ram_bytes());
        vec![
            format!("a lookup of this load reads {} pages, {}", reads(mine), with(&reads_why)),
            format!("an {moves} moves {} bytes to and from flash, {}", moved(mine), with(&moved)),
            format!(
                "so {} can do {} operations a second of this mix, {}",
                device.name,
                rate(mine),
                with(&rate)
            ),
            format!("RAM is {}, {}", ram(mine), with(&ram)),
        ]
    }

    /// Returns the rows of the table: a figure's name, and a cell for each structure.
    fn rows(&self) -> Vec<(&'static str, Vec<String>)> {
        let load = &self.requirements.load;
        let row = |name, show: &dyn Fn(&Prediction) -> String| {
            let cell = |it: &Candidate| it.answer.as_ref().map_or_else(|_| "-".to_owned(), show);
            (name, self.candidates.iter().map(cell).collect())
        };
        let lifetime = |it: &Prediction| it.lifetime_years().map_or_else(|| "-".to_owned(), years);
        let mut rows = vec![
            row("RAM", &|it| bytes(it.ram_bytes())),
            row("  per entry", &|it| format!("{:.2} bytes", it.ram_bytes_per_entry())),
            row("flash", &|it| bytes(it.flash_bytes)),
            row("reads per hit", &|it| format!("{:.4}", it.costs.reads_per_hit)),
            row("reads per miss", &|it| format!("{:.4}", it.costs.reads_per_miss)),
            row("bytes written", &|it| format!("{:.1}", it.costs.insert_write_bytes)),
            row("bytes read", &|it| format!("{:.1}", it.costs.insert_read_bytes)),
            row("inserts/s", &|it| count(it.inserts_per_s() as u64)),
            row("insert, worst", &|it| time(it.insert_worst_ns)),
            row("operations/s", &|it| count(it.ops_per_s() as u64)),
        ];
        let differs =
            |it: &Candidate| it.able().is_some_and(|it| it.prediction.costs.updates.is_some());
        if load.update_share > 0.0 || self.candidates.iter().any(differs) {
            rows.extend([
                row("update, written", &|it| format!("{:.1}", it.costs.update_write_bytes())),
                row("update, read", &|it| format!("{:.1}", it.costs.update_read_bytes())),
                row("updates/s", &|it| count(it.updates_per_s() as u64)),
            ]);
        }
        if load.has_rates() {
            let busy = |it: &Prediction| format!("{:.0} %", it.busy_share() * 100.0);
            rows.push(row("device busy", &busy));
        }
        if load.inserts_per_s > 0.0 {
            rows.push(row("lifetime", &lifetime));
        }
        rows
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.row().name;
        writeln!(f, "{:<15} {name:>15}", "take")?;
        for reason in self.reasons() {
            writeln!(f, "  {reason}")?;
        }
        writeln!(f)?;
        let names = self.candidates.iter().map(|it| it.row.name.to_owned()).collect();
        for (name, cells) in [("", names)].into_iter().chain(self.rows()) {
            let cells: Vec<_> = cells.iter().map(|cell| format!("{cell:>15}")).collect();
            writeln!(f, "{name:<15} {}", cells.join("  "))?;
        }
        write!(f, "\n{name}\n{}", self.chosen())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use nandex_device::MemoryDevice;
    use nandex_store::{Durability, Threads, Volume, VolumeOptions};

    use super::*;
    use crate::model::{Load, OperationCosts};
    use crate::{AnyTable, Table};

    const MIB: u64 = 1 << 20;
    const BUFFERED: &str = "bufferhash";
    const SLICED: &str = "slicehash";

    fn quarter_billion() -> Requirements {
        Requirements::new(256_000_000, 8, 8)
    }

    fn lookups(miss_share: f64) -> Load {
        Load { lookups_per_s: 1000.0, miss_share, ..Load::default() }
    }

    fn inserts(inserts_per_s: f64) -> Load {
        Load { inserts_per_s, ..Load::default() }
    }

    fn chosen(requirements: &Requirements) -> (&'static str, String) {
        let advice = requirements.advise().unwrap();
        (advice.row().kind, advice.to_string())
    }

    #[test]
    fn ram_too_small_for_bufferhash_means_slicehash() {
        let (kind, text) = chosen(&quarter_billion().ram(40 * MIB));
        assert_eq!(kind, SLICED, "{text}");
        assert!(text.contains("BufferHash cannot do it: RAM: 41943040 bytes (40.0 MiB)"), "{text}");
        assert!(text.contains("this table needs"), "{text}");
    }

    #[test]
    fn ram_too_short_for_good_filters_means_slicehash_for_lookups() {
        for miss_share in [0.0, 0.5, 1.0] {
            let load = lookups(miss_share);
            let (kind, text) = chosen(&Requirements { load, ..quarter_billion() }.ram(160 * MIB));
            assert_eq!(kind, SLICED, "{miss_share}: {text}");
            assert!(text.contains("its filters do not fit into the RAM"), "{text}");
        }
    }

    #[test]
    fn inserts_too_many_for_rewriting_slicetables_mean_bufferhash() {
        let (kind, text) = chosen(&Requirements { load: inserts(2e7), ..quarter_billion() });
        assert_eq!(kind, BUFFERED, "{text}");
        assert!(text.contains("SliceHash cannot do it: load: 20000000 inserts"), "{text}");
        let load = inserts(1e5);
        let (kind, text) = chosen(&Requirements { load, ..quarter_billion() }.ram(600 * MIB));
        assert_eq!(kind, BUFFERED, "{text}");
        assert!(text.contains("an insert moves"), "{text}");
        assert!(text.contains("device busy") && text.contains("lifetime"), "{text}");
    }

    /// Returns the requirements of a table that rejects inserts when full, for these operations each second.
    fn refusing(inserts_per_s: f64, lookups_per_s: f64, update_share: f64) -> Requirements {
        let load = Load { inserts_per_s, lookups_per_s, miss_share: 0.0, update_share };
        Requirements { load, policy: Policy::Reject, ..quarter_billion() }
    }

    #[test]
    fn a_load_counts_updates_by_what_they_cost() {
        let prediction = refusing(0.0, 0.0, 1.0).advise_one(BUFFERED).unwrap();
        let (inserts, updates) = (prediction.inserts_per_s(), prediction.updates_per_s());
        assert!(updates < 0.7 * inserts, "{updates} and {inserts}");
        let between = (inserts + updates) / 2.0;
        let advised = |per_s, share| refusing(per_s, 0.0, share).advise_one(BUFFERED);
        assert!(advised(between, 0.0).is_ok() && advised(0.99 * updates, 1.0).is_ok());
        let error = advised(between, 1.0).unwrap_err().to_string();
        assert!(error.starts_with("load: it is 1."), "{error}");
        let busy = |share| advised(0.9 * updates, share).unwrap().busy_share();
        assert!((busy(0.5) - (busy(0.0) + busy(1.0)) / 2.0).abs() < 1e-9);
        let years = |share| advised(0.9 * updates, share).unwrap().lifetime_years().unwrap();
        assert!(years(1.0) < 0.7 * years(0.0), "{} and {}", years(1.0), years(0.0));
    }

    #[test]
    fn updates_count_for_the_choice() {
        let with = |share| chosen(&refusing(29_000.0, 100_000.0, share));
        let (kind, text) = with(0.0);
        assert_eq!(kind, BUFFERED, "{text}");
        assert!(text.contains("an insert moves"), "{text}");
        let (kind, text) = with(1.0);
        assert_eq!(kind, SLICED, "{text}");
        assert!(text.contains("an insert or update of this load moves"), "{text}");
        assert!(text.contains("update, written"), "{text}");
    }

    #[test]
    fn only_what_is_cleaned_predicts_updates_by_themselves() {
        for policy in [Policy::Fifo, Policy::Reject, Policy::Grow] {
            let asked = Requirements { policy, ..Requirements::new(1_000_000, 8, 8) };
            let advice = asked.advise().unwrap();
            for candidate in advice.candidates.iter().filter_map(Candidate::able) {
                let costs = candidate.prediction.costs;
                let cleaned = match candidate.row.kind {
                    BUFFERED => policy == Policy::Reject,
                    kind => kind == "growing",
                };
                assert_eq!(costs.updates.is_some(), cleaned, "{}", candidate.row.kind);
                assert!(costs.update_write_bytes() >= costs.insert_write_bytes);
                let shown = candidate.prediction.to_string();
                assert_eq!(shown.contains("update, written"), cleaned, "{shown}");
            }
        }
    }

    #[test]
    fn lookups_of_absent_keys_mean_bufferhash_where_its_filters_have_space() {
        let load = lookups(0.9);
        let (kind, text) = chosen(&Requirements { load, ..quarter_billion() }.ram(600 * MIB));
        assert_eq!(kind, BUFFERED, "{text}");
        assert!(text.contains("a lookup of this load reads 0.1"), "{text}");
    }

    #[test]
    fn lookups_of_absent_keys_give_slicehash_filters_where_ram_is_left() {
        let requirements = quarter_billion().ram(240 * MIB);
        let with = |load| Requirements { load, ..requirements.clone() }.advise_one(SLICED).unwrap();
        let advice = with(lookups(1.0));
        assert!(advice.filter_bytes > 0 && advice.costs.reads_per_miss < 1.0, "{advice}");
        // Without misses filters would only take RAM from the buffers.
        assert_eq!(with(inserts(1e4)).filter_bytes, 0);
    }

    #[test]
    fn where_device_time_is_equal_less_ram_is_taken() {
        let advice = Requirements { load: lookups(0.0), ..quarter_billion() }.advise().unwrap();
        assert_eq!(advice.row().kind, SLICED, "{advice}");
        let buffered = advice.candidates[0].answer.as_ref().unwrap();
        assert!(advice.chosen().ram_bytes() * 3 < buffered.ram_bytes());
    }

    #[test]
    fn a_stated_limit_on_reads_of_absent_keys_binds_all() {
        let limited = Requirements { miss_reads_max: Some(0.3), ..quarter_billion() };
        let advice = limited.ram(250 * MIB).advise().unwrap();
        let error = advice.candidates[0].answer.as_ref().unwrap_err().to_string();
        assert!(error.starts_with("reads per miss: 0.3; in this RAM it reads "), "{error}");
        assert_eq!((advice.row().kind, advice.chosen().costs.reads_per_miss), (SLICED, 0.3));
    }

    #[test]
    fn a_limit_on_the_worst_insert_binds_all() {
        let limited = Requirements { insert_worst_ns_max: Some(1e3), ..quarter_billion() };
        let error = limited.advise().unwrap_err().to_string();
        let start = "need: no structure can do it; BufferHash: worst insert";
        assert!(error.starts_with(start), "{error}");
        let sliced = "SliceHash: worst insert: 1000 ns (1.00 us); this table needs ";
        assert!(error.contains(sliced), "{error}");
    }

    #[test]
    fn a_policy_or_a_front_that_one_structure_has_decides_for_it() {
        let policy = crate::Policy::Lru;
        let (kind, text) = chosen(&Requirements { policy, ..quarter_billion() });
        assert_eq!(kind, BUFFERED);
        assert!(
            text.contains("SliceHash cannot do it: policy: lru; a slicehash has fifo"),
            "{text}"
        );
        let (kind, text) = chosen(&Requirements { front_runs: 8, ..quarter_billion() });
        assert_eq!(kind, SLICED);
        assert!(text.contains("BufferHash cannot do it: front_runs: 8"), "{text}");
    }

    #[test]
    fn the_table_shows_all_structures_side_by_side() {
        let (_, text) = chosen(&quarter_billion().ram(600 * MIB));
        let table: Vec<&str> = text.split("\n\n").nth(1).unwrap().lines().collect();
        assert_eq!(table.len(), 11, "{text}");
        let fixed = registry::tables().filter(|(_, table)| !table.grows);
        let width = 14 + 17 * fixed.count();
        assert!(table.iter().all(|row| row.len() == width), "{text}");
        assert!(text.starts_with("take                 BufferHash\n"), "{text}");
    }

    #[test]
    fn a_configuration_costs_what_the_advice_for_it_says() {
        let all = [
            quarter_billion().ram(160 << 20),
            quarter_billion().ram(900 << 20),
            Requirements::new(1_000_000, 20, 12),
        ];
        for requirements in all {
            let advice = requirements.advise().unwrap();
            for advised in advice.candidates.iter().filter_map(|it| it.answer.as_ref().ok()) {
                // Filters of a SliceHash are not part of its configuration.
                let is_sliced = advised.config.kind() == SLICED;
                let reads_per_miss = if is_sliced { 1.0 } else { advised.costs.reads_per_miss };
                let expected = OperationCosts { reads_per_miss, ..advised.costs };
                let found = advised.config.operation_costs().unwrap();
                let figures = |it: &OperationCosts| {
                    let reads = [it.reads_per_hit, it.reads_per_miss];
                    [reads, [it.insert_read_bytes, it.insert_write_bytes]].concat()
                };
                for (found, expected) in figures(&found).into_iter().zip(figures(&expected)) {
                    let is_near = (found - expected).abs() <= expected * 0.005;
                    assert!(is_near, "{found} and {expected} of {requirements:?}");
                }
            }
        }
    }

    /// Returns the bytes written for each insert into a table, including those of its log.
    fn written_per_insert(prediction: &Prediction, entries: u64) -> f64 {
        let log_bytes = prediction.config.log_bytes_best();
        let durability = Durability::Every(Duration::from_secs(3600));
        let threads = Threads::Inline;
        let options = VolumeOptions {
            log_bytes,
            durability,
            threads,
            hash_key: Some(42),
            ..VolumeOptions::default()
        };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let table =
            AnyTable::create_with(&volume, "t", &prediction.config, &prediction.options).unwrap();
        let put = |numbers: std::ops::Range<u64>| {
            let keys: Vec<_> = numbers.map(|it| (it.to_le_bytes(), it.to_be_bytes())).collect();
            for batch in keys.chunks(1000) {
                let pairs: Vec<_> =
                    batch.iter().map(|(key, value)| (&key[..], &value[..])).collect();
                table.insert_many(&pairs).unwrap();
            }
            let stats = table.stats();
            stats.data_bytes_written + stats.log_bytes_written
        };
        // At first buffers are flushed before they are full, which spreads later flushes out.
        let before = put(0..entries);
        (put(entries..4 * entries) - before) as f64 / (3 * entries) as f64
    }

    #[test]
    fn as_many_bytes_are_written_as_are_predicted() {
        for (row, table) in registry::tables() {
            let requirements = Requirements::new(1_000_000, 8, 8);
            // A structure for a few entries has no steady state.
            let Ok(prediction) = (table.advise)(&requirements) else { continue };
            let (found, expected) =
                (written_per_insert(&prediction, 100_000), prediction.costs.insert_write_bytes);
            let ratio = found / expected;
            assert!((0.95..1.05).contains(&ratio), "{}: {found} of {expected}", row.name);
        }
    }
}
