//! Streams are transferred byte for byte, both ways, whichever side ends first.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;

use crate::common::*;

#[test]
fn what_goes_in_comes_out_and_the_next_time_in_few_bytes() {
    let pair = Plan::new(echo()).start();
    let stream = [text(300_000, 1), noise(200_000, 2), vec![0; 100_000]].concat();
    assert!(exchange(pair.connect(), &stream).unwrap() == stream);
    let first = pair.client.snapshot().traffic;
    assert!(exchange(pair.connect(), &stream).unwrap() == stream);
    assert!(exchange(pair.connect(), b"").unwrap().is_empty());
    let (client, server) = pair.stop();
    let second = client.traffic.link_out_bytes - first.link_out_bytes;
    assert!(second * 20 < stream.len() as u64, "{second} bytes");
    // The echo came back as references the first time already: content sent one way is known the other way.
    assert!(client.traffic.link_in_bytes * 5 < 2 * stream.len() as u64, "{client:?}");
    assert_eq!(client.traffic.local_in_bytes, 2 * stream.len() as u64);
    assert_eq!(client.traffic.local_out_bytes, 2 * stream.len() as u64);
    assert_eq!((client.finished, server.finished, client.reset, server.reset), (3, 3, 0, 0));
    assert_eq!((client.traffic.again_segments, server.traffic.again_segments), (0, 0));
    assert!(client.traffic.known_chunks > 100 && client.cache.bytes_added > 0);
    assert!(client.connections.is_empty());
}

#[test]
fn many_streams_share_a_cache_at_once() {
    let pair = Plan::new(echo()).start();
    thread::scope(|scope| {
        for seed in 0..16 {
            let pair = &pair;
            scope.spawn(move || {
                let stream = [text(100_000, seed % 4), noise(30_000, seed)].concat();
                assert!(exchange(pair.connect(), &stream).unwrap() == stream);
            });
        }
    });
    let (client, _) = pair.stop();
    assert_eq!((client.finished, client.reset), (16, 0));
}

#[test]
fn a_direction_ends_by_itself_and_the_other_goes_on() {
    let answer = text(150_000, 7);
    let expected = answer.clone();
    let to = target(move |mut stream| {
        let mut request = Vec::new();
        stream.read_to_end(&mut request).expect("it ends");
        stream.write_all(&request).and_then(|()| stream.write_all(&answer)).expect("it is read");
    });
    let pair = Plan::new(to).start();
    let got = exchange(pair.connect(), b"a request").unwrap();
    assert!(got == [&b"a request"[..], &expected].concat());
    pair.stop();
}

/// A program that reads nothing before it has sent everything does not block its own sending.
#[test]
fn the_directions_do_not_wait_for_each_other() {
    const BYTES: usize = 12 << 20;
    let to = target(|mut stream| {
        let mut writer = stream.try_clone().expect("a clone");
        let writing = thread::spawn(move || {
            let part = noise(64 << 10, 1);
            (0..BYTES / part.len()).for_each(|_| writer.write_all(&part).expect("it is read"));
            writer.shutdown(Shutdown::Write).expect("it is open");
        });
        let read = std::io::copy(&mut stream, &mut std::io::sink()).expect("it ends");
        assert_eq!(read, BYTES as u64);
        writing.join().expect("it was all written");
    });
    let pair = Plan::new(to).start();
    let mut stream = pair.connect();
    let part = noise(64 << 10, 2);
    (0..BYTES / part.len()).for_each(|_| stream.write_all(&part).unwrap());
    stream.shutdown(Shutdown::Write).unwrap();
    let part = noise(64 << 10, 1);
    let mut copy = vec![0; part.len()];
    for _ in 0..BYTES / part.len() {
        stream.read_exact(&mut copy).unwrap();
        assert!(copy == part);
    }
    assert_eq!(stream.read(&mut copy).unwrap(), 0);
    let (client, server) = pair.stop();
    assert_eq!((client.finished, server.finished), (1, 1));
}

/// Each request waits for its answer, so one that waited for a segment to fill would never end.
#[test]
fn short_requests_go_out_at_once_and_as_they_are() {
    let pair = Plan::new(echo()).start();
    let mut stream = pair.connect();
    for round in 0..50_u8 {
        let request = [round; 100];
        stream.write_all(&request).unwrap();
        let mut answer = [0; 100];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, request);
    }
    drop(stream);
    eventually("it ends", || pair.client.snapshot().finished == 1);
    let (client, server) = pair.stop();
    assert_eq!((client.traffic.plain_bytes, server.traffic.plain_bytes), (5000, 5000));
    assert_eq!((client.traffic.segments, client.traffic.chunks), (50, 0));
    assert_eq!(client.latency.count, 50);
    // A message is 3 or 4 bytes longer than its content, and its answer as long.
    assert!(client.traffic.link_out_bytes < 50 * 112, "{client:?}");
}

#[test]
fn a_target_that_resets_is_a_reset_to_the_program() {
    let to = target(|mut stream| {
        let mut part = [0; 1000];
        stream.read_exact(&mut part).expect("it comes");
        stream.write_all(&part).expect("it is read");
        // Unread bytes turn the end into a reset.
        let mut one = [0];
        stream.read_exact(&mut one).expect("it comes");
    });
    let pair = Plan::new(to).start();
    let mut stream = pair.connect();
    stream.write_all(&noise(100_000, 1)).unwrap();
    let mut copy = Vec::new();
    let error = stream.read_to_end(&mut copy).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{} bytes", copy.len());
    assert!(noise(100_000, 1).starts_with(&copy));
    eventually("it is counted", || {
        let both = [pair.client.snapshot(), pair.server.snapshot()];
        both.iter().all(|half| half.reset == 1 && half.connections.is_empty())
    });
    pair.stop();
}

#[test]
fn a_program_that_resets_is_a_reset_to_the_target() {
    let (tell, told) = std::sync::mpsc::channel();
    let to = target(move |mut stream| {
        stream.write_all(&noise(50_000, 1)).expect("it is taken");
        let mut copy = Vec::new();
        let end = stream.read_to_end(&mut copy).map(drop).map_err(|error| error.kind());
        tell.send(end).expect("the test waits");
    });
    let pair = Plan::new(to).start();
    let mut stream = pair.connect();
    stream.write_all(b"some words").unwrap();
    let mut one = [0];
    stream.read_exact(&mut one).unwrap();
    // Unread bytes turn this into a reset.
    drop(stream);
    let end = told.recv_timeout(PATIENCE).expect("the target sees an end");
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
    pair.stop();
}

#[test]
fn what_does_not_shrink_is_passed_on_as_it_is() {
    let mut plan = Plan::new(echo());
    plan.client.live.plain_after_bytes = 200_000;
    let pair = plan.start();
    let stream = noise(1_000_000, 1);
    assert!(exchange(pair.connect(), &stream).unwrap() == stream);
    let (client, _) = pair.stop();
    assert!(client.traffic.plain_bytes > 500_000, "{client:?}");
    let long = client.traffic.link_out_bytes;
    assert!(long < 1_010_000 + 20_000, "{long} bytes");
}
