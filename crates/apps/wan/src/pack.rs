//! zstd with a prefix: the rest of a segment, compressed as if the prefix preceded it.

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, get_error_name};

use crate::{Error, Result};

/// The longest prefix followed by the longest segment, as a power of two.
const WINDOW_LOG_MAX: u32 = 24;

/// The shortest window of zstd.
const WINDOW_LOG_MIN: u32 = 10;

/// Long matches are searched for from this many equal bytes on, at one position in 32. The hash tables of a low level
/// are too small for a prefix of megabytes, and zstd's own 64 bytes are too many for changed lines. One position in
/// eight finds 2 % more and takes half as long again.
const LONG_MATCH_BYTES: u32 = 32;
const LONG_RATE_LOG: u32 = 5;

/// From this level on, zstd's tables are larger than the least limit of them.
const LEVEL_HIGH: i32 = 4;

/// Compresses `data` after `prefix` at a level. `tables_log` limits the tables of high levels, as a power of two.
pub(crate) fn pack(
    prefix: &[u8],
    data: &[u8],
    (level, tables_log): (i32, Option<u32>),
) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(data.len()));
    let bytes = (prefix.len() + data.len()).max(1);
    let window_log =
        (usize::BITS - (bytes - 1).leading_zeros()).clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX);
    let mut context = CCtx::create();
    let parameters = [
        CParameter::CompressionLevel(level),
        CParameter::WindowLog(window_log),
        CParameter::ContentSizeFlag(false),
        CParameter::EnableLongDistanceMatching(true),
        CParameter::LdmMinMatch(LONG_MATCH_BYTES),
        CParameter::LdmHashRateLog(LONG_RATE_LOG),
    ];
    for parameter in parameters {
        context.set_parameter(parameter).map_err(failed)?;
    }
    if let Some(log) = tables_log.filter(|_| level >= LEVEL_HIGH) {
        context.set_parameter(CParameter::HashLog(log)).map_err(failed)?;
        context.set_parameter(CParameter::ChainLog(log)).map_err(failed)?;
    }
    context.ref_prefix(prefix).map_err(failed)?;
    context.compress2(&mut out, data).map_err(failed)?;
    Ok(out)
}

/// Decompresses the data after `prefix`; `None` unless it has exactly `bytes` bytes.
pub(crate) fn unpack(prefix: &[u8], packed: &[u8], bytes: usize) -> Result<Option<Vec<u8>>> {
    let mut out = Vec::with_capacity(bytes);
    let mut context = DCtx::create();
    context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(failed)?;
    context.ref_prefix(prefix).map_err(failed)?;
    // Whatever the bytes are: decompression fails when the space for the result is full.
    let unpacked = context.decompress(&mut out, packed);
    Ok((unpacked.is_ok() && out.len() == bytes).then_some(out))
}

fn failed(code: usize) -> Error {
    Error::Compression { reason: get_error_name(code).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    #[test]
    fn a_prefix_takes_away_what_it_has() {
        let (prefix, tail) = (noise(200_000, 1), noise(100, 2));
        let data = [&prefix[50_000..150_000], &tail].concat();
        let packed = pack(&prefix, &data, (3, None)).unwrap();
        assert!(packed.len() < 400, "{} bytes", packed.len());
        assert_eq!(unpack(&prefix, &packed, data.len()).unwrap(), Some(data.clone()));
        let alone = pack(&[], &data, (3, None)).unwrap();
        assert!(alone.len() > data.len());
        assert_eq!(unpack(&[], &alone, data.len()).unwrap(), Some(data));
    }

    #[test]
    fn nothing_is_packed_and_unpacked() {
        assert_eq!(unpack(&[], &pack(&[], &[], (3, None)).unwrap(), 0).unwrap(), Some(Vec::new()));
    }

    #[test]
    fn more_or_fewer_bytes_than_promised_are_refused() {
        let bomb = pack(&[], &vec![0; 8 << 20], (19, None)).unwrap();
        assert!(bomb.len() < 2000);
        for bytes in [0, 1000, (8 << 20) - 1, (8 << 20) + 1] {
            assert_eq!(unpack(&[], &bomb, bytes).unwrap(), None, "{bytes}");
        }
        assert_eq!(unpack(&[], &bomb[..bomb.len() / 2], 8 << 20).unwrap(), None);
    }
}
