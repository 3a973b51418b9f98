//! The records and the state of an index of near-duplicates, chosen by the first byte: any bytes are refused or read
//! back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_neardup::testing::{decode_record, decode_state};

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    if choice % 2 == 0 { decode_record(bytes) } else { decode_state(bytes) }
});
