//! Writing a page of a run: as many entries as fit, in the fewest bytes of the format.

use super::Entry;
use super::bits::{PACKED_BITS_MAX, mask};
use super::counts::{self, CountKind, CountSizes, Exception};
use super::page::{HEAD_BYTES, PAGE_ENTRIES_MAX, PARTS, SPACE_BYTES, part};
use crate::bytes::{get_u64, put_u16, put_u64};

/// The content of a filled page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Filled {
    pub(super) entries: usize,
    pub(super) count_bytes: usize,
}

/// The places of a page's fingerprint parts.
#[derive(Clone, Copy)]
struct Layout {
    low_bits: u32,
    low_bytes: usize,
    words: usize,
}

impl Layout {
    /// Returns the smallest layout for `entries` entries, the last of which is `span` above the base.
    fn smallest(entries: usize, span: u64) -> Self {
        let all = (0..=PACKED_BITS_MAX).map(|low_bits| Self::new(entries, span, low_bits));
        all.min_by_key(|layout| layout.bytes()).expect("there are some")
    }

    fn new(entries: usize, span: u64, low_bits: u32) -> Self {
        let low_bytes = (entries * low_bits as usize).div_ceil(8);
        let bits = usize::try_from(span >> low_bits).map_or(usize::MAX / 2, |high| high + entries);
        Self { low_bits, low_bytes, words: bits.min(usize::MAX / 128).div_ceil(64) }
    }

    const fn bytes(&self) -> usize {
        self.low_bytes + 8 * self.words
    }
}

/// The bytes that the counts of the first entries take, for each number of entries.
struct CountPrefixes(Vec<CountSizes>);

impl CountPrefixes {
    fn new(entries: &[Entry]) -> Self {
        let mut sizes = CountSizes::default();
        let mut all = Vec::with_capacity(entries.len() + 1);
        all.push(sizes);
        all.extend(entries.iter().map(|entry| {
            sizes.add(entry.count);
            sizes
        }));
        Self(all)
    }

    fn first(&self, entries: usize) -> (CountKind, usize) {
        self.0[entries].cheapest()
    }
}

/// Entries to fill a page with.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Whether they ascend, and no count is 0.
    pub(super) are_fine: bool,
    /// The least fingerprint that could follow.
    pub(super) next: u64,
    /// The entries whose count is not 1, in order.
    exceptions: Vec<Exception>,
}

impl Candidates {
    /// Examines all of these entries; none may be below `base`.
    pub(super) fn see(&mut self, base: u64, entries: &[Entry]) {
        self.exceptions.clear();
        let (mut are_fine, mut next) = (true, base);
        for (index, entry) in entries.iter().enumerate() {
            are_fine &= entry.fingerprint >= next;
            next = entry.fingerprint.saturating_add(1);
            if entry.count != 1 {
                self.exceptions.push(Exception { index, count: entry.count });
            }
        }
        self.are_fine = are_fine && self.exceptions.iter().all(|exception| exception.count != 0);
        self.next = next;
    }

    /// Returns the exceptions among the first `entries`.
    pub(super) fn exceptions(&self, entries: usize) -> &[Exception] {
        let count = self.exceptions.partition_point(|exception| exception.index < entries);
        &self.exceptions[..count]
    }
}

/// Fills the body of a page with as many of these entries as fit. They ascend, and none is below `base`;
/// those that fit are below `limit`. If some do not fit, the first of those is the page's limit.
pub(super) fn fill(
    body: &mut [u8],
    base: u64,
    limit: u64,
    entries: &[Entry],
    seen: &Candidates,
) -> Filled {
    let entries = &entries[..entries.len().min(PAGE_ENTRIES_MAX + 1)];
    let (fitting, (kind, count_bytes)) = fitting(base, entries, seen.exceptions(entries.len()));
    let limit = entries.get(fitting).map_or(limit, |entry| entry.fingerprint);
    let entries = &entries[..fitting];
    body[..HEAD_BYTES].fill(0);
    put_u16(body, 0, fitting as u16);
    body[3] = kind as u8;
    put_u16(body, 12, count_bytes as u16);
    put_u64(body, 16, base);
    put_u64(body, 24, limit);
    let mut end = HEAD_BYTES;
    if let Some(last) = entries.last() {
        let layout = Layout::smallest(fitting, last.fingerprint - base);
        body[2] = layout.low_bits as u8;
        put_u16(body, 4, layout.words as u16);
        put_fingerprints(body, layout, base, entries);
        end += layout.bytes();
        let counts = &mut body[end..end + count_bytes];
        counts::write(kind, entries, seen.exceptions(fitting), counts);
    }
    body[end + count_bytes..].fill(0);
    Filled { entries: fitting, count_bytes }
}

/// Returns how many of the first entries fit a page, and the encoding of their counts.
fn fitting(base: u64, entries: &[Entry], exceptions: &[Exception]) -> (usize, (CountKind, usize)) {
    let fits = |number: usize, counts: (CountKind, usize)| {
        let Some(last) = number.checked_sub(1) else { return true };
        let layout = Layout::smallest(number, entries[last].fingerprint - base);
        number <= PAGE_ENTRIES_MAX && layout.bytes() + counts.1 <= SPACE_BYTES
    };
    // All nearly always fit.
    let counts = CountSizes::of(entries.len(), exceptions).cheapest();
    if fits(entries.len(), counts) {
        return (entries.len(), counts);
    }
    // More entries take more space, so bisection finds the last that fits.
    let counts = CountPrefixes::new(entries);
    let (mut fitting, mut too_many) = (0, entries.len());
    while too_many - fitting > 1 {
        let middle = fitting.midpoint(too_many);
        if fits(middle, counts.first(middle)) {
            fitting = middle;
        } else {
            too_many = middle;
        }
    }
    (fitting, counts.first(fitting))
}

fn put_fingerprints(body: &mut [u8], layout: Layout, base: u64, entries: &[Entry]) {
    let space = &mut body[HEAD_BYTES..];
    put_lows(space, layout.low_bits, base, entries);
    let unary = &mut space[layout.low_bytes..layout.bytes()];
    unary.fill(0);
    put_unary(unary, layout.low_bits, base, entries);
    put_marks(body, layout);
}

/// Packs the low bits. Writes eight bytes at a time, up to eight bytes too many: the unary words overwrite
/// them afterwards.
fn put_lows(space: &mut [u8], low_bits: u32, base: u64, entries: &[Entry]) {
    let mask = mask(low_bits);
    let (mut word, mut bit) = (0_u64, 0_usize);
    for entry in entries {
        word |= ((entry.fingerprint - base) & mask) << (bit & 7);
        put_u64(space, bit >> 3, word);
        let next = bit + low_bits as usize;
        word >>= 8 * ((next >> 3) - (bit >> 3));
        bit = next;
    }
}

/// Sets the bit of each entry: the sum of its bucket and its index.
fn put_unary(unary: &mut [u8], low_bits: u32, base: u64, entries: &[Entry]) {
    let (mut word, mut place) = (0_u64, 0_usize);
    for (index, entry) in entries.iter().enumerate() {
        let bit = ((entry.fingerprint - base) >> low_bits) as usize + index;
        if bit >> 6 != place {
            put_u64(unary, 8 * place, word);
            (word, place) = (0, bit >> 6);
        }
        word |= 1 << (bit & 63);
    }
    put_u64(unary, 8 * place, word);
}

/// Notes the number of zeros before each part of the unary words except the first.
fn put_marks(body: &mut [u8], layout: Layout) {
    let start = HEAD_BYTES + layout.low_bytes;
    let mut zeros = 0;
    for at in 0..PARTS - 1 {
        let words = part(layout.words, at);
        let zeros_of = |word| get_u64(body, start + 8 * word).count_zeros();
        zeros += words.map(zeros_of).sum::<u32>();
        put_u16(body, 6 + 2 * at, zeros as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_all_counts_are_those_of_one_after_another() {
        for step in [1, 2, 3, 50, 1000] {
            let count = |index: u64| if index % step == step / 2 { index as i64 - 70 } else { 1 };
            let entry = |index| Entry { fingerprint: index, count: count(index) };
            let entries: Vec<_> = (0..200).map(entry).filter(|entry| entry.count != 0).collect();
            let all = CountPrefixes::new(&entries);
            let mut seen = Candidates::default();
            seen.see(0, &entries);
            for len in 0..=entries.len() {
                let sizes = CountSizes::of(len, seen.exceptions(len));
                assert_eq!(sizes.cheapest(), all.first(len), "{step}");
            }
        }
    }

    #[test]
    fn a_page_has_space_for_an_entry_of_any_size() {
        let layout = Layout::smallest(1, 1 << 62);
        assert!(layout.bytes() + 2 + 4 + 10 <= SPACE_BYTES);
    }
}
