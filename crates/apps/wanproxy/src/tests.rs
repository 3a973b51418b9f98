//! A peer that has the key and violates the protocol.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nandex::device::MemoryDevice;
use nandex::{Volume, VolumeOptions};
use nandex_wan::live::{LIVE_SEGMENT_BYTES_MAX, LiveOptions, LiveSender, Message, MessageKind};
use nandex_wan::{CACHE_BYTES_MIN, Cache, CacheConfig, Owner};

use crate::sealed::ClientSeal;
use crate::wire::{WireReader, WireWriter};
use crate::{Limits, Proxy, Security, ServerConfig, SharedKey, Target};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A server half before a target that reports its input, and a runtime for its peer.
struct Bench {
    server: Proxy,
    seal: ClientSeal,
    runtime: tokio::runtime::Runtime,
    target: TcpListener,
    _folder: tempfile::TempDir,
}

fn cache() -> Arc<Cache> {
    let config = CacheConfig { content_bytes: CACHE_BYTES_MIN, ..CacheConfig::default() };
    let log_bytes = config.log_bytes().unwrap();
    let options = VolumeOptions { log_bytes, hash_key: Some(42), ..VolumeOptions::default() };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    Arc::new(Cache::create_in(&volume, config).unwrap())
}

fn write_key(path: &Path) {
    std::fs::write(path, SharedKey::generate().unwrap()).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_key(&path);
        let target = TcpListener::bind(ANY).unwrap();
        let config = ServerConfig {
            listen: ANY,
            target: Some(Target::of(target.local_addr().unwrap())),
            allowed: Vec::new(),
            security: Security::Keys(vec![path.clone()]),
            status: None,
            is_public: false,
            live: LiveOptions::default(),
            limits: Limits { engine_threads: 1, ..Limits::default() },
        };
        let server = Proxy::server(cache(), config).unwrap();
        let seal = ClientSeal::Key(SharedKey::read(&path).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { server, seal, runtime, target, _folder: folder }
    }

    fn sealed(&self) -> (WireReader, WireWriter) {
        let address = self.server.addresses()[0].address;
        self.runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let sealed = self.seal.seal(stream).await.unwrap();
            (
                WireReader::new(sealed.reader),
                WireWriter::new(sealed.writer, Duration::from_secs(10)),
            )
        })
    }

    /// Opens a connection to the target.
    fn opened(&self) -> (WireReader, WireWriter, TcpStream) {
        let (mut reader, writer) = self.sealed();
        let answer = self.runtime.block_on(async {
            writer.say(MessageKind::Open, b"").await.unwrap();
            reader.next().await.unwrap().unwrap()
        });
        assert_eq!(answer.kind, MessageKind::Opened);
        (reader, writer, self.target.accept().unwrap().0)
    }

    /// Returns why the server half has ended a connection, the next one after this many.
    fn end(&self, before: u64) -> String {
        let begun = Instant::now();
        while self.server.snapshot().reset == before {
            assert!(begun.elapsed() < Duration::from_secs(60), "it goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.server.snapshot().last_error.unwrap()
    }

    /// Sends these messages after the connection is open; the target must see a reset.
    #[track_caller]
    fn assert_refused(&self, messages: &[Message], why: &str) {
        let before = self.server.snapshot().reset;
        let (_reader, writer, mut target) = self.opened();
        self.runtime.block_on(async {
            for message in messages {
                // It may already have ended.
                let _ = writer.put(message).await;
            }
        });
        let said = self.end(before);
        assert!(said.contains(why), "{said}");
        let mut got = Vec::new();
        assert!(target.read_to_end(&mut got).is_err(), "the target sees an end after {got:?}");
    }
}

fn message(kind: MessageKind, sequence: u64, body: &[u8]) -> Message {
    Message { kind, sequence, body: body.to_vec() }
}

#[test]
fn messages_that_nothing_led_to_end_the_connection() {
    let bench = Bench::new();
    bench.assert_refused(&[message(MessageKind::Taken, 0, &[])], "nothing led to");
    bench.assert_refused(&[message(MessageKind::Missing, 0, &[0])], "nothing led to");
    bench.assert_refused(&[message(MessageKind::Missing, 0, &[])], "damaged");
    bench.assert_refused(&[message(MessageKind::Again, 0, &[0; 100])], "nothing led to");
    bench.assert_refused(&[message(MessageKind::Plain, 3, b"words")], "nothing led to");
    bench.assert_refused(&[message(MessageKind::Open, 0, b"")], "expected a message of a stream");
    bench.assert_refused(&[message(MessageKind::Segment, 0, &[7; 100])], "");
    bench.assert_refused(&[message(MessageKind::End, 0, &[9])], "its end says");
}

#[test]
fn a_frame_that_promises_too_much_is_refused_before_it_takes_memory() {
    let bench = Bench::new();
    let there = cache();
    let mut sender = LiveSender::new(there, Owner::of(b"any"), LiveOptions::default()).unwrap();
    let mut segment = sender.send(&[0; 200_000]).unwrap();
    // The varint after the digest has the bytes of the steps; the next has the number of new ones.
    let at = 20 + 1;
    assert_eq!(segment.body[at..at + 3], [0xc0, 0x9a, 0x0c]);
    segment.body.splice(at..at + 3, [0xff, 0xff, 0xff, 0x7f]);
    bench
        .assert_refused(&[segment], &format!("bytes of new chunks up to {LIVE_SEGMENT_BYTES_MAX}"));
}

#[test]
fn a_peer_that_ignores_its_window_is_cut_off() {
    let bench = Bench::new();
    let part = vec![7; LIVE_SEGMENT_BYTES_MAX];
    let flood: Vec<Message> = (0..100).map(|at| message(MessageKind::Plain, at, &part)).collect();
    bench.assert_refused(&flood, "than its window has");
    let flood: Vec<Message> = (0..5000).map(|_| message(MessageKind::Taken, 0, &[])).collect();
    bench.assert_refused(&flood, "");
}

#[test]
fn a_peer_that_does_not_say_where_to_go_or_where_nobody_may_is_refused() {
    let bench = Bench::new();
    for (kind, body) in [(MessageKind::Plain, &b"words"[..]), (MessageKind::Reset, b"no")] {
        let before = bench.server.snapshot().reset;
        let (_reader, writer) = bench.sealed();
        bench.runtime.block_on(writer.put(&message(kind, 0, body))).unwrap();
        assert!(bench.end(before).contains("expected where to go"));
    }
    for wanted in ["192.0.2.1:80", "no target", "\u{1}", &"x".repeat(290)] {
        let (mut reader, writer) = bench.sealed();
        let answer = bench.runtime.block_on(async {
            writer.say(MessageKind::Open, wanted.as_bytes()).await.unwrap();
            reader.next().await.unwrap().unwrap()
        });
        assert_eq!(answer.kind, MessageKind::Refused, "{wanted}");
    }
    assert_eq!(bench.server.snapshot().finished, 0);
}

#[test]
fn an_honest_peer_is_served_after_all_that() {
    let bench = Bench::new();
    let (mut reader, writer, mut target) = bench.opened();
    target.write_all(b"answer").unwrap();
    let first = bench.runtime.block_on(async {
        writer.put(&message(MessageKind::Plain, 0, b"words")).await.unwrap();
        reader.next().await.unwrap().unwrap()
    });
    let mut got = [0; 5];
    target.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"words");
    assert!(first.body == b"answer" || first.kind == MessageKind::Taken, "{first:?}");
}
