//! Messages between the two sides of a live stream, as bytes. docs/reference/format.md shows them.

use super::LIVE_SEGMENT_BYTES_MAX;
use crate::fields::{Fields, put_varint};
use crate::frame::{Frame, Kind};
use crate::{Error, Result};

/// The most bytes of a message's body: a segment that zstd cannot make shorter, and its references.
pub const LIVE_BODY_BYTES_MAX: usize = LIVE_SEGMENT_BYTES_MAX + (256 << 10);

/// The most bytes of the numbers of missing containers.
const MISSING_BYTES_MAX: usize = 256 << 10;

/// The most bytes of a short text.
const WORDS_BYTES_MAX: usize = 300;

/// The most bytes before a body.
const HEADER_BYTES_MAX: usize = 1 + 10 + 5;

/// The kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum MessageKind {
    /// The next segment.
    Segment = 1,
    /// The requested segment, without references.
    Again = 2,
    /// The next or the requested segment, unencoded.
    Plain = 3,
    /// The stream is over in this direction.
    End = 4,
    /// An answer: this segment refers to missing content.
    Missing = 5,
    /// An answer: this segment, or the end, was taken.
    Taken = 6,
    /// The target of a connection: text.
    Open = 16,
    /// It is open.
    Opened = 17,
    /// It cannot be opened: a reason in the first byte of [`Message::body`], and text.
    Refused = 18,
    /// Nothing; it shows the other side that this one is alive.
    Ping = 19,
    /// The connection behind this side was reset, or has failed: text.
    Reset = 20,
}

impl MessageKind {
    const ALL: [Self; 11] = [
        Self::Segment,
        Self::Again,
        Self::Plain,
        Self::End,
        Self::Missing,
        Self::Taken,
        Self::Open,
        Self::Opened,
        Self::Refused,
        Self::Ping,
        Self::Reset,
    ];

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Returns the most bytes of its body.
    fn body_bytes_max(self) -> usize {
        match self {
            Self::Segment | Self::Again => LIVE_BODY_BYTES_MAX,
            Self::Plain => LIVE_SEGMENT_BYTES_MAX,
            Self::End => 10,
            Self::Missing => MISSING_BYTES_MAX,
            Self::Taken => 1,
            Self::Opened | Self::Ping => 0,
            Self::Open | Self::Refused | Self::Reset => WORDS_BYTES_MAX,
        }
    }

    /// Returns whether it is about the opposite direction.
    #[must_use]
    pub fn is_answer(self) -> bool {
        matches!(self, Self::Missing | Self::Taken)
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its kind.
    pub kind: MessageKind,
    /// The number of its segment; 0 if it has none.
    pub sequence: u64,
    /// The rest of it.
    pub body: Vec<u8>,
}

impl Message {
    /// Creates a message without a segment. Text that is too long is cut.
    #[must_use]
    pub fn of(kind: MessageKind, body: &[u8]) -> Self {
        let bytes = body.len().min(kind.body_bytes_max());
        Self { kind, sequence: 0, body: body[..bytes].to_vec() }
    }

    /// Appends its bytes: its [head](Self::encode_head), and its body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(HEADER_BYTES_MAX + self.body.len());
        self.encode_head(out);
        out.extend_from_slice(&self.body);
    }

    /// Appends the part before its body: its kind, and its number and the bytes of its body as varints.
    pub fn encode_head(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        put_varint(out, self.sequence);
        put_varint(out, self.body.len() as u64);
    }

    /// Decodes the message at the beginning of some bytes, and returns it with its length; `None` if more bytes are
    /// needed, which are at most [`LIVE_BODY_BYTES_MAX`] and 16. Allocates no memory before all of them are present.
    ///
    /// # Errors
    /// [`Error::NoStream`] if the bytes do not begin a message.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>> {
        let Some(first) = bytes.first() else { return Ok(None) };
        let kind = MessageKind::of(*first).ok_or_else(|| {
            refuse(format!("expected the kind of a message, found {first}; is it of this version?"))
        })?;
        let Some((sequence, rest)) = varint(&bytes[1..])? else { return Ok(None) };
        let Some((length, rest)) = varint(rest)? else { return Ok(None) };
        let most = kind.body_bytes_max();
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= most) else {
            return Err(refuse(format!(
                "expected at most {most} bytes of {kind:?}, found {length}"
            )));
        };
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let used = bytes.len() - rest.len() + length;
        Ok(Some((Self { kind, sequence, body: body.to_vec() }, used)))
    }

    /// Returns the number of its bytes, for counters.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        let mut head = Vec::with_capacity(HEADER_BYTES_MAX);
        self.encode_head(&mut head);
        head.len() + self.body.len()
    }

    /// Converts it into a frame, if it is of a stream.
    pub(super) fn into_frame(self) -> Result<Frame> {
        let kind = match self.kind {
            MessageKind::Segment => Kind::Segment,
            MessageKind::Again => Kind::Again,
            MessageKind::Plain => Kind::Plain,
            MessageKind::End => Kind::End,
            MessageKind::Missing => Kind::Missing,
            MessageKind::Taken => Kind::Taken,
            other => {
                return Err(refuse(format!("expected a message of a stream, found {other:?}")));
            }
        };
        Ok(Frame { kind, sequence: self.sequence, body: self.body })
    }
}

impl From<Frame> for Message {
    fn from(frame: Frame) -> Self {
        let kind = match frame.kind {
            Kind::Segment => MessageKind::Segment,
            Kind::Again => MessageKind::Again,
            Kind::Plain => MessageKind::Plain,
            Kind::End => MessageKind::End,
            Kind::Missing => MessageKind::Missing,
            Kind::Taken => MessageKind::Taken,
            // No end of a live stream produces one.
            Kind::Hello => MessageKind::Ping,
        };
        Self { kind, sequence: frame.sequence, body: frame.body }
    }
}

/// Decodes a varint, and returns it with the rest; `None` if its last byte is not present yet.
fn varint(bytes: &[u8]) -> Result<Option<(u64, &[u8])>> {
    let is_whole = bytes.iter().take(10).any(|byte| byte & 0x80 == 0);
    if !is_whole && bytes.len() < 10 {
        return Ok(None);
    }
    let mut fields = Fields::new(bytes, 0);
    let number = fields.varint()?;
    Ok(Some((number, fields.rest())))
}

fn refuse(reason: String) -> Error {
    Error::NoStream { reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_are_read_as_they_were_written(
            kind in 0..MessageKind::ALL.len(), sequence: u64, body: Vec<u8>, after: Vec<u8>,
        ) {
            let mut message = Message::of(MessageKind::ALL[kind], &body);
            message.sequence = sequence;
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), message.encoded_bytes());
            for end in 0..bytes.len() {
                prop_assert_eq!(Message::decode(&bytes[..end]).unwrap(), None);
            }
            let used = bytes.len();
            bytes.extend_from_slice(&after);
            prop_assert_eq!(Message::decode(&bytes).unwrap(), Some((message, used)));
        }

        #[test]
        fn any_bytes_are_a_message_or_its_beginning_or_refused(bytes: Vec<u8>) {
            if let Ok(Some((message, used))) = Message::decode(&bytes) {
                prop_assert!(used <= bytes.len() && message.body.len() <= used);
            }
        }
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_comes() {
        let refusal = |bytes: &[u8]| Message::decode(bytes).unwrap_err().to_string();
        let mut bytes = vec![MessageKind::Plain as u8, 0];
        put_varint(&mut bytes, LIVE_SEGMENT_BYTES_MAX as u64 + 1);
        assert!(refusal(&bytes).contains("expected at most 1048576 bytes of Plain, found 1048577"));
        assert!(refusal(&[99]).contains("expected the kind of a message, found 99"));
        assert!(refusal(&[&[1][..], &[0xff; 10]].concat()).contains("64 bits"));
    }
}
