//! Both ends of a live stream, under the control of the test.

use std::sync::Arc;

use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};
use proptest::prelude::*;

use super::*;
use crate::testing::{FINE, Random, SMALL, cache, cache_on, edited, noise, text};
use crate::{Cache, Owner};

const OPTIONS: LiveOptions =
    LiveOptions { encode: FINE, window_bytes: 200_000, plain_after_bytes: 0 };

struct Ends {
    sender: LiveSender,
    receiver: LiveReceiver,
    copy: Vec<u8>,
    wire_bytes: usize,
}

impl Ends {
    fn new((here, mine): (&Arc<Cache>, &Owner), (there, theirs): (&Arc<Cache>, &Owner)) -> Self {
        Self::with(OPTIONS, (here, mine), (there, theirs))
    }

    fn with(
        options: LiveOptions,
        (here, mine): (&Arc<Cache>, &Owner),
        (there, theirs): (&Arc<Cache>, &Owner),
    ) -> Self {
        let sender = LiveSender::new(Arc::clone(here), mine.clone(), options).unwrap();
        let receiver = LiveReceiver::new(Arc::clone(there), theirs.clone());
        Self { sender, receiver, copy: Vec::new(), wire_bytes: 0 }
    }

    /// Passes a message to the receiver, and all the resulting messages back and forth.
    fn pass(&mut self, message: Message) {
        let mut next = Some(message);
        while let Some(message) = next.take() {
            self.wire_bytes += message.encoded_bytes();
            self.receiver.take(message).unwrap();
            while let Some(received) = self.receiver.step().unwrap() {
                let answer = match received {
                    Received::Bytes { bytes, answer } => {
                        self.copy.extend_from_slice(&bytes);
                        answer
                    }
                    Received::Ask(answer) => answer,
                    Received::End(answer) => {
                        assert_eq!(self.sender.answer(answer).unwrap(), None);
                        return;
                    }
                };
                next = self.sender.answer(answer).unwrap().or(next);
            }
        }
    }

    /// Sends a stream in segments of random lengths.
    #[track_caller]
    fn send(mut self, stream: &[u8], seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut rest = stream;
        while !rest.is_empty() {
            let most = self.sender.space_bytes().min(rest.len());
            let (segment, after) = rest.split_at(1 + random.below(most));
            rest = after;
            let message = self.sender.send(segment).unwrap();
            self.pass(message);
        }
        let end = self.sender.end().unwrap();
        self.pass(end);
        assert!(self.sender.is_done());
        assert!(self.copy == stream, "the copy differs");
        self
    }
}

fn caches() -> (Arc<Cache>, Arc<Cache>) {
    (Arc::new(cache()), Arc::new(cache()))
}

#[test]
fn streams_of_all_kinds_come_back_byte_for_byte_and_later_ones_in_few_bytes() {
    let (here, there) = caches();
    let owner = Owner::of(b"a key");
    let stream = [text(300_000, 1), noise(100_000, 2), vec![0; 50_000]].concat();
    Ends::new((&here, &owner), (&there, &owner)).send(&stream, 1);
    let again = Ends::new((&here, &owner), (&there, &owner)).send(&edited(&stream, 5, 3), 1);
    assert!(again.wire_bytes < stream.len() / 10, "{} bytes", again.wire_bytes);
    assert_eq!(again.sender.stats().encode.again_segments, 0);
    // The other direction, over the same caches.
    let back = Ends::new((&there, &owner), (&here, &owner)).send(&stream, 4);
    assert!(back.wire_bytes < stream.len() / 4, "{} bytes", back.wire_bytes);
    Ends::new((&here, &owner), (&there, &owner)).send(b"", 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn segments_of_any_lengths_come_back(seed: u64, length in 0..200_000_usize) {
        let (here, there) = caches();
        let owner = Owner::default();
        let stream = text(length, seed);
        Ends::new((&here, &owner), (&there, &owner)).send(&stream, seed);
    }
}

#[test]
fn what_the_other_side_lacks_is_asked_for() {
    let (here, there) = caches();
    let owner = Owner::of(b"a key");
    let stream = text(300_000, 1);
    Ends::new((&here, &owner), (&there, &owner)).send(&stream, 1);
    let empty = Arc::new(cache());
    let ends = Ends::new((&here, &owner), (&empty, &owner)).send(&stream, 1);
    assert!(ends.sender.stats().encode.again_segments > 0);
    let ends = Ends::new((&here, &owner), (&empty, &owner)).send(&stream, 1);
    assert_eq!(ends.sender.stats().encode.again_segments, 0);
}

/// A peer that has the names of everything that another one has sent, from the same cache, gets no content.
#[test]
fn nobody_is_given_what_another_owner_has_sent() {
    let (here, there) = caches();
    let (victim, spy) = (Owner::of(b"victim"), Owner::of(b"spy"));
    let stream = text(200_000, 1);
    Ends::new((&here, &victim), (&there, &victim)).send(&stream, 1);
    // The spy's own cache has the content under the spy's own name, so it refers to it by the right names.
    let spys = Arc::new(cache());
    Ends::new((&spys, &spy), (&Arc::new(cache()), &spy)).send(&stream, 1);
    let mut ends = Ends::new((&spys, &spy), (&there, &spy));
    let message = ends.sender.send(&stream[..40_000]).unwrap();
    assert!(message.body.len() < 5000, "it refers to what was sent before");
    ends.receiver.take(message).unwrap();
    let Some(Received::Ask(_)) = ends.receiver.step().unwrap() else { panic!("it was given") };
    // Nor does the cache's own side tell it, by sending less of what only the victim has.
    let told = Ends::new((&there, &spy), (&spys, &spy)).send(&stream, 1);
    let fresh = Ends::new((&Arc::new(cache()), &spy), (&spys, &spy)).send(&stream, 1);
    assert_eq!(told.wire_bytes, fresh.wire_bytes);
    // The victim still has it.
    let again = Ends::new((&here, &victim), (&there, &victim)).send(&stream, 1);
    assert!(again.wire_bytes * 5 < stream.len(), "{} bytes", again.wire_bytes);
    assert_eq!(again.sender.stats().encode.again_segments, 0);
}

#[test]
fn what_does_not_shrink_goes_as_it_is_and_short_segments_do() {
    let (here, there) = caches();
    let owner = Owner::default();
    let options = LiveOptions { plain_after_bytes: 100_000, ..OPTIONS };
    let stream = noise(900_000, 1);
    let ends = Ends::with(options, (&here, &owner), (&there, &owner)).send(&stream, 1);
    let stats = ends.sender.stats();
    assert!(stats.plain_bytes > 400_000, "{stats:?}");
    assert!(here.stats().bytes_added < 450_000);
    let mut ends = Ends::new((&here, &owner), (&there, &owner));
    let message = ends.sender.send(b"GET / HTTP/1.1").unwrap();
    assert_eq!((message.kind, message.encoded_bytes()), (MessageKind::Plain, 3 + 14));
}

#[test]
fn a_window_that_is_full_takes_no_more_until_something_was_taken() {
    let (here, there) = caches();
    let owner = Owner::default();
    let mut ends = Ends::new((&here, &owner), (&there, &owner));
    let mut waiting = Vec::new();
    while ends.sender.space_bytes() > 0 {
        let space = ends.sender.space_bytes();
        waiting.push(ends.sender.send(&noise(space, 1)).unwrap());
    }
    assert_eq!(waiting.len(), 4);
    assert!(ends.sender.send(b"x").is_err());
    waiting.into_iter().for_each(|message| ends.pass(message));
    assert!(ends.sender.space_bytes() > 0);
    assert_eq!(ends.copy.len(), 200_000);
}

#[test]
fn messages_that_nothing_led_to_are_refused() {
    let (here, there) = caches();
    let owner = Owner::default();
    let mut ends = Ends::new((&here, &owner), (&there, &owner));
    let message = |kind, sequence| Message { kind, sequence, body: Vec::new() };
    for kind in [MessageKind::Taken, MessageKind::Missing, MessageKind::Open, MessageKind::Segment]
    {
        assert!(ends.sender.answer(message(kind, 0)).is_err(), "{kind:?}");
    }
    for kind in [MessageKind::Again, MessageKind::Taken, MessageKind::Ping, MessageKind::Segment] {
        assert!(ends.receiver.take(message(kind, 0)).is_err(), "{kind:?}");
    }
    assert!(ends.receiver.take(message(MessageKind::Plain, 1)).is_err());
    ends.receiver.take(message(MessageKind::End, 0)).unwrap();
    assert!(ends.receiver.step().is_err(), "an end without its length");
}

#[test]
fn a_message_that_decodes_to_more_than_a_segment_is_refused() {
    let there = Arc::new(cache());
    let owner = Owner::default();
    // As a file may have it.
    let stream = vec![0; 3 << 20];
    let mut frames = Vec::new();
    let encode = crate::EncodeOptions { segment_bytes: 3 << 20, ..FINE };
    crate::encode(&cache(), &mut &stream[..], &mut frames, encode).unwrap();
    let mut source = crate::frame::Frames::new(&frames[..]);
    source.hello().unwrap();
    let mut receiver = LiveReceiver::new(there, owner);
    let taken = receiver.take(source.next().unwrap().into());
    let error = taken.and_then(|()| receiver.step().map(drop)).unwrap_err().to_string();
    assert!(error.contains("1048576"), "{error}");
}

/// Returns both caches after sending a stream, and a message that refers to it.
fn message_with_references() -> (Arc<Cache>, Owner, Vec<u8>, Message) {
    let (here, there) = caches();
    let owner = Owner::of(b"a key");
    let stream = text(60_000, 1);
    Ends::new((&here, &owner), (&there, &owner)).send(&stream, 1);
    let segment = edited(&stream[..40_000], 8, 2);
    let mut sender = LiveSender::new(here, owner.clone(), OPTIONS).unwrap();
    let message = sender.send(&segment).unwrap();
    assert!(message.body.len() < 3000, "it refers to what was sent before");
    (there, owner, segment, message)
}

#[test]
fn a_segment_that_was_changed_or_cut_off_gives_no_wrong_byte() {
    let (there, owner, segment, message) = message_with_references();
    let mut refused = 0;
    let mut check = |body: Vec<u8>, story: &str| {
        let mut receiver = LiveReceiver::new(Arc::clone(&there), owner.clone());
        let taken = receiver.take(Message { body, ..message.clone() });
        match taken.and_then(|()| receiver.step()) {
            Ok(Some(Received::Bytes { bytes, .. })) => assert!(bytes == segment, "{story}"),
            Ok(Some(Received::Ask(_))) | Err(_) => refused += 1,
            other => panic!("{story}: {other:?}"),
        }
    };
    for bit in (0..8 * message.body.len()).step_by(29) {
        let mut body = message.body.clone();
        body[bit / 8] ^= 1 << (bit % 8);
        check(body, &format!("bit {bit}"));
    }
    for end in (0..message.body.len()).step_by(23) {
        check(message.body[..end].to_vec(), &format!("{end} bytes"));
    }
    check(message.body.clone(), "as it was");
    assert!(refused > 100, "{refused}");
}

/// A message of some bytes that would need a megabyte for the numbers of its new containers.
#[test]
fn a_short_message_that_makes_many_containers_is_refused() {
    let mut receiver = LiveReceiver::new(Arc::new(cache()), Owner::default());
    let mut body = vec![0; size_of::<crate::plan::Digest>()];
    [0, 0, 65_536, 0, 0].into_iter().for_each(|it| crate::fields::put_varint(&mut body, it));
    let error = receiver.take(Message { kind: MessageKind::Segment, sequence: 0, body });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("expected containers up to 9, found 65536"), "{error}");
}

#[test]
fn a_message_with_as_many_names_as_may_be_is_one_question() {
    let mut receiver = LiveReceiver::new(Arc::new(cache()), Owner::default());
    let names = SEGMENT_LIMITS.chunks_max;
    let mut body = vec![0; size_of::<crate::plan::Digest>()];
    [0, 0, 0, names as u64].into_iter().for_each(|it| crate::fields::put_varint(&mut body, it));
    body.extend((0..names as u128).flat_map(u128::to_le_bytes));
    crate::fields::put_varint(&mut body, 0);
    receiver.take(Message { kind: MessageKind::Segment, sequence: 0, body }).unwrap();
    let Some(Received::Ask(question)) = receiver.step().unwrap() else { panic!("no question") };
    let mut fields = crate::fields::Fields::new(&question.body, 0);
    assert_eq!(fields.varint().unwrap(), names as u64);
}

#[test]
fn no_chunking_gives_a_segment_more_chunks_than_a_receiver_takes() {
    use nandex_chunk::{Chunker, Chunking};
    for chunker in [Chunker::FastCdc, Chunker::Rabin, Chunker::Fixed] {
        let shortest = Chunking::new(chunker, crate::CHUNK_BYTES_MIN).unwrap().min_bytes();
        let most = LIVE_SEGMENT_BYTES_MAX.div_ceil(shortest);
        assert!(most < SEGMENT_LIMITS.chunks_max, "{chunker:?}: {most}");
    }
}

/// Returns a cache whose device accepts no more writes from the next one on.
fn full_soon() -> (Arc<Cache>, SimDevice) {
    let device = SimDevice::instant();
    (Arc::new(cache_on(Arc::new(device.clone()), SMALL)), device)
}

fn fill(device: &SimDevice) {
    let at = device.seen(FaultOn::Write) + 1;
    device.arm(Fault {
        on: FaultOn::Write,
        at,
        kind: FaultKind::NoSpace,
        span: FaultSpan::FromThenOn,
    });
}

#[test]
fn a_stream_goes_on_as_it_is_when_the_cache_of_the_sender_is_full() {
    let (here, device) = full_soon();
    let there = Arc::new(cache());
    let owner = Owner::of(b"a key");
    let stream = text(3 << 20, 1);
    Ends::new((&here, &owner), (&there, &owner)).send(&stream[..200_000], 1);
    fill(&device);
    let ends =
        Ends::new((&here, &owner), (&there, &owner)).send(&edited(&noise(12 << 20, 2), 9, 1), 2);
    assert!(ends.sender.failure().is_some());
    assert!(ends.sender.stats().plain_bytes > 0);
}

#[test]
fn a_stream_goes_on_as_it_is_when_the_cache_of_the_receiver_is_full() {
    let (there, device) = full_soon();
    let here = Arc::new(cache());
    let owner = Owner::of(b"a key");
    let stream = text(400_000, 1);
    Ends::new((&here, &owner), (&there, &owner)).send(&stream, 1);
    fill(&device);
    let stream = [noise(12 << 20, 2), stream].concat();
    let ends = Ends::new((&here, &owner), (&there, &owner)).send(&stream, 2);
    assert!(ends.receiver.failure().is_some());
    assert!(ends.sender.stats().plain_bytes > 0);
}
