//! Streams in one direction: into a file of references, and back.
//!
//! Missing content cannot be requested here. So the file is only useful with a cache that has the content it refers to.

use std::io::{Read, Write};

use crate::cache::{Cache, View};
use crate::decode::{Decoded, Decoder};
use crate::encode::{EncodeOptions, Encoder};
use crate::fields::Fields;
use crate::frame::{Broken, Frame, Frames, Kind};
use crate::owner::Owner;
use crate::{DecodeStats, EncodeStats, Error, Result};

/// Encodes a stream against a cache, and adds new content to the cache, durably.
///
/// Costs the lookups of its chunks and anchors, a read of each container that zstd gets as prefix, and a write of new
/// content to flash. RAM: a segment and its prefix a few times, and the cache's.
///
/// # Errors
/// Invalid options; an input, an output or a cache that fails. The output so far is not a whole stream.
pub fn encode(
    cache: &Cache,
    input: &mut impl Read,
    output: &mut impl Write,
    options: EncodeOptions,
) -> Result<EncodeStats> {
    let cuts = options.cuts(cache.stream_limits())?;
    let mut encoder = Encoder::new(View::new(cache, Owner::default()), &options);
    let mut frame_bytes = write(output, &Frame::hello())?;
    cuts.for_each_segment(input, |segment| {
        frame_bytes += write(output, &encoder.encode(&segment)?.0)?;
        Ok(())
    })?;
    frame_bytes += write(output, &encoder.end())?;
    output.flush().map_err(Error::Output)?;
    cache.sync()?;
    Ok(EncodeStats { frame_bytes, ..encoder.stats })
}

fn write(output: &mut impl Write, frame: &Frame) -> Result<u64> {
    frame.write(output).map_err(Error::Output)
}

/// Decodes a stream with the cache that it was encoded against, or one that has all of that content.
///
/// # Errors
/// A stream that is cut off, damaged or of another version, missing content; an input, an output or a cache that fails.
/// The output so far is the beginning of the stream.
pub fn decode(
    cache: &Cache,
    input: &mut impl Read,
    output: &mut impl Write,
) -> Result<DecodeStats> {
    let mut frames = Frames::new(input);
    let mut stats = DecodeStats::default();
    let mut decoder = Decoder::new(View::new(cache, Owner::default()));
    frames.hello().map_err(|broken| of_input(broken, 0))?;
    loop {
        let frame = frames.next().map_err(|broken| of_input(broken, frames.count))?;
        match frame.kind {
            Kind::Segment if frame.sequence == stats.segments => {
                let registered = decoder.register(frame)?;
                let bytes = match decoder.decode(&registered)? {
                    Decoded::Segment(bytes) => bytes,
                    Decoded::Missing(numbers) => return Err(missing(stats.segments, &numbers)),
                };
                output.write_all(&bytes).map_err(Error::Output)?;
                stats.segments += 1;
                stats.stream_bytes += bytes.len() as u64;
            }
            Kind::End => {
                check_end(&frame, &stats)?;
                output.flush().map_err(Error::Output)?;
                return Ok(DecodeStats { frame_bytes: frames.bytes, ..stats });
            }
            kind => {
                let (expected, found) = (stats.segments, frame.sequence);
                let reason = format!("expected segment {expected}, found {kind:?} {found}");
                return Err(Error::frame(frames.count - 1, reason));
            }
        }
    }
}

/// Fails if the end does not match the received segments.
pub(crate) fn check_end(frame: &Frame, stats: &DecodeStats) -> Result<()> {
    let mut fields = Fields::new(&frame.body, frame.sequence);
    let (expected, found) =
        ((frame.sequence, fields.varint()?), (stats.segments, stats.stream_bytes));
    if expected == found && fields.is_empty() {
        return Ok(());
    }
    let reason = format!("its end says {expected:?} segments and bytes, and {found:?} came");
    Err(fields.refuse(reason))
}

fn missing(segment: u64, numbers: &[u64]) -> Error {
    let reason = format!("{} containers of it were recycled, or never came", numbers.len());
    Error::Missing { segment, reason }
}

fn of_input(broken: Broken, frames: u64) -> Error {
    match broken {
        Broken::Ended => Error::Truncated { frames },
        Broken::Failed(error) => Error::Input(error),
        Broken::Refused(error) => error,
    }
}
