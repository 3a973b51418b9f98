//! Frames: the units on the wire or in a file, shown in docs/reference/format.md.
//!
//! Each frame has a magic, a kind, its length, its number and a checksum of all that. Lengths have limits, so that no
//! frame makes its reader allocate more than [`BODY_BYTES_MAX`] before it is known to be complete.

use std::io::{self, ErrorKind, Read, Write};

use crate::{Error, Result};

/// The version of streams.
pub(crate) const VERSION: u8 = 1;

/// The bytes before a frame's body.
pub(crate) const HEADER_BYTES: usize = 24;

/// The most bytes of a body: a segment that zstd cannot make shorter, and its references.
pub(crate) const BODY_BYTES_MAX: usize = 12 << 20;

/// The first bytes of every frame.
const MAGIC: [u8; 4] = *b"NDXW";

/// The kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The first frame of each side: the version.
    Hello = 1,
    /// A segment of the stream.
    Segment = 2,
    /// A segment that was requested again: it contains no references.
    Again = 3,
    /// The end: the length of the stream.
    End = 4,
    /// An answer: this segment refers to missing content.
    Missing = 5,
    /// An answer: this segment, or the end, was taken.
    Taken = 6,
    /// An unencoded segment of a live stream; files and pipes have none.
    Plain = 7,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let all = [Self::Hello, Self::Segment, Self::Again, Self::End, Self::Missing, Self::Taken];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// A frame with a valid checksum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    /// The number of its segment.
    pub(crate) sequence: u64,
    pub(crate) body: Vec<u8>,
}

impl Frame {
    /// Returns the first frame of a side.
    pub(crate) fn hello() -> Self {
        Self { kind: Kind::Hello, sequence: 0, body: vec![VERSION] }
    }

    /// Returns its bytes.
    #[cfg(test)]
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.header()[..], &self.body].concat()
    }

    /// Returns the bytes before its body.
    fn header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[self.kind as u8, 0, 0, 0]);
        out.extend_from_slice(&(self.body.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&out), &self.body);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// Writes it; returns the number of its bytes.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<u64> {
        out.write_all(&self.header())?;
        out.write_all(&self.body)?;
        Ok((HEADER_BYTES + self.body.len()) as u64)
    }
}

/// A reader of frames.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    source: R,
    /// The number of frames read.
    pub(crate) count: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

/// The reason for the absence of a frame.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The source ended, between two frames or in one.
    Ended,
    /// The source failed.
    Failed(io::Error),
    /// The bytes are not a frame.
    Refused(Error),
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, count: 0, bytes: 0 }
    }

    /// Returns the next frame.
    pub(crate) fn next(&mut self) -> std::result::Result<Frame, Broken> {
        let mut header = [0; HEADER_BYTES];
        self.fill(&mut header)?;
        let (kind, bytes) = self.check(&header).map_err(Broken::Refused)?;
        let mut body = vec![0; bytes];
        self.fill(&mut body)?;
        let (before, sum) = header.split_at(HEADER_BYTES - 4);
        if crc32c::crc32c_append(crc32c::crc32c(before), &body).to_le_bytes() != *sum {
            let reason = "its checksum does not fit its bytes";
            return Err(Broken::Refused(Error::frame(self.count, reason)));
        }
        self.count += 1;
        self.bytes += (HEADER_BYTES + bytes) as u64;
        let mut sequence = [0; 8];
        sequence.copy_from_slice(&header[12..20]);
        Ok(Frame { kind, sequence: u64::from_le_bytes(sequence), body })
    }

    /// Reads the first frame, and rejects other versions.
    pub(crate) fn hello(&mut self) -> std::result::Result<(), Broken> {
        let refuse = |reason: String| Err(Broken::Refused(Error::NoStream { reason }));
        let frame = match self.next() {
            Err(Broken::Refused(error)) => return refuse(error.to_string()),
            other => other?,
        };
        match (frame.kind, &frame.body[..]) {
            (Kind::Hello, [VERSION]) => Ok(()),
            (Kind::Hello, [found, ..]) => refuse(format!(
                "expected version {VERSION}, found {found}; use a program of its version"
            )),
            (kind, _) => refuse(format!("expected its first frame, found one of kind {kind:?}")),
        }
    }

    fn check(&self, header: &[u8; HEADER_BYTES]) -> Result<(Kind, usize)> {
        if header[..4] != MAGIC {
            let found = &header[..4];
            return Err(Error::frame(
                self.count,
                format!("expected {MAGIC:?} at its beginning, found {found:?}"),
            ));
        }
        let Some(kind) = Kind::of(header[4]) else {
            let found = header[4];
            return Err(Error::frame(
                self.count,
                format!("expected a kind of 1 to 6, found {found}"),
            ));
        };
        let bytes = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        if bytes > BODY_BYTES_MAX {
            let reason = format!("expected at most {BODY_BYTES_MAX} bytes in it, found {bytes}");
            return Err(Error::frame(self.count, reason));
        }
        Ok((kind, bytes))
    }

    fn fill(&mut self, buffer: &mut [u8]) -> std::result::Result<(), Broken> {
        self.source.read_exact(buffer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Broken::Ended,
            _ => Broken::Failed(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> std::result::Result<Frame, Broken> {
        Frames::new(bytes).next()
    }

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let frame = Frame { kind: Kind::Segment, sequence: 1 << 40, body: vec![1, 2, 3] };
        assert_eq!(read(&frame.encode()).unwrap(), frame);
        let bytes = [frame.encode(), Frame::hello().encode()].concat();
        let mut frames = Frames::new(&bytes[..]);
        assert_eq!(frames.next().unwrap(), frame);
        frames.hello().unwrap();
        assert!(matches!(frames.next(), Err(Broken::Ended)));
        assert_eq!((frames.count, frames.bytes), (2, 27 + 25));
    }

    #[test]
    fn every_flipped_bit_is_refused_and_every_cut_is_an_end() {
        let bytes = Frame { kind: Kind::Again, sequence: 5, body: vec![7; 40] }.encode();
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert!(read(&flipped).is_err(), "bit {at}");
        }
        for end in 0..bytes.len() {
            assert!(matches!(read(&bytes[..end]), Err(Broken::Ended)), "{end}");
        }
    }

    #[test]
    fn a_long_body_is_refused_before_it_is_read() {
        let mut bytes = Frame::hello().encode();
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let Err(Broken::Refused(error)) = read(&bytes) else { panic!("it was read") };
        assert!(error.to_string().contains("found 4294967295"), "{error}");
    }

    #[test]
    fn another_version_or_another_file_is_named() {
        let mut frame = Frame::hello();
        frame.body = vec![9];
        let Err(Broken::Refused(error)) = Frames::new(&frame.encode()[..]).hello() else {
            panic!("it was taken")
        };
        assert!(error.to_string().contains("expected version 1, found 9"), "{error}");
        let Err(Broken::Refused(error)) = Frames::new(&[b'x'; 100][..]).hello() else {
            panic!("it was taken")
        };
        assert!(error.to_string().contains("readable stream of nandex wan"), "{error}");
    }
}
