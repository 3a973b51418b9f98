//! The versions of one share in RAM: in bins by their places, until it is known which versions each table has of each
//! key.
//!
//! A version goes into the bin of its partition and its row, which is where the absorbing table's pages store it. A bin
//! fits into the processor's cache, so its keys are matched there, and the chosen entries of one bin go to few pages.

use nandex_store::bytes::{extend_from_short, get_u16, get_u64};
use nandex_store::entries::{Entry, EntryLayout, SlotState};
use nandex_store::hash::KeyHash;

use super::matcher::Matcher;
use super::{Absorbed, Prefer, Share};
use crate::{Error, Result};

/// The approximate number of versions in a bin.
const BIN_VERSIONS: u64 = 2048;
/// The maximum number of bins of a batch, as a power of two: versions keep arriving at the ends of all bins.
const BIN_BITS_MAX: u32 = 12;
/// The bytes of a version's place, table and state, before its key and value.
const HEADER_BYTES: usize = 12;

/// A version: the number of its bin, followed in the lower bits by its number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Placed(u32);

/// Versions of the keys of a share: table after table, and of each key in a table the newest first.
#[derive(Debug)]
pub(crate) struct Batch {
    layout: EntryLayout,
    versions_max: usize,
    bin_bits: u32,
    /// The number of bits of a bin's number that select the partition; the others select the row.
    partition_bits: u32,
    share: Share,
    /// Header, key and value of each version, in reading order.
    bins: Vec<Vec<u8>>,
    /// The initial bytes of a bin.
    bin_bytes: usize,
    versions: usize,
    tables: u16,
    matcher: Matcher,
    /// The chosen versions, bin by bin.
    chosen: Vec<Placed>,
    /// The counts of its keys.
    counts: Absorbed,
}

/// Entries of a batch that were chosen, by partitions and their rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen<'b> {
    batch: &'b Batch,
    placed: &'b [Placed],
}

/// The rule by which entries are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    pub prefer: Prefer,
    /// Whether the first table is the absorbing one, whose entries need not be chosen.
    pub into_first: bool,
    /// Whether the absorbing table holds nothing but part of an earlier merge of the others.
    pub resumes: bool,
}

/// A version as stored in a bin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version<'b> {
    pub place: u64,
    pub table: u16,
    pub entry: Entry<'b>,
}

/// The versions of a bin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bin<'b> {
    layout: EntryLayout,
    bytes: &'b [u8],
}

impl<'b> Bin<'b> {
    #[inline]
    fn version_bytes(self) -> usize {
        HEADER_BYTES + self.layout.entry_bytes()
    }

    pub(super) fn len(self) -> usize {
        self.bytes.len() / self.version_bytes()
    }

    pub(super) fn versions(self) -> impl Iterator<Item = Version<'b>> {
        self.bytes.chunks_exact(self.version_bytes()).map(move |bytes| self.decode(bytes))
    }

    #[inline]
    pub(super) fn version(self, number: u32) -> Version<'b> {
        let bytes = self.version_bytes();
        self.decode(&self.bytes[number as usize * bytes..][..bytes])
    }

    #[inline]
    fn decode(self, version: &'b [u8]) -> Version<'b> {
        let (header, entry) = version.split_at(HEADER_BYTES);
        let (key, value) = entry.split_at(self.layout.key_bytes());
        let is_live = header[10] == SlotState::Live as u8;
        let state = if is_live { SlotState::Live } else { SlotState::Tombstone };
        Version {
            place: get_u64(header, 0),
            table: get_u16(header, 8),
            entry: Entry { state, key, value },
        }
    }
}

impl Rule {
    /// The newest version of each key in one table.
    pub(crate) const NEWEST: Self =
        Self { prefer: Prefer::First, into_first: false, resumes: false };
}

impl Batch {
    /// The bytes of RAM for a version of these entries, including the reserve of bins and the share of matching.
    pub(super) fn version_bytes(layout: EntryLayout) -> usize {
        let bytes = HEADER_BYTES + layout.entry_bytes();
        bytes + bytes / 8 + size_of::<Placed>() + 1
    }

    /// The bytes of RAM in addition to those of versions, for matching the keys of one bin.
    pub(super) const fn fixed_bytes() -> usize {
        2 * BIN_VERSIONS as usize * Matcher::VERSION_BYTES
    }

    /// Creates an empty batch for about `versions` and at most `versions_max` versions. Shares have `share_bits` bits,
    /// and the table has `table_bits` bits for its partitions.
    pub(crate) fn new(
        layout: EntryLayout,
        (versions, versions_max): (usize, usize),
        (share_bits, table_bits): (u32, u32),
    ) -> Self {
        let partition_bits = table_bits.saturating_sub(share_bits);
        let bins = (versions as u64 / BIN_VERSIONS).max(1);
        let bin_bits = bins.ilog2().min(BIN_BITS_MAX).max(partition_bits);
        let each = versions.div_ceil(1 << bin_bits);
        Self {
            layout,
            versions_max,
            bin_bits,
            partition_bits,
            share: Share::WHOLE,
            bins: vec![Vec::new(); 1 << bin_bits],
            bin_bytes: each * (HEADER_BYTES + layout.entry_bytes()),
            versions: 0,
            tables: 0,
            matcher: Matcher::default(),
            chosen: Vec::new(),
            counts: Absorbed::default(),
        }
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        let chosen = self.chosen.capacity() * size_of::<Placed>();
        (self.bins_bytes() + chosen + self.matcher.ram_bytes()) as u64
    }

    fn bins_bytes(&self) -> usize {
        self.bins.iter().map(Vec::capacity).sum()
    }

    /// The number of bits of a version's number in its bin. A bin that runs out of numbers is full, far above its
    /// average.
    fn number_bits(&self) -> u32 {
        // A batch with one bin cannot have more versions than these bits can number, either.
        (u32::BITS - self.bin_bits).min(u32::BITS - 1)
    }

    /// Empties it for the versions of a share.
    pub(crate) fn begin(&mut self, share: Share) {
        self.share = share;
        self.bins.iter_mut().for_each(Vec::clear);
        self.chosen.clear();
        (self.versions, self.tables) = (0, 0);
    }

    /// Begins the versions of the next table.
    pub(crate) fn begin_table(&mut self) {
        self.tables += 1;
    }

    /// Adds a version, with the row of its key.
    ///
    /// # Errors
    /// More versions than its RAM holds.
    #[inline]
    pub(crate) fn push(&mut self, hash: KeyHash, row: u32, entry: Entry<'_>) -> Result<()> {
        let row_bits = self.bin_bits - self.partition_bits;
        let partition = self.share.next_bits(hash.place, self.partition_bits);
        let at = partition << row_bits | (u64::from(row) << row_bits >> 32) as usize;
        let bytes = HEADER_BYTES + self.layout.entry_bytes();
        if self.versions == self.versions_max
            || self.bins[at].capacity() - self.bins[at].len() < bytes
        {
            self.grow(at)?;
        }
        self.versions += 1;
        let tag = u32::from(self.tables - 1) | u32::from(entry.state as u8) << 16;
        let bin = &mut self.bins[at];
        bin.extend_from_slice(&hash.place.to_le_bytes());
        bin.extend_from_slice(&tag.to_le_bytes());
        extend_from_short(bin, entry.key);
        match entry.state {
            SlotState::Live => extend_from_short(bin, entry.value),
            SlotState::Tombstone => bin.resize(bin.len() + self.layout.value_bytes(), 0),
        }
        Ok(())
    }

    /// Takes more RAM for a bin, an eighth at a time after the first, within the batch's limit.
    #[cold]
    fn grow(&mut self, at: usize) -> Result<()> {
        let bytes = HEADER_BYTES + self.layout.entry_bytes();
        let held = self.bins[at].len();
        let more = if held == 0 { self.bin_bytes.max(bytes) } else { (held / 8).max(16 * bytes) };
        let ram_max = self.versions_max * (bytes + bytes / 8);
        let is_full = self.versions == self.versions_max
            || (held + more) / bytes > 1 << self.number_bits()
            || self.bins_bytes() + more > ram_max;
        if is_full {
            let held = self.versions;
            let reason = format!(
                "the RAM for {held} versions of entries is too little for this part of the tables; state more"
            );
            return Err(Error::TooLittleRam { field: "ram_bytes", reason });
        }
        self.bins[at].reserve_exact(more);
        Ok(())
    }

    /// Counts the keys of the share, and chooses by the rule which entries are put.
    pub(crate) fn choose(&mut self, rule: Rule) {
        let mut counts =
            Absorbed { keys_of: vec![0; usize::from(self.tables)], ..Absorbed::default() };
        let number_bits = self.number_bits();
        let Self { layout, bins, matcher, chosen, .. } = self;
        chosen.reserve_exact(self.versions);
        for (bin, bytes) in (0..).zip(bins) {
            let versions = Bin { layout: *layout, bytes };
            let put = |number| chosen.push(Placed(bin << number_bits | number));
            matcher.choose(versions, rule, &mut counts, put);
        }
        self.counts = counts;
    }

    /// The place of a version's key.
    #[inline]
    fn place(&self, placed: Placed) -> u64 {
        let bytes = &self.bins[(placed.0 >> self.number_bits()) as usize];
        let number = (placed.0 & ((1 << self.number_bits()) - 1)) as usize;
        get_u64(bytes, number * (HEADER_BYTES + self.layout.entry_bytes()))
    }

    #[inline]
    fn version(&self, placed: Placed) -> Version<'_> {
        let bytes = &self.bins[(placed.0 >> self.number_bits()) as usize];
        let number = placed.0 & ((1 << self.number_bits()) - 1);
        Bin { layout: self.layout, bytes }.version(number)
    }

    /// The counts of its keys.
    pub(super) fn counts(&self) -> &Absorbed {
        &self.counts
    }

    /// The chosen entries.
    pub(crate) fn chosen(&self) -> Chosen<'_> {
        Chosen { batch: self, placed: &self.chosen }
    }
}

impl<'b> Chosen<'b> {
    pub(crate) fn len(&self) -> usize {
        self.placed.len()
    }

    /// The positions of the chosen entries, for choosing among them.
    pub(crate) fn placed(&self) -> &'b [Placed] {
        self.placed
    }

    /// Returns one of the entries.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Entry<'b> {
        self.batch.version(self.placed[index]).entry
    }

    /// Returns all of the entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'b>> + use<'b> {
        self.with_places().map(|(_, entry)| entry)
    }

    /// Returns all of them in an order that is unrelated to their rows: a buffer that takes them one by one then fills
    /// all its pages evenly.
    pub(crate) fn scattered(&self) -> impl Iterator<Item = Entry<'b>> + use<'b> {
        let Self { batch, placed } = *self;
        let len = placed.len();
        // Steps by the golden section come near to what was already visited as late as possible.
        let step = ((len as f64 * 0.618) as usize..).find(|step| gcd(*step, len) <= 1).unwrap_or(1);
        (0..len).map(move |nth| batch.version(placed[nth * step % len]).entry)
    }

    /// The places of their keys.
    pub(crate) fn places(&self) -> impl Iterator<Item = u64> + use<'b> {
        let Self { batch, placed } = *self;
        placed.iter().map(move |placed| batch.place(*placed))
    }

    /// Returns all of them, each with the place of its key.
    pub(crate) fn with_places(&self) -> impl Iterator<Item = (u64, Entry<'b>)> + use<'b> {
        let Self { batch, placed } = *self;
        placed.iter().map(move |placed| {
            let version = batch.version(*placed);
            (version.place, version.entry)
        })
    }

    /// Groups them by the number that `part_of` gives, which increases with their places.
    pub(super) fn parts(
        self,
        part_of: impl Fn(u64) -> usize,
    ) -> impl Iterator<Item = (usize, Self)> {
        let Self { batch, placed: all } = self;
        let part_of = move |placed: Placed| part_of(batch.place(placed));
        let mut start = 0;
        std::iter::from_fn(move || {
            let part = part_of(*all.get(start)?);
            let len = all[start..].partition_point(|it| part_of(*it) <= part);
            let placed = &all[start..start + len];
            start += len;
            Some((part, Self { batch, placed }))
        })
    }

    /// Returns those for which `is_apart` holds, and the others.
    pub(crate) fn split(&self, is_apart: impl Fn(Entry<'b>) -> bool) -> (Vec<Placed>, Vec<Placed>) {
        let is_apart = |placed: &Placed| is_apart(self.batch.version(*placed).entry);
        self.placed.iter().copied().partition(is_apart)
    }

    /// Returns these entries of the same batch.
    pub(crate) fn with<'p>(&self, placed: &'p [Placed]) -> Chosen<'p>
    where
        'b: 'p,
    {
        Chosen { batch: self.batch, placed }
    }
}

/// Returns the greatest common divisor; 0 if both numbers are 0.
fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> EntryLayout {
        EntryLayout::new(8, 1).unwrap()
    }

    /// A version of a table: key, and its value unless it was removed.
    type Update = (u64, Option<u8>);

    fn hash(place: u64) -> KeyHash {
        KeyHash { place, filter: 0 }
    }

    /// Returns a batch of tables whose keys have places that collide in threes.
    fn batch(tables: &[&[Update]]) -> Batch {
        let mut batch = Batch::new(layout(), (4, 1000), (0, 0));
        batch.begin(Share::WHOLE);
        for table in tables {
            batch.begin_table();
            for (key, value) in *table {
                let state = if value.is_some() { SlotState::Live } else { SlotState::Tombstone };
                let (key_bytes, value) = (key.to_le_bytes(), [value.unwrap_or(0)]);
                let entry = Entry { state, key: &key_bytes, value: &value };
                batch.push(hash((key / 3) << 40), 0, entry).unwrap();
            }
        }
        batch
    }

    fn chosen(batch: &mut Batch, rule: Rule) -> (Vec<(u64, u8)>, Absorbed) {
        batch.choose(rule);
        let pair = |it: Entry<'_>| (u64::from_le_bytes(it.key.try_into().unwrap()), it.value[0]);
        let mut pairs: Vec<_> = batch.chosen().entries().map(pair).collect();
        pairs.sort_unstable();
        (pairs, batch.counts().clone())
    }

    const FIRST: Rule = Rule { prefer: Prefer::First, into_first: false, resumes: false };
    const LAST: Rule = Rule { prefer: Prefer::Last, ..FIRST };

    #[test]
    fn the_newest_version_of_a_table_counts_and_its_removals_hide_its_own_alone() {
        let one: &[Update] = &[(1, Some(9)), (1, Some(8)), (2, None), (2, Some(7)), (3, Some(3))];
        let two: &[Update] = &[(2, Some(5)), (3, None), (1, Some(9)), (4, Some(4))];
        let (pairs, counts) = chosen(&mut batch(&[one, two]), FIRST);
        assert_eq!(pairs, [(1, 9), (2, 5), (3, 3), (4, 4)]);
        assert_eq!(counts.keys_of, [2, 3]);
        assert_eq!((counts.keys, counts.shared, counts.differing, counts.put), (4, 1, 0, 0));
    }

    #[test]
    fn the_preferred_table_wins_and_differing_values_are_counted() {
        let one: &[Update] = &[(1, Some(1)), (2, Some(2)), (5, Some(5))];
        let two: &[Update] = &[(1, Some(10)), (2, Some(2))];
        let three: &[Update] = &[(1, Some(1)), (5, Some(50))];
        let (pairs, counts) = chosen(&mut batch(&[one, two, three]), FIRST);
        assert_eq!(pairs, [(1, 1), (2, 2), (5, 5)]);
        assert_eq!((counts.keys, counts.shared, counts.differing), (3, 3, 2));
        let (pairs, counts) = chosen(&mut batch(&[one, two, three]), LAST);
        assert_eq!(pairs, [(1, 1), (2, 2), (5, 50)]);
        assert_eq!((counts.keys, counts.shared, counts.differing), (3, 3, 2));
    }

    #[test]
    fn what_the_absorbing_table_has_is_not_put_again() {
        let own: &[Update] = &[(1, Some(1)), (2, Some(2)), (3, None), (4, Some(4))];
        let other: &[Update] = &[(1, Some(10)), (2, Some(2)), (3, Some(30)), (6, Some(6))];
        let rule = Rule { into_first: true, ..FIRST };
        let (pairs, counts) = chosen(&mut batch(&[own, other]), rule);
        assert_eq!(pairs, [(3, 30), (6, 6)]);
        assert_eq!((counts.put, counts.keys, counts.only_own), (2, 5, 1));
        let rule = Rule { into_first: true, ..LAST };
        let (pairs, counts) = chosen(&mut batch(&[own, other]), rule);
        assert_eq!(pairs, [(1, 10), (3, 30), (6, 6)]);
        assert_eq!((counts.put, counts.only_own), (3, 1));
    }

    #[test]
    fn who_resumes_replaces_what_others_say_otherwise_and_counts_the_others_alone() {
        let own: &[Update] = &[(1, Some(1)), (2, Some(7)), (9, Some(9))];
        let one: &[Update] = &[(1, Some(1)), (2, Some(2)), (3, Some(3))];
        let two: &[Update] = &[(1, Some(10)), (4, Some(4))];
        let rule = Rule { into_first: true, resumes: true, ..FIRST };
        let (pairs, counts) = chosen(&mut batch(&[own, one, two]), rule);
        assert_eq!(pairs, [(2, 2), (3, 3), (4, 4)]);
        assert_eq!((counts.keys, counts.shared, counts.differing), (4, 1, 1));
        assert_eq!((counts.put, counts.only_own), (3, 1));
        assert_eq!(counts.keys_of, [3, 3, 2]);
    }

    #[test]
    fn what_is_chosen_comes_partition_by_partition_and_there_by_rows() {
        let mut batch = Batch::new(layout(), (50_000, 60_000), (1, 3));
        let share = Share::nth(1, 1).unwrap();
        batch.begin(share);
        batch.begin_table();
        for number in 0..50_000u64 {
            let place = (number % 20_000).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63;
            let key = (number % 20_000).to_le_bytes();
            let entry = Entry { state: SlotState::Live, key: &key, value: &[1] };
            batch.push(hash(place), (place as u32).reverse_bits(), entry).unwrap();
        }
        batch.choose(FIRST);
        assert_eq!((batch.counts().keys, batch.chosen().len()), (20_000, 20_000));
        let row_bits = batch.bin_bits - 2;
        assert!(row_bits > 0);
        let row = |place: u64| (place as u32).reverse_bits() >> (32 - row_bits);
        let places = batch.chosen().with_places().map(|(place, _)| (place >> 61, row(place)));
        let bins: Vec<_> = places.collect();
        assert!(bins.is_sorted());
        let scattered: Vec<_> = batch.chosen().scattered().map(|entry| entry.key).collect();
        let in_order: Vec<_> = batch.chosen().entries().map(|entry| entry.key).collect();
        assert_ne!(scattered, in_order);
        let sorted = |mut keys: Vec<_>| {
            keys.sort_unstable();
            keys
        };
        assert_eq!(sorted(scattered), sorted(in_order));
        let parts: Vec<_> = batch.chosen().parts(|place| (place >> 61) as usize).collect();
        assert_eq!(parts.iter().map(|(part, _)| *part).collect::<Vec<_>>(), [4, 5, 6, 7]);
        assert_eq!(parts.iter().map(|(_, chosen)| chosen.len()).sum::<usize>(), 20_000);
    }

    #[test]
    fn a_batch_takes_no_more_than_its_ram_is_for() {
        let mut batch = Batch::new(layout(), (10, 2000), (0, 0));
        batch.begin(Share::WHOLE);
        batch.begin_table();
        let key = [1; 8];
        let entry = Entry { state: SlotState::Live, key: &key, value: &[1] };
        let push = |place: &u64| batch.push(hash(*place), 0, entry).is_ok();
        let taken = (0..10_000).take_while(push).count();
        assert_eq!(taken, 2000);
        batch.choose(FIRST);
        let most = (2000 * Batch::version_bytes(layout()) + Batch::fixed_bytes()) as u64;
        assert!(batch.ram_bytes() <= most, "{} of {most}", batch.ram_bytes());
    }
}
