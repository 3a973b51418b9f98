//! Numbers in the fewest bytes, as used in blocks of an index.

/// Appends a number, seven bits per byte, the lowest first; the high bit of all bytes but the last is set.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Decodes a number; returns it and its end, or `None` if there is no number of 64 bits.
#[inline]
pub(crate) fn varint(bytes: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        let bits = u64::from(byte & 0x7f);
        if (bits << shift) >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some((number, at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written_and_bytes_that_are_none_are_refused() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = vec![7];
            put_varint(&mut out, number);
            assert_eq!(varint(&out, 1), Some((number, out.len())));
            assert_eq!(varint(&out[..out.len() - 1], 1), None);
        }
        assert_eq!(varint(&[0xff; 11], 0), None);
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], 0), None);
    }
}
