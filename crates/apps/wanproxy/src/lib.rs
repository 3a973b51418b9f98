//! A proxy in two halves, one at each end of a slow link. They replace repeated content on the link by references.
//!
//! ```text
//!                     +--------- client half --------+   slow link    +--------- server half --------+
//!   program --TCP-->  | forward, SOCKS5, HTTP CONNECT|  ============  | allowed?  -> target          | --TCP--> server
//!                     | LiveSender     LiveReceiver  |  Noise or TLS  | LiveReceiver     LiveSender  |
//!                     |        cache on flash        |                |        cache on flash        |
//!                     +------------------------------+                +------------------------------+
//! ```
//!
//! 1. Each connection of a program is one connection over the link, which is authenticated and encrypted before a byte
//!    of the program is sent over it: by a shared key ([`SharedKey`], Noise `NNpsk0`) or by certificates of both halves
//!    ([`TlsFiles`], TLS 1.3).
//! 2. The engine of [`nandex_wan::live`] is synchronous. It runs on a bounded number of threads; all waiting for
//!    sockets is on two.
//! 3. All connections share the half's [`Cache`]. A peer may refer to the content transferred between it and this half:
//!    the [`Owner`](nandex_wan::Owner) of a connection follows from its key or its certificates.
//! 4. Everything that a peer sends has a limit before memory is allocated for it, and a time ([`Limits`]).
//! 5. A connection that fails on one side is reset on the other: a cut-off stream is never mistaken for a whole one.
//!
//! The runtime is tokio's, and is used only here. There may be thousands of sockets, mostly idle, which would need a
//! thread each without it.
#![forbid(unsafe_code)]

mod accept;
mod buffers;
mod bypass;
mod client;
mod config;
mod dial;
mod engine;
mod error;
mod http_connect;
mod key;
mod limits;
mod listen;
mod measure;
mod proxy;
mod relay;
mod resolver;
mod sealed;
mod server;
mod shared;
mod socket;
mod socks;
mod stats;
mod status;
mod target;
#[cfg(test)]
mod tests;
mod wire;

pub use buffers::BufferSnapshot;
pub use config::{ClientConfig, Entrance, Peer, Security, ServerConfig};
pub use error::{Error, Refusal, Result};
pub use key::SharedKey;
pub use limits::Limits;
pub use measure::{
    FarEnd, LatencyPlan, LatencyReport, LinkEnds, LinkKind, LinkPlan, LinkRate, LinkReport,
    RoundTrips, Spread, StreamReport, TripSpread, TripsReport, measure_latency, measure_link,
    measure_link_on_loopback,
};
pub use nandex_wan::Cache;
pub use proxy::{Address, Proxy};
pub use sealed::TlsFiles;
pub use stats::{ConnectionSnapshot, LatencySnapshot, Snapshot, TrafficSnapshot};
pub use target::{Allowed, Target};
