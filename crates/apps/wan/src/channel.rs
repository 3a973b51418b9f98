//! Streams over a channel with two directions: the receiver requests the content that it lacks.
//!
//! ```text
//!   sender     Hello  Segment 0  Segment 1  Segment 2 ...  Again 1  Segment 3 ... End        --->
//!   receiver   Hello             Taken 0    Missing 1      Taken 1  Taken 2 ...   Taken end  <---
//! ```
//!
//! 1. The sender keeps a segment until it was acknowledged, at most [`WINDOW_SEGMENTS`] of them, so it can send each of
//!    them again, whatever its own cache still has.
//! 2. The receiver passes segments on in order. While it waits for a requested one, it only registers the later ones.
//! 3. The end is acknowledged when the whole stream was passed on. Only then does the sender succeed.
//! 4. The receiver answers and continues to read; a thread of the sender takes answers. So neither waits for the other
//!    to read.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::cache::{Cache, View, WINDOW_SEGMENTS};
use crate::decode::Decoder;
use crate::encode::{EncodeOptions, Encoder};
use crate::exchange::{Sending, Step, Taking};
use crate::frame::{Broken, Frame, Frames};
use crate::owner::Owner;
use crate::segment::Segment;
use crate::{DecodeStats, EncodeStats, Error, Result};

/// The most answers that wait for the sender.
const ANSWERS_MAX: usize = 4 * WINDOW_SEGMENTS;

/// The time that a sender waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// Sends a stream to [`receive`] at the other side, and adds new content to the cache.
///
/// Costs as much as [`encode`](crate::encode()), and RAM for the segments in transit, 16 at most. Content that the
/// other side lacks is sent once more, without references.
///
/// # Errors
/// Invalid options; an input or a cache that fails; another side that ends early, sends an invalid answer, or sends
/// none for ten minutes.
pub fn send(
    cache: &Cache,
    input: &mut impl Read,
    (answers, out): (impl Read + Send + 'static, impl Write),
    options: EncodeOptions,
) -> Result<EncodeStats> {
    let limits = cache.stream_limits();
    let cuts = options.cuts(limits)?;
    let (answered, taken) = sync_channel(ANSWERS_MAX);
    // It ends when the other side closes the channel. It is not joined: the other side may never do that.
    thread::spawn(move || take_answers(Frames::new(answers), &answered));
    let mut sender = Sender {
        sending: Sending::new(Encoder::new(View::new(cache, Owner::default()), &options)),
        window_segments: limits.window_segments,
        out,
        answers: taken,
        frame_bytes: 0,
    };
    sender.put(&Frame::hello())?;
    cuts.for_each_segment(input, |segment| sender.send(segment))?;
    sender.finish()?;
    cache.sync()?;
    Ok(EncodeStats { frame_bytes: sender.frame_bytes, ..sender.sending.encoder.stats })
}

/// The sender's thread that reads answers.
fn take_answers(
    mut frames: Frames<impl Read>,
    answered: &SyncSender<std::result::Result<Frame, Broken>>,
) {
    if let Err(broken) = frames.hello() {
        // Without a receiver, the sender has ended.
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
    sending: Sending<&'c Cache>,
    /// The most segments in transit.
    window_segments: usize,
    out: W,
    answers: Receiver<std::result::Result<Frame, Broken>>,
    frame_bytes: u64,
}

impl<W: Write> Sender<'_, W> {
    fn send(&mut self, segment: Segment) -> Result<()> {
        while let Ok(answer) = self.answers.try_recv() {
            self.act_on(answer)?;
        }
        while self.sending.on_the_way().0 >= self.window_segments {
            self.wait()?;
        }
        let frame = self.sending.segment(segment)?;
        self.put(&frame)
    }

    fn finish(&mut self) -> Result<()> {
        let end = self.sending.end();
        self.put(&end)?;
        while self.sending.on_the_way().0 > 0 {
            self.wait()?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        let answer = self.answers.recv_timeout(ANSWER_TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                let waited_s = ANSWER_TIMEOUT.as_secs();
                Error::peer(format!(
                    "no answer for {waited_s} s; check whether it is still running"
                ))
            }
            RecvTimeoutError::Disconnected => ended_early(),
        })?;
        self.act_on(answer)
    }

    fn act_on(&mut self, answer: std::result::Result<Frame, Broken>) -> Result<()> {
        match self.sending.act_on(&answer.map_err(of_channel)?)? {
            Some(again) => self.put(&again),
            None => Ok(()),
        }
    }

    fn put(&mut self, frame: &Frame) -> Result<()> {
        self.frame_bytes += put(&mut self.out, frame)?;
        Ok(())
    }
}

/// Receives the stream of [`send`] at the other side, and adds new content to the cache.
///
/// Costs a read of each referenced container, and a write of new content to flash. RAM: the frames in transit, a
/// segment and its prefix, and the cache's.
///
/// # Errors
/// A stream that is cut off, damaged or of another version; an output or a cache that fails; another side that ends
/// early. The output so far is the beginning of the stream.
pub fn receive(
    cache: &Cache,
    (frames, answers): (impl Read, impl Write),
    output: &mut impl Write,
) -> Result<DecodeStats> {
    let mut frames = Frames::new(frames);
    let decoder = Decoder::new(View::new(cache, Owner::default()));
    let taking = Taking::new(decoder, WINDOW_SEGMENTS);
    let mut receiving = Receiving { cache, taking, answers, output };
    put(&mut receiving.answers, &Frame::hello())?;
    frames.hello().map_err(|broken| of_stream(broken, 0))?;
    loop {
        let frame = frames.next().map_err(|broken| of_stream(broken, frames.count))?;
        receiving.taking.take(frame)?;
        if receiving.advance()? {
            return Ok(DecodeStats { frame_bytes: frames.bytes, ..receiving.taking.stats });
        }
    }
}

struct Receiving<'c, 'o, W, O> {
    cache: &'c Cache,
    taking: Taking<&'c Cache>,
    answers: W,
    output: &'o mut O,
}

impl<W: Write, O: Write> Receiving<'_, '_, W, O> {
    /// Takes all steps that are possible without another frame; returns whether the stream has ended.
    fn advance(&mut self) -> Result<bool> {
        while let Some(step) = self.taking.step()? {
            match step {
                Step::Pass { bytes, answer } => {
                    self.output.write_all(&bytes).map_err(Error::Output)?;
                    put(&mut self.answers, &answer)?;
                }
                Step::Ask(answer) => {
                    put(&mut self.answers, &answer)?;
                }
                Step::End(answer) => {
                    self.output.flush().map_err(Error::Output)?;
                    self.cache.sync()?;
                    put(&mut self.answers, &answer)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Writes a frame immediately.
fn put(out: &mut impl Write, frame: &Frame) -> Result<u64> {
    let written = frame.write(out).and_then(|bytes| out.flush().map(|()| bytes));
    written.map_err(|error| Error::peer(format!("it accepts no more ({error}); see its messages")))
}

fn ended_early() -> Error {
    Error::peer("it ended before it had taken all of the stream; see its messages, and send again")
}

/// Returns the reason for the absence of an answer.
fn of_channel(broken: Broken) -> Error {
    match broken {
        Broken::Ended => ended_early(),
        Broken::Failed(error) => Error::peer(format!("its answers cannot be read ({error})")),
        Broken::Refused(error) => Error::peer(format!("its answers are invalid: {error}")),
    }
}

/// Returns the reason for the absence of a frame.
fn of_stream(broken: Broken, frames: u64) -> Error {
    match broken {
        Broken::Ended => Error::Truncated { frames },
        Broken::Failed(error) => Error::peer(format!("its stream cannot be read ({error})")),
        Broken::Refused(error) => error,
    }
}
