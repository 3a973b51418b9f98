//! The names of chunks.
//!
//! Two chunks with one SHA-1 or BLAKE3 digest count as the same bytes, as in the BufferHash paper, section 8. SHA-1
//! collisions can be made on purpose; if an adversary chooses the content, use BLAKE3.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sha1::Digest;

use crate::{Error, Result};

/// The number of bytes of the longest digest.
const DIGEST_BYTES_MAX: usize = 32;

/// The hash that names a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hash {
    /// BLAKE3, 32 bytes: the fastest, and no collision is known.
    #[default]
    Blake3,
    /// SHA-1, 20 bytes: the paper's choice, and a key that is 12 bytes smaller.
    Sha1,
}

impl Hash {
    /// All hashes, the default first.
    pub const ALL: [Self; 2] = [Self::Blake3, Self::Sha1];

    /// The number of bytes of a digest, and so of a key in the table.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Blake3 => 32,
            Self::Sha1 => 20,
        }
    }

    /// The name in options and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Sha1 => "sha1",
        }
    }

    /// Returns the fingerprint of a chunk.
    #[must_use]
    pub fn fingerprint(self, chunk: &[u8]) -> Fingerprint {
        match self {
            Self::Blake3 => Fingerprint::new(blake3::hash(chunk).as_bytes()),
            Self::Sha1 => Fingerprint::new(&sha1::Sha1::digest(chunk)),
        }
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Hash {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let named = Self::ALL.into_iter().find(|hash| hash.name() == word);
        named.ok_or_else(|| Error::Name {
            what: "hash",
            found: word.to_owned(),
            choices: "blake3, sha1",
        })
    }
}

/// A chunk's digest, held inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    bytes: [u8; DIGEST_BYTES_MAX],
    len: u8,
}

impl Fingerprint {
    fn new(digest: &[u8]) -> Self {
        let mut bytes = [0; DIGEST_BYTES_MAX];
        bytes[..digest.len()].copy_from_slice(digest);
        let len = u8::try_from(digest.len()).expect("a digest has at most 32 bytes");
        Self { bytes, len }
    }

    /// Returns the digest: the key in the table.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        assert_eq!(
            Hash::Sha1.fingerprint(b"abc").to_string(),
            "a9993e364706816aba3e25717850c26c9cd0d89d"
        );
        assert_eq!(
            Hash::Blake3.fingerprint(b"").to_string(),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
    }

    #[test]
    fn a_key_is_as_wide_as_its_hash_says() {
        for hash in Hash::ALL {
            assert_eq!(hash.fingerprint(b"x").as_bytes().len(), hash.key_bytes());
            assert_eq!(hash.name().parse::<Hash>().unwrap(), hash);
        }
        assert!("md5".parse::<Hash>().is_err());
    }
}
