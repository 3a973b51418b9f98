//! Adding the contents of another filter.

use std::sync::Arc;

use nandex_store::run::{RunReader, Sorted, Source};

use super::merge::ExtraSources;
use super::{Entry, Inner};
use crate::{Error, Result};

/// The contents of one run or buffer of another filter for a part of this one, counted from the part's first
/// fingerprint.
struct Window {
    source: Box<dyn Source>,
    /// The first fingerprint of its own numbering, and the part's first one.
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
            if !self.source.next_batch(&mut self.batch)? {
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
        self.each_part(|part| {
            self.merge_all(part, &|| {
                let mut extra = ExtraSources::default();
                others.iter().try_for_each(|other| self.add_share(&mut extra, part, other))?;
                Ok(extra)
            })
        })
    }

    /// Adds the contents of another filter for a part: the buffers and the runs of each of its parts that share
    /// fingerprints with it, as they are at one moment.
    fn add_share(&self, extra: &mut ExtraSources, part: usize, other: &Self) -> Result<()> {
        let ours = self.layout.fingerprints(part);
        for theirs in 0..other.partitions.len() {
            let all = other.layout.fingerprints(theirs);
            let (from, to) = (ours.start.max(all.start), ours.end.min(all.end));
            if from >= to {
                continue;
            }
            let window = |source: Box<dyn Source>| {
                let (first, part_first, part_end) = (all.start, ours.start, ours.end);
                Window { source, first, part_first, part_end, batch: Vec::new() }
            };
            let (buffers, levels) = other.contents_of(theirs)?;
            for buffer in buffers {
                extra.size.entries += buffer.len() as u64;
                extra.sources.push(Box::new(window(Box::new(Sorted::new(buffer)))));
            }
            for run in levels.readable() {
                let split = run.shape().split();
                let slot = |fingerprint: u64| split.quotient(fingerprint - all.start);
                let slots = slot(from)..slot(to - 1) + 1;
                // This assumes that fingerprints are spread evenly.
                let share = (slots.end - slots.start) as f64 / run.slot_pages() as f64;
                let of = |all: u64| (all as f64 * share).ceil() as u64;
                extra.size.entries += of(run.entries());
                extra.size.count_bytes += of(run.count_bytes());
                extra.pages += of(run.used_pages());
                let (device, chunks) = (other.volume.device(), self.layout.runs.chunks);
                let reader = RunReader::of_slots(&**device, run, slots, chunks)?;
                extra.sources.push(Box::new(window(Box::new(reader))));
                extra.runs.push(Arc::clone(run));
            }
        }
        Ok(())
    }

    fn check_alike(&self, other: &Self) -> Result<()> {
        let refuse = |field, reason| Err(Error::Config { field, reason });
        if std::ptr::eq(self, other) {
            return refuse("other", "a filter cannot absorb itself".into());
        }
        let (ours, theirs) = (self.layout.universe.size(), other.layout.universe.size());
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
