//! The latest updates, in lists by the first bits of their fingerprints. An update is appended to its list without any
//! search, so inserts do not wait for a cache.

use nandex_store::run::Entry;

use super::shape::BufferShape;

/// The number of times that the lists grow until they are full.
const GROWTH_STEPS: usize = 4;

/// Recent updates in the order of their lists, and within one in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    shape: BufferShape,
    /// The number of updates in each list, and in all.
    lens: Vec<u16>,
    len: usize,
    /// Updates that each list has space for.
    list_max: usize,
    /// Whether any of them has a count below zero.
    pub has_removals: bool,
    /// The code of each update: the low 32 bits, and the high ones if there are more.
    low: Vec<u32>,
    high: Vec<u32>,
}

impl Recent {
    pub fn new(shape: BufferShape) -> Self {
        let (lens, low, high) = (Vec::new(), Vec::new(), Vec::new());
        Self { shape, lens, len: 0, list_max: 0, has_removals: false, low, high }
    }

    /// Updates in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn list_of(&self, fingerprint: u64) -> usize {
        (fingerprint >> self.shape.rest_bits) as usize
    }

    #[inline]
    fn code(&self, index: usize) -> u64 {
        let high = if self.shape.is_wide() { u64::from(self.high[index]) << 32 } else { 0 };
        u64::from(self.low[index]) | high
    }

    #[inline]
    fn set_code(&mut self, index: usize, code: u64) {
        self.low[index] = code as u32;
        if self.shape.is_wide() {
            self.high[index] = (code >> 32) as u32;
        }
    }

    /// The positions of a list's updates.
    fn places(&self, list: usize) -> std::ops::Range<usize> {
        let first = list * self.list_max;
        first..first + self.lens.get(list).map_or(0, |len| usize::from(*len))
    }

    /// Returns the amount that it adds to a fingerprint's count.
    pub fn count(&self, fingerprint: u64) -> i64 {
        let rest = self.shape.rest_of(fingerprint);
        let places = self.places(self.list_of(fingerprint));
        let counts = self.shape.count_bits;
        places
            .map(|index| self.code(index))
            .filter(|code| code >> counts == rest)
            .map(|code| self.shape.count_in(code))
            .sum()
    }

    /// Appends an update whose count fits a code. Returns false, and appends nothing, if there is no space in its list.
    #[inline]
    pub fn push(&mut self, fingerprint: u64, count: i64) -> bool {
        let list = self.list_of(fingerprint);
        let len = self.lens.get(list).map_or(0, |len| usize::from(*len));
        if len == self.list_max && !self.grow() {
            return false;
        }
        let code = self.shape.code(self.shape.rest_of(fingerprint), count);
        self.set_code(list * self.list_max + len, code);
        self.lens[list] += 1;
        self.len += 1;
        self.has_removals |= count < 0;
        true
    }

    /// Adds up the updates of a fingerprint's full list by fingerprint. Returns whether that made space; amounts that
    /// no code can express go to `rest`.
    pub fn add_up(&mut self, fingerprint: u64, mut rest: impl FnMut(u64, i64)) -> bool {
        let list = self.list_of(fingerprint);
        let mut codes = Vec::new();
        self.codes(list, &mut codes);
        codes.sort_unstable();
        let mut kept = Vec::with_capacity(codes.len());
        let bits = self.shape.count_bits;
        for equal in codes.chunk_by(|one, other| one >> bits == other >> bits) {
            let count: i64 = equal.iter().map(|code| self.shape.count_in(*code)).sum();
            let (copies, each) = self.shape.copies(count);
            kept.extend(std::iter::repeat_n(self.shape.code(equal[0] >> bits, each), copies));
            let more = count - each * copies as i64;
            if more != 0 {
                rest((list as u64) << self.shape.rest_bits | equal[0] >> bits, more);
            }
        }
        let has_space = kept.len() <= codes.len() / 4 * 3;
        self.replace(list, &kept);
        has_space
    }

    /// Makes space in all lists, unless they have reached their limit.
    #[cold]
    fn grow(&mut self) -> bool {
        if self.list_max == self.shape.list_max {
            return false;
        }
        let step = self.shape.list_max.div_ceil(GROWTH_STEPS);
        let (before, list_max) = (self.list_max, (self.list_max + step).min(self.shape.list_max));
        self.lens.resize(self.shape.lists, 0);
        let spread = |codes: &mut Vec<u32>| {
            let mut more = vec![0; self.shape.lists * list_max];
            let lists = codes.chunks(before.max(1)).zip(more.chunks_mut(list_max));
            lists.for_each(|(codes, more)| more[..codes.len()].copy_from_slice(codes));
            *codes = more;
        };
        if self.shape.is_wide() {
            spread(&mut self.high);
        }
        spread(&mut self.low);
        self.list_max = list_max;
        true
    }

    /// The number of lists that have, or had, updates.
    pub fn lists(&self) -> usize {
        self.lens.len()
    }

    /// Appends the codes of a list.
    pub fn codes(&self, list: usize, out: &mut Vec<u64>) {
        out.extend(self.places(list).map(|index| self.code(index)));
    }

    /// Replaces the codes of a list by fewer ones.
    pub fn replace(&mut self, list: usize, codes: &[u64]) {
        let places = self.places(list);
        self.len -= places.len() - codes.len();
        self.lens[list] = codes.len() as u16;
        places.zip(codes).for_each(|(index, code)| self.set_code(index, *code));
    }

    /// Returns all updates by ascending fingerprints. A fingerprint may occur several times.
    pub fn sorted(&self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(self.len);
        let mut codes = Vec::new();
        for list in 0..self.lists() {
            codes.clear();
            self.codes(list, &mut codes);
            codes.sort_unstable();
            let first = (list as u64) << self.shape.rest_bits;
            let entry = |code: &u64| Entry {
                fingerprint: first | code >> self.shape.count_bits,
                count: self.shape.count_in(*code),
            };
            entries.extend(codes.iter().map(entry));
        }
        entries
    }

    /// Drops all updates, and frees the RAM that they took.
    pub fn clear(&mut self) {
        *self = Self::new(self.shape);
    }

    /// RAM in bytes.
    pub fn ram_bytes(&self) -> usize {
        self.lens.capacity() * 2 + (self.low.capacity() + self.high.capacity()) * 4
    }
}
