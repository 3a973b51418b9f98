//! Engines that have been in use: rounds of changes before the measured ones, the space before and after
//! them, and a check of the results of all changes together.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::json;

use super::{CHECKED, Loading, Session};
use crate::drive::{self, Window};
use crate::figures::{Figures, ratio};
use crate::keys::Picker;
use crate::percentiles::Latency;
use crate::plan::LOAD_BATCH;
use crate::process::DiskBytes;
use crate::report::Case;
use crate::space::Space;
use crate::subject::Status;
use crate::worker::{Counters, Pass};
use crate::workload::Kind;

/// The parts of a round, between which the clock is read, if the time of all rounds is limited.
const PARTS: u64 = 64;

/// A pass of updates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Updates {
    pass: Pass,
    operations: u64,
}

/// The rounds of `--settle`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Settled {
    /// The number of rounds made; a fraction if the time ran out.
    rounds: f64,
    operations: u64,
    /// The seconds, including the wait for background work at the end.
    seconds: f64,
    /// Bytes written for each byte of the caller's entries: the engine's count if it has one, else the kernel's.
    write_amplification: Option<f64>,
    /// The space just after the load.
    before: Space,
    after: Space,
}

impl Settled {
    /// Adds the rounds to the figures of a run after them.
    pub(super) fn put_into(&self, figures: &mut Figures) {
        figures.set("settled_rounds", self.rounds);
        figures.set("file_bytes_per_entry_fresh", self.before.file_bytes_per_entry);
        figures.set("file_bytes_per_entry_settled", self.after.file_bytes_per_entry);
    }
}

impl Session<'_> {
    pub(super) fn update_case(&mut self) -> Result<Case> {
        let loading = self.load_or_open()?;
        let (picker, operations) = (self.picker(&loading), self.plan.operations());
        self.settle_by_updates(&loading, &picker)?;
        let case = self.repeat(self.plan.workload.name(), |session, pass| {
            session.version += 1;
            let pass = session.note_updates(pass, operations);
            session.between_limits(&loading, |subject| {
                drive::overwrite_picked(subject, pass, operations, &picker)
            })
        })?;
        self.check_updates(&loading, &picker)?;
        Ok(case)
    }

    pub(super) fn churn_case(&mut self) -> Result<Case> {
        let loading = self.load_or_open()?;
        let mut window = Window { first: 0, entries: loading.count };
        self.settle(&loading, |session, operations| {
            let pass = session.settling_pass();
            drive::churn(&*loading.subject, pass, operations, &mut window)
        })?;
        self.check_window(&loading, window)?;
        let operations = self.plan.operations();
        let case = self.repeat(self.plan.workload.name(), |session, pass| {
            session.between_limits(&loading, |subject| {
                drive::churn(subject, pass, operations, &mut window)
            })
        })?;
        self.check_window(&loading, window)?;
        Ok(case)
    }

    /// Makes the rounds of `--settle` as updates of picked keys.
    pub(super) fn settle_by_updates(&mut self, loading: &Loading, picker: &Picker) -> Result<()> {
        if self.plan.settle_rounds == 0 {
            return Ok(());
        }
        self.settle(loading, |session, operations| {
            let pass = session.settling_pass();
            let pass = session.note_updates(pass, operations);
            drive::overwrite_picked(&*loading.subject, pass, operations, picker)
        })?;
        self.check_updates(loading, picker)
    }

    /// Returns a pass for the rounds: as for a load, in batches that are not timed.
    fn settling_pass(&mut self) -> Pass {
        let (threads, latency) = (self.loaders(), Latency::Off);
        Pass { latency, threads, ..self.pass(LOAD_BATCH.max(self.plan.batch())) }
    }

    /// Records the writes of a pass of updates, and gives it the present version.
    fn note_updates(&mut self, pass: Pass, operations: u64) -> Pass {
        let pass = Pass { version: self.version, ..pass };
        self.updates.push(Updates { pass, operations });
        pass
    }

    /// Makes the rounds of `--settle` by `work`, which makes a number of changes, and waits for the
    /// background work that they cause.
    fn settle(
        &mut self,
        loading: &Loading,
        mut work: impl FnMut(&mut Self, u64) -> Result<Counters>,
    ) -> Result<()> {
        let (rounds, limit) = (self.plan.settle_rounds, self.plan.settle_time_max);
        if rounds == 0 {
            return Ok(());
        }
        let (subject, parts) = (&*loading.subject, if limit.is_some() { PARTS } else { 1 });
        let before = self.space(loading, loading.count);
        let (status, disk, start) = (subject.status(), DiskBytes::now(), Instant::now());
        let mut changes = 0;
        'rounds: for round in 1..=rounds {
            (self.surroundings.progress)(&format!("settling: round {round} of {rounds}"));
            self.version += 1;
            for operations in split(loading.count, parts) {
                if limit.is_some_and(|limit| start.elapsed() >= limit) {
                    break 'rounds;
                }
                changes += work(self, operations)?.changes;
            }
        }
        subject.settle()?;
        let written = written(&status, &subject.status(), disk);
        let settled = Settled {
            rounds: changes as f64 / loading.count as f64,
            operations: changes,
            seconds: start.elapsed().as_secs_f64(),
            write_amplification: written
                .and_then(|bytes| ratio(bytes as f64, (changes * self.plan.entry_bytes()) as f64)),
            before,
            after: self.space(loading, loading.count),
        };
        self.put("settling", json!(settled));
        self.settled = Some(settled);
        Ok(())
    }

    /// Returns the engine's present space, with `entries` live keys.
    pub(super) fn space(&self, loading: &Loading, entries: u64) -> Space {
        let path = self.maker.path(&self.plan.spec());
        Space::of(path.as_deref(), &loading.subject.status(), entries)
    }

    /// Checks that some of the keys have the values of their last updates, which are drawn again for this.
    fn check_updates(&self, loading: &Loading, picker: &Picker) -> Result<()> {
        let step = (loading.count / CHECKED as u64).max(1);
        let mut versions = vec![0; usize::try_from(loading.count.div_ceil(step))?];
        for &Updates { pass, operations } in &self.updates {
            for thread in 0..pass.threads as u64 {
                let mut picked = drive::picks(pass, picker, thread);
                for _ in 0..pass.share(operations, thread) {
                    let index = picked();
                    if index.is_multiple_of(step) {
                        versions[usize::try_from(index / step)?] = pass.version;
                    }
                }
            }
        }
        let keys = (0..loading.count).step_by(usize::try_from(step)?).map(|it| self.keys.key(it));
        let keys: Vec<u64> = keys.collect();
        let value = |(&key, &version)| self.keys.value(key, version);
        let values: Vec<_> = keys.iter().zip(&versions).map(value).collect();
        check_values(loading, &keys, &values)
    }

    /// Checks that some keys of the window are present, and some removed ones are absent.
    fn check_window(&self, loading: &Loading, window: Window) -> Result<()> {
        let Window { first, entries } = window;
        let live = self.some_keys(first, first + entries)?;
        let mut found = Vec::new();
        match self.kind {
            Kind::Table => {
                let values: Vec<_> = live.iter().map(|&key| self.keys.value(key, 0)).collect();
                check_values(loading, &live, &values)?;
            }
            Kind::Filter | Kind::Neighbors => {
                loading.subject.client()?.get_many(&live, &mut found)?;
                let lost = found.iter().filter(|found| found.is_none()).count();
                let may_lack = self.kind == Kind::Neighbors;
                ensure!(lost == 0 || may_lack, "{lost} of {} live keys are gone", live.len());
            }
        }
        let removed = self.some_keys(0, first)?;
        let false_positives_max = match self.kind {
            Kind::Table => 0.0,
            // Five times the expected number, and some.
            Kind::Filter => 5.0 * self.plan.filter.rate * removed.len() as f64 + 50.0,
            // A removed document may have candidates, and its client expects itself among them.
            Kind::Neighbors => return Ok(()),
        };
        found.clear();
        loading.subject.client()?.get_many(&removed, &mut found)?;
        let answers = removed.iter().zip(&found);
        let there: Vec<_> = answers.filter(|answer| answer.1.is_some()).collect();
        let Some(&(key, value)) = there.first() else { return Ok(()) };
        ensure!(
            there.len() as f64 <= false_positives_max,
            "{} of {} keys that were removed are there, such as the insert of index {} with {value:x?}",
            there.len(),
            removed.len(),
            self.keys.index_of(*key)
        );
        Ok(())
    }

    /// Returns some of the keys of these indices, spread over all of them.
    fn some_keys(&self, first: u64, end: u64) -> Result<Vec<u64>> {
        let step = usize::try_from((end - first) / CHECKED as u64)?.max(1);
        Ok((first..end).step_by(step).map(|index| self.keys.key(index)).collect())
    }
}

/// Splits `count` into `parts` parts that are as equal as possible.
fn split(count: u64, parts: u64) -> impl Iterator<Item = u64> {
    let until = move |part| u128::from(count) * u128::from(part) / u128::from(parts);
    (0..parts).map(move |part| (until(part + 1) - until(part)) as u64).filter(|&part| part > 0)
}

/// Returns the bytes written between two times: by the engine's count, else by the kernel's.
fn written(before: &Status, after: &Status, disk: Option<DiskBytes>) -> Option<u64> {
    if let Some((now, then)) = after.table.as_ref().zip(before.table.as_ref()) {
        let all = |it: &nandex::TableStats| it.data_bytes_written + it.log_bytes_written;
        return Some(all(now) - all(then));
    }
    if let Some((now, then)) = after.written.zip(before.written) {
        return Some(now.data + now.log - then.data - then.log);
    }
    Some(DiskBytes::now()?.since(disk?).written)
}

/// Looks up keys, which must have these values: tables here refuse more keys or grow, and evict none.
fn check_values(loading: &Loading, keys: &[u64], values: &[u64]) -> Result<()> {
    let mut found = Vec::new();
    loading.subject.client()?.get_many(keys, &mut found)?;
    ensure!(found.len() == keys.len(), "{} answers to {} lookups", found.len(), keys.len());
    for ((key, value), found) in keys.iter().zip(values).zip(found) {
        ensure!(
            found == Some(*value),
            "key {key:#018x} must have the value {value:#018x} of its last change, but has {found:x?}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_round_is_split_without_loss_and_without_empty_parts() {
        for (count, parts) in [(100, 1), (100, 64), (3, 64), (64, 64)] {
            let parts: Vec<_> = split(count, parts).collect();
            assert_eq!(parts.iter().sum::<u64>(), count);
            assert!(parts.iter().all(|&part| part > 0));
        }
    }
}
