//! The bytes of values: a number that is checked, and filler of any length after it.
//!
//! Workloads know values as numbers, and engines store them with `--value-bytes` bytes. The first
//! [`VALUE_BYTES`] bytes are the number. The filler is made from it, so it is different for each key and
//! version and does not compress. It is compared when a value is read: half of one value and half of another
//! are an error.

use anyhow::{Result, ensure};

use crate::keys::{GOLDEN, VALUE_BYTES, mix};

/// Writes the value of `number` to all of `value`.
///
/// # Panics
/// Panics if `value` is shorter than the number.
pub fn encode(number: u64, value: &mut [u8]) {
    let (first, filler) = value.split_at_mut(VALUE_BYTES);
    first.copy_from_slice(&number.to_le_bytes());
    for (place, bytes) in (1..).zip(filler.chunks_mut(8)) {
        bytes.copy_from_slice(&filler_word(number, place)[..bytes.len()]);
    }
}

/// Returns the number of a value of `value_bytes` bytes.
///
/// # Errors
/// Fails for a value of another width, or whose filler is not that of its number.
pub fn decode(value: &[u8], value_bytes: usize) -> Result<u64> {
    let found = value.len();
    ensure!(found == value_bytes, "a value came back {found} bytes wide, not {value_bytes}");
    let Some((first, filler)) = value.split_first_chunk() else {
        anyhow::bail!("a value came back {found} bytes wide, less than its number");
    };
    let number = u64::from_le_bytes(*first);
    for (place, bytes) in (1..).zip(filler.chunks(8)) {
        ensure!(
            *bytes == filler_word(number, place)[..bytes.len()],
            "the value {number:#018x} came back with other bytes than were stored, from byte {} on",
            8 * place
        );
    }
    Ok(number)
}

/// Returns eight bytes of filler.
fn filler_word(number: u64, place: u64) -> [u8; 8] {
    mix(number.wrapping_add(GOLDEN.wrapping_mul(place))).to_le_bytes()
}

/// Encodes and decodes values of one width, in a reused buffer.
#[derive(Clone, Debug)]
pub struct Values {
    value_bytes: usize,
    buffer: Vec<u8>,
}

impl Values {
    /// Creates a codec for values of `value_bytes` bytes.
    ///
    /// # Panics
    /// Panics if the number does not fit into them.
    #[must_use]
    pub fn new(value_bytes: usize) -> Self {
        assert!(value_bytes >= VALUE_BYTES, "values of {value_bytes} bytes hold no number");
        Self { value_bytes, buffer: vec![0; value_bytes] }
    }

    /// Returns the value of `number`.
    pub fn one(&mut self, number: u64) -> &[u8] {
        self.buffer.resize(self.value_bytes, 0);
        encode(number, &mut self.buffer);
        &self.buffer
    }

    /// Returns the values of `numbers`, in their order.
    pub fn all(
        &mut self,
        numbers: impl ExactSizeIterator<Item = u64>,
    ) -> impl Iterator<Item = &[u8]> {
        self.buffer.resize(numbers.len() * self.value_bytes, 0);
        for (number, value) in numbers.zip(self.buffer.chunks_exact_mut(self.value_bytes)) {
            encode(number, value);
        }
        self.buffer.chunks_exact(self.value_bytes)
    }

    /// The number of a value.
    ///
    /// # Errors
    /// Fails as [`decode`] does.
    pub fn number(&self, value: &[u8]) -> Result<u64> {
        decode(value, self.value_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_leads_back_to_its_number_at_every_width() {
        for value_bytes in [8, 9, 15, 16, 17, 100, 4096] {
            let mut values = Values::new(value_bytes);
            let one = values.one(7).to_vec();
            assert_eq!((one.len(), values.number(&one).unwrap()), (value_bytes, 7));
            let all: Vec<_> = values.all([8, 7, 9].into_iter()).map(<[u8]>::to_vec).collect();
            assert_eq!((all.len(), &all[1]), (3, &one));
            assert_eq!(values.one(9), all[2]);
        }
        assert_eq!(Values::new(8).one(7), 7u64.to_le_bytes());
    }

    #[test]
    fn a_value_of_another_width_or_with_one_other_byte_is_an_error() {
        let mut values = Values::new(100);
        let value = values.one(7).to_vec();
        assert!(values.number(&value[..99]).is_err());
        assert!(decode(&[1, 2, 3], 3).is_err());
        for place in 0..value.len() {
            let mut other = value.clone();
            other[place] ^= 1;
            let message = values.number(&other).unwrap_err().to_string();
            assert!(message.contains("other bytes than were stored"), "{message}");
        }
    }

    #[test]
    fn bytes_of_filler_are_all_as_frequent() {
        let mut counts = [0u32; 256];
        let mut values = Values::new(108);
        for value in values.all((0..10_000u32).map(u64::from)) {
            value[8..].iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        }
        // A million bytes, 3906 of each: six standard deviations are 375.
        assert!(counts.iter().all(|count| (3531..4282).contains(count)), "{counts:?}");
    }
}
