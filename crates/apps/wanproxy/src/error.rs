//! The errors of a proxy and of its connections.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The result of a proxy or of a connection.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a proxy or of one of its connections.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An invalid option.
    #[error("{field}: {reason}")]
    Options {
        /// The name of the option.
        field: &'static str,
        /// The fault of the value, and a value that would work.
        reason: String,
    },
    /// An unusable file with a key or certificates.
    #[error("{}: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The expected and the found value, and the remedy.
        reason: String,
    },
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The runtime cannot be started.
    #[error("cannot start the runtime of the proxy: {0}")]
    Runtime(#[source] io::Error),
    /// The cache, or the engine.
    #[error(transparent)]
    Wan(#[from] nandex_wan::Error),
    /// The other half cannot be reached.
    #[error("cannot reach the other half at {peer}: {source}")]
    Unreachable {
        /// Its address.
        peer: String,
        /// The system's error.
        source: io::Error,
    },
    /// The peer does not have the key or the certificates.
    #[error("the handshake with the other half failed: {reason}")]
    Handshake {
        /// The expected and the found value, and the remedy.
        reason: String,
    },
    /// A timeout.
    #[error("{what} for {} s", .after.as_secs_f64())]
    Timeout {
        /// The event that did not happen.
        what: &'static str,
        /// The time waited.
        after: Duration,
    },
    /// The connection to the other half broke or was tampered with.
    #[error("the connection to the other half: {0}")]
    Link(#[source] io::Error),
    /// The other half violates the protocol.
    #[error("the other half: {reason}")]
    Peer {
        /// The event, and the remedy.
        reason: String,
    },
    /// The other half reports that its side of the connection was reset.
    #[error("the other half says that its connection ended: {reason}")]
    Reset {
        /// Its report.
        reason: String,
    },
    /// The other half cannot or may not open the connection.
    #[error("the other half does not connect to {target}: {reason}")]
    Refused {
        /// The target.
        target: String,
        /// The kind of the refusal.
        why: Refusal,
        /// The other half's explanation.
        reason: String,
    },
    /// The program at this side was reset, or does not read.
    #[error("the connection at this side: {0}")]
    Local(#[source] io::Error),
    /// An invalid request of the program at this side.
    #[error("the request of the program: {reason}")]
    Request {
        /// The expected and the found value.
        reason: String,
    },
    /// A limit of connections is reached.
    #[error("{what} of {most} are taken")]
    Full {
        /// The exhausted resource.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// A task that failed because of a bug.
    #[error("a task of the engine has failed: {0}")]
    Engine(String),
}

/// The kind of a refusal to open a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Refusal {
    /// The server half does not allow the target.
    NotAllowed = 1,
    /// The name is unknown.
    UnknownHost = 2,
    /// The target does not answer.
    Unreachable = 3,
    /// The target refuses the connection.
    TargetRefused = 4,
    /// There are too many connections.
    Full = 5,
    /// The request is malformed.
    Malformed = 6,
}

impl Refusal {
    /// Returns the refusal of a byte; an unknown byte means unreachable.
    pub(crate) fn of(byte: u8) -> Self {
        let all = [
            Self::NotAllowed,
            Self::UnknownHost,
            Self::Unreachable,
            Self::TargetRefused,
            Self::Full,
            Self::Malformed,
        ];
        all.into_iter().find(|it| *it as u8 == byte).unwrap_or(Self::Unreachable)
    }
}

impl Error {
    pub(crate) fn peer(reason: impl Into<String>) -> Self {
        Self::Peer { reason: reason.into() }
    }

    pub(crate) fn handshake(reason: impl Into<String>) -> Self {
        Self::Handshake { reason: reason.into() }
    }

    pub(crate) fn request(reason: impl Into<String>) -> Self {
        Self::Request { reason: reason.into() }
    }
}
