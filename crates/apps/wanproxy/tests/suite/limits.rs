//! The limits of a peer or a program, and the results of exceeding them.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use nandex_wanproxy::{Entrance, Proxy};

use crate::common::*;

#[test]
fn a_connection_too_many_is_closed_at_once_and_one_less_makes_place() {
    let mut plan = Plan::new(echo());
    plan.client.limits.connections_max = 2;
    let pair = plan.start();
    let talk = |stream: &mut std::net::TcpStream| {
        stream.write_all(b"x")?;
        stream.read_exact(&mut [0])
    };
    let mut open: Vec<_> = (0..2).map(|_| pair.connect()).collect();
    open.iter_mut().for_each(|stream| talk(stream).unwrap());
    assert!(talk(&mut pair.connect()).is_err());
    eventually("it is counted", || pair.client.snapshot().full == 1);
    drop(open.pop());
    eventually("it ends", || pair.client.snapshot().connections.len() == 1);
    talk(&mut pair.connect()).unwrap();
    pair.stop();
}

#[test]
fn a_server_half_that_is_full_says_so() {
    let mut plan = Plan::new(echo()).entrance(Entrance::Http);
    plan.server.limits.connections_max = 1;
    let to = plan.server.target.clone().unwrap();
    let pair = plan.start();
    let ask = || {
        let mut stream = pair.connect();
        write!(stream, "CONNECT {to} HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        (stream, answer)
    };
    let (_first, answer) = ask();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let (_second, answer) = ask();
    assert_eq!(&answer, b"HTTP/1.1 503");
    eventually("it is told", || {
        let told = pair.client.snapshot().last_error.unwrap_or_default();
        told.contains("the places for connections of 1 are taken")
    });
    assert_eq!(pair.server.snapshot().full, 1);
    pair.stop();
}

#[test]
fn handshakes_have_few_places_and_little_time() {
    let mut plan = Plan::new(echo());
    plan.server.limits.pending_max = 3;
    plan.server.limits.handshake_timeout = Duration::from_secs(1);
    let pair = plan.start();
    let address = pair.server.addresses()[0].address;
    let mut silent: Vec<_> = (0..3).map(|_| connect(address)).collect();
    silent[1].write_all(b"NDXP\x01").unwrap();
    silent[2].write_all(&[&b"NDXP\x01"[..], &[7; 30]].concat()).unwrap();
    eventually("they wait", || pair.server.snapshot().accepted == 3);
    let mut fourth = connect(address);
    let mut answer = Vec::new();
    assert_eq!(fourth.read_to_end(&mut answer).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(pair.server.snapshot().full, 1);
    // Each is closed after its timeout, and frees its place.
    for mut stream in silent {
        let _ = stream.read_to_end(&mut answer);
    }
    assert!(answer.is_empty());
    assert_eq!(exchange(pair.connect(), b"some words").unwrap(), b"some words");
    eventually("they are counted", || pair.server.snapshot().handshakes_failed == 3);
    pair.stop();
}

#[test]
fn a_program_that_sends_no_request_is_closed() {
    let mut plan = Plan::new(echo()).entrance(Entrance::Socks5);
    plan.client.limits.handshake_timeout = Duration::from_millis(200);
    let pair = plan.start();
    let mut stream = pair.connect();
    stream.write_all(&[5, 1]).unwrap();
    assert!(stream.read_to_end(&mut Vec::new()).is_err(), "it is reset");
    pair.stop();
}

/// Programs are the half's own, so one that finds no place for its request waits.
#[test]
fn programs_wait_for_those_that_have_sent_no_request_yet() {
    let to = echo();
    let mut plan = Plan::new(to).entrance(Entrance::Http);
    plan.client.limits.pending_max = 1;
    plan.client.limits.handshake_timeout = Duration::from_millis(500);
    let pair = plan.start();
    let _silent = pair.connect();
    let head = format!("CONNECT {to} HTTP/1.1\r\n\r\n");
    let answer = exchange(pair.connect(), head.as_bytes()).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    eventually("it ends", || pair.client.snapshot().finished == 1);
    let (client, _) = pair.stop();
    assert_eq!((client.full, client.reset), (0, 1));
}

#[test]
fn a_connection_that_is_idle_for_too_long_is_reset_on_both_sides() {
    let mut plan = Plan::new(echo());
    plan.client.limits.idle_timeout = Duration::from_millis(300);
    let pair = plan.start();
    let mut stream = pair.connect();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let error = stream.read_exact(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    eventually("both end", || {
        pair.client.snapshot().reset == 1 && pair.server.snapshot().reset == 1
    });
    assert!(pair.client.snapshot().last_error.unwrap().starts_with("nothing went either way"));
    assert!(pair.server.snapshot().last_error.unwrap().contains("nothing went either way"));
    pair.stop();
}

/// A peer that accepts the link and then is silent: the appearance of a half-open connection.
#[test]
fn a_half_that_falls_silent_is_noticed() {
    let mut plan = Plan::new(echo());
    plan.client.limits.ping_every = Duration::from_millis(100);
    plan.client.limits.link_timeout = Duration::from_millis(400);
    // The server half does not send anything by itself.
    plan.server.limits.ping_every = Duration::from_secs(20);
    let pair = plan.start();
    let mut stream = pair.connect();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let error = stream.read_exact(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    eventually("it is counted", || pair.client.snapshot().reset == 1);
    assert!(pair.client.snapshot().last_error.unwrap().starts_with("the other half was silent"));
    pair.stop();
}

/// A target that would send without end, and the amount that it could send.
fn endless() -> (SocketAddr, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let to = target(move |mut stream| {
        let mut number = 0_u64;
        loop {
            let part = noise(64 << 10, number);
            if stream.write_all(&part).is_err() {
                return;
            }
            counted.fetch_add(part.len() as u64, Relaxed);
            number += 1;
        }
    });
    (to, sent)
}

/// Waits until a number no longer changes.
fn settled(number: impl Fn() -> u64) -> u64 {
    let mut last = number();
    loop {
        thread::sleep(Duration::from_millis(400));
        let now = number();
        if now == last {
            return now;
        }
        last = now;
    }
}

#[test]
fn a_program_that_does_not_read_stops_its_target_and_nothing_piles_up() {
    let (to, sent) = endless();
    let pair = Plan::new(to).start();
    let mut stream = pair.connect();
    let stopped = settled(|| sent.load(Relaxed));
    // Sockets' own buffers, a window, and the bytes in transit between them.
    assert!((64 << 10..40 << 20).contains(&stopped), "{stopped} bytes");
    let taken = pair.server.snapshot().traffic.local_in_bytes
        - pair.client.snapshot().traffic.local_out_bytes;
    assert!(taken <= (1 << 20) + (256 << 10), "{taken} bytes in both halves");
    // It continues at the same place.
    let mut part = vec![0; 64 << 10];
    for number in 0..3 + stopped / part.len() as u64 {
        stream.read_exact(&mut part).unwrap();
        assert!(part == noise(64 << 10, number));
    }
    drop(stream);
    eventually("both end", || pair.server.snapshot().connections.is_empty());
    pair.stop();
}

#[test]
fn a_program_that_never_reads_is_reset_after_its_time() {
    let (to, _) = endless();
    let mut plan = Plan::new(to);
    plan.client.limits.stall_timeout = Duration::from_millis(300);
    let pair = plan.start();
    let _stream = pair.connect();
    eventually("both end", || {
        pair.client.snapshot().reset == 1 && pair.server.snapshot().reset == 1
    });
    assert!(pair.client.snapshot().last_error.unwrap().contains("read nothing"));
    pair.stop();
}

#[test]
fn an_address_that_others_reach_needs_to_be_asked_for() {
    let mut plan = Plan::new(echo());
    plan.server.listen = "0.0.0.0:0".parse().unwrap();
    let refusal = Proxy::server(cache(), plan.server.clone()).unwrap_err().to_string();
    assert!(refusal.contains("can be reached from other machines"), "{refusal}");
    plan.client.status = Some("192.0.2.1:0".parse().unwrap());
    let refusal = Proxy::client(cache(), plan.client.clone()).unwrap_err().to_string();
    assert!(refusal.contains("192.0.2.1:0"), "{refusal}");
    let taken = echo();
    plan.client.status = Some(taken);
    let refusal = Proxy::client(cache(), plan.client).unwrap_err().to_string();
    assert!(refusal.contains(&format!("cannot listen on {taken}")), "{refusal}");
    plan.server.listen = ANY;
    plan.server.target = None;
    let refusal = Proxy::server(cache(), plan.server).unwrap_err().to_string();
    assert!(refusal.contains("name a target, or allow some"), "{refusal}");
}

#[test]
fn a_stop_ends_what_is_open_after_its_time() {
    let mut plan = Plan::new(echo());
    plan.client.limits.stop_timeout = Duration::from_millis(50);
    plan.server.limits.stop_timeout = Duration::from_millis(50);
    let pair = plan.start();
    let mut stream = pair.connect();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let (client, server) = pair.stop();
    assert_eq!((client.finished, server.finished), (0, 0));
    assert!(stream.read(&mut [0]).is_err(), "a connection that is cut off looks whole");
}
