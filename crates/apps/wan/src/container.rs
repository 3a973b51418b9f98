//! Containers: some neighbouring new chunks of a stream, stored together as one record of the cache.
//!
//! A stream refers to containers, by a digest of their tables of chunks, and zstd gets them as prefix. So a chunk that
//! a frame refers to costs no fingerprint, and one read brings the chunks that are likely to come next.
//! docs/reference/format.md shows its bytes.

use nandex_chunk::{Fingerprint, Hash};

use crate::owner::{NO_TAG, Owner, Tag};

/// The most bytes of chunks in a container.
pub(crate) const CONTAINER_BYTES_MAX: usize = 64 << 10;

/// The most chunks of a container.
pub(crate) const CONTAINER_CHUNKS_MAX: usize = 1024;

/// The first bytes of a record, with its version.
const MAGIC: [u8; 4] = *b"NWC1";

/// The first bytes of a record that has an owner.
const OWNED_MAGIC: [u8; 4] = *b"NWC2";

/// The bytes before the table, and those of each of its entries.
const HEADER_BYTES: usize = 8;
const ENTRY_BYTES: usize = KEY_BYTES + 4;

/// Bytes of a chunk's key: the beginning of its fingerprint.
pub(crate) const KEY_BYTES: usize = 20;

/// Bytes of a container's name.
pub(crate) const NAME_BYTES: usize = 16;

/// A chunk's key: the first 160 bits of its BLAKE3.
pub(crate) type Key = [u8; KEY_BYTES];

/// A container's name: the first 128 bits of the BLAKE3 of its table.
pub(crate) type Name = [u8; NAME_BYTES];

/// Returns the key of a chunk.
pub(crate) fn key_of(chunk: &[u8]) -> Key {
    let print: Fingerprint = Hash::Blake3.fingerprint(chunk);
    beginning(print.as_bytes())
}

/// Returns the first bytes of a digest, which is longer.
pub(crate) fn beginning<const N: usize>(digest: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&digest[..N]);
    out
}

/// A chunk of a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    pub(crate) key: Key,
    /// The number of content bytes before it, and of its own.
    pub(crate) start: usize,
    pub(crate) bytes: usize,
}

/// Some chunks, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Container {
    name: Name,
    /// Its owner.
    tag: Tag,
    chunks: Vec<Chunk>,
    content: Vec<u8>,
}

impl Container {
    /// Creates the container of chunks, given by their keys and bytes.
    fn new(chunks: &[(Key, &[u8])]) -> Self {
        let mut content = Vec::with_capacity(chunks.iter().map(|(_, bytes)| bytes.len()).sum());
        let mut placed = Vec::with_capacity(chunks.len());
        for (key, bytes) in chunks {
            placed.push(Chunk { key: *key, start: content.len(), bytes: bytes.len() });
            content.extend_from_slice(bytes);
        }
        let name = name_of(&table_of(&placed));
        Self { name, tag: NO_TAG, chunks: placed, content }
    }

    /// Returns the same container with this owner.
    pub(crate) fn owned_by(mut self, owner: &Owner) -> Self {
        self.tag = owner.tag();
        self
    }

    /// Returns its owner.
    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    pub(crate) fn name(&self) -> Name {
        self.name
    }

    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Returns all chunks, one after the other.
    pub(crate) fn content(&self) -> &[u8] {
        &self.content
    }

    /// Returns the bytes of a chunk.
    pub(crate) fn bytes_of(&self, chunk: &Chunk) -> &[u8] {
        &self.content[chunk.start..chunk.start + chunk.bytes]
    }

    /// Returns the part of its record before the content.
    pub(crate) fn record_head(&self) -> Vec<u8> {
        let table = table_of(&self.chunks);
        let mut head = Vec::with_capacity(HEADER_BYTES + size_of::<Tag>() + table.len());
        let is_owned = self.tag != NO_TAG;
        head.extend_from_slice(if is_owned { &OWNED_MAGIC } else { &MAGIC });
        head.extend_from_slice(&(self.chunks.len() as u32).to_le_bytes());
        if is_owned {
            head.extend_from_slice(&self.tag);
        }
        head.extend_from_slice(&table);
        head
    }

    /// Decodes an untrusted record; `None` unless it is a container whose chunks all have the fingerprints of its
    /// table. Its name follows from the table.
    pub(crate) fn proven(record: &[u8]) -> Option<Self> {
        let (tag, table, content) = parts_of(record)?;
        let mut chunks = Vec::with_capacity(table.len() / ENTRY_BYTES);
        let mut start = 0_usize;
        for entry in table.chunks_exact(ENTRY_BYTES) {
            let (key, bytes) = entry.split_first_chunk::<KEY_BYTES>()?;
            let bytes = u32::from_le_bytes(bytes.try_into().ok()?) as usize;
            let end = start.checked_add(bytes)?;
            if key_of(content.get(start..end)?) != *key {
                return None;
            }
            chunks.push(Chunk { key: *key, start, bytes });
            start = end;
        }
        let name = name_of(table);
        (start == content.len()).then(|| Self { name, tag, chunks, content: content.to_vec() })
    }

    /// Returns its bytes of RAM.
    pub(crate) fn ram_bytes(&self) -> usize {
        self.content.len() + self.chunks.len() * size_of::<Chunk>() + size_of::<Self>()
    }
}

/// Returns the owner and the name of a record with this beginning, and the keys of its chunks in order; `None` if it is
/// not a container, or its table is longer. The chunks themselves are not verified.
pub(crate) fn keys_of(beginning: &[u8]) -> Option<(Tag, Name, Vec<Key>)> {
    let (tag, table, _) = parts_of(beginning)?;
    let keys = table.chunks_exact(ENTRY_BYTES).filter_map(|entry| entry.first_chunk().copied());
    Some((tag, name_of(table), keys.collect()))
}

/// Returns the owner, the table and the rest of an untrusted record.
fn parts_of(record: &[u8]) -> Option<(Tag, &[u8], &[u8])> {
    let (head, rest) = record.split_at_checked(HEADER_BYTES)?;
    let (magic, count) = head.split_first_chunk::<4>()?;
    let count = u32::from_le_bytes(count.try_into().ok()?) as usize;
    let (tag, rest) = match *magic {
        MAGIC => (NO_TAG, rest),
        OWNED_MAGIC => rest.split_first_chunk().map(|(tag, rest)| (*tag, rest))?,
        _ => return None,
    };
    if count > CONTAINER_CHUNKS_MAX {
        return None;
    }
    let (table, content) = rest.split_at_checked(count * ENTRY_BYTES)?;
    Some((tag, table, content))
}

/// Encodes the chunks' keys and lengths.
fn table_of(chunks: &[Chunk]) -> Vec<u8> {
    let mut table = Vec::with_capacity(chunks.len() * ENTRY_BYTES);
    for chunk in chunks {
        table.extend_from_slice(&chunk.key);
        table.extend_from_slice(&(chunk.bytes as u32).to_le_bytes());
    }
    table
}

fn name_of(table: &[u8]) -> Name {
    let mut hasher = blake3::Hasher::new_derive_key("nandex wan 1 container");
    hasher.update(table);
    beginning(hasher.finalize().as_bytes())
}

/// Puts new chunks into containers, in order. Both sides use the lengths alone, so they create the same containers.
pub(crate) fn containers_of(chunks: &[(Key, &[u8])]) -> Vec<Container> {
    let mut made = Vec::new();
    let mut rest = chunks;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |(_, chunk): &&(Key, &[u8])| {
            bytes += chunk.len();
            bytes <= CONTAINER_BYTES_MAX
        };
        // A chunk that is longer than a container has one of its own.
        let count = rest.iter().take(CONTAINER_CHUNKS_MAX).take_while(fits).count().max(1);
        let (now, later) = rest.split_at(count);
        made.push(Container::new(now));
        rest = later;
    }
    made
}

/// Returns the number of containers for chunks of these lengths.
pub(crate) fn container_count(lengths: &[usize]) -> usize {
    let (mut count, mut chunks, mut bytes) = (0, 0, 0);
    for length in lengths {
        if count == 0 || chunks == CONTAINER_CHUNKS_MAX || bytes + length > CONTAINER_BYTES_MAX {
            (count, chunks, bytes) = (count + 1, 0, 0);
        }
        (chunks, bytes) = (chunks + 1, bytes + length);
    }
    count
}

/// Returns the most containers for `chunks` chunks of `bytes` bytes: a container that is closed before it has its
/// maximum of chunks exceeds its limit together with the next chunk.
pub(crate) fn container_count_max(bytes: usize, chunks: usize) -> usize {
    2 * bytes / CONTAINER_BYTES_MAX + chunks / CONTAINER_CHUNKS_MAX + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    fn chunks(data: &[u8], bytes: usize) -> Vec<(Key, &[u8])> {
        data.chunks(bytes).map(|chunk| (key_of(chunk), chunk)).collect()
    }

    fn record(container: &Container) -> Vec<u8> {
        [&container.record_head()[..], container.content()].concat()
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_no_changed_one_is() {
        let data = noise(5000, 3);
        let made = containers_of(&chunks(&data, 1100));
        let [container] = &made[..] else { panic!("{} containers", made.len()) };
        for container in [container.clone(), container.clone().owned_by(&Owner::of(b"x"))] {
            let bytes = record(&container);
            assert_eq!(Container::proven(&bytes), Some(container.clone()));
            for at in (0..bytes.len()).step_by(7) {
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x10;
                // The owner does not matter here: a record with a changed tag is another owner's, and of no use to it.
                let found = Container::proven(&flipped);
                assert!(found.is_none_or(|it| it.tag() != container.tag()), "byte {at}");
            }
            for end in [0, 3, 8, 50, bytes.len() - 1] {
                assert_eq!(Container::proven(&bytes[..end]), None, "{end} bytes");
            }
        }
    }

    /// Records of a chunk `abc`, whose BLAKE3 begins with 6437: without an owner, and of the owner `x`.
    #[test]
    fn records_of_then_have_the_same_bytes_and_are_read() {
        let container = containers_of(&[(key_of(b"abc"), b"abc")]).remove(0);
        let table = "6437b3ac38465133ffb63b75273a8db548c5584603000000";
        let head = "4e574331".to_owned() + "01000000";
        let owned = "4e574332".to_owned() + "01000000" + "ac26e1c84d56152a454510d6304478da";
        let of_then = [
            (container.clone(), head + table + "616263"),
            (container.owned_by(&Owner::of(b"x")), owned + table + "616263"),
        ];
        for (container, hex) in of_then {
            let bytes = record(&container);
            let found: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, hex);
            assert_eq!(Container::proven(&bytes), Some(container));
        }
    }

    #[test]
    fn chunks_are_spread_over_containers_within_their_limits() {
        let data = noise(600_000, 4);
        for bytes in [100, 5000, 64 << 10, 100_000] {
            let chunks = chunks(&data, bytes);
            let made = containers_of(&chunks);
            let content: Vec<u8> = made.iter().flat_map(|it| it.content().to_vec()).collect();
            assert_eq!(content, data);
            for container in &made {
                let is_alone = container.chunks().len() == 1;
                assert!(is_alone || container.content().len() <= CONTAINER_BYTES_MAX);
                assert!(container.chunks().len() <= CONTAINER_CHUNKS_MAX);
            }
            let lengths: Vec<usize> = chunks.iter().map(|(_, chunk)| chunk.len()).collect();
            assert_eq!(container_count(&lengths), made.len());
            assert!(made.len() <= container_count_max(data.len(), lengths.len()));
        }
    }

    #[test]
    fn chunks_make_no_more_containers_than_their_bytes_and_number_allow() {
        let mut random = crate::testing::Random::new(1);
        for round in 0..200 {
            // Mostly lengths that close a container early, or exhaust chunks before bytes.
            let kinds: [usize; 4] = [1, 40, CONTAINER_BYTES_MAX / 2 + 1, CONTAINER_BYTES_MAX];
            let length = |random: &mut crate::testing::Random| {
                if round % 2 == 0 { kinds[random.below(2)] } else { kinds[random.below(4)] }
            };
            let lengths: Vec<usize> =
                (0..random.below(5000)).map(|_| length(&mut random)).collect();
            let most = container_count_max(lengths.iter().sum(), lengths.len());
            let found = container_count(&lengths);
            assert!(found <= most, "{found} containers, {most} expected at most");
        }
    }
}
