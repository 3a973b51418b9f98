//! The encoding of a family, as an index of neighbours stores it, and of signatures. See docs/reference/format.md.

use super::{Bands, Family, Scheme, SimHashBits};
use crate::{Error, Result};

/// The version of the bytes.
const VERSION: u8 = 1;

/// The kind of family, in its second byte.
const MINHASH: u8 = 1;
const SIMHASH: u8 = 2;
const PSTABLE: u8 = 3;

/// The maximum number of bytes of a family.
pub const FAMILY_BYTES_MAX: usize = 256;

impl Family {
    /// Encodes it, in at most [`FAMILY_BYTES_MAX`] bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match *self {
            Self::MinHash { permutations, bands, scheme, seed } => {
                let numbers = [permutations, bands.count, bands.rows];
                encoded([MINHASH, scheme_number(scheme)], &numbers, &seed.to_le_bytes())
            }
            Self::SimHash { bits, distance } => {
                encoded([SIMHASH, bits.count() as u8], &[distance], &[])
            }
            Self::PStable { dimensions, tables, projections, width, seed } => {
                let numbers = [dimensions, tables, projections, width.to_bits()];
                encoded([PSTABLE, 0], &numbers, &seed.to_le_bytes())
            }
        }
    }

    /// Decodes the result of [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`Error::Config`] for a family of another version, invalid bytes, and parameters that cannot work.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let family = parsed(bytes).ok_or_else(|| Error::Config {
            field: "family",
            reason: format!(
                "expected a family of hashes of version {VERSION}, found {} bytes that begin with {:?}; give the volume \
                 of a near-duplicate index, or a program of its version",
                bytes.len(),
                &bytes[..bytes.len().min(4)]
            ),
        })?;
        family.validate()?;
        Ok(family)
    }
}

fn encoded([kind, detail]: [u8; 2], numbers: &[u32], end: &[u8]) -> Vec<u8> {
    let mut bytes = vec![VERSION, kind, detail, 0];
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend_from_slice(end);
    bytes
}

fn parsed(bytes: &[u8]) -> Option<Family> {
    let (&[version, kind, detail, zero], rest) = bytes.split_first_chunk::<4>()?;
    if version != VERSION || zero != 0 {
        return None;
    }
    match kind {
        MINHASH => {
            let ([permutations, count, rows], rest) = numbers(rest)?;
            let seed = u64::from_le_bytes(rest.try_into().ok()?);
            let bands = Bands { count, rows };
            Some(Family::MinHash { permutations, bands, scheme: scheme_of(detail)?, seed })
        }
        SIMHASH => {
            let ([distance], rest) = numbers(rest)?;
            let bits = SimHashBits::of(detail.into()).filter(|_| rest.is_empty())?;
            Some(Family::SimHash { bits, distance })
        }
        PSTABLE if detail == 0 => {
            let ([dimensions, tables, projections, width], rest) = numbers(rest)?;
            let seed = u64::from_le_bytes(rest.try_into().ok()?);
            let width = f32::from_bits(width);
            Some(Family::PStable { dimensions, tables, projections, width, seed })
        }
        _ => None,
    }
}

/// Reads several numbers, and returns the bytes after them.
fn numbers<const N: usize>(bytes: &[u8]) -> Option<([u32; N], &[u8])> {
    let (words, rest) = bytes.split_at_checked(4 * N)?;
    let (words, _) = words.as_chunks::<4>();
    let mut numbers = [0; N];
    for (number, word) in numbers.iter_mut().zip(words) {
        *number = u32::from_le_bytes(*word);
    }
    Some((numbers, rest))
}

fn scheme_number(scheme: Scheme) -> u8 {
    let found = Scheme::NUMBERS.iter().find(|(it, _)| *it == scheme);
    found.map_or(0, |(_, number)| *number)
}

fn scheme_of(number: u8) -> Option<Scheme> {
    let found = Scheme::NUMBERS.iter().find(|(_, it)| *it == number);
    found.map(|(scheme, _)| *scheme)
}
