//! The most frequent of a sequence of keys.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A key with its count, in ascending order of the count; among equal counts, the smaller key is greater.
type Counted = (i64, Reverse<Vec<u8>>);

/// Keeps, in RAM, the `count` keys with the greatest counts among those that it is offered.
///
/// ```
/// let mut top = nandex::counting::TopKeys::new(2);
/// for (key, sum) in [("a", 1), ("b", 7), ("c", -2), ("d", 7)] {
///     top.offer(key.as_bytes(), sum);
/// }
/// assert_eq!(top.into_sorted(), [(b"b".to_vec(), 7), (b"d".to_vec(), 7)]);
/// ```
#[derive(Debug)]
pub struct TopKeys {
    count: usize,
    /// The smallest of the kept keys is on top.
    kept: BinaryHeap<Reverse<Counted>>,
}

impl TopKeys {
    /// Creates an empty collection.
    #[must_use]
    pub const fn new(count: usize) -> Self {
        Self { count, kept: BinaryHeap::new() }
    }

    /// Adds a key that was not offered before, if its sum is above 0 and among the greatest so far.
    pub fn offer(&mut self, key: &[u8], sum: i64) {
        let least = self.kept.peek().map_or(0, |Reverse((least, _))| *least);
        if sum <= 0 || self.kept.len() == self.count && sum < least {
            return;
        }
        self.kept.push(Reverse((sum, Reverse(key.to_vec()))));
        if self.kept.len() > self.count {
            self.kept.pop();
        }
    }

    /// Returns the keys and their counts, greatest first; among equal counts the smaller key first.
    #[must_use]
    pub fn into_sorted(self) -> Vec<(Vec<u8>, u64)> {
        let sorted = self.kept.into_sorted_vec().into_iter();
        sorted.map(|Reverse((sum, Reverse(key)))| (key, sum.unsigned_abs())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_counts_the_smaller_keys_are_kept_whatever_the_order() {
        let entries: Vec<_> =
            (0..100_u8).map(|name| ([name], i64::from(name) * 7 % 13 - 3)).collect();
        let mut expected: Vec<_> = entries.iter().filter(|it| it.1 > 0).copied().collect();
        expected.sort_by_key(|(key, sum)| (Reverse(*sum), *key));
        for count in [0, 1, 7, 30, 200] {
            for rotated in [0, 31, 77] {
                let mut top = TopKeys::new(count);
                let (late, early) = entries.split_at(rotated);
                early.iter().chain(late).for_each(|(key, sum)| top.offer(key, *sum));
                let best = expected.iter().take(count);
                let best: Vec<_> =
                    best.map(|(key, sum)| (key.to_vec(), sum.unsigned_abs())).collect();
                assert_eq!(top.into_sorted(), best, "{count} of those from {rotated} on");
            }
        }
    }
}
