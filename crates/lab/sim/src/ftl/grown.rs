//! A table of numbers whose memory grows with the numbers written to it.

/// The numbers of a chunk; 16 KiB of them. With shorter chunks random writes are simulated more slowly.
const CHUNK: usize = 4096;

/// A number for each host page or place of a device, 0 until it is set.
///
/// ```text
///   chunks:  | - | * | - | * |        ends at the last chunk that was written
///                  |       |
///                  v       v
///              4096 numbers each, made by the first write to any of them
/// ```
///
/// Drives have up to some 10^9 places, and most simulations write a few MiB: a table of full size would
/// reserve gigabytes of addresses for that.
#[derive(Default, Debug)]
pub(super) struct GrownTable {
    chunks: Vec<Option<Box<[u32; CHUNK]>>>,
}

impl GrownTable {
    pub fn get(&self, index: u32) -> u32 {
        let index = index as usize;
        let chunk = self.chunks.get(index / CHUNK).and_then(Option::as_ref);
        chunk.map_or(0, |chunk| chunk[index % CHUNK])
    }

    pub fn set(&mut self, index: u32, number: u32) {
        let index = index as usize;
        if self.chunks.len() <= index / CHUNK {
            self.chunks.resize_with(index / CHUNK + 1, || None);
        }
        let chunk = self.chunks[index / CHUNK].get_or_insert_with(|| Box::new([0; CHUNK]));
        chunk[index % CHUNK] = number;
    }

    /// Returns the bytes of RAM that it uses.
    pub fn ram_bytes(&self) -> usize {
        let made = self.chunks.iter().flatten().count();
        made * size_of::<[u32; CHUNK]>()
            + self.chunks.capacity() * size_of::<Option<Box<[u32; CHUNK]>>>()
    }
}
