//! The header of numpy's `.npy` arrays, version 1.0.

/// Bytes that a header's length is a multiple of.
const ALIGN: usize = 64;

/// The bytes before the text of the header: a mark, the version, the length of the text.
const START: usize = 10;

/// Returns the header of an array of this type, such as `<f8`, and shape, such as `(3,)`.
pub(super) fn header(kind: &str, shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let len = (START + text.len() + 1).next_multiple_of(ALIGN) - START;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    // Three short words fit 16 bits.
    header.extend(u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes());
    header.extend(text.as_bytes());
    header.resize(START + len - 1, b' ');
    header.push(b'\n');
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_what_numpy_writes() {
        // numpy.save of numpy.zeros(3), its first 128 bytes.
        let found = header("<f8", "(3,)");
        assert_eq!(&found[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert_eq!(found.len(), 128);
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }";
        assert_eq!(&found[10..10 + text.len()], text.as_bytes());
        assert!(found[10 + text.len()..127].iter().all(|byte| *byte == b' '));
        assert_eq!(found[127], b'\n');
    }
}
