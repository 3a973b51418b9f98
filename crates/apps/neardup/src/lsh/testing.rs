//! The decoders of an index's own bytes, for fuzzing. Each takes any bytes, and panics only if it breaks its
//! invariants.

use super::block::Block;
use super::state::State;

/// Decodes a block; a valid one must encode to the same bytes.
///
/// # Panics
/// If the bytes differ.
pub fn decode_block(bytes: &[u8]) {
    if let Ok(block) = Block::decode(bytes, 3, 7) {
        let again = Block::decode(&block.encode(), 3, 7);
        assert!(again.is_ok_and(|again| again == block), "{block:?}");
    }
}

/// Decodes a state; a valid one must encode to the same bytes.
///
/// # Panics
/// If the bytes differ.
pub fn decode_lsh_state(bytes: &[u8]) {
    if let Ok(state) = State::decode(Some(bytes)) {
        let again = State::decode(Some(&state.encode()));
        assert!(again.is_ok_and(|again| again == state), "{state:?}");
    }
}
