//! The write buffer of a partition: a Bloom filter in RAM, and the number of keys that it took.

use nandex_device::prefetch;
use nandex_store::bytes::get_u64;

use super::format::{BitPlacing, Fingerprint, FingerprintCodec};
use super::snapshot::BitmapSnapshots;
use crate::Result;
use crate::write::WriteBuffer;

/// A set of bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bitmap {
    words: Box<[u64]>,
    bits: u32,
}

impl Bitmap {
    /// Creates `bits` bits, none of them set.
    pub fn new(bits: u32) -> Self {
        Self { words: vec![0; bits.div_ceil(64) as usize].into(), bits }
    }

    /// The number of bits.
    #[inline]
    pub fn len(&self) -> u32 {
        self.bits
    }

    /// Returns whether the bit of a position is set.
    #[inline]
    pub fn has(&self, position: u32) -> bool {
        self.words[(position / 64) as usize] >> (position % 64) & 1 == 1
    }

    /// Sets the bit of a position.
    #[inline]
    pub fn set(&mut self, position: u32) {
        self.words[(position / 64) as usize] |= 1 << (position % 64);
    }
}

/// A number of keys, and their bits: the part of a buffer that a snapshot stores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    /// The number of inserts, including repeated keys.
    pub keys: u64,
    pub bitmap: Bitmap,
}

impl Content {
    /// Returns the encoded bytes of contents with `bits` bits.
    pub fn encoded_bytes(bits: u32) -> usize {
        8 + bits.div_ceil(64) as usize * 8
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::encoded_bytes(self.bitmap.bits));
        out.extend_from_slice(&self.keys.to_le_bytes());
        self.bitmap.words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out
    }

    /// Decodes the contents of a filter with `bits` bits for at most `keys_max` keys, from untrusted bytes that may be
    /// longer; `None` if they are invalid.
    pub fn decode(bytes: &[u8], bits: u32, keys_max: u64) -> Option<Self> {
        let (bytes, rest) = bytes.split_at_checked(Self::encoded_bytes(bits))?;
        let keys = get_u64(bytes, 0);
        let words: Box<[u64]> = bytes[8..].chunks_exact(8).map(|word| get_u64(word, 0)).collect();
        let past = match bits % 64 {
            0 => 0,
            used => words.last()? >> used,
        };
        let is_one = keys <= keys_max && past == 0 && rest.iter().all(|byte| *byte == 0);
        is_one.then_some(Self { keys, bitmap: Bitmap { words, bits } })
    }
}

/// A partition's Bloom filter in RAM.
#[derive(Debug)]
pub(crate) struct BloomBuffer {
    placing: BitPlacing,
    /// The number of keys at which it is full: the paper's n.
    keys_max: u64,
    /// The number at which it counts as full now: `keys_max`, or temporarily fewer.
    limit: u64,
    content: Content,
}

impl BloomBuffer {
    /// Creates an empty buffer for `keys_max` keys.
    pub fn new(placing: BitPlacing, keys_max: u64) -> Self {
        let content = Content { keys: 0, bitmap: Bitmap::new(placing.bits) };
        Self { placing, keys_max, limit: keys_max, content }
    }

    /// Returns whether all bits of a key are set.
    #[inline]
    pub fn has(&self, fingerprint: Fingerprint) -> bool {
        self.placing.positions(fingerprint).all(|position| self.content.bitmap.has(position))
    }

    /// Prefetches what [`has`](Self::has) will read first.
    #[inline]
    pub fn prefetch(&self, fingerprint: Fingerprint) {
        if let Some(position) = self.placing.positions(fingerprint).next() {
            prefetch(&self.content.bitmap.words[(position / 64) as usize]);
        }
    }

    /// Returns its contents.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Replaces the contents by those of a snapshot.
    pub fn load(&mut self, content: Content) {
        self.content = content;
    }

    /// The number of keys at which it is full.
    pub fn keys_max(&self) -> u64 {
        self.keys_max
    }
}

impl WriteBuffer for BloomBuffer {
    type Update<'u> = Fingerprint;
    type Codec = FingerprintCodec;
    type Snapshots = BitmapSnapshots;

    /// Setting a bit again changes nothing, but a buffer counts its keys: a key that a replay applied twice would push
    /// another one out of the window.
    const ADDS_UP: bool = true;

    #[inline]
    fn apply(&mut self, updates: &[Fingerprint]) -> Result<usize> {
        let space = self.limit.min(self.keys_max).saturating_sub(self.content.keys);
        let taken = updates.len().min(usize::try_from(space).unwrap_or(usize::MAX));
        for fingerprint in &updates[..taken] {
            self.placing.positions(*fingerprint).for_each(|it| self.content.bitmap.set(it));
        }
        self.content.keys += taken as u64;
        Ok(taken)
    }

    fn entries(&self) -> u64 {
        self.content.keys
    }

    fn limit(&mut self, entries_max: u64) {
        self.limit = entries_max;
    }

    fn clear(&mut self) {
        self.content.bitmap.words.fill(0);
        self.content.keys = 0;
        self.limit = self.keys_max;
    }

    fn ram_bytes(&self) -> u64 {
        (self.content.bitmap.words.len() * 8 + size_of::<Self>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> BloomBuffer {
        BloomBuffer::new(BitPlacing { partitions: 1, bits: 100, hashes: 3 }, 5)
    }

    fn keys(numbers: std::ops::Range<u64>) -> Vec<Fingerprint> {
        numbers.map(|number| Fingerprint(nandex_store::hash::mix(number))).collect()
    }

    #[test]
    fn a_buffer_takes_as_many_keys_as_it_may_and_has_those() {
        let mut buffer = buffer();
        buffer.limit(3);
        assert_eq!(buffer.apply(&keys(0..4)).unwrap(), 3);
        assert_eq!((buffer.apply(&keys(3..4)).unwrap(), buffer.entries()), (0, 3));
        assert!(keys(0..3).iter().all(|key| buffer.has(*key)));
        buffer.clear();
        assert!(!keys(0..3).iter().any(|key| buffer.has(*key)));
        // A repeated key counts each time.
        assert_eq!(buffer.apply(&[keys(7..8)[0]; 9]).unwrap(), 5);
    }

    #[test]
    fn a_content_reads_back_and_what_is_none_is_refused() {
        let mut buffer = buffer();
        buffer.apply(&keys(0..5)).unwrap();
        let mut bytes = buffer.content().encode();
        assert_eq!(bytes.len(), Content::encoded_bytes(100));
        bytes.resize(300, 0);
        let decode = |bytes: &[u8]| Content::decode(bytes, 100, 5);
        assert_eq!(decode(&bytes).as_ref(), Some(buffer.content()));
        assert_eq!(decode(&bytes[..23]), None);
        // More keys than it takes, a bit past the last one, and trailing bytes.
        for (at, byte) in [(0, 6), (23, 0x80), (299, 1)] {
            let mut bad = bytes.clone();
            bad[at] = byte;
            assert_eq!(decode(&bad), None, "{at}");
        }
    }
}
