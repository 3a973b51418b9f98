//! Randomness for keys and identities, from the kernel.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::{Error, Result};

/// Returns 128 random bits, good enough for a secret hashing key.
///
/// # Errors
/// [`Error::Entropy`] if the kernel refuses, as under a strict system call filter.
pub fn random_u128() -> Result<u128> {
    let mut bytes = [0_u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::Entropy { source: errno.into() }),
        }
    }
    Ok(u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_draws_differ() {
        assert_ne!(super::random_u128().unwrap(), super::random_u128().unwrap());
    }
}
