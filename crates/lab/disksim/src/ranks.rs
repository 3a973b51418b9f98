//! The rows of a plane by their number of valid pages, for finding the emptiest at once.

/// A set of rows for each number of valid pages, one bit a row.
#[derive(Clone, Debug)]
pub(super) struct Ranks {
    /// Words of 64 rows in each set.
    words: usize,
    bits: Vec<u64>,
    counts: Vec<u32>,
    /// The first set that may have a row: no set before it has one.
    lowest: usize,
}

impl Ranks {
    /// Creates empty sets for up to `last` valid pages and `rows` rows. It takes `last + 1` bits a row.
    pub fn new(last: u32, rows: u32) -> Self {
        let (ranks, words) = (last as usize + 1, rows.div_ceil(64) as usize);
        Self { words, bits: vec![0; ranks * words], counts: vec![0; ranks], lowest: ranks }
    }

    pub fn insert(&mut self, rank: u32, row: u32) {
        let rank = rank as usize;
        self.bits[rank * self.words + row as usize / 64] |= 1 << (row % 64);
        self.counts[rank] += 1;
        self.lowest = self.lowest.min(rank);
    }

    pub fn remove(&mut self, rank: u32, row: u32) {
        let rank = rank as usize;
        let word = &mut self.bits[rank * self.words + row as usize / 64];
        debug_assert!(*word >> (row % 64) & 1 == 1, "a row is where it was put");
        *word &= !(1 << (row % 64));
        self.counts[rank] -= 1;
        while self.counts.get(self.lowest) == Some(&0) {
            self.lowest += 1;
        }
    }

    /// Returns whether any row has an invalid page.
    pub fn has_below_last(&self) -> bool {
        self.lowest + 1 < self.counts.len()
    }

    /// Returns the first accepted row, from the emptiest on and in each set from the highest row down, of
    /// those that are not fully valid.
    pub fn find(&self, mut will_do: impl FnMut(u32) -> bool) -> Option<u32> {
        (self.lowest..self.counts.len() - 1).filter(|&rank| self.counts[rank] > 0).find_map(
            |rank| {
                let words = &self.bits[rank * self.words..(rank + 1) * self.words];
                words.iter().enumerate().rev().find_map(|(index, &word)| {
                    let mut word = word;
                    while word != 0 {
                        let bit = word.ilog2();
                        let row = index as u32 * 64 + bit;
                        if will_do(row) {
                            return Some(row);
                        }
                        word &= !(1 << bit);
                    }
                    None
                })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Ranks;

    #[test]
    fn of_the_emptiest_rows_the_highest_is_found_first() {
        let mut ranks = Ranks::new(3, 130);
        assert!(!ranks.has_below_last());
        for (rank, row) in [(3, 129), (2, 5), (1, 64), (1, 63), (1, 128), (2, 129)] {
            ranks.insert(rank, row);
        }
        let mut seen = Vec::new();
        assert_eq!(
            ranks.find(|row| {
                seen.push(row);
                false
            }),
            None
        );
        assert_eq!(seen, [128, 64, 63, 129, 5]);
        for row in [64, 128, 63] {
            ranks.remove(1, row);
        }
        assert_eq!(ranks.find(|_| true), Some(129));
        ranks.insert(0, 7);
        assert_eq!(ranks.find(|_| true), Some(7));
    }

    #[test]
    fn rows_with_all_pages_valid_are_not_found() {
        let mut ranks = Ranks::new(3, 64);
        ranks.insert(3, 1);
        assert!(!ranks.has_below_last());
        assert_eq!(ranks.find(|_| true), None);
    }
}
