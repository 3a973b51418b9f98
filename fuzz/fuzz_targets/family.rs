//! A family of hashes from any bytes is refused or reads back the same, and so do its signatures.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex::raw::signature::{FAMILY_BYTES_MAX, Family};

/// The bytes of a family, which those of a signature follow.
const FAMILY_BYTES: usize = 28;

fn behaves(bytes: &[u8], signature: &[u8]) {
    let Ok(family) = Family::decode(bytes) else { return };
    let encoded = family.encode();
    assert!(encoded == bytes && encoded.len() <= FAMILY_BYTES_MAX);
    assert!(family.tables() > 0 && family.signature_bytes() > 0);
    for at in [0.0, 0.5, 1.0, 1e30] {
        let probability = family.candidate_probability(at);
        assert!((-1e-6..=1.000_001).contains(&probability), "{family:?} at {at}: {probability}");
    }
    let mut wanted = vec![0; family.signature_bytes()];
    wanted.iter_mut().zip(signature).for_each(|(byte, with)| *byte = *with);
    let read = family.decode_signature(&wanted).expect("it is as long as it must be");
    let mut again = Vec::new();
    read.encode(&family, &mut again);
    assert_eq!(again, wanted);
}

fuzz_target!(|data: &[u8]| {
    behaves(data, &[]);
    for length in [8, FAMILY_BYTES - 4, FAMILY_BYTES] {
        if let Some((family, signature)) = data.split_at_checked(length) {
            behaves(family, signature);
        }
    }
});
