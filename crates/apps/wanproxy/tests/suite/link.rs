//! A link that is cut, damaged, repeated, or that leads to something else.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use nandex_wanproxy::{Entrance, Target};

use crate::common::*;

/// A target that sends back other bytes than its input, so that the link has new content both ways.
fn other_bytes() -> SocketAddr {
    target(|mut stream| {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut part) {
            part.iter_mut().for_each(|byte| *byte ^= 1);
            if stream.write_all(&part[..read]).is_err() {
                return;
            }
        }
        let _ = stream.shutdown(Shutdown::Write);
    })
}

/// Sends a stream over a damaged link. The output is its beginning, and ends with a reset unless all of it was
/// transferred.
#[track_caller]
fn assert_safe(damage: Damage) {
    let mut plan = Plan::new(other_bytes());
    // A changed length makes a side wait for bytes that never arrive.
    plan.client.limits.handshake_timeout = Duration::from_secs(1);
    plan.server.limits.handshake_timeout = Duration::from_secs(1);
    let pair = plan.start_over(cache(), cache(), |server| Link::new(server, damage).address);
    let stream = text(200_000, 1);
    let expected: Vec<u8> = stream.iter().map(|byte| byte ^ 1).collect();
    match exchange(pair.connect(), &stream) {
        Ok(copy) => assert!(copy == expected, "{damage:?}: {} bytes seem whole", copy.len()),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{damage:?}"),
    }
    eventually("it ends", || pair.client.snapshot().connections.is_empty());
    let (client, server) = pair.stop();
    let failures =
        client.reset + server.reset + client.handshakes_failed + server.handshakes_failed;
    assert!(failures > 0, "{damage:?}: nobody says so");
    assert_eq!(client.finished, 0, "{damage:?}");
}

/// All of them concurrently: some wait for bytes that never arrive.
fn assert_all_safe(damages: impl IntoIterator<Item = Damage>) {
    std::thread::scope(|scope| {
        for damage in damages {
            scope.spawn(move || assert_safe(damage));
        }
    });
}

#[test]
fn a_link_that_is_cut_off_resets_the_program() {
    // In the greeting, in the handshake, in a record's length, in a record, between records.
    assert_all_safe([1, 30, 100, 117, 118, 119, 130, 5000, 20_000].map(Damage::CutUp));
    assert_all_safe([1, 30, 60, 72, 74, 500, 30_000].map(Damage::CutDown));
}

#[test]
fn a_flipped_bit_anywhere_on_the_link_resets_the_program() {
    assert_all_safe([0, 4, 10, 25, 68, 69, 70, 80, 95, 3000, 10_000].map(Damage::FlipUp));
    assert_all_safe([2, 4, 5, 40, 53, 54, 60, 75, 80, 4000, 10_000].map(Damage::FlipDown));
}

#[test]
fn somebody_who_repeats_a_handshake_gets_nowhere() {
    let (tell, told) = std::sync::mpsc::channel();
    let to = target(move |_| tell.send(()).expect("the test waits"));
    let mut up = None;
    let mut server_address = None;
    let pair = Plan::new(to).start_over(cache(), cache(), |server| {
        let link = Link::new(server, Damage::None);
        (up, server_address) = (Some(link.up), Some(server));
        link.address
    });
    let _ = exchange(pair.connect(), b"once");
    told.recv_timeout(PATIENCE).expect("the target is reached");
    let up = up.unwrap();
    // 69 bytes of the handshake, and a record, of which 18 are its length and its tag.
    eventually("a record was sent", || up.lock().unwrap().len() > 87);
    let recorded = up.lock().unwrap().clone();
    let mut again = connect(server_address.unwrap());
    again.write_all(&recorded).unwrap();
    let mut answer = Vec::new();
    // The answer to the handshake, and nothing after it.
    let _ = again.read_to_end(&mut answer);
    assert!(answer.len() <= 53, "{} bytes", answer.len());
    eventually("it is counted", || pair.server.snapshot().handshakes_failed == 1);
    assert!(told.try_recv().is_err(), "the target was reached again");
    pair.stop();
}

#[test]
fn another_version_is_named_on_both_sides() {
    let pair = Plan::new(echo()).start();
    let mut stream = connect(pair.server.addresses()[0].address);
    stream.write_all(b"NDXP\x02").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"NDXP\x01");
    eventually("it is counted", || pair.server.snapshot().handshakes_failed == 1);
    assert!(pair.server.snapshot().last_error.unwrap().contains("expected version 1, found 2"));
    pair.stop();
    // A server half of another version.
    let other = target(|mut stream| {
        let mut greeting = [0; 5];
        stream.read_exact(&mut greeting).expect("it greets");
        stream.write_all(b"NDXP\x07").expect("it is read");
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    assert_refused_by(other, "expected version 1, found 7");
}

#[track_caller]
fn assert_refused_by(other: std::net::SocketAddr, why: &str) {
    let pair = Plan::new(echo()).start_over(cache(), cache(), |_| other);
    assert!(exchange(pair.connect(), b"some words").is_err());
    eventually("it is counted", || pair.client.snapshot().handshakes_failed == 1);
    let error = pair.client.snapshot().last_error.unwrap();
    assert!(error.contains(why), "{error}");
    pair.stop();
}

#[test]
fn what_is_no_half_of_a_proxy_is_refused() {
    let web = target(|mut stream| {
        let mut some = [0; 5];
        stream.read_exact(&mut some).expect("it greets");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it is read");
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    assert_refused_by(web, "is it a half of the proxy");
    let pair = Plan::new(echo()).start();
    let address = pair.server.addresses()[0].address;
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &noise(5000, 1), b"NDXP\x01", &[0x16, 3, 1, 2, 0]]
    {
        let mut stream = TcpStream::connect(address).unwrap();
        // Its first bytes may already have been rejected.
        let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer == b"NDXP\x01", "{answer:?}");
    }
    eventually("they are counted", || pair.server.snapshot().handshakes_failed == 4);
    let stream = text(1000, 1);
    assert!(exchange(pair.connect(), &stream).unwrap() == stream);
    pair.stop();
}

#[test]
fn a_half_that_is_not_there_is_told_or_gone_around_if_that_was_asked_for() {
    let to = echo();
    let down = |bypasses: bool, entrance: Entrance| {
        let mut plan = Plan::new(to).entrance(entrance);
        plan.client.bypasses = bypasses;
        plan.start_over(cache(), cache(), |_| nobody())
    };
    let pair = down(false, Entrance::Forward(Some(Target::of(to))));
    assert!(exchange(pair.connect(), b"some words").is_err());
    eventually("it is counted", || pair.client.snapshot().unreachable == 1);
    assert!(pair.client.snapshot().last_error.unwrap().contains("cannot reach the other half"));
    pair.stop();
    let pair = down(true, Entrance::Forward(Some(Target::of(to))));
    assert_eq!(exchange(pair.connect(), b"some words").unwrap(), b"some words");
    eventually("it is counted", || pair.client.snapshot().finished == 1);
    let (client, _) = pair.stop();
    assert_eq!((client.bypassed, client.unreachable, client.traffic.bypassed_bytes), (1, 1, 20));
    assert_eq!(client.traffic.link_out_bytes, 0);
}

/// A message may take longer on a slow link than a half may be silent, while its bytes keep arriving.
#[test]
fn a_link_that_is_slow_is_not_taken_for_a_silent_one() {
    let mut plan = Plan::new(echo());
    for (live, limits) in [
        (&mut plan.client.live, &mut plan.client.limits),
        (&mut plan.server.live, &mut plan.server.limits),
    ] {
        live.encode.segment_bytes = 256 << 10;
        limits.link_timeout = Duration::from_millis(1500);
        limits.ping_every = Duration::from_millis(500);
    }
    let slow = |server| Link::new(server, Damage::SlowUp(16)).address;
    let pair = plan.start_over(cache(), cache(), slow);
    let stream = noise(256 << 10, 1);
    assert!(exchange(pair.connect(), &stream).unwrap() == stream);
    let (client, server) = pair.stop();
    assert_eq!((client.finished, server.finished), (1, 1));
}

#[test]
fn a_connection_around_the_other_half_has_its_limits() {
    let to = echo();
    let mut plan = Plan::new(to).entrance(Entrance::Forward(Some(Target::of(to))));
    plan.client.bypasses = true;
    plan.client.limits.idle_timeout = Duration::from_millis(300);
    let pair = plan.start_over(cache(), cache(), |_| nobody());
    let mut stream = pair.connect();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    eventually("both bytes are counted", || {
        pair.client.snapshot().connections.iter().any(|it| it.traffic.bypassed_bytes == 2)
    });
    let error = stream.read_exact(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    eventually("it is counted", || pair.client.snapshot().reset == 1);
    let (client, _) = pair.stop();
    assert_eq!((client.bypassed, client.finished), (1, 0));
    assert!(client.last_error.unwrap().starts_with("nothing went either way"));
}

#[test]
fn a_stream_around_the_other_half_comes_back_whole() {
    let to = echo();
    let mut plan = Plan::new(to).entrance(Entrance::Http);
    plan.client.bypasses = true;
    let pair = plan.start_over(cache(), cache(), |_| nobody());
    let stream = noise(3 << 20, 1);
    let head = format!("CONNECT {to} HTTP/1.1\r\n\r\n");
    let copy = exchange(pair.connect(), &[head.as_bytes(), &stream].concat()).unwrap();
    let (head, copy) = copy.split_at(copy.len() - stream.len());
    assert!(head.starts_with(b"HTTP/1.1 200") && copy == stream);
    eventually("it is counted", || pair.client.snapshot().finished == 1);
    let (client, _) = pair.stop();
    assert_eq!(client.traffic.bypassed_bytes, 2 * stream.len() as u64);
}

/// A server half that is reachable and refuses is not bypassed.
#[test]
fn a_half_that_refuses_is_not_gone_around() {
    let to = echo();
    let mut plan = Plan::new(to).entrance(Entrance::Forward(Some(Target::of(to))));
    plan.client.bypasses = true;
    plan.server.target = None;
    plan.server.allowed = vec![allowed("example.org:1")];
    let pair = plan.start();
    assert!(exchange(pair.connect(), b"some words").is_err());
    eventually("it is counted", || pair.client.snapshot().requests_refused == 1);
    let (client, server) = pair.stop();
    assert_eq!((client.bypassed, server.requests_refused), (0, 1));
    assert!(client.last_error.unwrap().contains("does not allow it"));
}
