//! A connection: a socket at this side, and a sealed connection to the other half.
//!
//! ```text
//!   socket --bytes--> outbound: LiveSender  --messages--> link
//!                        ^ answers
//!   socket <--bytes-- inbound: LiveReceiver <--data-- reader <-- link
//! ```
//!
//! 1. The reader never waits for a socket or for the engine: it puts messages into two bounded queues, which no honest
//!    half exceeds, because of the window. So answers are read while a program does not read, and neither direction
//!    waits for the other.
//! 2. Outbound ends a segment when the socket has no more bytes: immediately if nothing is in transit, otherwise after
//!    a short time, and when it is full.
//! 3. Inbound acknowledges a segment when the socket has taken it. So a program that does not read stops its sender
//!    once the window is full.
//! 4. Both directions end independently. Any failure ends both, and resets the socket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use nandex_wan::live::{
    LIVE_BODY_BYTES_MAX, LIVE_MESSAGES_MAX, LIVE_WINDOW_BYTES_MAX, LiveReceiver, LiveSender,
    Message, MessageKind, Received,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::buffers::Held;
use crate::dial::{end, reset};
use crate::shared::Shared;
use crate::socket::{Moves, read_some, write_all};
use crate::stats::OpenConnection;
use crate::wire::{WireReader, WireWriter};
use crate::{Error, Result};

/// The most bytes of messages that wait for inbound: a window that did not shrink, and one repeated segment.
const QUEUED_BYTES_MAX: usize = LIVE_WINDOW_BYTES_MAX + 2 * LIVE_BODY_BYTES_MAX;

/// The most answers that wait for outbound: each message has one, and one segment in it may be requested.
const ANSWERS_MAX: usize = 2 * LIVE_MESSAGES_MAX;

/// The most messages that wait for inbound.
const DATA_MAX: usize = LIVE_MESSAGES_MAX + 2;

/// The longest time for the end of a connection on the link.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// The other half's side of a connection, and its purpose.
pub(crate) struct Ends {
    /// The bytes of the program that came with its request.
    pub(crate) early: Vec<u8>,
    pub(crate) reader: WireReader,
    pub(crate) writer: WireWriter,
    pub(crate) owner: nandex_wan::Owner,
}

/// Moves bytes both ways until both directions have ended, or an error occurs.
///
/// # Errors
/// The failure. The socket is then reset, and the other half informed.
pub(crate) async fn relay(
    shared: &Arc<Shared>,
    open: &OpenConnection,
    local: &mut TcpStream,
    ends: Ends,
) -> Result<()> {
    let Ends { early, reader, writer, owner } = ends;
    let heard = Arc::clone(&reader.heard);
    let link = (Arc::clone(&reader.bytes), Arc::clone(&writer.bytes));
    let relay = Relay::new((shared, open), writer, heard, link);
    // Until everything was moved, also if this task is ended.
    reset(local);
    let result = relay.run(local, early, reader, owner).await;
    relay.note_link();
    match &result {
        Ok(()) => end(local),
        Err(error) => relay.tell(error).await,
    }
    result
}

struct Relay<'r> {
    shared: &'r Arc<Shared>,
    open: &'r OpenConnection,
    writer: WireWriter,
    /// Bytes of messages from and to the link.
    link: (Arc<AtomicU64>, Arc<AtomicU64>),
    /// Those already counted.
    noted: (AtomicU64, AtomicU64),
    /// All bytes received over the link.
    heard: Arc<AtomicU64>,
    moves: Moves,
    held: Held<'r>,
    /// The bytes of messages that wait for inbound.
    queued_bytes: AtomicUsize,
}

/// Queues to outbound and to inbound.
struct Queues {
    answers: Sender<Message>,
    data: Sender<Message>,
}

impl<'r> Relay<'r> {
    fn new(
        (shared, open): (&'r Arc<Shared>, &'r OpenConnection),
        writer: WireWriter,
        heard: Arc<AtomicU64>,
        link: (Arc<AtomicU64>, Arc<AtomicU64>),
    ) -> Self {
        Self {
            shared,
            open,
            writer,
            link,
            noted: (AtomicU64::new(0), AtomicU64::new(0)),
            heard,
            moves: Moves::new(),
            held: Held::new(&shared.buffers),
            queued_bytes: AtomicUsize::new(0),
        }
    }

    async fn run(
        &self,
        local: &mut TcpStream,
        early: Vec<u8>,
        wire: WireReader,
        owner: nandex_wan::Owner,
    ) -> Result<()> {
        let cache = &self.shared.cache;
        let sender = LiveSender::new(Arc::clone(cache), owner.clone(), self.shared.options)?;
        let receiver = LiveReceiver::new(Arc::clone(cache), owner);
        let (answers, answers_out) = channel(ANSWERS_MAX);
        let (data, data_out) = channel(DATA_MAX);
        let (from, to) = local.split();
        let reading = self.read(wire, Queues { answers, data });
        tokio::pin!(reading);
        let mut has_read_all = false;
        let both = async {
            tokio::try_join!(
                self.outbound(from, early, sender, answers_out),
                self.inbound(to, receiver, data_out)
            )
        };
        tokio::pin!(both);
        let ticking = self.tick();
        tokio::pin!(ticking);
        loop {
            tokio::select! {
                done = &mut both => { done?; break; }
                read = &mut reading, if !has_read_all => { read?; has_read_all = true; }
                error = &mut ticking => return Err(error),
            }
        }
        // Both directions are complete; the other half may be gone.
        let _ = self.writer.shutdown().await;
        if !has_read_all {
            // The other half only has to report its end. Closing earlier would reset its bytes in transit.
            let _ = timeout(FAREWELL_TIMEOUT, reading).await;
        }
        Ok(())
    }

    /// Puts incoming messages into their queues, until the link ends.
    async fn read(&self, mut wire: WireReader, queues: Queues) -> Result<()> {
        while let Some(message) = wire.next().await? {
            self.note_link();
            match message.kind {
                MessageKind::Ping => {}
                MessageKind::Reset => {
                    let reason = String::from_utf8_lossy(&message.body).into_owned();
                    return Err(Error::Reset { reason });
                }
                kind if kind.is_answer() => queue(&queues.answers, message)?,
                _ => {
                    let bytes = message.body.len();
                    if self.queued_bytes.fetch_add(bytes, Relaxed) + bytes > QUEUED_BYTES_MAX {
                        return Err(Error::peer("it sends more than its window has"));
                    }
                    self.held.set_queued(self.queued_bytes.load(Relaxed));
                    queue(&queues.data, message)?;
                }
            }
        }
        Ok(())
    }

    /// Sends the socket's bytes, until it has ended and everything was acknowledged.
    async fn outbound(
        &self,
        mut from: ReadHalf<'_>,
        early: Vec<u8>,
        mut sender: LiveSender,
        mut answers: Receiver<Message>,
    ) -> Result<()> {
        self.open.each(|traffic| traffic.local_in.add(early.len() as u64));
        let mut gathered = Gathered::new(early);
        let mut has_ended = false;
        loop {
            while let Ok(answer) = answers.try_recv() {
                sender = self.act_on(sender, answer).await?;
            }
            if sender.is_done() {
                return Ok(());
            }
            self.held.set_gathered(gathered.bytes.len());
            let space = self.space(&sender);
            if gathered.is_due(space, self.flush_at(&gathered, &sender)) {
                let begun = gathered.begun;
                let segment = gathered.take(space);
                sender = self.send(sender, segment).await?;
                self.open.note_latency(begun.elapsed());
                continue;
            }
            if gathered.is_over && gathered.bytes.is_empty() && !has_ended {
                has_ended = true;
                let end = sender.end()?;
                self.put(&end).await?;
                continue;
            }
            let most =
                self.shared.options.encode.segment_bytes.saturating_sub(gathered.bytes.len());
            let may_read = most > 0 && !gathered.is_over;
            let flush_at = self.flush_at(&gathered, &sender);
            tokio::select! {
                answer = answers.recv() => {
                    sender = self.act_on(sender, answer.ok_or_else(ended_early)?).await?;
                }
                read = read_some(&mut from, &mut gathered.bytes, most), if may_read => {
                    self.note_read(read?, &mut gathered);
                }
                () = sleep_until(flush_at), if space > 0 && !gathered.bytes.is_empty() => {}
            }
        }
    }

    /// Returns the most bytes of the next segment, by the window and by the budget of all connections. A refused
    /// segment is allowed after the next answer, which will come since something is in transit.
    fn space(&self, sender: &LiveSender) -> usize {
        let (space, sent) = (sender.space_bytes(), sender.on_the_way_bytes());
        if self.held.may_send(sent, space) { space } else { 0 }
    }

    /// Returns when the collected segment is sent if no more bytes arrive.
    fn flush_at(&self, gathered: &Gathered, sender: &LiveSender) -> Instant {
        if sender.on_the_way() == 0 {
            return gathered.begun;
        }
        let limits = &self.shared.limits;
        (gathered.last + limits.flush_idle).min(gathered.begun + limits.flush_after)
    }

    fn note_read(&self, bytes: usize, gathered: &mut Gathered) {
        gathered.note(bytes);
        self.moves.note();
        self.open.each(|traffic| traffic.local_in.add(bytes as u64));
    }

    async fn send(&self, mut sender: LiveSender, segment: Vec<u8>) -> Result<LiveSender> {
        let before = sender.stats();
        let (sender, message) = if sender.needs_cache(segment.len()) {
            let send = move || {
                let message = sender.send(&segment);
                (sender, message)
            };
            self.shared.engine.run(send).await?
        } else {
            let message = sender.send(&segment);
            (sender, message)
        };
        self.note_sender(&sender, &before);
        self.put(&message?).await?;
        Ok(sender)
    }

    async fn act_on(&self, mut sender: LiveSender, answer: Message) -> Result<LiveSender> {
        let before = sender.stats();
        let (sender, again) = if answer.kind == MessageKind::Missing {
            let act = move || {
                let again = sender.answer(answer);
                (sender, again)
            };
            self.shared.engine.run(act).await?
        } else {
            let again = sender.answer(answer);
            (sender, again)
        };
        self.note_sender(&sender, &before);
        if let Some(again) = again? {
            self.put(&again).await?;
        }
        Ok(sender)
    }

    fn note_sender(&self, sender: &LiveSender, before: &nandex_wan::live::LiveStats) {
        self.held.set_sent(sender.on_the_way_bytes());
        self.open.each(|traffic| traffic.note_sent(sender, before));
        if let Some(failure) = sender.failure() {
            self.shared.stats.note_cache_failure(failure);
        }
    }

    /// Passes incoming bytes to the socket, until their end.
    async fn inbound(
        &self,
        mut to: WriteHalf<'_>,
        mut receiver: LiveReceiver,
        mut data: Receiver<Message>,
    ) -> Result<()> {
        // The bytes of each unacknowledged message.
        let mut waiting: VecDeque<usize> = VecDeque::new();
        let mut has_asked = false;
        let note = |bytes: usize| {
            self.moves.note();
            self.open.each(|traffic| traffic.local_out.add(bytes as u64));
        };
        loop {
            let received;
            (receiver, received) = self.step(receiver).await?;
            match received {
                None => {
                    let message = data.recv().await.ok_or_else(ended_early)?;
                    let bytes = message.body.len();
                    match waiting.front_mut().filter(|_| has_asked && is_again(&message, &receiver))
                    {
                        Some(first) => (*first, has_asked) = (*first + bytes, false),
                        None => waiting.push_back(bytes),
                    }
                    receiver.take(message)?;
                }
                Some(Received::Bytes { bytes, answer }) => {
                    let of_message = waiting.front().copied().unwrap_or_default();
                    self.held.set_decoded(bytes.len().saturating_sub(of_message));
                    write_all(&mut to, &bytes, self.shared.limits.stall_timeout, note).await?;
                    let freed = waiting.pop_front().unwrap_or_default();
                    let left = self.queued_bytes.fetch_sub(freed, Relaxed) - freed;
                    self.held.set_queued(left);
                    self.held.set_decoded(0);
                    self.put(&answer).await?;
                }
                Some(Received::Ask(question)) => {
                    has_asked = true;
                    self.put(&question).await?;
                }
                Some(Received::End(answer)) => {
                    to.shutdown().await.map_err(Error::Local)?;
                    return self.put(&answer).await;
                }
                Some(_) => return Err(Error::peer("it has sent what this version does not know")),
            }
        }
    }

    async fn step(&self, mut receiver: LiveReceiver) -> Result<(LiveReceiver, Option<Received>)> {
        let before = receiver.stats().again_segments;
        let (receiver, received) = if receiver.needs_cache() {
            let begun = Instant::now();
            let step = move || {
                let received = receiver.step();
                (receiver, received)
            };
            let done = self.shared.engine.run(step).await?;
            self.open.note_latency(begun.elapsed());
            done
        } else {
            let received = receiver.step();
            (receiver, received)
        };
        self.open.each(|traffic| traffic.note_received(&receiver, before));
        if let Some(failure) = receiver.failure() {
            self.shared.stats.note_cache_failure(failure);
        }
        Ok((receiver, received?))
    }

    /// Pings the other half, and ends when it is silent or nothing has happened for too long.
    async fn tick(&self) -> Error {
        let limits = &self.shared.limits;
        let every = limits.ping_every.min(limits.idle_timeout);
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = (self.heard.load(Relaxed), Instant::now());
        loop {
            ticks.tick().await;
            if let Err(error) = self.moves.check(limits.idle_timeout) {
                return error;
            }
            match self.heard.load(Relaxed) {
                now if now != heard.0 => heard = (now, Instant::now()),
                _ if heard.1.elapsed() < limits.link_timeout => {}
                _ => {
                    let what = "the other half was silent";
                    return Error::Timeout { what, after: limits.link_timeout };
                }
            }
            if let Err(error) = self.writer.ping().await {
                return error;
            }
        }
    }

    /// Tells the other half why the connection ends, unless the link itself failed.
    async fn tell(&self, error: &Error) {
        if matches!(error, Error::Link(_) | Error::Reset { .. }) {
            return;
        }
        let reason = error.to_string();
        let told = self.writer.say(MessageKind::Reset, reason.as_bytes());
        // Otherwise it notices the end of the link.
        let _ = timeout(FAREWELL_TIMEOUT, told).await;
    }

    async fn put(&self, message: &Message) -> Result<()> {
        self.writer.put(message).await?;
        self.note_link();
        Ok(())
    }

    /// Counts bytes of the link since the last call.
    fn note_link(&self) {
        let new = |all: &AtomicU64, noted: &AtomicU64| {
            let all = all.load(Relaxed);
            all - noted.swap(all, Relaxed)
        };
        let from = new(&self.link.0, &self.noted.0);
        let to = new(&self.link.1, &self.noted.1);
        self.open.each(|traffic| {
            traffic.link_in.add(from);
            traffic.link_out.add(to);
        });
    }
}

/// The collected bytes of a segment that was not sent yet.
struct Gathered {
    bytes: Vec<u8>,
    /// The times of the first and the last of them.
    begun: Instant,
    last: Instant,
    /// Whether the socket has ended.
    is_over: bool,
}

impl Gathered {
    fn new(bytes: Vec<u8>) -> Self {
        let now = Instant::now();
        Self { bytes, begun: now, last: now, is_over: false }
    }

    /// Notes newly read bytes.
    fn note(&mut self, bytes: usize) {
        self.last = Instant::now();
        if self.bytes.len() == bytes {
            self.begun = self.last;
        }
        self.is_over = bytes == 0;
    }

    /// Returns whether the allowed bytes must be sent now.
    fn is_due(&self, space: usize, flush_at: Instant) -> bool {
        let has_waited = self.bytes.len() >= space || self.is_over || Instant::now() >= flush_at;
        !self.bytes.is_empty() && space > 0 && has_waited
    }

    /// Takes the first bytes.
    fn take(&mut self, most: usize) -> Vec<u8> {
        let rest = self.bytes.split_off(most.min(self.bytes.len()));
        self.begun = self.last;
        std::mem::replace(&mut self.bytes, rest)
    }
}

/// Returns whether it is the requested segment.
fn is_again(message: &Message, receiver: &LiveReceiver) -> bool {
    message.sequence == receiver.stats().segments
        && matches!(message.kind, MessageKind::Again | MessageKind::Plain)
}

fn queue(to: &Sender<Message>, message: Message) -> Result<()> {
    match to.try_send(message) {
        Err(TrySendError::Full(_)) => {
            Err(Error::peer("it sends more messages than its window has"))
        }
        // Its receiver has ended, and its loop reports the reason.
        _ => Ok(()),
    }
}

fn ended_early() -> Error {
    Error::peer("it ended before the connection did; see its messages")
}
