//! The cost of a fan-out under the merge policy: a formula, and the policy itself on counts alone.
//!
//! A full buffer is merged with every level above the first that has space for all of it, into that level;
//! level i has space for `fan-out^(i+1)` buffers. With one level, buffer number m makes a run of m buffers,
//! so that of n buffers a key is written (n + 1) / 2 times on average.

/// The cost of a number of buffers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// The number of times that a key is written to flash, on average.
    pub writes: f64,
    /// The number of levels that are not empty, on average over the buffers: the reads of a lookup of an
    /// absent key.
    pub reads: f64,
    /// The maximum number of levels that are not empty.
    pub reads_max: u32,
    /// The number of levels that are not empty at the end.
    pub reads_end: u32,
}

/// Merges `buffers` buffers by the policy.
#[must_use]
pub fn cost(buffers: u64, fan_out: Option<u32>) -> Cost {
    let mut levels: Vec<u64> = Vec::new();
    let (mut written, mut reads, mut reads_max) = (0_u64, 0_u64, 0_u32);
    for _ in 0..buffers {
        let level = first_with_space(&levels, fan_out);
        levels.resize(levels.len().max(level + 1), 0);
        let run = 1 + levels[..=level].iter().sum::<u64>();
        levels[..=level].fill(0);
        levels[level] = run;
        written += run;
        reads += u64::from(used(&levels));
        reads_max = reads_max.max(used(&levels));
    }
    let count = buffers.max(1) as f64;
    Cost {
        writes: written as f64 / count,
        reads: reads as f64 / count,
        reads_max,
        reads_end: used(&levels),
    }
}

fn used(levels: &[u64]) -> u32 {
    levels.iter().map(|run| u32::from(*run > 0)).sum()
}

fn first_with_space(levels: &[u64], fan_out: Option<u32>) -> usize {
    let Some(fan_out) = fan_out else { return 0 };
    let mut held = 1_u64;
    let mut capacity = 1_u64;
    let mut level = 0;
    loop {
        held += levels.get(level).copied().unwrap_or(0);
        capacity = capacity.saturating_mul(fan_out.into());
        if held <= capacity {
            return level;
        }
        level += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_level_writes_half_as_often_as_there_are_buffers() {
        let cost = cost(54, None);
        assert_eq!((cost.writes, cost.reads, cost.reads_max), (27.5, 1.0, 1));
    }

    #[test]
    fn fan_out_two_is_the_sequence_of_the_structures_own_test() {
        // Runs of 1, 2, 3, 1, 2, 6, 1, 2, 3, 1 buffers, as levels of 2, 4 and 8 can hold them.
        let cost = cost(10, Some(2));
        assert_eq!(cost.writes, 22.0 / 10.0);
        assert_eq!((cost.reads_max, cost.reads_end), (3, 3));
    }

    #[test]
    fn wider_levels_write_more_and_read_less() {
        let costs: Vec<_> = [2, 4, 8, 16].map(|fan_out| cost(200, Some(fan_out))).into();
        assert!(costs.is_sorted_by(|a, b| a.reads > b.reads), "{costs:?}");
        assert!(costs[0].writes < costs[3].writes && costs[3].writes < cost(200, None).writes);
    }
}
