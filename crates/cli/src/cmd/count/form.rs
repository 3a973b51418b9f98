//! The storage of keys in a table of keys of one width, so that they can be read back.
//!
//! A table named `counts` has numbers, if its keys have 8 bytes, or texts, if they are wider: the text, zeros, and in
//! the last byte the text's length. A table of any other name, such as a program's, has keys of fixed width, stored
//! unchanged. So the catalog tells them apart, and a volume needs no other note.

use anyhow::{Result, bail};
use nandex::counting::{KEY_BYTES_MAX, Keys};

/// The name of tables of texts and numbers, and of fingerprints.
const NAME: &str = "counts";
/// The name that this command gives to tables of keys of fixed width.
const FIXED_NAME: &str = "fixed-counts";
/// The number of bytes of a number.
pub const NUMBER_BYTES: u8 = 8;
/// The longest key of fixed width, in bytes.
pub const FIXED_BYTES_MAX: u8 = KEY_BYTES_MAX as u8;
/// The longest text that can be stored whole, in bytes.
pub const TEXT_BYTES_MAX: u8 = FIXED_BYTES_MAX - 1;
/// The shortest limit of texts; keys of 8 bytes are numbers.
pub const TEXT_BYTES_MIN: u8 = NUMBER_BYTES;

/// The storage form of a table's keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyForm {
    /// Bytes of up to this length, whole.
    Texts(u8),
    /// Numbers from 0 to 2^64 - 1, whole.
    Numbers,
    /// Bytes of exactly this length, whole.
    Fixed(u8),
    /// A fingerprint of this many bytes; the keys cannot be read back.
    Fingerprints(u8),
}

impl KeyForm {
    /// Returns the form of the keys of the table of this name.
    pub fn of(name: &str, keys: Keys) -> Self {
        match keys {
            Keys::Fingerprints(bytes) => Self::Fingerprints(bytes),
            Keys::Whole(NUMBER_BYTES) if name == NAME => Self::Numbers,
            Keys::Whole(bytes) if name == NAME && bytes > NUMBER_BYTES => Self::Texts(bytes - 1),
            Keys::Whole(bytes) => Self::Fixed(bytes),
        }
    }

    /// Returns what the table stores.
    pub fn keys(self) -> Keys {
        match self {
            Self::Texts(longest) => Keys::Whole(longest + 1),
            Self::Numbers => Keys::Whole(NUMBER_BYTES),
            Self::Fixed(bytes) => Keys::Whole(bytes),
            Self::Fingerprints(bytes) => Keys::Fingerprints(bytes),
        }
    }

    /// The table's name in the catalog.
    pub fn name(self) -> &'static str {
        if matches!(self, Self::Fixed(_)) { FIXED_NAME } else { NAME }
    }

    /// Returns the width of all keys, if it is the same.
    pub fn width(self) -> Option<u8> {
        match self {
            Self::Numbers => Some(NUMBER_BYTES),
            Self::Fixed(bytes) => Some(bytes),
            Self::Texts(_) | Self::Fingerprints(_) => None,
        }
    }

    /// Returns whether the key is a text that does not fit.
    pub fn is_too_long(self, key: &[u8]) -> bool {
        matches!(self, Self::Texts(longest) if key.len() > longest.into())
    }

    /// Returns the stored bytes of a key.
    ///
    /// # Errors
    /// A key of a length that the table does not accept.
    pub fn store(self, key: &[u8]) -> Result<Vec<u8>> {
        match (self, self.width()) {
            (Self::Texts(longest), _) if self.is_too_long(key) => {
                bail!("it has {} bytes, and the table takes keys of up to {longest}", key.len())
            }
            (Self::Texts(longest), _) => {
                let mut stored = vec![0; usize::from(longest) + 1];
                stored[..key.len()].copy_from_slice(key);
                stored[usize::from(longest)] = key.len() as u8;
                Ok(stored)
            }
            (_, Some(width)) if key.len() != usize::from(width) => {
                bail!("a key of {} bytes: the table has keys of {width} bytes", key.len())
            }
            _ => Ok(key.to_vec()),
        }
    }

    /// Returns the key of stored bytes; a fingerprint is its own key.
    ///
    /// # Errors
    /// A stored text that this command did not make.
    pub fn key_of(self, stored: &[u8]) -> Result<&[u8]> {
        let (Self::Texts(_), Some((length, text))) = (self, stored.split_last()) else {
            return Ok(stored);
        };
        match text.split_at_checked((*length).into()) {
            Some((key, zeros)) if zeros.iter().all(|byte| *byte == 0) => Ok(key),
            _ => bail!(
                "the key {stored:02x?} does not end with the length of its text: a program made the table, and its \
                 library reads it"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back_as_they_were_stored() {
        let form = KeyForm::Texts(31);
        for key in [&b""[..], b"a", b"a\0", b"\xff\0\0", &[7; 31]] {
            assert_eq!(form.key_of(&form.store(key).unwrap()).unwrap(), key);
        }
        assert!(form.store(&[7; 32]).unwrap_err().to_string().contains("it has 32 bytes"));
        assert!(form.is_too_long(&[7; 32]) && !form.is_too_long(&[7; 31]));
        assert!(form.key_of(&[9; 32]).is_err() && form.key_of(&[32; 32]).is_err());
        for form in [KeyForm::Numbers, KeyForm::Fixed(8), KeyForm::Fingerprints(8)] {
            assert_eq!(
                form.key_of(&form.store(b"\0bytes\0\xff").unwrap()).unwrap(),
                b"\0bytes\0\xff"
            );
        }
        assert!(KeyForm::Fixed(3).store(b"four").unwrap_err().to_string().contains("4 bytes"));
    }

    #[test]
    fn the_catalog_tells_the_form() {
        for form in [
            KeyForm::Texts(31),
            KeyForm::Texts(8),
            KeyForm::Numbers,
            KeyForm::Fixed(1),
            KeyForm::Fixed(8),
            KeyForm::Fixed(32),
            KeyForm::Fingerprints(5),
        ] {
            assert_eq!(KeyForm::of(form.name(), form.keys()), form);
        }
        assert_eq!(KeyForm::of("a program's", Keys::Whole(9)), KeyForm::Fixed(9));
        assert_eq!(KeyForm::of(NAME, Keys::Whole(4)), KeyForm::Fixed(4));
    }
}
