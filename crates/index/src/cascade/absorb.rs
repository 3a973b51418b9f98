//! Adding all that another filter holds.

use std::sync::Arc;

use nandex_store::run::{RunReader, Source};

use super::merge::More;
use super::part::Part;
use super::{Entry, Inner};
use crate::{Error, Result};

/// What one run of another filter has for a part of this one, counted from the part's first fingerprint.
struct Window {
    reader: RunReader,
    /// What its fingerprints are counted from, and the part's own.
    first: u64,
    part_first: u64,
    part_end: u64,
    batch: Vec<Entry>,
}

impl Source for Window {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        let start = out.len();
        loop {
            self.batch.clear();
            if !self.reader.next_batch(&mut self.batch)? {
                return Ok(false);
            }
            for Entry { fingerprint, count } in &self.batch {
                let fingerprint = fingerprint + self.first;
                if (self.part_first..self.part_end).contains(&fingerprint) {
                    out.push(Entry { fingerprint: fingerprint - self.part_first, count: *count });
                }
            }
            if out.len() > start {
                return Ok(true);
            }
        }
    }
}

impl Inner {
    pub(super) fn absorb(&self, others: &[&Self]) -> Result<()> {
        others.iter().try_for_each(|other| self.check_alike(other))?;
        self.save()?;
        others.iter().try_for_each(|other| other.save())?;
        let shares = |part: &Part| {
            let mut more = More::default();
            others.iter().try_for_each(|other| self.add_share(&mut more, part, other))?;
            Ok(more)
        };
        self.each_part(|part| self.merge_all(part, &|| shares(part)))
    }

    /// Adds what another filter has for a part.
    fn add_share(&self, more: &mut More, part: &Part, other: &Self) -> Result<()> {
        let part_end = self.split.first(u64::from(part.number) + 1);
        for theirs in &other.parts {
            let their_end = other.split.first(u64::from(theirs.number) + 1);
            let (from, to) = (part.first.max(theirs.first), part_end.min(their_end));
            if from >= to {
                continue;
            }
            for run in theirs.levels().all() {
                let split = run.shape().split();
                let slot = |fingerprint: u64| split.quotient(fingerprint - theirs.first);
                let slots = slot(from)..slot(to - 1) + 1;
                let share = (slots.end - slots.start) as f64 / run.slot_pages() as f64;
                let reader = RunReader::of_slots(&*other.device, run, slots, self.io_chunks())?;
                // As far as fingerprints are spread evenly.
                more.entries += (run.entries() as f64 * share).ceil() as u64;
                more.count_bytes += (run.count_bytes() as f64 * share).ceil() as u64;
                more.pages += (run.used_pages() as f64 * share).ceil() as u64;
                let (first, part_first, batch) = (theirs.first, part.first, Vec::new());
                more.sources.push(Box::new(Window { reader, first, part_first, part_end, batch }));
                more.runs.push(Arc::clone(run));
            }
        }
        Ok(())
    }

    fn check_alike(&self, other: &Self) -> Result<()> {
        let refuse = |field, reason| Err(Error::Config { field, reason });
        if std::ptr::eq(self, other) {
            return refuse("other", "a filter cannot absorb itself".into());
        }
        let (ours, theirs) = (self.universe.size(), other.universe.size());
        if ours != theirs {
            let reason = format!(
                "{theirs} fingerprints there, {ours} here; only filters made for the same keys and rate merge"
            );
            return refuse("universe", reason);
        }
        let [one, two] = [self, other].map(|it| (it.hasher.kind(), it.hasher.key()));
        if one != two {
            let reason =
                "the volumes hash keys differently; create both with one hash and one hash key";
            return refuse("hash_key", reason.into());
        }
        Ok(())
    }
}
