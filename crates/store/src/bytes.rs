//! All little-endian access to fixed places in byte slices, and copies of short ones, in one place.
//!
//! The `get` and `put` functions are for places whose length the caller has verified, and panic past the end;
//! [`Reader`] is for bytes that may be anything, and returns an error.

use nandex_device::PageId;

use crate::{Error, Result};

macro_rules! access {
    ($get:ident, $put:ident, $kind:ty, $doc:literal) => {
        #[doc = concat!("The ", $doc, " at byte `at`.\n\n# Panics\nIf it reaches past the end.")]
        #[must_use]
        #[inline]
        pub fn $get(bytes: &[u8], at: usize) -> $kind {
            let mut word = [0; size_of::<$kind>()];
            word.copy_from_slice(&bytes[at..at + size_of::<$kind>()]);
            <$kind>::from_le_bytes(word)
        }

        #[doc = concat!("Puts a ", $doc, " at byte `at`.\n\n# Panics\nIf it reaches past the end.")]
        #[inline]
        pub fn $put(bytes: &mut [u8], at: usize, value: $kind) {
            bytes[at..at + size_of::<$kind>()].copy_from_slice(&value.to_le_bytes());
        }
    };
}

access!(get_u16, put_u16, u16, "16-bit number");
access!(get_u32, put_u32, u32, "32-bit number");
access!(get_u64, put_u64, u64, "64-bit number");

/// Copies a few bytes, such as a key or a value. Those of usual widths are moved without a call.
///
/// # Panics
/// If the lengths differ.
#[inline]
pub fn copy_short(to: &mut [u8], from: &[u8]) {
    match from.len() {
        8 if to.len() == 8 => to[..8].copy_from_slice(&from[..8]),
        16 if to.len() == 16 => to[..16].copy_from_slice(&from[..16]),
        _ => to.copy_from_slice(from),
    }
}

/// Appends a few bytes, as [`copy_short`] copies them.
#[inline]
pub fn extend_from_short(to: &mut Vec<u8>, from: &[u8]) {
    match from.len() {
        8 => to.extend_from_slice(&from[..8]),
        16 => to.extend_from_slice(&from[..16]),
        _ => to.extend_from_slice(from),
    }
}

/// The checksum of everything that is stored: CRC32C.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Reads fields one after another from bytes that may be anything.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    what: &'static str,
    page: PageId,
}

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`, which are a `what` from `page`.
    #[must_use]
    pub fn new(bytes: &'a [u8], what: &'static str, page: PageId) -> Self {
        Self { bytes, what, page }
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when there are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.bytes.split_at_checked(count) else {
            return Err(Error::corrupt(
                self.what,
                self.page,
                format!("{count} more byte(s)"),
                format!("{}", self.bytes.len()),
            ));
        };
        self.bytes = rest;
        Ok(head)
    }

    /// The next 8-bit number.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// The next 16-bit number.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn u16(&mut self) -> Result<u16> {
        Ok(get_u16(self.take(2)?, 0))
    }

    /// The next 32-bit number.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn u32(&mut self) -> Result<u32> {
        Ok(get_u32(self.take(4)?, 0))
    }

    /// The next 64-bit number.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn u64(&mut self) -> Result<u64> {
        Ok(get_u64(self.take(8)?, 0))
    }

    /// The next 128-bit number.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn u128(&mut self) -> Result<u128> {
        let low = u128::from(self.u64()?);
        Ok(low | u128::from(self.u64()?) << 64)
    }

    /// Reads the number of the items that follow, each of at least `item_bytes`. Fails when the remaining bytes cannot
    /// hold them, so that no allocation is sized by a damaged count.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn count(&mut self, item_bytes: usize) -> Result<usize> {
        let count = self.u32()? as usize;
        if count.checked_mul(item_bytes.max(1)).is_none_or(|bytes| bytes > self.bytes.len()) {
            return Err(self.refuse(
                format!("at most {} items", self.bytes.len() / item_bytes.max(1)),
                format!("{count}"),
            ));
        }
        Ok(count)
    }

    /// A field's bytes, preceded by their number.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn field(&mut self) -> Result<&'a [u8]> {
        let count = self.count(1)?;
        self.take(count)
    }

    /// Returns the error for a field with an impossible value.
    #[must_use]
    pub fn refuse(&self, expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
        Error::corrupt(self.what, self.page, expected, found)
    }

    /// The number of bytes that remain.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len()
    }
}

/// Appends a field's bytes, preceded by their number.
///
/// # Panics
/// If the field is longer than 4 GiB.
pub fn put_field(out: &mut Vec<u8>, field: &[u8]) {
    let count = u32::try_from(field.len()).expect("a field is shorter than 4 GiB");
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(field);
}
