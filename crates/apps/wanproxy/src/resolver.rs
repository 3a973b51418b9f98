//! Lookups of host names by the system: on a few threads, so that slow answers do not block threads of the engine.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Concurrent lookups. The system's lookups cannot be cancelled: an abandoned one keeps its place.
pub(crate) const LOOKUPS_MAX: usize = 16;

/// A resolver of names.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    places: Arc<Semaphore>,
}

impl Resolver {
    pub(crate) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }

    /// Returns the addresses of a name.
    pub(crate) async fn look_up(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let looking = spawn_blocking(move || {
            let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect);
            drop(place);
            found
        });
        looking.await.map_err(io::Error::other)?
    }
}
