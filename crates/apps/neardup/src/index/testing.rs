//! The decoders of an index's own bytes, for fuzzing. Each takes any bytes, and panics only if it breaks its laws.

use super::record::Record;
use super::state::State;

/// A record is refused, or is the same again when it is written.
///
/// # Panics
/// If it is another one then.
pub fn decode_record(bytes: &[u8]) {
    if let Ok(record) = Record::decode(bytes, 7) {
        let again = Record::decode(&record.encode(), 7);
        assert!(again.is_ok_and(|again| again == record), "{record:?}");
    }
}

/// A state is refused, or is the same again when it is written.
///
/// # Panics
/// If it is another one then.
pub fn decode_state(bytes: &[u8]) {
    if let Ok(state) = State::decode(bytes) {
        let again = State::decode(&state.encode());
        assert!(again.is_ok_and(|again| again == state), "{state:?}");
    }
}
