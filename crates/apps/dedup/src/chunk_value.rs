//! The table's value for a chunk under its fingerprint.
//!
//! The key is the whole digest, and no content is kept to compare with.

/// The number of bytes of a value in the table.
pub const VALUE_BYTES: usize = 8;

/// The table's value for a fingerprint: the chunk's length, then the number of the file that had it first,
/// both 32 bits little-endian.
///
/// The length guards against a table with other content. Files are numbered from 0 in the order of the run that
/// inserted the chunk, which is that of [`crate::Walk`]; from 2^32 - 1 on they share that last number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkValue {
    /// The number of bytes of the chunk.
    pub length: u32,
    /// The number of the first file, in the run that found it.
    pub file: u32,
}

impl ChunkValue {
    /// Encodes the value.
    #[must_use]
    pub fn encode(self) -> [u8; VALUE_BYTES] {
        let mut bytes = [0; VALUE_BYTES];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..].copy_from_slice(&self.file.to_le_bytes());
        bytes
    }

    /// Decodes a value; returns `None` if the bytes are not eight.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let file = rest.try_into().ok()?;
        Some(Self { length: u32::from_le_bytes(*length), file: u32::from_le_bytes(file) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_back_as_it_was_written() {
        let value = ChunkValue { length: 0x0102_0304, file: 0x0506_0708 };
        assert_eq!(value.encode(), [4, 3, 2, 1, 8, 7, 6, 5]);
        assert_eq!(ChunkValue::decode(&value.encode()), Some(value));
        assert_eq!(ChunkValue::decode(&[0; 7]), None);
        assert_eq!(ChunkValue::decode(&[0; 9]), None);
    }
}
