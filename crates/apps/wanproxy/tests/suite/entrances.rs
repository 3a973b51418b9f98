//! The entrances for programs: SOCKS5 and HTTP CONNECT, with valid and invalid input.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};

use nandex_wanproxy::Entrance;

use crate::common::*;

const GREETING: &[u8] = &[5, 1, 0];

fn request(command: u8, kind: u8, host: &[u8], port: u16) -> Vec<u8> {
    [&[5, command, 0, kind][..], host, &port.to_be_bytes()].concat()
}

/// Returns the bytes that a program reads after it has sent these.
fn said(pair: &Pair, bytes: &[u8]) -> Vec<u8> {
    let mut stream = pair.connect();
    stream.write_all(bytes).unwrap();
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let mut part = [0; 1000];
    // A reset keeps the bytes before it.
    while let Ok(read @ 1..) = stream.read(&mut part) {
        answer.extend_from_slice(&part[..read]);
    }
    answer
}

fn greeted(request: &[u8]) -> Vec<u8> {
    [GREETING, request].concat()
}

const DONE: [u8; 12] = [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];

#[test]
fn socks_leads_to_addresses_of_both_kinds_and_to_names() {
    let to = echo();
    let pair = Plan::new(to).entrance(Entrance::Socks5).start();
    let to_name = [&[9][..], b"localhost"].concat();
    for request in [request(1, 1, &[127, 0, 0, 1], to.port()), request(1, 3, &to_name, to.port())] {
        let words = [&greeted(&request)[..], b"some words"].concat();
        assert_eq!(said(&pair, &words), [&DONE[..], b"some words"].concat());
    }
    // A machine may have no IPv6.
    if let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        let port = listener.local_addr().unwrap().port();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("it comes");
            stream.write_all(b"hello").expect("it is read");
        });
        let to = Ipv6Addr::LOCALHOST.octets();
        let answer = said(&pair, &greeted(&request(1, 4, &to, port)));
        assert_eq!(answer, [&DONE[..], b"hello"].concat());
        serving.join().unwrap();
    }
    pair.stop();
}

#[test]
fn socks_that_cannot_be_served_has_its_reply() {
    let pair = Plan::new(echo()).entrance(Entrance::Socks5).start();
    let refused = |code: u8| [5, 0, 5, code, 0, 1, 0, 0, 0, 0, 0, 0].to_vec();
    let local = [127, 0, 0, 1];
    let port = nobody().port();
    let cases = [
        (request(1, 1, &[192, 0, 2, 1], 80), 2),
        (request(1, 1, &local, port), 5),
        (request(2, 1, &local, 80), 7),
        (request(3, 1, &local, 80), 7),
        (request(1, 9, &local, 80), 8),
        (request(1, 1, &local, 0), 1),
        (request(1, 3, &[0], 80), 1),
        (request(1, 3, &[3, b'a', b'\n', b'b'], 80), 1),
        (request(1, 3, &[2, 0xff, 0xfe], 80), 1),
    ];
    for (request, code) in cases {
        assert_eq!(said(&pair, &greeted(&request)), refused(code), "{request:?}");
    }
    let (client, _) = pair.stop();
    assert_eq!((client.requests_refused, client.finished), (9, 0));
}

#[test]
fn bytes_that_are_no_socks_are_refused_whatever_they_are() {
    let pair = Plan::new(echo()).entrance(Entrance::Socks5).start();
    assert_eq!(said(&pair, &[5, 2, 1, 2]), [5, 0xff]);
    for bytes in [
        &[4, 1, 0, 80, 127, 0, 0, 1, 0][..],
        b"GET / HTTP/1.1\r\n\r\n",
        &[5],
        &[5, 0],
        &[],
        &[5, 255, 0],
    ] {
        let answer = said(&pair, bytes);
        assert!(answer.is_empty() || answer == [5, 0xff], "{bytes:?}: {answer:?}");
    }
    // A request that is cut off anywhere.
    let whole = greeted(&request(1, 3, b"\x09localhost", 80));
    for end in 0..whole.len() {
        assert!(said(&pair, &whole[..end]).len() <= 2, "{end}");
    }
    for seed in 0..20 {
        assert!(said(&pair, &greeted(&noise(300, seed))).len() <= 12, "{seed}");
    }
    let (client, server) = pair.stop();
    assert_eq!((client.finished, server.finished), (0, 0));
}

#[test]
fn connect_leads_where_it_says_and_takes_what_comes_right_after() {
    let to = echo();
    let pair = Plan::new(to).entrance(Entrance::Http).start();
    for host in ["127.0.0.1", "localhost"] {
        let head =
            format!("CONNECT {host}:{} HTTP/1.1\r\nHost: x\r\nX: y\r\n\r\nsome words", to.port());
        let answer = String::from_utf8(said(&pair, head.as_bytes())).unwrap();
        assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nsome words");
    }
    pair.stop();
}

#[test]
fn connect_that_cannot_be_served_has_its_status() {
    let pair = Plan::new(echo()).entrance(Entrance::Http).start();
    let long = format!("CONNECT localhost:1 HTTP/1.1\r\n{}", "X: y\r\n".repeat(2000));
    let nobody = format!("CONNECT {} HTTP/1.1\r\n\r\n", nobody());
    let cases = [
        ("GET http://localhost/ HTTP/1.1\r\n\r\n", "405"),
        ("CONNECT localhost HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT localhost:99999 HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT local\u{e9}:80 HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT\r\n\r\n", "400"),
        ("\r\n\r\n", "400"),
        ("CONNECT localhost:80 FTP\r\n\r\n", "505"),
        ("CONNECT 192.0.2.1:80 HTTP/1.1\r\n\r\n", "403"),
        (&nobody, "502"),
        (&long, "431"),
    ];
    for (head, status) in cases {
        let answer = String::from_utf8(said(&pair, head.as_bytes())).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
    }
    let cut = said(&pair, b"CONNECT localhost:80 HTTP/1.1\r\n");
    assert!(cut.is_empty(), "{cut:?}");
    let (client, _) = pair.stop();
    assert_eq!((client.requests_refused, client.finished), (11, 0));
}

#[test]
fn one_half_has_all_entrances_at_once() {
    let to = echo();
    let mut plan = Plan::new(to).entrance(Entrance::Http);
    plan.client.entrances.push((ANY, Entrance::Socks5));
    plan.client.entrances.push((ANY, Entrance::Forward(None)));
    let pair = plan.start();
    let roles: Vec<&str> = pair.client.addresses().iter().map(|it| it.role).collect();
    assert_eq!(roles, ["http", "socks5", "forward"]);
    let address: SocketAddr = pair.client.addresses()[2].address;
    assert_eq!(
        exchange(TcpStream::connect(address).unwrap(), b"some words").unwrap(),
        b"some words"
    );
    pair.stop();
}
