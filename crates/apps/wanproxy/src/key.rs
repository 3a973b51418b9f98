//! Shared keys: a file with 64 hex digits, which both halves have.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nandex_wan::Owner;

use crate::{Error, Result};

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Bytes of a key's name, which is sent in the clear.
pub(crate) const NAME_BYTES: usize = 16;

/// The most bytes of a key file of either kind.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A key shared by both halves.
///
/// It determines a name in the clear, by which the server half finds it; the secret of the handshake; and the owner of
/// all content transferred with it. Keys are equal if their names are.
#[derive(Clone)]
pub struct SharedKey {
    name: [u8; NAME_BYTES],
    secret: [u8; 32],
    owner: Owner,
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey").field("name", &self.shown_name()).finish_non_exhaustive()
    }
}

impl PartialEq for SharedKey {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SharedKey {}

impl SharedKey {
    /// Generates a new key, as the text of its file.
    ///
    /// # Errors
    /// [`Error::Options`] if the system has no random numbers.
    pub fn generate() -> Result<String> {
        let mut key = [0; KEY_BYTES];
        let read = rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty());
        if read != Ok(KEY_BYTES) {
            let reason = format!("the system gave no random numbers: {read:?}");
            return Err(Error::Options { field: "key", reason });
        }
        Ok(key.iter().map(|byte| format!("{byte:02x}")).chain(["\n".to_owned()]).collect())
    }

    /// Reads a key's file, which only its owner may read.
    ///
    /// # Errors
    /// [`Error::File`] for a file that cannot be read, that others may read, or that contains no key.
    pub fn read(path: &Path) -> Result<Self> {
        let refuse = |reason: String| Error::File { path: path.to_owned(), reason };
        check_private(path)?;
        let text = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        Self::of(&text).ok_or_else(|| {
            refuse("expected 64 hex digits, as `nandex wan proxy key` writes them".into())
        })
    }

    /// Parses the key from a text with 64 hex digits.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let digits = text.trim_end();
        let is_hex =
            digits.len() == 2 * KEY_BYTES && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let mut key = [0; KEY_BYTES];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        is_hex.then(|| Self::from_bytes(&key))
    }

    fn from_bytes(key: &[u8; KEY_BYTES]) -> Self {
        let mut name = [0; NAME_BYTES];
        let digest = blake3::derive_key("nandex wan proxy 1 key's name", key);
        name.copy_from_slice(&digest[..NAME_BYTES]);
        let secret = blake3::derive_key("nandex wan proxy 1 handshake", key);
        let owner = blake3::derive_key("nandex wan proxy 1 owner", key);
        Self { name, secret, owner: Owner::of(&owner) }
    }

    pub(crate) fn name(&self) -> [u8; NAME_BYTES] {
        self.name
    }

    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Returns the beginning of its name, which is not secret: for figures and messages.
    #[must_use]
    pub fn shown_name(&self) -> String {
        self.name[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Rejects a secret's file that others than its owner may read or write.
pub(crate) fn check_private(path: &Path) -> Result<()> {
    let refuse = |reason: String| Error::File { path: path.to_owned(), reason };
    let found = fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if found.len() > FILE_BYTES_MAX || !found.is_file() {
        return Err(refuse("expected a short file with a key".into()));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let reason =
            format!("others may use this secret: its mode is {mode:o}, expected 600; chmod 600 it");
        return Err(refuse(reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_keys_are_read_and_differ() {
        let (one, other) = (SharedKey::generate().unwrap(), SharedKey::generate().unwrap());
        let key = SharedKey::of(&one).unwrap();
        assert_eq!((one.len(), key.name()), (65, SharedKey::of(one.trim()).unwrap().name()));
        assert_ne!(key.name(), SharedKey::of(&other).unwrap().name());
        assert_ne!(key.secret(), SharedKey::of(&other).unwrap().secret());
    }

    #[test]
    fn what_is_no_key_is_refused_and_no_secret_is_shown() {
        let digits = "0123456789abcdef".repeat(4);
        let key = SharedKey::of(&digits).unwrap();
        let shown = format!("{key:?}");
        assert!(shown.contains(&key.shown_name()) && shown.len() < 60, "{shown}");
        for text in [
            "",
            "abc",
            &digits[1..],
            &format!("{digits}0"),
            &digits.replace('f', "é"),
            &"+1".repeat(32),
        ] {
            assert!(SharedKey::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_with_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, SharedKey::generate().unwrap()).unwrap();
        let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        set(0o644);
        assert!(SharedKey::read(&path).unwrap_err().to_string().contains("its mode is 644"));
        set(0o600);
        SharedKey::read(&path).unwrap();
        fs::write(&path, "no key").unwrap();
        assert!(SharedKey::read(&path).unwrap_err().to_string().contains("64 hex digits"));
        assert!(SharedKey::read(&folder.path().join("gone")).is_err());
    }
}
