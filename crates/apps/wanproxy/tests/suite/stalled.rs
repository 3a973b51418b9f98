//! Programs that write and never read, and the bytes that both halves hold for them.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use nandex_wan::live::LiveOptions;

use crate::common::*;

/// Programs that never read.
const WRITERS: u64 = 40;

/// The bytes that all connections of a half may have in transit.
const BUDGET: u64 = 8 << 20;

/// The bytes of a segment.
const SEGMENT: u64 = 32 << 10;

/// Programs that write as much as possible and read nothing.
struct Writers {
    streams: Vec<TcpStream>,
    written: Arc<AtomicU64>,
}

impl Writers {
    fn start(to: SocketAddr) -> Self {
        let written = Arc::new(AtomicU64::new(0));
        let streams = (0..WRITERS).map(|number| {
            let stream = connect(to);
            let (mut writer, written) =
                (stream.try_clone().expect("a clone"), Arc::clone(&written));
            thread::spawn(move || {
                for part in 0.. {
                    let bytes = noise(64 << 10, number << 32 | part);
                    if writer.write_all(&bytes).is_err() {
                        return;
                    }
                    written.fetch_add(bytes.len() as u64, Relaxed);
                }
            });
            stream
        });
        Self { streams: streams.collect(), written }
    }

    /// Waits until none of them can write any more.
    fn wait_until_stuck(&self) {
        let (begun, mut last) = (Instant::now(), (0, Instant::now()));
        while last.0 == 0 || last.1.elapsed() < Duration::from_secs(2) {
            assert!(begun.elapsed() < 2 * PATIENCE, "they go on after {} bytes", last.0);
            let now = self.written.load(Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

fn plan() -> Plan {
    let mut plan = Plan::new(echo());
    for live in [&mut plan.client.live, &mut plan.server.live] {
        *live = LiveOptions { window_bytes: 4 << 20, plain_after_bytes: 256 << 10, ..fine() };
    }
    for limits in [&mut plan.client.limits, &mut plan.server.limits] {
        limits.buffer_bytes = BUDGET as usize;
    }
    plan
}

/// Forty programs that wrote to a target that sends everything back, and read none of it, took 285 MB in both halves: a
/// window in each direction of each connection at each end.
#[test]
fn programs_that_never_read_hold_no_more_than_the_budget_and_hold_up_no_other() {
    let pair = plan().start();
    let writers = Writers::start(pair.client.addresses()[0].address);
    writers.wait_until_stuck();
    for half in [&pair.client, &pair.server] {
        let it = half.snapshot().buffers;
        assert_eq!(it.budget_bytes, BUDGET);
        assert!(it.sent_bytes > BUDGET / 2, "they are held back by something else: {it:?}");
        assert!(it.held_bytes >= it.sent_bytes && it.held_bytes_max >= it.held_bytes, "{it:?}");
        // The bytes sent by this half and by the other one; for each connection a collected segment, one in each
        // direction beyond the budget, and one for the heads of messages.
        let most = 2 * BUDGET + 4 * WRITERS * SEGMENT;
        assert!(it.held_bytes_max <= most, "{} of {most}: {it:?}", it.held_bytes_max);
    }
    let bytes = noise(3 << 20, 8);
    assert!(exchange(pair.connect(), &bytes).expect("others go on") == bytes);
    drop(writers);
    eventually("what was held goes with the connections", || {
        [&pair.client, &pair.server].iter().all(|half| half.snapshot().buffers.held_bytes == 0)
    });
    pair.stop();
}

/// Segments as long as the budget, so that each connection has one on its way or none.
#[test]
fn connections_go_on_when_the_budget_is_one_segment() {
    let mut plan = plan();
    for live in [&mut plan.client.live, &mut plan.server.live] {
        live.encode.segment_bytes = 1 << 20;
    }
    for limits in [&mut plan.client.limits, &mut plan.server.limits] {
        limits.buffer_bytes = 1 << 20;
    }
    let pair = plan.start();
    thread::scope(|scope| {
        for number in 0..6 {
            let stream = pair.connect();
            scope.spawn(move || {
                let bytes = noise(5 << 20, number);
                assert!(exchange(stream, &bytes).expect("it goes on") == bytes, "{number}");
            });
        }
    });
    pair.stop();
}
