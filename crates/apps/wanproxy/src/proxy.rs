//! A running half: its threads, its sockets, and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nandex_wan::Cache;
use nandex_wan::live::LiveOptions;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::accept::{Places, WhenFull, accept};
use crate::client::{self, Client};
use crate::dial::raise_file_limit;
use crate::listen::{Listening, listen};
use crate::resolver::LOOKUPS_MAX;
use crate::server::{self, Server};
use crate::shared::Shared;
use crate::{ClientConfig, Entrance, Error, Limits, Result, ServerConfig, Snapshot, status};

/// Threads that wait for sockets.
const SOCKET_THREADS: usize = 2;

/// Threads in addition to those of the engine: they look names up, and one makes the cache durable.
const OTHER_THREADS: usize = LOOKUPS_MAX + 1;

/// The longest time for threads to end after a stop.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// A socket of a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Address {
    /// `forward`, `socks5`, `http`, `server` or `status`.
    pub role: &'static str,
    /// Its address.
    pub address: SocketAddr,
}

/// A running half. Dropping it ends it, including open connections; [`stop`](Self::stop) also saves the cache.
pub struct Proxy {
    runtime: Runtime,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    addresses: Vec<Address>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Starts a client half. Its server half need not be reachable yet.
    ///
    /// # Errors
    /// Invalid options, unusable files, an address in use.
    pub fn client(cache: Arc<Cache>, config: ClientConfig) -> Result<Self> {
        config.validate()?;
        let seal = config.seal()?;
        let mut proxy = Self::new(cache, config.live, config.limits)?;
        let places = Places::new(&proxy.shared, WhenFull::Wait);
        let client = Arc::new(Client::new(&proxy.shared, seal, config));
        for (address, entrance) in &client.config.entrances {
            let role = match entrance {
                Entrance::Forward(_) => "forward",
                Entrance::Socks5 => "socks5",
                Entrance::Http => "http",
            };
            let listening = proxy.listen(role, *address)?;
            let (client, entrance) = (Arc::clone(&client), entrance.clone());
            let serve = move |local, pending| {
                client::serve(Arc::clone(&client), entrance.clone(), local, pending)
            };
            proxy.serve(listening, places.clone(), serve);
        }
        proxy.show("client", client.config.status)?;
        Ok(proxy)
    }

    /// Starts a server half.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub fn server(cache: Arc<Cache>, config: ServerConfig) -> Result<Self> {
        config.validate()?;
        let seal = config.seal()?;
        let mut proxy = Self::new(cache, config.live, config.limits)?;
        let places = Places::new(&proxy.shared, WhenFull::Reset);
        let listening = proxy.listen("server", config.listen)?;
        let status = config.status;
        let server = Arc::new(Server { shared: Arc::clone(&proxy.shared), seal, config });
        let serve = move |link, pending| server::serve(Arc::clone(&server), link, pending);
        proxy.serve(listening, places, serve);
        proxy.show("server", status)?;
        Ok(proxy)
    }

    fn new(cache: Arc<Cache>, options: LiveOptions, limits: Limits) -> Result<Self> {
        raise_file_limit();
        let runtime = Builder::new_multi_thread()
            .worker_threads(SOCKET_THREADS)
            .max_blocking_threads(limits.engine_threads + OTHER_THREADS)
            .thread_name("nandex-wanproxy")
            .enable_all()
            .build()
            .map_err(Error::Runtime)?;
        let shared = Arc::new(Shared::new(cache, options, limits));
        let (stop, stopped) = watch::channel(false);
        let syncing = Arc::clone(&shared);
        let tasks = vec![runtime.spawn(async move { syncing.keep_synced(stopped).await })];
        Ok(Self { runtime, shared, stop, tasks, addresses: Vec::new() })
    }

    fn listen(&mut self, role: &'static str, address: SocketAddr) -> Result<Listening> {
        let listening = self.runtime.block_on(listen(address))?;
        self.addresses.push(Address { role, address: listening.address });
        Ok(listening)
    }

    fn serve<F, S>(&mut self, listening: Listening, places: Places, serve: S)
    where
        S: Fn(tokio::net::TcpStream, crate::accept::Pending) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.subscribe());
        let accepting = accept(shared, listening.listener, (places, stop), serve);
        self.tasks.push(self.runtime.spawn(accepting));
    }

    fn show(&mut self, half: &'static str, address: Option<SocketAddr>) -> Result<()> {
        let Some(address) = address else { return Ok(()) };
        let listening = self.listen("status", address)?;
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.subscribe());
        self.tasks.push(self.runtime.spawn(status::serve(shared, half, listening.listener, stop)));
        Ok(())
    }

    /// Returns its addresses, in the order of its configuration.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns its current figures.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// Accepts no more connections, lets open ones continue for the time of the limits, makes the cache durable, and
    /// ends.
    ///
    /// # Errors
    /// A cache that cannot be made durable.
    pub fn stop(self) -> Result<Snapshot> {
        let Self { runtime, shared, stop, tasks, .. } = self;
        stop.send_replace(true);
        runtime.block_on(async {
            for task in tasks {
                // The thread's own message has reported a failed task.
                let _ = task.await;
            }
        });
        let snapshot = shared.snapshot();
        runtime.shutdown_timeout(END_TIMEOUT);
        shared.cache.sync()?;
        Ok(snapshot)
    }
}
