//! Numbers of documents, by the hashes of their ids and texts.

use nandex::{AnyTable, Result, Table};

/// Bytes of a document's number.
pub(super) const NUMBER_BYTES: usize = 8;

/// The hash of an id or a text in the table of numbers.
pub(super) type Hash = [u8; 16];

/// Returns the numbers under these hashes.
///
/// # Errors
/// A failed read, damage.
pub(super) fn numbers_of(numbers: &AnyTable, hashes: &[Hash]) -> Result<Vec<Option<u64>>> {
    let keys: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
    let found = numbers.get_many(&keys)?.into_iter();
    let number = |value: nandex::Value| (*value).try_into().ok().map(u64::from_le_bytes);
    Ok(found.map(|value| value.and_then(number)).collect())
}

/// Puts numbers under hashes.
///
/// # Errors
/// RAM or flash that is full, a failed write.
pub(super) fn put_numbers(numbers: &AnyTable, pairs: &[(Hash, u64)]) -> Result<()> {
    let pairs: Vec<(&Hash, [u8; NUMBER_BYTES])> =
        pairs.iter().map(|(hash, number)| (hash, number.to_le_bytes())).collect();
    let pairs: Vec<(&[u8], &[u8])> =
        pairs.iter().map(|(hash, number)| (&hash[..], &number[..])).collect();
    numbers.insert_many(&pairs)
}
