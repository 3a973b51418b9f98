//! Both ends of a direction without their input and output: what is on its way, what waits, what is asked for again.
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

/// Containers that an answer names, at most.
const MISSING_MAX: u64 = 1 << 17;

/// The end that sends.
#[derive(Debug)]
pub(crate) struct Sending<C> {
    pub(crate) encoder: Encoder<C>,
    /// What was not taken yet.
    on_the_way: VecDeque<OnTheWay>,
    /// Bytes of the stream among that.
    bytes: usize,
}

/// A segment that was not taken yet, or the end.
#[derive(Debug)]
struct OnTheWay {
    kind: Kind,
    sequence: u64,
    bytes: usize,
    /// To send it again. One that goes as it is is never asked for.
    segment: Segment,
    /// The numbers of the containers that it makes.
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

    /// The frame of the next segment.
    pub(crate) fn segment(&mut self, segment: Segment) -> Result<Frame> {
        let before = self.encoder.stats;
        let encoded = self.encoder.encode(&segment);
        let (frame, made) = encoded.inspect_err(|_| self.encoder.stats = before)?;
        let on_the_way = OnTheWay::new(Kind::Segment, frame.sequence, segment.bytes().len());
        self.push(OnTheWay { segment, made, ..on_the_way });
        Ok(frame)
    }

    /// The frame of the next segment as it is.
    pub(crate) fn plain(&mut self, bytes: Vec<u8>) -> Frame {
        let sequence = self.encoder.note_plain(bytes.len());
        self.push(OnTheWay::new(Kind::Plain, sequence, bytes.len()));
        Frame { kind: Kind::Plain, sequence, body: bytes }
    }

    /// The frame of the end.
    pub(crate) fn end(&mut self) -> Frame {
        let end = self.encoder.end();
        self.push(OnTheWay::new(Kind::End, end.sequence, 0));
        end
    }

    fn push(&mut self, next: OnTheWay) {
        self.bytes += next.bytes;
        self.on_the_way.push_back(next);
    }

    /// Frames that were not taken yet, and their bytes of the stream.
    pub(crate) fn on_the_way(&self) -> (usize, usize) {
        (self.on_the_way.len(), self.bytes)
    }

    /// Does what an answer says; returns the frame that has to go then.
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
        // It could not be put together, so what it would have made is not there either.
        self.encoder.note_missing(numbers.into_iter().chain(first.made.clone()));
        self.encoder.encode_again(first.sequence, &first.segment)
    }

    /// What was asked for last, as it is: in place of one that the cache could not help to encode.
    pub(crate) fn plain_again(&self, answer: &Frame) -> Result<Frame> {
        let first = self.on_the_way.front().filter(|first| {
            first.kind == Kind::Segment && first.sequence == answer.sequence && first.was_missing
        });
        let first = first.ok_or_else(|| unexpected(answer))?;
        let (sequence, body) = (first.sequence, first.segment.bytes().to_vec());
        Ok(Frame { kind: Kind::Plain, sequence, body })
    }
}

/// The end that receives.
#[derive(Debug)]
pub(crate) struct Taking<C> {
    pub(crate) decoder: Decoder<C>,
    /// What is not done, in order.
    waiting: VecDeque<Waiting>,
    waiting_max: usize,
    /// Segments that came.
    registered: u64,
    /// Was the first one that waits asked for again?
    has_asked: bool,
    pub(crate) stats: DecodeStats,
}

/// A frame that is not done.
#[derive(Debug)]
enum Waiting {
    Segment(Registered),
    Plain(Vec<u8>),
    End(Frame),
}

/// What can be done without another frame.
#[derive(Debug)]
pub(crate) enum Step {
    /// These bytes are next; the answer is for when they were passed on.
    Pass { bytes: Vec<u8>, answer: Frame },
    /// The next segment has to come again.
    Ask(Frame),
    /// The stream is over; the answer is for when all of it was passed on.
    End(Frame),
}

impl<C: Deref<Target = Cache>> Taking<C> {
    /// Of frames that wait at most `waiting_max` are taken.
    pub(crate) fn new(decoder: Decoder<C>, waiting_max: usize) -> Self {
        let (waiting, stats) = (VecDeque::new(), DecodeStats::default());
        Self { decoder, waiting, waiting_max, registered: 0, has_asked: false, stats }
    }

    /// Takes a frame to those that wait.
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

    /// Puts what came again in the place of the first.
    fn replace(&mut self, again: Waiting) {
        self.has_asked = false;
        if let Some(first) = self.waiting.front_mut() {
            *first = again;
        }
    }

    /// Would the next step need the cache?
    pub(crate) fn needs_cache(&self) -> bool {
        !self.has_asked && matches!(self.waiting.front(), Some(Waiting::Segment(_)))
    }

    /// Does the first of those that wait; `None` if another frame must come before.
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

/// Refuses a frame.
pub(crate) fn unexpected(frame: &Frame) -> Error {
    let (kind, sequence) = (frame.kind, frame.sequence);
    Error::peer(format!(
        "it sent {kind:?} {sequence}, which nothing led to; is it of this version?"
    ))
}
