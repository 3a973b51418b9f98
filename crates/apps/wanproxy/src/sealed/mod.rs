//! Sealed connections: authenticated and encrypted, by a shared key or by certificates.

mod noise;
mod tls;

use std::io;

use nandex_wan::Owner;
use tokio::net::TcpStream;

pub use tls::TlsFiles;
pub(crate) use tls::{TlsClient, TlsServer};

use crate::Result;
use crate::key::SharedKey;

/// The most bytes read from the link at a time; a record has no more.
pub(crate) const RECORD_BYTES_MAX: usize = 16 << 10;

/// A connection to an authenticated peer.
pub(crate) struct Sealed {
    pub(crate) reader: SealedReader,
    pub(crate) writer: SealedWriter,
    /// The owner of all content transferred over it.
    pub(crate) owner: Owner,
    /// The peer's name, for figures and messages.
    pub(crate) peer: String,
}

/// The receiving side.
pub(crate) enum SealedReader {
    Noise(noise::NoiseReader),
    Tls(tls::TlsReader),
}

/// The sending side.
pub(crate) enum SealedWriter {
    Noise(noise::NoiseWriter),
    Tls(tls::TlsWriter),
}

impl SealedReader {
    /// Appends some bytes, at most [`RECORD_BYTES_MAX`]; returns 0 at the end.
    pub(crate) async fn read(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Noise(reader) => reader.read(out).await,
            Self::Tls(reader) => reader.read(out).await,
        }
    }
}

impl SealedWriter {
    /// Writes all bytes. Must not be called again after a cancellation.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Noise(writer) => writer.write(bytes).await,
            Self::Tls(writer) => writer.write(bytes).await,
        }
    }

    /// Sends the end.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Noise(writer) => writer.shutdown().await,
            Self::Tls(writer) => writer.shutdown().await,
        }
    }
}

/// A client half's authentication of itself and of the server half.
#[derive(Debug)]
pub(crate) enum ClientSeal {
    Key(SharedKey),
    Tls(TlsClient),
}

impl ClientSeal {
    /// Performs the handshake of the connecting side.
    pub(crate) async fn seal(&self, stream: TcpStream) -> Result<Sealed> {
        match self {
            Self::Key(key) => noise::initiate(stream, key).await,
            Self::Tls(tls) => tls.connect(stream).await,
        }
    }
}

/// A server half's authentication of its peers.
#[derive(Debug)]
pub(crate) enum ServerSeal {
    Keys(Vec<SharedKey>),
    Tls(TlsServer),
}

impl ServerSeal {
    /// Performs the handshake of the accepting side. With a key, the peer's first message proves that it has the key.
    pub(crate) async fn seal(&self, stream: TcpStream) -> Result<Sealed> {
        match self {
            Self::Keys(keys) => noise::respond(stream, keys).await,
            Self::Tls(tls) => tls.accept(stream).await,
        }
    }
}
