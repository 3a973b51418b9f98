//! Records and states of the indexes of near-duplicates, chosen by the first byte: any bytes are refused or read
//! back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_neardup::lsh::testing::{decode_block, decode_lsh_state};
use nandex_neardup::testing::{decode_record, decode_state};

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    match choice % 4 {
        0 => decode_record(bytes),
        1 => decode_state(bytes),
        2 => decode_block(bytes),
        _ => decode_lsh_state(bytes),
    }
});
