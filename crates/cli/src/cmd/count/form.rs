//! How keys of any length are stored in a table of keys of one width, so that they can be read back.
//!
//! Whole keys of 8 bytes are numbers. Wider ones are texts: the text, zeros, and in the last byte the text's length.
//! The width alone tells which, so a volume needs no other note.

use anyhow::{Result, bail};
use nandex::counting::{KEY_BYTES_MAX, Keys};

/// Bytes of a number.
const NUMBER_BYTES: u8 = 8;
/// The longest text that can be stored whole, in bytes.
pub const TEXT_BYTES_MAX: u8 = KEY_BYTES_MAX as u8 - 1;
/// The shortest limit of texts; keys of 8 bytes are numbers.
pub const TEXT_BYTES_MIN: u8 = NUMBER_BYTES;

/// How a table's keys are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyForm {
    /// Bytes of up to this length, whole.
    Texts(u8),
    /// Numbers from 0 to 2^64 - 1, whole.
    Numbers,
    /// A fingerprint of this many bytes; the keys cannot be read back.
    Fingerprints(u8),
}

impl KeyForm {
    /// The form of the keys of a table that this command made.
    ///
    /// # Errors
    /// Keys of a width that it does not make.
    pub fn of(keys: Keys) -> Result<Self> {
        match keys {
            Keys::Fingerprints(bytes) => Ok(Self::Fingerprints(bytes)),
            Keys::Whole(NUMBER_BYTES) => Ok(Self::Numbers),
            Keys::Whole(bytes) if bytes > NUMBER_BYTES => Ok(Self::Texts(bytes - 1)),
            Keys::Whole(bytes) => bail!(
                "the table has whole keys of {bytes} bytes, expected {NUMBER_BYTES} or more: a program made it, and \
                 its library reads it"
            ),
        }
    }

    /// What the table stores.
    pub fn keys(self) -> Keys {
        match self {
            Self::Texts(longest) => Keys::Whole(longest + 1),
            Self::Numbers => Keys::Whole(NUMBER_BYTES),
            Self::Fingerprints(bytes) => Keys::Fingerprints(bytes),
        }
    }

    /// The bytes that the table takes for a key.
    ///
    /// # Errors
    /// A key that is too long or no number.
    pub fn encode(self, key: &[u8]) -> Result<Vec<u8>> {
        match self {
            Self::Fingerprints(_) => Ok(key.to_vec()),
            Self::Numbers => {
                let text = std::str::from_utf8(key).ok();
                match text.and_then(|text| text.trim().parse::<u64>().ok()) {
                    Some(number) => Ok(number.to_le_bytes().to_vec()),
                    None => bail!(
                        "`{}` is no number; expected one from 0 to 2^64 - 1",
                        String::from_utf8_lossy(key)
                    ),
                }
            }
            Self::Texts(longest) if key.len() > longest.into() => bail!(
                "it has {} bytes, and the table takes keys of up to {longest}: make one with --longest, up to \
                 {TEXT_BYTES_MAX}, or of fingerprints with --fpr",
                key.len()
            ),
            Self::Texts(longest) => {
                let mut stored = vec![0; usize::from(longest) + 1];
                stored[..key.len()].copy_from_slice(key);
                stored[usize::from(longest)] = key.len() as u8;
                Ok(stored)
            }
        }
    }

    /// The key as users write it; of a fingerprint its digits in hex.
    ///
    /// # Errors
    /// A stored key that this command did not make.
    pub fn decode(self, stored: &[u8]) -> Result<Vec<u8>> {
        let hex = || stored.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        match (self, stored.split_last()) {
            (Self::Texts(_), Some((length, text)))
                if text
                    .get(usize::from(*length)..)
                    .is_some_and(|rest| rest.iter().all(|it| *it == 0)) =>
            {
                Ok(text[..usize::from(*length)].to_vec())
            }
            (Self::Texts(_), _) => bail!(
                "the key {} does not end with the length of its text: a program made the table, and its library \
                 reads it",
                hex()
            ),
            (Self::Numbers, _) => match stored.try_into() {
                Ok(bytes) => Ok(u64::from_le_bytes(bytes).to_string().into_bytes()),
                Err(_) => bail!("the key {} has no {NUMBER_BYTES} bytes", hex()),
            },
            (Self::Fingerprints(_), _) => Ok(hex().into_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back_as_they_were_written() {
        let form = KeyForm::Texts(31);
        for key in [&b""[..], b"a", b"a\0", b"\xff\0\0", &[7; 31]] {
            assert_eq!(form.decode(&form.encode(key).unwrap()).unwrap(), key);
        }
        assert!(form.encode(&[7; 32]).unwrap_err().to_string().contains("it has 32 bytes"));
        assert!(form.decode(&[9; 32]).is_err(), "a program's key");
        let numbers = KeyForm::Numbers;
        assert_eq!(
            numbers.decode(&numbers.encode(b"18446744073709551615").unwrap()).unwrap(),
            b"18446744073709551615"
        );
        assert!(numbers.encode(b"-1").is_err());
        for form in [form, numbers, KeyForm::Fingerprints(5), KeyForm::Texts(8)] {
            assert_eq!(KeyForm::of(form.keys()).unwrap(), form);
        }
    }
}
