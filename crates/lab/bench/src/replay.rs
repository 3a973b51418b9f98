//! Cache traces, and the hit ratios of other caches on them: LRU, S3-FIFO without sets, and the optimum.
//!
//! A trace is a list of requests as text, in the format of the ARC paper (FAST'03): in each line the first
//! block, the number of blocks, and two numbers that are ignored here.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Returns the share of requests that a cache of a number of entries answers.
pub type HitRatio = fn(&[u32], usize) -> f64;

/// The caches that a trace is replayed through, by name.
pub const RIVALS: [(&str, HitRatio); 3] =
    [("LRU", lru), ("S3-FIFO", s3_fifo), ("optimal", optimal)];

/// The blocks of a trace in the order of their requests, numbered from 0 in the order of their first request.
#[derive(Debug)]
pub struct Trace {
    /// The number of each requested block.
    pub requests: Vec<u32>,
    /// The number of different blocks.
    pub blocks: u32,
}

impl Trace {
    /// Reads the first `requests_max` requests of a file.
    ///
    /// # Errors
    /// Fails for a file that cannot be read; a line that is no request, with its number; no request at all.
    pub fn read(path: &Path, requests_max: usize) -> Result<Self> {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
        let (mut numbers, mut requests) = (HashMap::new(), Vec::new());
        for (line, at) in text.lines().zip(1..) {
            let (first, count) = request(line).with_context(|| {
                format!("{shown}, line {at}: {line:?} is no request; expected `FIRST COUNT ..`")
            })?;
            for block in first..first.saturating_add(count) {
                if requests.len() == requests_max {
                    break;
                }
                let next = u32::try_from(numbers.len())?;
                requests.push(*numbers.entry(block).or_insert(next));
            }
        }
        ensure!(!requests.is_empty(), "{shown} has no request");
        Ok(Self { requests, blocks: u32::try_from(numbers.len())? })
    }
}

/// Returns the first block of a request, and the number of blocks.
fn request(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_whitespace().map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

fn ratio(hits: usize, requests: &[u32]) -> f64 {
    hits as f64 / requests.len() as f64
}

/// Evicts the least recently used block.
fn lru(requests: &[u32], entries: usize) -> f64 {
    let (mut used_at, mut by_time, mut hits) = (HashMap::new(), BTreeSet::new(), 0);
    for (now, block) in requests.iter().enumerate() {
        if let Some(before) = used_at.insert(*block, now) {
            by_time.remove(&(before, *block));
            hits += 1;
        }
        by_time.insert((now, *block));
        if by_time.len() > entries {
            let (_, oldest) = by_time.pop_first().expect("it has one more than it may");
            used_at.remove(&oldest);
        }
    }
    ratio(hits, requests)
}

/// Evicts the block whose next use is the latest (Belady's MIN), which is optimal among caches that are
/// filled at each miss.
fn optimal(requests: &[u32], entries: usize) -> f64 {
    let mut next_use = vec![usize::MAX; requests.len()];
    let mut later = HashMap::new();
    for (at, block) in requests.iter().enumerate().rev() {
        next_use[at] = later.insert(*block, at).unwrap_or(usize::MAX);
    }
    let (mut cached, mut by_next, mut hits) = (HashMap::new(), BTreeSet::new(), 0);
    for (block, next) in requests.iter().zip(next_use) {
        if let Some(expected) = cached.insert(*block, next) {
            by_next.remove(&(expected, *block));
            hits += 1;
        }
        by_next.insert((next, *block));
        if by_next.len() > entries {
            let (_, farthest) = by_next.pop_last().expect("it has one more than it may");
            cached.remove(&farthest);
        }
    }
    ratio(hits, requests)
}

/// S3-FIFO with one queue for all, as published: a tenth is small, and ghosts are as many as the main
/// entries.
#[derive(Default)]
struct S3Fifo {
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    ghosts: VecDeque<u32>,
    uses: HashMap<u32, u8>,
    /// The number of a block's entries among the ghosts.
    is_ghost: HashMap<u32, u32>,
}

impl S3Fifo {
    fn evict(&mut self, entries: usize) {
        let small_max = (entries / 10).max(1);
        if self.small.len() < small_max && !self.main.is_empty() {
            return self.evict_main();
        }
        while let Some(block) = self.small.pop_front() {
            if self.uses[&block] <= 1 {
                self.uses.remove(&block);
                return self.remember(block, entries - small_max);
            }
            self.uses.insert(block, 0);
            self.main.push_back(block);
            if self.main.len() > entries - small_max {
                return self.evict_main();
            }
        }
        self.evict_main();
    }

    fn evict_main(&mut self) {
        while let Some(block) = self.main.pop_front() {
            let uses = self.uses.get_mut(&block).expect("a cached block has uses");
            if *uses == 0 {
                self.uses.remove(&block);
                return;
            }
            *uses -= 1;
            self.main.push_back(block);
        }
    }

    fn remember(&mut self, block: u32, most: usize) {
        self.ghosts.push_back(block);
        *self.is_ghost.entry(block).or_insert(0) += 1;
        while self.ghosts.len() > most {
            let Some(oldest) = self.ghosts.pop_front() else { return };
            let left = self.is_ghost.get_mut(&oldest).expect("each ghost is counted");
            *left -= 1;
            if *left == 0 {
                self.is_ghost.remove(&oldest);
            }
        }
    }
}

fn s3_fifo(requests: &[u32], entries: usize) -> f64 {
    let (mut cache, mut hits) = (S3Fifo::default(), 0);
    for block in requests {
        if let Some(uses) = cache.uses.get_mut(block) {
            *uses = (*uses + 1).min(3);
            hits += 1;
            continue;
        }
        while cache.uses.len() >= entries {
            cache.evict(entries);
        }
        let is_back = cache.is_ghost.contains_key(block);
        if is_back { &mut cache.main } else { &mut cache.small }.push_back(*block);
        cache.uses.insert(*block, 0);
    }
    ratio(hits, requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_one_longer_than_the_cache_is_the_worst_for_lru_and_not_for_others() {
        let requests: Vec<u32> = (0..1000).flat_map(|_| 0..11).collect();
        assert_eq!(lru(&requests, 10), 0.0);
        // Of each eleven requests, ten are hits.
        assert!((optimal(&requests, 10) - 0.9).abs() < 0.01, "{}", optimal(&requests, 10));
        assert_eq!(lru(&requests, 11), optimal(&requests, 11));
    }

    #[test]
    fn nothing_beats_the_optimum_and_a_scan_hurts_s3_fifo_less_than_lru() {
        // One of thirty hot blocks, chosen at random, and two of a scan.
        let hot = |at: u32| [crate::keys::mix(at.into()) as u32 % 30, 100 + at, 100_000 + at];
        let requests: Vec<u32> = (0..20_000).flat_map(hot).collect();
        let [lru, s3_fifo, optimal] = RIVALS.map(|(_, of)| of(&requests, 32));
        assert!(s3_fifo > lru + 0.05 && optimal >= s3_fifo, "{lru} {s3_fifo} {optimal}");
    }

    #[test]
    fn a_trace_is_read_and_what_is_none_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.lis");
        fs::write(&path, "70 3 0 0\n71 1 0 1\n5 1 0 2\n").unwrap();
        let trace = Trace::read(&path, 100).unwrap();
        assert_eq!((trace.requests, trace.blocks), (vec![0, 1, 2, 1, 3], 4));
        assert_eq!(Trace::read(&path, 2).unwrap().requests, [0, 1]);
        fs::write(&path, "70 3\nx\n").unwrap();
        let error = format!("{:#}", Trace::read(&path, 100).unwrap_err());
        assert!(error.contains("line 2") && error.contains("no request"), "{error}");
        fs::write(&path, "").unwrap();
        assert!(Trace::read(&path, 100).is_err());
    }
}
