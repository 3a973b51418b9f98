//! Caches that are emptied, swapped, old or full.

use std::sync::Arc;

use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};
use nandex_wanproxy::{Cache, Security};

use crate::common::*;

/// Sends a stream with these caches; returns the number of repeated segments, from both halves, and bytes of the link.
///
/// Segments depend on the available bytes of sockets, so a chunk at the end of one may be known from another time, to
/// one half alone. Once caches have differed, only bytes show their content.
#[track_caller]
fn sent(
    plan_key: &std::path::Path,
    caches: (&Arc<Cache>, &Arc<Cache>),
    stream: &[u8],
) -> (u64, u64) {
    let mut plan = Plan::new(echo());
    plan.client.security = Security::Keys(vec![plan_key.to_owned()]);
    plan.server.security = plan.client.security.clone();
    let pair = plan.start_with(Arc::clone(caches.0), Arc::clone(caches.1));
    assert!(exchange(pair.connect(), stream).unwrap() == stream);
    let (client, server) = pair.stop();
    assert_eq!((client.finished, client.reset), (1, 0));
    assert_eq!(client.traffic.again_segments, server.traffic.asked_segments);
    let again = client.traffic.again_segments + server.traffic.again_segments;
    (again, client.traffic.link_out_bytes + client.traffic.link_in_bytes)
}

#[test]
fn what_a_half_lacks_is_asked_for_and_then_it_has_it() {
    let keys = Keys::new();
    let key = keys.make("key");
    let (here, there, empty) = (cache(), cache(), cache());
    let stream = text(400_000, 1);
    let (again, first) = sent(&key, (&here, &there), &stream);
    assert_eq!(again, 0);
    assert_eq!(sent(&key, (&here, &there), &stream).0, 0);
    // The halves' caches, swapped.
    assert_eq!(sent(&key, (&there, &here), &stream).0, 0);
    assert!(sent(&key, (&here, &empty), &stream).0 > 0);
    let (_, then) = sent(&key, (&here, &empty), &stream);
    assert!(then * 2 < first, "{then} bytes after {first}");
    // The server half's answers need the client half's cache.
    let other = cache();
    sent(&key, (&other, &there), &stream);
    // The client half may lack some more of the chunks that ended with a segment of another time.
    let then = (0..8).map(|_| sent(&key, (&other, &there), &stream).1).min();
    assert!(then.is_some_and(|then| then * 2 < first), "{then:?} bytes after {first}");
}

#[test]
fn a_cache_that_is_a_copy_of_earlier_asks_for_what_came_later() {
    let keys = Keys::new();
    let key = keys.make("key");
    let here = cache();
    let device = SimDevice::instant();
    let streams: Vec<Vec<u8>> = (1..4).map(|seed| text(200_000, seed)).collect();
    let there = cache_on(Arc::new(device.clone()));
    assert_eq!(sent(&key, (&here, &there), &streams[0]).0, 0);
    drop(there);
    let copy = device.survivors(0);
    let there = Arc::new(Cache::open(Arc::new(device)).unwrap());
    let (again, first) = sent(&key, (&here, &there), &streams[1]);
    assert_eq!(again, 0);
    drop(there);
    let there = Arc::new(Cache::open(Arc::new(SimDevice::instant().with_image(copy))).unwrap());
    assert_eq!(sent(&key, (&here, &there), &streams[0]).0, 0);
    assert!(sent(&key, (&here, &there), &streams[1]).0 > 0);
    let (_, then) = sent(&key, (&here, &there), &streams[1]);
    assert!(then * 2 < first, "{then} bytes after {first}");
}

/// A cache whose device accepts no more writes.
fn full() -> Arc<Cache> {
    let device = SimDevice::instant();
    let cache = cache_on(Arc::new(device.clone()));
    let at = device.seen(FaultOn::Write) + 1;
    device.arm(Fault {
        on: FaultOn::Write,
        at,
        kind: FaultKind::NoSpace,
        span: FaultSpan::FromThenOn,
    });
    cache
}

#[track_caller]
fn assert_goes_on(here: Arc<Cache>, there: Arc<Cache>) {
    let mut plan = Plan::new(echo());
    plan.client.limits.sync_every = std::time::Duration::from_millis(20);
    plan.server.limits.sync_every = plan.client.limits.sync_every;
    let pair = plan.start_with(here, there);
    let stream = [noise(12 << 20, 1), text(100_000, 2)].concat();
    assert!(exchange(pair.connect(), &stream).unwrap() == stream);
    assert!(exchange(pair.connect(), &stream[..500_000]).unwrap() == stream[..500_000]);
    eventually("both end", || {
        pair.client.snapshot().finished == 2 && pair.server.snapshot().finished == 2
    });
    let both = [pair.client.snapshot(), pair.server.snapshot()];
    assert!(both.iter().any(|half| half.cache_failure.is_some()), "no half reports it");
    assert!(both.iter().all(|half| half.reset == 0));
    // Failing to save the cache is an error at the end.
    assert!(pair.client.stop().is_err() || pair.server.stop().is_err());
}

#[test]
fn streams_go_on_when_the_cache_of_the_client_half_is_full() {
    assert_goes_on(full(), cache());
}

#[test]
fn streams_go_on_when_the_cache_of_the_server_half_is_full() {
    assert_goes_on(cache(), full());
}
