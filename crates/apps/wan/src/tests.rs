//! Round trips and failures of streams; power cuts are in [`sweep`](crate::sweep).

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use nandex::device::MemoryDevice;
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, Faults, SimDevice};
use proptest::prelude::*;

use crate::testing::{FINE, Random, SMALL, cache, cache_on, edited, noise, text};
use crate::*;

fn encoded(cache: &Cache, stream: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    let stats = encode(cache, &mut &stream[..], &mut frames, FINE).unwrap();
    assert_eq!((stats.stream_bytes, stats.frame_bytes), (stream.len() as u64, frames.len() as u64));
    frames
}

fn decoded(cache: &Cache, frames: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let stats = decode(cache, &mut &frames[..], &mut out)?;
    assert_eq!((stats.stream_bytes, stats.frame_bytes), (out.len() as u64, frames.len() as u64));
    Ok(out)
}

/// One end of a pipe in RAM.
struct Pipe(Sender<Vec<u8>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The other end.
struct Piped(Receiver<Vec<u8>>, Vec<u8>);

impl Read for Piped {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default();
        }
        let bytes = self.1.len().min(out.len());
        out[..bytes].copy_from_slice(&self.1[..bytes]);
        self.1.drain(..bytes);
        Ok(bytes)
    }
}

fn pipe() -> (Pipe, Piped) {
    let (sender, receiver) = channel();
    (Pipe(sender), Piped(receiver, Vec::new()))
}

/// The results of both sides of a transfer, and the output.
pub(crate) type Sent = (Result<EncodeStats>, Result<DecodeStats>, Vec<u8>);

fn sent(from: &Cache, to: &Cache, stream: &[u8]) -> Sent {
    let (out, frames) = pipe();
    let (answers, back) = pipe();
    let mut copy = Vec::new();
    let (sent, received) = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(to, (frames, answers), &mut copy));
        let sent = send(from, &mut &stream[..], (back, out), FINE);
        (sent, receiver.join().unwrap())
    });
    (sent, received, copy)
}

#[track_caller]
pub(crate) fn transferred(from: &Cache, to: &Cache, stream: &[u8]) -> (EncodeStats, DecodeStats) {
    let (sent, received, copy) = sent(from, to, stream);
    let both = (sent.unwrap(), received.unwrap());
    assert!(copy == stream, "the copy differs");
    assert_eq!(both.0.stream_bytes, stream.len() as u64);
    assert_eq!(both.0.again_segments, both.1.again_segments);
    assert_eq!(both.0.frame_bytes, both.1.frame_bytes);
    both
}

#[test]
fn streams_of_all_kinds_come_back_byte_for_byte() {
    let (here, there) = (cache(), cache());
    let zeros = vec![0; 300_000];
    let streams: [&[u8]; 7] = [
        b"",
        b"x",
        &noise(1000, 1),
        &noise(400_000, 2),
        &text(400_000, 3),
        &zeros,
        &[text(70_000, 4), noise(70_000, 5), vec![7; 70_000]].concat(),
    ];
    for stream in streams {
        let frames = encoded(&here, stream);
        assert_eq!(decoded(&here, &frames).unwrap(), stream);
        assert_eq!(decoded(&there, &frames).unwrap(), stream);
    }
    let files = [include_bytes!("lib.rs").as_slice(), include_bytes!("../../../../Cargo.lock")];
    for file in files {
        assert_eq!(decoded(&there, &encoded(&here, file)).unwrap(), file);
    }
}

#[test]
fn a_stream_that_went_over_before_takes_a_thousandth() {
    let cache = cache();
    let stream = noise(2 << 20, 1);
    let first = encoded(&cache, &stream).len();
    let options = EncodeOptions::default();
    let mut again = Vec::new();
    encode(&cache, &mut &stream[..], &mut again, EncodeOptions { chunk_bytes: 1024, ..options })
        .unwrap();
    assert!(first > 2 << 20);
    assert!(again.len() < 2200, "{} bytes", again.len());
}

#[test]
fn small_edits_cost_about_their_bytes_and_not_their_chunks() {
    let (here, there) = (cache(), cache());
    let stream = noise(1 << 20, 1);
    let edits = 300;
    let later = edited(&stream, edits, 2);
    decoded(&there, &encoded(&here, &stream)).unwrap();
    let frames = encoded(&here, &later);
    assert_eq!(decoded(&there, &frames).unwrap(), later);
    // A changed chunk of 1 KiB would cost all of it: a third of the stream.
    assert!(frames.len() < 100 * edits, "{} bytes", frames.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn random_edits_over_and_over_come_back(seed: u64, edits in prop::collection::vec(0..40_usize, 1..6)) {
        let (here, there) = (cache(), cache());
        let mut stream = [text(90_000, seed), noise(40_000, seed)].concat();
        for (round, edits) in (1..).zip(edits) {
            stream = edited(&stream, edits, seed ^ round);
            let frames = encoded(&here, &stream);
            prop_assert_eq!(&decoded(&there, &frames).unwrap(), &stream);
        }
    }
}

#[test]
fn equal_runs_give_equal_frames() {
    let run = || {
        let cache = cache();
        let stream = text(300_000, 1);
        [encoded(&cache, &stream), encoded(&cache, &edited(&stream, 50, 2))]
    };
    assert_eq!(run(), run());
}

#[test]
fn a_cut_stream_ends_with_an_error_that_says_so() {
    let cache = cache();
    let frames = encoded(&cache, &text(200_000, 1));
    for end in (0..frames.len()).step_by(97) {
        let error = decoded(&cache, &frames[..end]).unwrap_err();
        assert!(matches!(error, Error::Truncated { .. }), "{end}: {error}");
    }
    assert!(decoded(&cache, &frames[..500]).unwrap_err().to_string().contains("was cut off"));
}

#[test]
fn no_flipped_bit_gives_another_stream() {
    let cache = cache();
    let stream = text(60_000, 1);
    encoded(&cache, &stream);
    let frames = encoded(&cache, &edited(&stream, 20, 2));
    for bit in (0..frames.len() * 8).step_by(13) {
        let mut flipped = frames.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(decoded(&cache, &flipped).is_err(), "bit {bit}");
    }
}

/// Every byte of a body is changed, with a correct checksum, as a hostile peer would.
#[test]
fn a_changed_body_with_a_right_checksum_is_refused_or_gives_the_stream() {
    let cache = cache();
    let stream = text(60_000, 1);
    encoded(&cache, &stream);
    let later = edited(&stream, 5, 2);
    let frames = encoded(&cache, &later);
    let mut source = frame::Frames::new(&frames[..]);
    let mut parts = Vec::new();
    while let Ok(frame) = source.next() {
        parts.push(frame);
    }
    let place = parts.iter().position(|it| it.kind == frame::Kind::Segment).unwrap();
    let body = parts[place].body.clone();
    for at in 0..body.len().min(4000) {
        for change in [1, 0x80, 0xff] {
            parts[place].body = body.clone();
            parts[place].body[at] ^= change;
            let bytes: Vec<u8> = parts.iter().flat_map(frame::Frame::encode).collect();
            if let Ok(copy) = decoded(&cache, &bytes) {
                assert!(copy == later, "byte {at} gave another stream");
            }
        }
    }
}

#[test]
fn segments_that_are_left_out_or_swapped_are_refused() {
    let cache = cache();
    let frames = encoded(&cache, &text(200_000, 1));
    let mut source = frame::Frames::new(&frames[..]);
    let parts: Vec<_> = std::iter::from_fn(|| source.next().ok()).collect();
    assert!(parts.len() > 5);
    let joined =
        |order: &[usize]| -> Vec<u8> { order.iter().flat_map(|at| parts[*at].encode()).collect() };
    for order in
        [vec![0, 1, 3, 4, 5], vec![0, 2, 1, 3], vec![0, 1, 1], vec![1, 2], vec![0, parts.len() - 1]]
    {
        let error = decoded(&cache, &joined(&order)).unwrap_err().to_string();
        assert!(error.contains("expected") || error.contains("its end says"), "{order:?}: {error}");
    }
}

#[test]
fn a_file_of_references_without_its_cache_says_what_is_missing() {
    let (here, other) = (cache(), cache());
    let stream = text(200_000, 1);
    encoded(&here, &stream);
    let references = encoded(&here, &stream);
    let error = decoded(&other, &references).unwrap_err();
    assert!(matches!(error, Error::Missing { segment: 0, .. }), "{error}");
    assert!(
        error.to_string().contains("use the cache that the stream was encoded with"),
        "{error}"
    );
}

#[test]
fn recycled_content_is_missing_and_never_other_content() {
    let cache = cache();
    let stream = noise(300_000, 1);
    encoded(&cache, &stream);
    let references = encoded(&cache, &stream);
    assert_eq!(decoded(&cache, &references).unwrap(), stream);
    for seed in 2..14 {
        encoded(&cache, &noise(1 << 20, seed));
    }
    assert!(cache.stats().recycled_segments > 0);
    let error = decoded(&cache, &references).unwrap_err();
    assert!(error.to_string().contains("recycled"), "{error}");
    // A new stream of the same content is new.
    let again = encoded(&cache, &stream);
    assert!(again.len() > 300_000);
    assert_eq!(decoded(&cache, &again).unwrap(), stream);
}

#[test]
fn a_channel_brings_every_stream_whatever_the_other_side_has() {
    let (here, there) = (cache(), cache());
    let stream = text(900_000, 1);
    let (first, _) = transferred(&here, &there, &stream);
    assert_eq!(first.again_segments, 0);
    let later = edited(&stream, 30, 2);
    let (second, _) = transferred(&here, &there, &later);
    assert_eq!(second.again_segments, 0);
    assert!(second.frame_bytes * 20 < first.frame_bytes);
    // The other direction over the same caches.
    let (back, _) = transferred(&there, &here, &later);
    assert_eq!(back.again_segments, 0);
    assert!(back.frame_bytes < 4000, "{} bytes", back.frame_bytes);
}

#[test]
fn a_side_that_was_swapped_for_an_empty_one_asks_and_learns() {
    let here = cache();
    let stream = text(900_000, 1);
    encoded(&here, &stream);
    let empty = cache();
    let (cold, _) = transferred(&here, &empty, &stream);
    assert!(cold.again_segments > 0);
    let (warm, _) = transferred(&here, &empty, &stream);
    assert_eq!(warm.again_segments, 0);
    assert!(warm.frame_bytes * 50 < cold.frame_bytes);
    transferred(&here, &empty, b"");
    transferred(&empty, &cache(), &edited(&stream, 10, 3));
}

#[test]
fn a_side_that_is_a_backup_of_earlier_asks_for_what_came_later() {
    let (device, other) = (SimDevice::instant(), SimDevice::instant());
    let here = cache();
    let streams: Vec<Vec<u8>> = (0..4).map(|seed| text(300_000, seed)).collect();
    let there = cache_on(Arc::new(device.clone()), SMALL);
    transferred(&here, &there, &streams[0]);
    transferred(&here, &there, &streams[1]);
    there.close().unwrap();
    let backup = device.survivors(0);
    let there = Cache::open(Arc::new(device)).unwrap();
    transferred(&here, &there, &streams[2]);
    drop(there);
    let there = Cache::open(Arc::new(other.with_image(backup))).unwrap();
    assert_eq!(transferred(&here, &there, &streams[1]).0.again_segments, 0);
    assert!(transferred(&here, &there, &streams[2]).0.again_segments > 0);
    assert_eq!(transferred(&here, &there, &streams[2]).0.again_segments, 0);
}

#[test]
fn a_smaller_cache_on_one_side_asks_for_what_it_has_recycled() {
    let large = CacheConfig { content_bytes: 32 << 20, ..SMALL };
    let here = cache_on(Arc::new(MemoryDevice::new()), large);
    let there = cache();
    let stream = noise(1 << 20, 1);
    transferred(&here, &there, &stream);
    for seed in 2..12 {
        transferred(&here, &there, &noise(1 << 20, seed));
    }
    let (again, _) = transferred(&here, &there, &edited(&stream, 20, 3));
    assert!(again.again_segments > 0);
}

#[test]
fn a_sender_whose_receiver_fails_fails_too_and_names_it() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (here, there) = (cache(), cache());
    let (out, frames) = pipe();
    let (answers, back) = pipe();
    let stream = noise(2 << 20, 1);
    let (sent, received) = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&there, (frames, answers), &mut Full));
        (send(&here, &mut &stream[..], (back, out), FINE), receiver.join().unwrap())
    });
    assert!(matches!(received.unwrap_err(), Error::Output(_)));
    assert!(matches!(sent.unwrap_err(), Error::Peer { .. }));
}

#[test]
fn a_channel_that_is_reset_ends_both_sides_with_an_error() {
    let (here, there) = (cache(), cache());
    let frames = {
        let mut bytes = Vec::new();
        encode(&here, &mut &text(400_000, 1)[..], &mut bytes, FINE).unwrap();
        bytes
    };
    let mut copy = Vec::new();
    let cut = &frames[..frames.len() / 2];
    let error = receive(&there, (cut, io::sink()), &mut copy).unwrap_err();
    assert!(matches!(error, Error::Truncated { .. }), "{error}");
    assert!(text(400_000, 1).starts_with(&copy));
    let answers = &frame::Frame::hello().encode()[..];
    let answers = io::Cursor::new(answers.to_vec());
    let error = send(&here, &mut &text(400_000, 1)[..], (answers, io::sink()), FINE).unwrap_err();
    assert!(error.to_string().contains("ended before it had taken all"), "{error}");
}

#[test]
fn answers_that_nothing_led_to_are_refused() {
    let cache = cache();
    let answer = |kind, sequence, body| frame::Frame { kind, sequence, body };
    let wrong = [
        answer(frame::Kind::Taken, 7, vec![]),
        answer(frame::Kind::Missing, 7, vec![0]),
        answer(frame::Kind::Missing, 0, vec![0xff; 12]),
        answer(frame::Kind::Again, 0, vec![]),
        answer(frame::Kind::Hello, 0, vec![1]),
    ];
    for frame in wrong {
        let answers = [frame::Frame::hello().encode(), frame.encode()].concat();
        let answers = io::Cursor::new(answers);
        let sent = send(&cache, &mut &text(90_000, 1)[..], (answers, io::sink()), FINE);
        let error = sent.unwrap_err().to_string();
        assert!(error.contains("nothing led to") || error.contains("damaged"), "{error}");
    }
}

#[test]
fn a_full_device_of_the_cache_is_an_error_and_leaves_no_wrong_stream() {
    let device = SimDevice::instant();
    let there = cache_on(Arc::new(device.clone()), SMALL);
    let here = cache();
    transferred(&here, &there, &text(100_000, 1));
    let at = device.seen(FaultOn::Write) + 1;
    let (on, kind, span) = (FaultOn::Write, FaultKind::NoSpace, FaultSpan::FromThenOn);
    device.arm(Fault { on, at, kind, span });
    let stream = noise(2 << 20, 2);
    let (sent, received, copy) = sent(&here, &there, &stream);
    assert!(sent.is_err());
    let error = received.unwrap_err();
    assert!(error.to_string().starts_with("the cache: "), "{error}");
    assert!(stream.starts_with(&copy));
    device.disarm();
    drop(there);
    let there = Cache::open(Arc::new(device)).unwrap();
    transferred(&here, &there, &stream);
}

#[test]
fn wrong_bits_from_the_device_of_a_cache_never_reach_the_stream() {
    let device = SimDevice::instant();
    let here = cache();
    let there = cache_on(Arc::new(device.clone()), SMALL);
    let stream = noise(400_000, 1);
    transferred(&here, &there, &stream);
    there.close().unwrap();
    let (mut struck, mut failed) = (0, 0);
    for seed in 0..20 {
        let device = SimDevice::instant().with_image(device.survivors(0));
        let there = Cache::open(Arc::new(device.clone())).unwrap();
        let flips = Faults::seeded(seed).with_chance(FaultOn::Read, FaultKind::Flip, 200_000);
        let device = device.with_faults(flips);
        let (sent, received, copy) = sent(&here, &there, &stream);
        struck += device.faults().len();
        assert!(stream.starts_with(&copy));
        assert_eq!(received.is_ok(), copy == stream);
        assert!(sent.is_ok() || received.is_err());
        failed += u32::from(received.is_err());
    }
    assert!(struck > 20, "{struck} flips");
    assert!(failed < 20, "none of them asked for what was damaged");
}

#[test]
fn many_streams_share_a_cache_at_a_time() {
    let (here, there) = (cache(), cache());
    let common = text(300_000, 1);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (here, there, common) = (&here, &there, &common);
            scope.spawn(move || {
                for round in 0..3 {
                    let stream = edited(common, 10, 10 * seed + round);
                    let (sent, received, copy) = sent(here, there, &stream);
                    sent.unwrap();
                    received.unwrap();
                    assert!(copy == stream);
                }
            });
        }
    });
}

#[test]
fn options_out_of_range_are_refused() {
    let cache = cache();
    let refusal =
        |options| encode(&cache, &mut &b"x"[..], &mut Vec::new(), options).unwrap_err().to_string();
    let usual = EncodeOptions::default();
    assert!(refusal(EncodeOptions { level: 0, ..usual }).contains("expected 1 to 19"));
    assert!(refusal(EncodeOptions { chunk_bytes: 100, ..usual }).contains("chunk_bytes"));
    assert!(refusal(EncodeOptions { segment_bytes: 0, ..usual }).contains("segment_bytes"));
    let create = |config| Cache::create(Arc::new(MemoryDevice::new()), config).unwrap_err();
    let small = CacheConfig { content_bytes: 1, ..SMALL };
    assert!(create(small).to_string().contains("expected 4194304"));
}

#[test]
fn any_bytes_are_no_stream() {
    let cache = cache();
    let mut random = Random::new(1);
    for _ in 0..200 {
        let bytes = noise(random.below(300), random.next());
        assert!(decoded(&cache, &bytes).is_err());
        let after_hello = [frame::Frame::hello().encode(), bytes].concat();
        assert!(decoded(&cache, &after_hello).is_err());
    }
}
