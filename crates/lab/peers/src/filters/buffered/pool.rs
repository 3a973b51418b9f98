//! Waiting updates, by region, in chunks from one common pool.
//!
//! A chunk is 64 words: the previous chunk in its region's list, then 63 updates. A region has one word, its
//! tail: the position of the next update. The division costs half a chunk per region.

/// Words of a chunk, including the link.
const CHUNK: usize = 64;
/// The link of a first chunk, and the free list's end.
const NONE: u32 = u32::MAX;

/// The pool.
pub struct Pool {
    words: Vec<u32>,
    /// The position of the next update of each region. 0 for none yet; a multiple of a chunk if the previous
    /// chunk is full.
    tails: Vec<u32>,
    free: u32,
    free_chunks: usize,
    low_chunks: usize,
}

impl Pool {
    /// Creates a pool of about `bytes` bytes for `regions` regions.
    pub fn new(bytes: usize, regions: u64) -> Self {
        let chunks = (bytes / 4 / CHUNK).clamp(1, (u32::MAX as usize) / CHUNK - 1);
        let mut words = vec![0; chunks * CHUNK];
        for chunk in 0..chunks {
            words[chunk * CHUNK] = if chunk + 1 < chunks { chunk as u32 + 1 } else { NONE };
        }
        let tails = vec![0; usize::try_from(regions).expect("a region has a word in RAM")];
        let low_chunks = chunks / super::LOW;
        Self { words, tails, free: 0, free_chunks: chunks, low_chunks }
    }

    /// Adds an update; refuses if no chunk is free.
    #[inline]
    pub fn push(&mut self, region: u32, entry: u32) -> bool {
        let mut tail = self.tails[region as usize] as usize;
        if tail.is_multiple_of(CHUNK) {
            let Some(chunk) = self.take() else { return false };
            let link = if tail == 0 { NONE } else { (tail / CHUNK - 1) as u32 };
            tail = chunk * CHUNK;
            self.words[tail] = link;
            tail += 1;
        }
        self.words[tail] = entry;
        self.tails[region as usize] = (tail + 1) as u32;
        true
    }

    /// Takes all updates of a region, in no order.
    pub fn drain(&mut self, region: u32, out: &mut Vec<u32>) {
        let tail = std::mem::take(&mut self.tails[region as usize]) as usize;
        if tail == 0 {
            return;
        }
        let (mut chunk, mut end) = ((tail - 1) / CHUNK, tail);
        loop {
            let start = chunk * CHUNK;
            out.extend_from_slice(&self.words[start + 1..end]);
            let before = self.words[start];
            self.words[start] = self.free;
            self.free = chunk as u32;
            self.free_chunks += 1;
            if before == NONE {
                return;
            }
            chunk = before as usize;
            end = (chunk + 1) * CHUNK;
        }
    }

    /// Returns whether this update is waiting.
    pub fn contains(&self, region: u32, entry: u32) -> bool {
        let tail = self.tails[region as usize] as usize;
        if tail == 0 {
            return false;
        }
        let (mut chunk, mut end) = ((tail - 1) / CHUNK, tail);
        loop {
            let start = chunk * CHUNK;
            if self.words[start + 1..end].contains(&entry) {
                return true;
            }
            let before = self.words[start];
            if before == NONE {
                return false;
            }
            chunk = before as usize;
            end = (chunk + 1) * CHUNK;
        }
    }

    /// Returns whether any updates are waiting for this region.
    pub fn waits(&self, region: u32) -> bool {
        self.tails[region as usize] != 0
    }

    /// Returns whether no updates are waiting at all.
    pub fn is_empty(&self) -> bool {
        self.free_chunks * CHUNK == self.words.len()
    }

    /// Returns whether it is nearly full.
    pub fn is_low(&self) -> bool {
        self.free_chunks <= self.low_chunks
    }

    fn take(&mut self) -> Option<usize> {
        if self.free == NONE {
            return None;
        }
        let chunk = self.free as usize;
        self.free = self.words[chunk * CHUNK];
        self.free_chunks -= 1;
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_there_until_it_is_taken_and_a_full_pool_refuses() {
        let mut pool = Pool::new(10 * CHUNK * 4, 3);
        let mut put = vec![Vec::new(); 3];
        for entry in 0..2000 {
            let region = entry % 5 % 3;
            if pool.push(region, entry) {
                put[region as usize].push(entry);
            }
        }
        assert!(pool.is_low());
        let held: usize = put.iter().map(Vec::len).sum();
        assert!((10 * 63 - 3 * 63..=10 * 63).contains(&held), "{held}");
        for (region, put) in put.iter().enumerate() {
            assert!(put.iter().all(|&entry| pool.contains(region as u32, entry)));
            assert!(!pool.contains(region as u32, 5000));
            let mut taken = Vec::new();
            pool.drain(region as u32, &mut taken);
            taken.sort_unstable();
            assert_eq!(&taken, put);
            assert!(!pool.waits(region as u32));
        }
        assert!(pool.is_empty());
        assert!((0..63 * 10).all(|entry| pool.push(1, entry)) && !pool.push(1, 7));
    }
}
