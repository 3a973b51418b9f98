//! The server half: accepts connections of client halves, and forwards them to allowed targets.

use std::sync::Arc;

use nandex_wan::live::MessageKind;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::accept::{Admitted, Pending};
use crate::client::refused_by;
use crate::config::ServerConfig;
use crate::dial::dial;
use crate::relay::{Ends, relay};
use crate::sealed::ServerSeal;
use crate::shared::Shared;
use crate::wire::{WireReader, WireWriter};
use crate::{Error, Refusal, Result, Target};

/// The shared state of connections of a server half.
pub(crate) struct Server {
    pub(crate) shared: Arc<Shared>,
    pub(crate) seal: ServerSeal,
    pub(crate) config: ServerConfig,
}

/// An authenticated peer, with its requested target.
struct Asking {
    reader: WireReader,
    writer: WireWriter,
    owner: nandex_wan::Owner,
    peer: String,
    wanted: String,
}

/// Serves a connection of a client half.
pub(crate) async fn serve(server: Arc<Server>, link: TcpStream, pending: Pending) -> Result<()> {
    let asking = server.hear(link).await?;
    let opened = match pending.admit() {
        Ok(place) => {
            server.open(&asking.wanted).await.map(|(target, local)| (target, local, place))
        }
        Err(error) => Err(error),
    };
    match opened {
        Ok((target, local, place)) => server.relay(asking, &target, local, place).await,
        Err(error) => {
            let body = refusal_of(&error);
            asking.writer.say(MessageKind::Refused, &body).await?;
            // Closing before it is read would reset it.
            let _ = asking.writer.shutdown().await;
            Err(error)
        }
    }
}

impl Server {
    /// Performs the handshake and reads the target of the peer. All of that has one timeout.
    async fn hear(&self, link: TcpStream) -> Result<Asking> {
        let after = self.shared.limits.handshake_timeout;
        let until = Instant::now() + after;
        let late =
            |_| Error::handshake(format!("the peer took longer than {} s", after.as_secs_f64()));
        let sealed = timeout_at(until, self.seal.seal(link)).await.map_err(late)??;
        let mut reader = WireReader::new(sealed.reader);
        let writer = WireWriter::new(sealed.writer, self.shared.limits.link_timeout);
        let first = timeout_at(until, reader.next()).await.map_err(late)?;
        // Only this message proves that it has the key.
        let first = first.map_err(|error| match error {
            Error::Link(error) => Error::handshake(format!("the peer's first record: {error}")),
            other => other,
        })?;
        match first {
            Some(first) if first.kind == MessageKind::Open => {
                let wanted = String::from_utf8_lossy(&first.body).into_owned();
                Ok(Asking { reader, writer, owner: sealed.owner, peer: sealed.peer, wanted })
            }
            Some(first) => {
                Err(Error::peer(format!("expected where to go, found {:?}", first.kind)))
            }
            None => Err(Error::handshake("the peer has closed the connection after the handshake")),
        }
    }

    /// Connects to the peer's target, if allowed.
    async fn open(&self, wanted: &str) -> Result<(Target, TcpStream)> {
        let target = self.target(wanted)?;
        let Shared { resolver, limits, .. } = &*self.shared;
        let stream = dial(resolver, &target, limits.connect_timeout).await;
        let stream = stream.map_err(|error| refused_by(&target, &error))?;
        Ok((target, stream))
    }

    fn target(&self, wanted: &str) -> Result<Target> {
        let shown: String = wanted.escape_debug().take(100).collect();
        let refuse = |why, reason: String| Error::Refused { target: shown.clone(), why, reason };
        if wanted.is_empty() {
            let none =
                || refuse(Refusal::NotAllowed, "the server half has no target of its own".into());
            return self.config.target.clone().ok_or_else(none);
        }
        let target: Target = wanted.parse().map_err(|reason| refuse(Refusal::Malformed, reason))?;
        let is_own = self.config.target.as_ref() == Some(&target);
        if is_own || self.config.allowed.iter().any(|allowed| allowed.allows(&target)) {
            return Ok(target);
        }
        Err(refuse(Refusal::NotAllowed, "the server half does not allow it".into()))
    }

    async fn relay(
        &self,
        asking: Asking,
        target: &Target,
        mut local: TcpStream,
        _place: Admitted,
    ) -> Result<()> {
        let Asking { reader, writer, owner, peer, .. } = asking;
        writer.say(MessageKind::Opened, &[]).await?;
        let open = self.shared.stats.open(&peer, &target.to_string());
        let ends = Ends { early: Vec::new(), reader, writer, owner };
        relay(&self.shared, &open, &mut local, ends).await?;
        self.shared.stats.finished.add(1);
        Ok(())
    }
}

/// Returns the message to a peer about an error.
fn refusal_of(error: &Error) -> Vec<u8> {
    let (why, reason) = match error {
        Error::Refused { why, reason, .. } => (*why, reason.clone()),
        Error::Full { .. } => (Refusal::Full, error.to_string()),
        other => (Refusal::Unreachable, other.to_string()),
    };
    [&[why as u8][..], reason.as_bytes()].concat()
}
