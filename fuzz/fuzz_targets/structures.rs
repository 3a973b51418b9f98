//! The decoders of every structure in the registry, chosen by the first byte: any bytes are refused or read
//! without leaving them, and the result keeps the decoder's laws.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_baseline::registry;

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let decoders: Vec<_> = registry::rows().flat_map(|row| row.decoders).collect();
    (decoders[usize::from(*choice) % decoders.len()].run)(bytes);
});
