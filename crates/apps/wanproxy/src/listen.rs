//! Listening sockets.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::{Error, Result};

/// A socket and its actual address: a port 0 is replaced.
pub(crate) struct Listening {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
}

/// Listens on an address.
pub(crate) async fn listen(address: SocketAddr) -> Result<Listening> {
    let refuse = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(refuse)?;
    let address = listener.local_addr().map_err(refuse)?;
    Ok(Listening { listener, address })
}
