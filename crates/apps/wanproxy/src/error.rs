//! What can end a proxy or one of its connections.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The result of a proxy or of a connection.
pub type Result<T> = std::result::Result<T, Error>;

/// What can end a proxy or one of its connections.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An option that cannot work.
    #[error("{field}: {reason}")]
    Options {
        /// Which option.
        field: &'static str,
        /// What is wrong with it, and what would do.
        reason: String,
    },
    /// A file with a key or certificates that is of no use.
    #[error("{}: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was expected, what was found, and what to do.
        reason: String,
    },
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
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
        /// What the system said.
        source: io::Error,
    },
    /// No peer that has the key or the certificates.
    #[error("the handshake with the other half failed: {reason}")]
    Handshake {
        /// What was expected, what was found, and what to do.
        reason: String,
    },
    /// Something took longer than it may.
    #[error("{what} for {} s", .after.as_secs_f64())]
    Timeout {
        /// What did not happen.
        what: &'static str,
        /// How long it was waited for.
        after: Duration,
    },
    /// The connection to the other half broke or was changed on its way.
    #[error("the connection to the other half: {0}")]
    Link(#[source] io::Error),
    /// The other half does what it must not.
    #[error("the other half: {reason}")]
    Peer {
        /// What happened, and what to do.
        reason: String,
    },
    /// The other half says that its side of the connection was reset.
    #[error("the other half says that its connection ended: {reason}")]
    Reset {
        /// What it says.
        reason: String,
    },
    /// The other half cannot or may not open the connection.
    #[error("the other half does not connect to {target}: {reason}")]
    Refused {
        /// Where to.
        target: String,
        /// Why.
        why: Refusal,
        /// What it says.
        reason: String,
    },
    /// The program at this side was reset, or does not read.
    #[error("the connection at this side: {0}")]
    Local(#[source] io::Error),
    /// The program at this side asks for what there is not.
    #[error("the request of the program: {reason}")]
    Request {
        /// What was expected, and what was found.
        reason: String,
    },
    /// There are as many connections as may be.
    #[error("{what} of {most} are taken")]
    Full {
        /// What is full.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// A task that has failed by our own mistake.
    #[error("a task of the engine has failed: {0}")]
    Engine(String),
}

/// Why a connection is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Refusal {
    /// The server half does not allow the target.
    NotAllowed = 1,
    /// The name is not known.
    UnknownHost = 2,
    /// The target does not answer.
    Unreachable = 3,
    /// The target refuses.
    TargetRefused = 4,
    /// There are too many connections.
    Full = 5,
    /// The request is none.
    Malformed = 6,
}

impl Refusal {
    /// The refusal of a byte; one that is not known means unreachable.
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
