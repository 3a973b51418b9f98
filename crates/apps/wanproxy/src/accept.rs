//! Accepts connections up to the limits, until it is told to stop.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::dial::{reset, set_up};
use crate::shared::Shared;
use crate::{Error, Result};

/// The waiting time when the system has no file or memory for a connection.
const WAIT_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// The places for connections of a half, for all its sockets.
#[derive(Clone)]
pub(crate) struct Places {
    connections: Arc<Semaphore>,
    pending: Arc<Semaphore>,
    most: (usize, usize),
    when_full: WhenFull,
}

/// The treatment of a connection that finds no place for its handshake or request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WhenFull {
    /// It is reset: its peer is unknown.
    Reset,
    /// It waits, as do those after it in the system's queue: it is a program's.
    Wait,
}

/// A place for a connection whose peer or request is not known yet. [`admit`](Self::admit) ends it.
pub(crate) struct Pending {
    places: Places,
    _place: OwnedSemaphorePermit,
}

/// A place for a connection.
pub(crate) struct Admitted {
    _place: OwnedSemaphorePermit,
}

impl Places {
    pub(crate) fn new(shared: &Shared, when_full: WhenFull) -> Self {
        let most = (shared.limits.connections_max, shared.limits.pending_max);
        let of = |places| Arc::new(Semaphore::new(places));
        Self { connections: of(most.0), pending: of(most.1), most, when_full }
    }

    async fn pend(&self) -> Result<Pending> {
        let full = || Error::Full { what: "the places for handshakes", most: self.most.1 };
        let pending = Arc::clone(&self.pending);
        let place = match self.when_full {
            WhenFull::Reset => pending.try_acquire_owned().ok(),
            WhenFull::Wait => pending.acquire_owned().await.ok(),
        };
        Ok(Pending { places: self.clone(), _place: place.ok_or_else(full)? })
    }
}

impl Pending {
    /// Turns it into a connection, and frees its place for the next handshake.
    pub(crate) fn admit(self) -> Result<Admitted> {
        let full = |_| Error::Full { what: "the places for connections", most: self.places.most.0 };
        let place = Arc::clone(&self.places.connections).try_acquire_owned().map_err(full)?;
        Ok(Admitted { _place: place })
    }
}

/// Serves each connection in a separate task. After a stop they may continue for the time of the limits.
pub(crate) async fn accept<F, S>(
    shared: Arc<Shared>,
    listener: TcpListener,
    (places, mut stop): (Places, watch::Receiver<bool>),
    serve: S,
) where
    S: Fn(TcpStream, Pending) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = stop.changed() => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                shared.stats.accepted.add(1);
                let pending = tokio::select! {
                    _ = stop.changed() => break,
                    pending = places.pend() => pending,
                };
                match pending {
                    Ok(pending) => {
                        set_up(&stream);
                        let (stats, serving) = (Arc::clone(&shared.stats), serve(stream, pending));
                        tasks.spawn(async move {
                            if let Err(error) = serving.await {
                                stats.note_error(&error);
                            }
                        });
                    }
                    Err(error) => {
                        reset(&stream);
                        shared.stats.note_error(&error);
                    }
                }
            }
            // The other end has closed it in between.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                shared.stats.note_error(&Error::Local(error));
                sleep(WAIT_AFTER_FAILURE).await;
            }
        }
    }
    drop(listener);
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = timeout(shared.limits.stop_timeout, all).await;
}
