//! The decoders of an index's own bytes, for fuzzing. Each takes any bytes, and panics only if it breaks its
//! invariants.

use super::record::Record;
use super::state::State;

/// Decodes a record; a valid one must encode to the same bytes.
///
/// # Panics
/// If the bytes differ.
pub fn decode_record(bytes: &[u8]) {
    if let Ok(record) = Record::decode(bytes, 7) {
        let again = Record::decode(&record.encode(), 7);
        assert!(again.is_ok_and(|again| again == record), "{record:?}");
    }
}

/// Decodes a state; a valid one must encode to the same bytes.
///
/// # Panics
/// If the bytes differ.
pub fn decode_state(bytes: &[u8]) {
    if let Ok(state) = State::decode(bytes) {
        let again = State::decode(&state.encode());
        assert!(again.is_ok_and(|again| again == state), "{state:?}");
    }
}
