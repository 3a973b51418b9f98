//! A reader of volumes built from docs/reference/format.md alone, without any of our code, which is run on a fixture.

use std::collections::BTreeMap;

use super::{EVICTING_KEYS, fixture, policies};

const PAGE: usize = 4096;
const HEADER: usize = 32;
const BODY: usize = PAGE - HEADER;

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    (0..width).rev().fold(0, |number, byte| number << 8 | u64::from(bytes[at + byte]))
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn crc32c(bytes: &[u8]) -> u64 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
    let crc = bytes
        .iter()
        .fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)));
    u64::from(!crc)
}

fn mix(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

/// The hash function `identity`, for keys of 8 bytes: place and filter.
fn identity(key: &[u8]) -> (u64, u64) {
    let word = number(key, 0, 8);
    (mix(word), mix(word.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15))
}

fn reduced(field: u64, range: u64) -> u64 {
    ((field & 0xffff) * range) >> 16
}

/// Returns the page with this number, after checking that its header has everything that it must have.
fn page(image: &[u8], place: u64, (kind, structure, generation): (u64, u64, u64)) -> &[u8] {
    let page = &image[index(place) * PAGE..][..PAGE];
    assert_eq!(number(page, 0, 4), crc32c(&page[4..]), "page {place}");
    assert_eq!(&page[4..8], b"ndx1");
    let found = (number(page, 8, 2), number(page, 10, 2), number(page, 16, 8));
    assert_eq!(found, (kind, structure, generation), "page {place}");
    assert_eq!((number(page, 12, 4), number(page, 24, 8)), (0, place));
    page
}

/// Reads fields from the front of bytes.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: u64) -> &'a [u8] {
        let (head, rest) = self.0.split_at(index(count));
        self.0 = rest;
        head
    }

    fn number(&mut self, width: usize) -> u64 {
        number(self.take(width as u64), 0, width)
    }

    fn field(&mut self) -> &'a [u8] {
        let count = self.number(4);
        self.take(count)
    }
}

/// Returns the catalog's BufferHashes: names with number, configuration, state and first page.
fn catalog(image: &[u8]) -> BTreeMap<String, (u64, Vec<u8>, Vec<u8>, u64)> {
    let newest =
        [0, 1].into_iter().max_by_key(|place| number(image, place * PAGE + 16, 8)).unwrap();
    let generation = number(image, newest * PAGE + 16, 8);
    assert_eq!(generation % 2, newest as u64);
    let superblock = &page(image, newest as u64, (1, 0, generation))[HEADER..];
    assert_eq!(number(superblock, 0, 2), 1, "version");
    assert_eq!(&superblock[2..4], [0, 0], "identity, and the log inside");
    assert_eq!(index(number(superblock, 48, 8)) * PAGE, image.len());
    let [start, pages, bytes, generation] = [56, 64, 72, 80].map(|at| number(superblock, at, 8));
    let mut all = Vec::new();
    for place in start..start + bytes.div_ceil(BODY as u64) {
        all.extend_from_slice(&page(image, place, (2, 0, generation))[HEADER..]);
    }
    assert!(all.len() as u64 <= pages * BODY as u64);
    let mut fields = Fields(&all[..index(bytes)]);
    let (next, count) = (fields.number(2), fields.number(4));
    let mut found = BTreeMap::new();
    for _ in 0..count {
        let id = fields.number(2);
        assert!(id < next);
        let name = String::from_utf8(fields.field().to_vec()).unwrap();
        let is_bufferhash = fields.field() == b"bufferhash";
        let (config, state) = (fields.field().to_vec(), fields.field().to_vec());
        let _tail = fields.number(8);
        assert_eq!(fields.number(4), 1, "one extent");
        let first = fields.number(8);
        fields.number(8);
        if is_bufferhash {
            found.insert(name, (id, config, state, first));
        }
    }
    assert!(fields.0.is_empty());
    found
}

/// The numbers of a configuration that determine the layout.
struct Config {
    super_tables: u64,
    buffer_pages: u64,
    kind: u64,
    entries: u64,
    slots: u64,
    bits: u64,
    hashes: u64,
    segment: u64,
    segments: u64,
}

impl Config {
    fn new(bytes: &[u8]) -> Self {
        assert_eq!((bytes.len(), bytes[0]), (87, 1));
        let narrow = |at: usize| number(bytes, 3 + 4 * at, 4);
        assert_eq!((narrow(0), narrow(1)), (8, 8), "widths");
        Self {
            super_tables: narrow(2),
            buffer_pages: narrow(3),
            kind: narrow(7),
            entries: narrow(8),
            slots: narrow(9),
            bits: narrow(10),
            hashes: narrow(11),
            segment: narrow(12),
            segments: number(bytes, 59, 8),
        }
    }

    fn filter_pages(&self) -> u64 {
        (8 * (self.slots * self.bits).div_ceil(64)).div_ceil(4064)
    }
}

/// Returns whether a filter, given as its bits, contains the key.
fn filter_holds(config: &Config, words: &[u64], filter_hash: u64) -> bool {
    let bit = |at: u64| words[index(at / 64)] >> (at % 64) & 1;
    let folded = (filter_hash ^ filter_hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let m = folded ^ folded >> 29;
    if config.kind == 0 {
        let (first, step) = (m >> 32, m & 0xffff_ffff | 1);
        let at = |j: u64| ((first + j * step) % (1 << 32) * config.slots) >> 32;
        return (0..config.hashes).all(|j| bit(at(j)) == 1);
    }
    let remix = |x: u64, salt: u64| {
        let product = (x ^ salt).wrapping_mul(salt);
        product ^ product >> 32
    };
    let starts = config.slots - 4 * config.segment + 1;
    let start = u64::try_from((u128::from(m) * u128::from(starts)) >> 64).unwrap();
    let o = remix(m, 0xD6E8_FEB8_6659_FD93);
    let r = config.bits;
    let slot = |s: u64| (0..r).fold(0, |value, b| value | bit(s * r + b) << b);
    let xor = (0..4).fold(0, |xor, j| {
        xor ^ slot(start + j * config.segment + reduced(o >> (16 * j), config.segment))
    });
    xor == remix(m.rotate_left(32), 0xA076_1D64_78BD_642F) >> (64 - r)
}

/// Returns the entries of a page that are in their right place: key, and value unless it is a tombstone.
fn entries(page: &[u8], (super_table, at): (u64, u64), config: &Config) -> Vec<(u64, Option<u64>)> {
    let mut found = Vec::new();
    for slot in 0..248 {
        let state = page[HEADER + slot / 4] >> (2 * (slot % 4)) & 3;
        if state == 0 {
            continue;
        }
        let entry = &page[128 + 16 * slot..][..16];
        let (place, _) = identity(&entry[..8]);
        assert_eq!(place >> (64 - config.super_tables.ilog2()), super_table);
        // A stash page of an image has no buckets.
        if at < config.buffer_pages {
            assert_eq!(reduced(place >> 32, config.buffer_pages), at);
            let (first, second) = (reduced(place, 62), reduced(place >> 16, 61));
            let second = if second >= first { second + 1 } else { second };
            assert!([first, second].contains(&(slot as u64 / 4)));
        }
        found.push((number(entry, 0, 8), (state == 1).then(|| number(entry, 8, 8))));
    }
    found
}

/// Returns all entries of a table, oldest first, and the end of its state.
fn read<'t>(
    image: &[u8],
    (id, config, state, first): &'t (u64, Vec<u8>, Vec<u8>, u64),
) -> (Vec<(u64, Option<u64>)>, Fields<'t>) {
    let config = Config::new(config);
    let segment_pages = config.buffer_pages + config.filter_pages();
    let mut fields = Fields(state);
    let (oldest, count) = (fields.number(8), fields.number(4));
    let mut all = Vec::new();
    for sequence in oldest..oldest + count {
        let word = fields.number(8);
        let (epoch, expected, owner) = (word & 0xffff, word >> 16 & 0xfff_ffff, word >> 44);
        if expected == 0 {
            continue;
        }
        let generation = sequence | epoch << 48;
        let start = first + sequence % config.segments * segment_pages;
        let mut words = Vec::new();
        for at in config.buffer_pages..segment_pages {
            let body = &page(image, start + at, (4, *id, generation))[HEADER..];
            words.extend(body.chunks(8).map(|word| number(word, 0, 8)));
        }
        let before = all.len();
        for at in 0..config.buffer_pages {
            let page = page(image, start + at, (3, *id, generation));
            all.extend(entries(page, (owner, at), &config));
        }
        assert_eq!((all.len() - before) as u64, expected);
        for (key, _) in &all[before..] {
            assert!(filter_holds(&config, &words, identity(&key.to_le_bytes()).1), "key {key}");
        }
    }
    let (_next, count) = (fields.number(8), fields.number(4));
    assert_eq!(count, config.super_tables);
    let image_pages = config.buffer_pages + (256 + config.entries / 8).div_ceil(248);
    for super_table in 0..count {
        assert_eq!(fields.number(8) % PAGE as u64, 0, "a tail is a block's start");
        let place = fields.number(1);
        if place == 0 {
            continue;
        }
        let generation = fields.number(8);
        let start =
            first + config.segments * segment_pages + (2 * super_table + place - 1) * image_pages;
        for at in 0..image_pages {
            let page = page(image, start + at, (5, *id, generation));
            all.extend(entries(page, (super_table, at), &config));
        }
    }
    (all, fields)
}

#[test]
fn a_reader_made_from_the_page_alone_reads_a_closed_volume() {
    assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    let image = fixture("v1-policies");
    let catalog = catalog(&image);
    assert_eq!(catalog.len(), policies().len());
    for (name, table) in &catalog {
        // Oldest first, so that the newest version of a key remains.
        let (entries, counts) = read(&image, table);
        assert!(counts.0.is_empty(), "a state without counts");
        let entries: BTreeMap<_, _> = entries.into_iter().collect();
        for key in 0..700 {
            let value = entries.get(&key).copied().flatten();
            assert_eq!(value, super::expected(key), "{name}, key {key}");
        }
    }
}

#[test]
fn a_reader_made_from_the_page_alone_reads_what_a_table_has_evicted() {
    let image = fixture("v1-evicted");
    let table = &catalog(&image)["ring"];
    let (entries, mut counts) = read(&image, table);
    assert_eq!(counts.number(1), 1, "version");
    let (evicted, forced) = (counts.number(8), counts.number(8));
    assert_eq!((entries.len() as u64 + evicted, forced), (EVICTING_KEYS, 0));
    assert!(evicted > 0 && counts.0.is_empty());
}

#[test]
fn a_reader_made_from_the_page_alone_reads_the_log_of_a_crash() {
    let image = fixture("v1-crash");
    let newest = usize::from(number(&image, PAGE + 16, 8) > number(&image, 16, 8));
    let superblock = &image[newest * PAGE + HEADER..][..BODY];
    assert_eq!(superblock[2], 2, "SipHash");
    let largest = number(superblock, 4, 4);
    let [epoch, first, pages, tail, synced] =
        [40, 88, 96, 104, 112].map(|at| number(superblock, at, 8));
    let region = pages * PAGE as u64;
    let starts = |lsn: u64| {
        let left = region - lsn % region;
        if left < largest { lsn + left } else { lsn }
    };
    let (mut lsn, mut before, mut updates) = (starts(tail), None, Vec::new());
    loop {
        let block = &image[index(first * PAGE as u64 + lsn % region)..];
        if block[4..8] != *b"ndxl" || number(block, 16, 8) != lsn {
            break;
        }
        let (bytes, groups) = (number(block, 8, 4), number(block, 12, 4));
        assert!(bytes <= largest && bytes.is_multiple_of(PAGE as u64));
        assert_eq!(number(block, 0, 4), crc32c(&block[4..index(bytes)]));
        assert_eq!((number(block, 24, 8), &block[32..48]), (epoch, &superblock[8..24]));
        assert!(before.is_none_or(|crc| crc == number(block, 48, 4)));
        assert!(number(block, 56, 8) <= lsn);
        before = Some(number(block, 0, 4));
        let mut fields = Fields(&block[64..][..index(groups)]);
        while !fields.0.is_empty() {
            assert_eq!(fields.number(2), 1, "the only structure");
            let (width, count) = (fields.number(2), fields.number(4));
            updates.extend((0..count).map(|_| fields.take(width)));
        }
        lsn = starts(lsn + bytes);
    }
    assert!(lsn >= synced);
    // The last hundred keys: a put of each, and a remove of every seventh.
    let keys: Vec<_> = updates.iter().map(|it| (it[0], it.len(), number(it, 1, 8))).collect();
    for key in 2400..2500 {
        assert!(keys.contains(&(1, 17, key)), "key {key}");
        assert_eq!(keys.contains(&(2, 9, key)), key % 7 == 6, "key {key}");
    }
}
