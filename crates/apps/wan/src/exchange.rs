//! Both ends of a direction without their input and output: the content in transit, the waiting content, and the
//! repeated requests.
//!
//! [`channel`](crate::channel) moves their frames with threads that block, [`live`](crate::live) leaves that to
//! another crate.

use std::collections::VecDeque;
use std::ops::{Deref, Range};

use crate::cache::Cache;
use crate::decode::{Decoded, Decoder, Registered};
use crate::encode::Encoder;
use crate::fields::{Fields, put_varint};
use crate::frame::{Frame, Kind};
use crate::segment::Segment;
use crate::stream::check_end;
use crate::{DecodeStats, Error, Result};

/// The most containers that an answer names.
const MISSING_MAX: u64 = 1 << 17;

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sending<C> {
    pub(crate) encoder: Encoder<C>,
    /// The unacknowledged content.
    on_the_way: VecDeque<OnTheWay>,
    /// The bytes of the stream in it.
    bytes: usize,
}

/// An unacknowledged segment, or the end.
#[derive(Debug)]
struct OnTheWay {
    kind: Kind,
    sequence: u64,
    bytes: usize,
    /// To send it again. An unencoded segment is never requested again.
    segment: Segment,
    /// The numbers of the containers that it creates.
    made: Range<u64>,
    was_missing: bool,
}

impl OnTheWay {
    fn new(kind: Kind, sequence: u64, bytes: usize) -> Self {
        let (segment, made) = (Segment::default(), 0..0);
        Self { kind, sequence, bytes, segment, made, was_missing: false }
    }
}

impl<C: Deref<Target = Cache>> Sending<C> {
    pub(crate) fn new(encoder: Encoder<C>) -> Self {
        Self { encoder, on_the_way: VecDeque::new(), bytes: 0 }
    }

    /// Returns the frame of the next segment.
    pub(crate) fn segment(&mut self, segment: Segment) -> Result<Frame> {
        let before = self.encoder.stats;
        let encoded = self.encoder.encode(&segment);
        let (frame, made) = encoded.inspect_err(|_| self.encoder.stats = before)?;
        let on_the_way = OnTheWay::new(Kind::Segment, frame.sequence, segment.bytes().len());
        self.push(OnTheWay { segment, made, ..on_the_way });
        Ok(frame)
    }

    /// Returns the frame of the next segment, unencoded.
    pub(crate) fn plain(&mut self, bytes: Vec<u8>) -> Frame {
        let sequence = self.encoder.note_plain(bytes.len());
        self.push(OnTheWay::new(Kind::Plain, sequence, bytes.len()));
        Frame { kind: Kind::Plain, sequence, body: bytes }
    }

    /// Returns the frame of the end.
    pub(crate) fn end(&mut self) -> Frame {
        let end = self.encoder.end();
        self.push(OnTheWay::new(Kind::End, end.sequence, 0));
        end
    }

    fn push(&mut self, next: OnTheWay) {
        self.bytes += next.bytes;
        self.on_the_way.push_back(next);
    }

    /// Returns the number of unacknowledged frames, and their bytes of the stream.
    pub(crate) fn on_the_way(&self) -> (usize, usize) {
        (self.on_the_way.len(), self.bytes)
    }

    /// Processes an answer; returns the frame that must be sent in response.
    pub(crate) fn act_on(&mut self, answer: &Frame) -> Result<Option<Frame>> {
        match answer.kind {
            Kind::Taken => self.note_taken(answer).map(|()| None),
            Kind::Missing => self.again(answer).map(Some),
            _ => Err(unexpected(answer)),
        }
    }

    fn note_taken(&mut self, answer: &Frame) -> Result<()> {
        let first = self.on_the_way.pop_front();
        let taken = first.filter(|first| first.sequence == answer.sequence);
        let taken = taken.ok_or_else(|| unexpected(answer))?;
        self.bytes -= taken.bytes;
        if !taken.was_missing && taken.kind != Kind::Plain {
            self.encoder.note_taken();
        }
        Ok(())
    }

    fn again(&mut self, answer: &Frame) -> Result<Frame> {
        let mut fields = Fields::new(&answer.body, answer.sequence);
        let count = fields.at_most("missing containers", MISSING_MAX)?;
        let numbers: Vec<u64> = (0..count).map(|_| fields.varint()).collect::<Result<_>>()?;
        let first = self.on_the_way.front_mut().filter(|first| {
            let is_asked = first.sequence == answer.sequence && !first.was_missing;
            is_asked && first.kind == Kind::Segment
        });
        let first = first.ok_or_else(|| unexpected(answer))?;
        first.was_missing = true;
        // It could not be assembled, so its new containers do not exist either.
        self.encoder.note_missing(numbers.into_iter().chain(first.made.clone()));
        self.encoder.encode_again(first.sequence, &first.segment)
    }

    /// Returns the last requested segment, unencoded: in place of one that the cache failed to encode.
    pub(crate) fn plain_again(&self, answer: &Frame) -> Result<Frame> {
        let first = self.on_the_way.front().filter(|first| {
            first.kind == Kind::Segment && first.sequence == answer.sequence && first.was_missing
        });
        let first = first.ok_or_else(|| unexpected(answer))?;
        let (sequence, body) = (first.sequence, first.segment.bytes().to_vec());
        Ok(Frame { kind: Kind::Plain, sequence, body })
    }
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Taking<C> {
    pub(crate) decoder: Decoder<C>,
    /// The unfinished frames, in order.
    waiting: VecDeque<Waiting>,
    waiting_max: usize,
    /// The number of segments received.
    registered: u64,
    /// Whether the first waiting one was requested again.
    has_asked: bool,
    pub(crate) stats: DecodeStats,
}

/// An unfinished frame.
#[derive(Debug)]
enum Waiting {
    Segment(Registered),
    Plain(Vec<u8>),
    End(Frame),
}

/// A step that is possible without another frame.
#[derive(Debug)]
pub(crate) enum Step {
    /// These bytes are next; the answer must be sent after they were passed on.
    Pass { bytes: Vec<u8>, answer: Frame },
    /// The next segment must be sent again.
    Ask(Frame),
    /// The stream is over; the answer must be sent after all of it was passed on.
    End(Frame),
}

impl<C: Deref<Target = Cache>> Taking<C> {
    /// Creates the receiving end; at most `waiting_max` frames may wait.
    pub(crate) fn new(decoder: Decoder<C>, waiting_max: usize) -> Self {
        let (waiting, stats) = (VecDeque::new(), DecodeStats::default());
        Self { decoder, waiting, waiting_max, registered: 0, has_asked: false, stats }
    }

    /// Adds a frame to the waiting ones.
    pub(crate) fn take(&mut self, frame: Frame) -> Result<()> {
        let is_over = matches!(self.waiting.back(), Some(Waiting::End(_)));
        let is_next = frame.sequence == self.registered && !is_over;
        let has_space = self.waiting.len() < self.waiting_max;
        let is_asked = self.has_asked && frame.sequence == self.stats.segments;
        match frame.kind {
            Kind::Segment if is_next && has_space => {
                let registered = self.decoder.register(frame)?;
                self.push(Waiting::Segment(registered));
            }
            Kind::Plain if is_next && has_space => self.push(Waiting::Plain(frame.body)),
            Kind::End if is_next => self.waiting.push_back(Waiting::End(frame)),
            Kind::Again if is_asked => {
                let registered = self.decoder.register(frame)?;
                self.replace(Waiting::Segment(registered));
            }
            Kind::Plain if is_asked => self.replace(Waiting::Plain(frame.body)),
            _ => return Err(unexpected(&frame)),
        }
        Ok(())
    }

    fn push(&mut self, next: Waiting) {
        self.waiting.push_back(next);
        self.registered += 1;
    }

    /// Replaces the first by the repeated segment.
    fn replace(&mut self, again: Waiting) {
        self.has_asked = false;
        if let Some(first) = self.waiting.front_mut() {
            *first = again;
        }
    }

    /// Returns whether the next step needs the cache.
    pub(crate) fn needs_cache(&self) -> bool {
        !self.has_asked && matches!(self.waiting.front(), Some(Waiting::Segment(_)))
    }

    /// Processes the first waiting frame; `None` if another frame must come before.
    pub(crate) fn step(&mut self) -> Result<Option<Step>> {
        if self.has_asked {
            return Ok(None);
        }
        let decoded = match self.waiting.front_mut() {
            None => return Ok(None),
            Some(Waiting::End(frame)) => {
                check_end(frame, &self.stats)?;
                return Ok(Some(Step::End(answer(Kind::Taken, frame.sequence, Vec::new()))));
            }
            Some(Waiting::Plain(bytes)) => Decoded::Segment(std::mem::take(bytes)),
            Some(Waiting::Segment(registered)) => self.decoder.decode(registered)?,
        };
        Ok(Some(match decoded {
            Decoded::Segment(bytes) => self.pass(bytes),
            Decoded::Missing(numbers) => self.ask(&numbers),
        }))
    }

    fn pass(&mut self, bytes: Vec<u8>) -> Step {
        self.waiting.pop_front();
        let sequence = self.stats.segments;
        self.stats.segments += 1;
        self.stats.stream_bytes += bytes.len() as u64;
        Step::Pass { bytes, answer: answer(Kind::Taken, sequence, Vec::new()) }
    }

    fn ask(&mut self, numbers: &[u64]) -> Step {
        let mut body = Vec::new();
        put_varint(&mut body, numbers.len() as u64);
        numbers.iter().for_each(|number| put_varint(&mut body, *number));
        self.has_asked = true;
        self.stats.again_segments += 1;
        Step::Ask(answer(Kind::Missing, self.stats.segments, body))
    }
}

fn answer(kind: Kind, sequence: u64, body: Vec<u8>) -> Frame {
    Frame { kind, sequence, body }
}

/// The error of an unexpected frame.
pub(crate) fn unexpected(frame: &Frame) -> Error {
    let (kind, sequence) = (frame.kind, frame.sequence);
    Error::peer(format!(
        "it sent {kind:?} {sequence}, which nothing led to; is it of this version?"
    ))
}
