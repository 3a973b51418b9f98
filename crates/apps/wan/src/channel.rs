//! Streams over a channel with two directions: what the receiver does not have, it asks for.
//!
//! ```text
//!   sender     Hello  Segment 0  Segment 1  Segment 2 ...  Again 1  Segment 3 ... End        --->
//!   receiver   Hello             Taken 0    Missing 1      Taken 1  Taken 2 ...   Taken end  <---
//! ```
//!
//! 1. The sender keeps a segment until it was taken, at most [`WINDOW_SEGMENTS`] of them, so it can send each of them
//!    again, whatever its own cache still has.
//! 2. The receiver passes segments on in order. While it waits for one that it asked for, it only registers those that
//!    come after it.
//! 3. The end is taken when all of the stream was passed on. Only then does the sender succeed.
//! 4. The receiver answers and reads on; a thread of the sender takes answers. So neither waits for the other to read.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::cache::Cache;
use crate::decode::{Decoded, Decoder, Registered};
use crate::encode::{EncodeOptions, Encoder};
use crate::fields::{Fields, put_varint};
use crate::frame::{Broken, Frame, Frames, Kind};
use crate::segment::Segment;
use crate::stream::check_end;
use crate::{DecodeStats, EncodeStats, Error, Result};

/// Segments on their way, at most.
const WINDOW_SEGMENTS: usize = 16;

/// Answers that wait for the sender, at most.
const ANSWERS_MAX: usize = 4 * WINDOW_SEGMENTS;

/// Containers that an answer names, at most.
const MISSING_MAX: u64 = 1 << 17;

/// How long a sender waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// Sends a stream to [`receive`] at the other side, and adds what is new to the cache.
///
/// Costs as [`encode`](crate::encode()), and RAM for the segments on their way, 16 at most. What the other side lacks
/// goes over once more, without references.
///
/// # Errors
/// Options that cannot work; an input or a cache that fails; another side that ends early, sends what is no answer, or
/// sends none for ten minutes.
pub fn send(
    cache: &Cache,
    input: &mut impl Read,
    (answers, out): (impl Read + Send + 'static, impl Write),
    options: EncodeOptions,
) -> Result<EncodeStats> {
    let cuts = options.cuts()?;
    let (answered, taken) = sync_channel(ANSWERS_MAX);
    // It ends when the other side closes the channel. Nobody waits for it: the other side may never do that.
    thread::spawn(move || take_answers(Frames::new(answers), &answered));
    let mut sender = Sender {
        encoder: Encoder::new(cache, &options),
        out,
        answers: taken,
        on_the_way: VecDeque::new(),
        frame_bytes: 0,
    };
    sender.put(&Frame::hello())?;
    cuts.for_each_segment(input, |segment| sender.send(segment))?;
    sender.finish()?;
    cache.sync()?;
    Ok(EncodeStats { frame_bytes: sender.frame_bytes, ..sender.encoder.stats })
}

/// The sender's thread that reads answers.
fn take_answers(
    mut frames: Frames<impl Read>,
    answered: &SyncSender<std::result::Result<Frame, Broken>>,
) {
    if let Err(broken) = frames.hello() {
        // The sender has ended if nobody takes it.
        let _ = answered.send(Err(broken));
        return;
    }
    loop {
        let frame = frames.next();
        let is_last = frame.is_err();
        if answered.send(frame).is_err() || is_last {
            return;
        }
    }
}

struct Sender<'c, W> {
    encoder: Encoder<'c>,
    out: W,
    answers: Receiver<std::result::Result<Frame, Broken>>,
    /// Segments that were not taken yet.
    on_the_way: VecDeque<OnTheWay>,
    frame_bytes: u64,
}

/// A segment that was not taken yet; an empty one is the end.
#[derive(Default)]
struct OnTheWay {
    sequence: u64,
    segment: Segment,
    /// The numbers of the containers that it makes.
    made: Range<u64>,
    was_missing: bool,
}

impl<W: Write> Sender<'_, W> {
    fn send(&mut self, segment: Segment) -> Result<()> {
        while let Ok(answer) = self.answers.try_recv() {
            self.act_on(answer)?;
        }
        while self.on_the_way.len() >= WINDOW_SEGMENTS {
            self.wait()?;
        }
        let (frame, made) = self.encoder.encode(&segment)?;
        let sequence = frame.sequence;
        self.on_the_way.push_back(OnTheWay { sequence, segment, made, was_missing: false });
        self.put(&frame)
    }

    fn finish(&mut self) -> Result<()> {
        let end = self.encoder.end();
        self.on_the_way.push_back(OnTheWay { sequence: end.sequence, ..OnTheWay::default() });
        self.put(&end)?;
        while !self.on_the_way.is_empty() {
            self.wait()?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        let answer = self.answers.recv_timeout(ANSWER_TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                let waited_s = ANSWER_TIMEOUT.as_secs();
                Error::peer(format!("no answer for {waited_s} s; see whether it still runs"))
            }
            RecvTimeoutError::Disconnected => ended_early(),
        })?;
        self.act_on(answer)
    }

    fn act_on(&mut self, answer: std::result::Result<Frame, Broken>) -> Result<()> {
        let frame = answer.map_err(of_channel)?;
        match frame.kind {
            Kind::Taken => match self.on_the_way.pop_front() {
                Some(taken) if taken.sequence == frame.sequence => {
                    if !taken.was_missing {
                        self.encoder.note_taken();
                    }
                    Ok(())
                }
                _ => Err(unexpected(&frame)),
            },
            Kind::Missing => self.send_again(&frame),
            _ => Err(unexpected(&frame)),
        }
    }

    fn send_again(&mut self, frame: &Frame) -> Result<()> {
        let mut fields = Fields::new(&frame.body, frame.sequence);
        let count = fields.at_most("missing containers", MISSING_MAX)?;
        let numbers: Vec<u64> = (0..count).map(|_| fields.varint()).collect::<Result<_>>()?;
        let first = self.on_the_way.front_mut().filter(|first| {
            first.sequence == frame.sequence && !first.was_missing && !first.segment.is_empty()
        });
        let first = first.ok_or_else(|| unexpected(frame))?;
        first.was_missing = true;
        // It could not be put together, so what it would have made is not there either.
        self.encoder.note_missing(numbers.into_iter().chain(first.made.clone()));
        let again = self.encoder.encode_again(first.sequence, &first.segment)?;
        self.put(&again)
    }

    fn put(&mut self, frame: &Frame) -> Result<()> {
        self.frame_bytes += put(&mut self.out, frame)?;
        Ok(())
    }
}

/// Receives the stream of [`send`] at the other side, and adds what is new to the cache.
///
/// Costs a read of each container that is referred to, and what is new once on flash. RAM: the frames on their way, a
/// segment and its prefix, and what the cache takes.
///
/// # Errors
/// A stream that is cut off, damaged or of another version; an output or a cache that fails; another side that ends
/// early. What was written until then is the beginning of the stream.
pub fn receive(
    cache: &Cache,
    (frames, answers): (impl Read, impl Write),
    output: &mut impl Write,
) -> Result<DecodeStats> {
    let mut frames = Frames::new(frames);
    let mut receiving = Receiving {
        cache,
        decoder: Decoder::new(cache),
        answers,
        output,
        waiting: VecDeque::new(),
        registered: 0,
        has_asked: false,
        stats: DecodeStats::default(),
    };
    put(&mut receiving.answers, &Frame::hello())?;
    frames.hello().map_err(|broken| of_stream(broken, 0))?;
    loop {
        let frame = frames.next().map_err(|broken| of_stream(broken, frames.count))?;
        receiving.take(frame)?;
        if receiving.advance()? {
            return Ok(DecodeStats { frame_bytes: frames.bytes, ..receiving.stats });
        }
    }
}

/// A frame that is not done.
enum Waiting {
    Segment(Registered),
    End(Frame),
}

struct Receiving<'c, 'o, W, O> {
    cache: &'c Cache,
    decoder: Decoder<'c>,
    answers: W,
    output: &'o mut O,
    /// What is not done, in order.
    waiting: VecDeque<Waiting>,
    /// Segments that came.
    registered: u64,
    /// Was the first one that waits asked for again?
    has_asked: bool,
    stats: DecodeStats,
}

impl<W: Write, O: Write> Receiving<'_, '_, W, O> {
    /// Takes a frame to those that wait.
    fn take(&mut self, frame: Frame) -> Result<()> {
        let is_over = matches!(self.waiting.back(), Some(Waiting::End(_)));
        let is_next = frame.sequence == self.registered && !is_over;
        match frame.kind {
            Kind::Segment if is_next && self.waiting.len() < WINDOW_SEGMENTS => {
                self.waiting.push_back(Waiting::Segment(self.decoder.register(frame)?));
                self.registered += 1;
            }
            Kind::End if is_next => self.waiting.push_back(Waiting::End(frame)),
            Kind::Again if self.has_asked && frame.sequence == self.stats.segments => {
                self.has_asked = false;
                let again = Waiting::Segment(self.decoder.register(frame)?);
                if let Some(first) = self.waiting.front_mut() {
                    *first = again;
                }
            }
            _ => return Err(unexpected(&frame)),
        }
        Ok(())
    }

    /// Does what can be done without another frame; returns whether that is all.
    fn advance(&mut self) -> Result<bool> {
        while !self.has_asked {
            let Some(first) = self.waiting.front() else { return Ok(false) };
            let registered = match first {
                Waiting::Segment(registered) => registered,
                Waiting::End(frame) => {
                    check_end(frame, &self.stats)?;
                    let sequence = frame.sequence;
                    self.output.flush().map_err(Error::Output)?;
                    self.cache.sync()?;
                    self.answer(Kind::Taken, sequence, Vec::new())?;
                    return Ok(true);
                }
            };
            match self.decoder.decode(registered)? {
                Decoded::Segment(bytes) => self.pass_on(&bytes)?,
                Decoded::Missing(numbers) => self.ask(&numbers)?,
            }
        }
        Ok(false)
    }

    fn pass_on(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(Error::Output)?;
        self.waiting.pop_front();
        let sequence = self.stats.segments;
        self.stats.segments += 1;
        self.stats.stream_bytes += bytes.len() as u64;
        self.answer(Kind::Taken, sequence, Vec::new())
    }

    fn ask(&mut self, numbers: &[u64]) -> Result<()> {
        let mut body = Vec::new();
        put_varint(&mut body, numbers.len() as u64);
        numbers.iter().for_each(|number| put_varint(&mut body, *number));
        self.has_asked = true;
        self.stats.again_segments += 1;
        self.answer(Kind::Missing, self.stats.segments, body)
    }

    fn answer(&mut self, kind: Kind, sequence: u64, body: Vec<u8>) -> Result<()> {
        put(&mut self.answers, &Frame { kind, sequence, body }).map(drop)
    }
}

/// Writes a frame at once.
fn put(out: &mut impl Write, frame: &Frame) -> Result<u64> {
    let written = frame.write(out).and_then(|bytes| out.flush().map(|()| bytes));
    written.map_err(|error| Error::peer(format!("it takes no more ({error}); see what it says")))
}

fn unexpected(frame: &Frame) -> Error {
    let (kind, sequence) = (frame.kind, frame.sequence);
    Error::peer(format!(
        "it sent {kind:?} {sequence}, which nothing led to; is it of this version?"
    ))
}

fn ended_early() -> Error {
    Error::peer("it ended before it had taken all of the stream; see what it says, and send again")
}

/// Why there is no answer.
fn of_channel(broken: Broken) -> Error {
    match broken {
        Broken::Ended => ended_early(),
        Broken::Failed(error) => Error::peer(format!("its answers cannot be read ({error})")),
        Broken::Refused(error) => Error::peer(format!("its answers are none: {error}")),
    }
}

/// Why there is no frame.
fn of_stream(broken: Broken, frames: u64) -> Error {
    match broken {
        Broken::Ended => Error::Truncated { frames },
        Broken::Failed(error) => Error::peer(format!("its stream cannot be read ({error})")),
        Broken::Refused(error) => error,
    }
}
