//! A thousand connections at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

use crate::common::*;

const CONNECTIONS: usize = 1000;

/// Programs and targets of a test, in one runtime: a thousand threads each would be the test's own limit.
#[test]
fn a_thousand_connections_are_open_at_once_and_each_carries_its_own() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind(ANY)).unwrap();
    let to = listener.local_addr().unwrap();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut back) = split(stream);
                let _ = copy(&mut from, &mut back).await;
                let _ = back.shutdown().await;
            });
        }
    });
    let mut plan = Plan::new(to);
    // They connect at the same time, and neither half has as many places for handshakes.
    assert!(plan.server.limits.pending_max < CONNECTIONS / 2);
    plan.client.limits.handshake_timeout = Duration::from_secs(60);
    plan.server.limits.handshake_timeout = Duration::from_secs(60);
    let pair = plan.start();
    let address = pair.client.addresses()[0].address;
    let all_open = Arc::new(Barrier::new(CONNECTIONS + 1));
    let all_seen = Arc::new(Barrier::new(CONNECTIONS + 1));
    let mut programs = Vec::new();
    for number in 0..CONNECTIONS {
        let (all_open, all_seen) = (Arc::clone(&all_open), Arc::clone(&all_seen));
        programs.push(runtime.spawn(async move {
            let stream = [&number.to_le_bytes()[..], &text(3000, number as u64 % 10)].concat();
            let mut program = TcpStream::connect(address).await.unwrap();
            program.write_all(&stream[..100]).await.unwrap();
            let mut copy = vec![0; 100];
            program.read_exact(&mut copy).await.unwrap();
            all_open.wait().await;
            all_seen.wait().await;
            program.write_all(&stream[100..]).await.unwrap();
            program.shutdown().await.unwrap();
            program.read_to_end(&mut copy).await.unwrap();
            assert!(copy == stream);
        }));
    }
    runtime.block_on(all_open.wait());
    assert_eq!(pair.client.snapshot().connections.len(), CONNECTIONS);
    assert_eq!(pair.server.snapshot().connections.len(), CONNECTIONS);
    runtime.block_on(async {
        all_seen.wait().await;
        for program in programs {
            program.await.unwrap();
        }
    });
    let bytes = (CONNECTIONS * 3008) as u64;
    eventually("they end", || pair.client.snapshot().finished == CONNECTIONS as u64);
    let (client, server) = pair.stop();
    assert_eq!((client.reset, server.reset, client.full, server.full), (0, 0, 0, 0));
    assert_eq!((client.traffic.local_in_bytes, client.traffic.local_out_bytes), (bytes, bytes));
    assert!(client.traffic.link_out_bytes < bytes, "{client:?}");
}
