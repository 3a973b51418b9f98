//! Variable-length numbers, and the decoding of untrusted bytes.

use crate::{Error, Result};

/// Appends a number, seven bits per byte, the lowest first; all but the last byte have their highest bit set.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends the difference of two numbers so that small ones of either sign take one byte.
pub(crate) fn put_difference(out: &mut Vec<u8>, number: u64, from: u64) {
    let difference = number.wrapping_sub(from) as i64;
    put_varint(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// The unread bytes of a frame.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    frame: u64,
}

impl<'a> Fields<'a> {
    /// Creates the fields of these bytes of a frame.
    pub(crate) fn new(bytes: &'a [u8], frame: u64) -> Self {
        Self { rest: bytes, frame }
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let found = self.rest.len();
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(|| {
            self.refuse(format!("expected {bytes} more bytes in it, found {found}"))
        })?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && byte > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.refuse("expected a number of 64 bits, found a longer one".into()))
    }

    /// Decodes a number of at most `most`.
    pub(crate) fn at_most(&mut self, what: &str, most: u64) -> Result<usize> {
        let found = self.varint()?;
        match usize::try_from(found).ok().filter(|_| found <= most) {
            Some(found) => Ok(found),
            None => Err(self.refuse(format!("expected {what} up to {most}, found {found}"))),
        }
    }

    /// Decodes a number from its difference to another one.
    pub(crate) fn difference(&mut self, from: u64) -> Result<u64> {
        let coded = self.varint()?;
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        Ok(from.wrapping_add(difference as u64))
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn refuse(&self, reason: String) -> Error {
        Error::frame(self.frame, reason)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(number: u64, from: u64) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            put_difference(&mut bytes, number, from);
            let mut fields = Fields::new(&bytes, 0);
            prop_assert_eq!(fields.varint().unwrap(), number);
            prop_assert_eq!(fields.difference(from).unwrap(), number);
            prop_assert!(fields.is_empty());
        }

        #[test]
        fn any_bytes_are_a_number_or_refused(bytes: [u8; 12]) {
            let mut fields = Fields::new(&bytes, 0);
            if let Ok(number) = fields.varint() {
                let mut again = Vec::new();
                put_varint(&mut again, number);
                prop_assert!(again.len() <= 10);
            }
        }
    }

    #[test]
    fn what_is_too_long_or_too_large_is_refused_with_the_place() {
        let refusal = |bytes: &[u8]| Fields::new(bytes, 7).varint().unwrap_err().to_string();
        assert!(refusal(&[0xff; 11]).contains("frame 7"));
        assert!(refusal(&[0x80]).contains("expected 1 more bytes"));
        let error = Fields::new(&[9], 0).at_most("chunks", 8).unwrap_err().to_string();
        assert!(error.contains("expected chunks up to 8, found 9"), "{error}");
    }
}
