//! Both halves on loopback in this process, with a new key.

use std::net::SocketAddr;
use std::sync::Arc;

use nandex_wan::Cache;
use nandex_wan::live::LiveOptions;

use super::LOOPBACK;
use crate::{
    ClientConfig, Entrance, Error, Limits, Peer, Proxy, Result, Security, ServerConfig, SharedKey,
    Snapshot, Target,
};

/// Both halves, with one forward to one target.
#[derive(Debug)]
pub(super) struct Halves {
    client: Proxy,
    server: Proxy,
    entrance: SocketAddr,
}

impl Halves {
    /// Starts both with these caches, the client half's first. `link` maps the server half's address to the one that
    /// the client half connects to.
    pub(super) fn start(
        caches: (Arc<Cache>, Arc<Cache>),
        (live, limits): (LiveOptions, Limits),
        target: SocketAddr,
        link: impl FnOnce(SocketAddr) -> Result<SocketAddr>,
    ) -> Result<Self> {
        let key = SharedKey::generate()?;
        let key = SharedKey::of(&key).ok_or_else(|| Error::handshake("a new key is none"))?;
        let security = Security::Key(key);
        let server = ServerConfig {
            listen: LOOPBACK,
            target: Some(Target::of(target)),
            allowed: Vec::new(),
            security: security.clone(),
            status: None,
            is_public: false,
            live,
            limits,
        };
        let server = Proxy::server(caches.1, server)?;
        let client = ClientConfig {
            entrances: vec![(LOOPBACK, Entrance::Forward(None))],
            peer: Peer { address: Target::of(link(address_of(&server)?)?), tls_name: None },
            security,
            status: None,
            is_public: false,
            bypasses: false,
            live,
            limits,
        };
        let client = Proxy::client(caches.0, client)?;
        let entrance = address_of(&client)?;
        Ok(Self { client, server, entrance })
    }

    /// Returns the address for programs.
    pub(super) fn entrance(&self) -> SocketAddr {
        self.entrance
    }

    /// Ends both. Returns their figures, the client half's first.
    pub(super) fn stop(self) -> Result<[Snapshot; 2]> {
        Ok([self.client.stop()?, self.server.stop()?])
    }
}

fn address_of(proxy: &Proxy) -> Result<SocketAddr> {
    let first = proxy.addresses().first();
    first.map(|it| it.address).ok_or_else(|| Error::request("the half listens nowhere"))
}
