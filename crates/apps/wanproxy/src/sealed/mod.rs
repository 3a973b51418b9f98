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

/// Bytes that are read from the link at once, at most; a record has no more.
pub(crate) const RECORD_BYTES_MAX: usize = 16 << 10;

/// A connection to a peer that has shown who it is.
pub(crate) struct Sealed {
    pub(crate) reader: SealedReader,
    pub(crate) writer: SealedWriter,
    /// Whose all that goes over it is.
    pub(crate) owner: Owner,
    /// The peer, for figures and messages.
    pub(crate) peer: String,
}

/// What comes from the peer.
pub(crate) enum SealedReader {
    Noise(noise::NoiseReader),
    Tls(tls::TlsReader),
}

/// What goes to the peer.
pub(crate) enum SealedWriter {
    Noise(noise::NoiseWriter),
    Tls(tls::TlsWriter),
}

impl SealedReader {
    /// Appends some bytes, at most [`RECORD_BYTES_MAX`]; 0 at the end.
    pub(crate) async fn read(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Noise(reader) => reader.read(out).await,
            Self::Tls(reader) => reader.read(out).await,
        }
    }
}

impl SealedWriter {
    /// Writes all of it. May not be cancelled and then called again.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Noise(writer) => writer.write(bytes).await,
            Self::Tls(writer) => writer.write(bytes).await,
        }
    }

    /// Says that no more comes.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Noise(writer) => writer.shutdown().await,
            Self::Tls(writer) => writer.shutdown().await,
        }
    }
}

/// How a client half shows who it is, and knows the server half.
#[derive(Debug)]
pub(crate) enum ClientSeal {
    Key(SharedKey),
    Tls(TlsClient),
}

impl ClientSeal {
    /// Does the handshake of the side that has connected.
    pub(crate) async fn seal(&self, stream: TcpStream) -> Result<Sealed> {
        match self {
            Self::Key(key) => noise::initiate(stream, key).await,
            Self::Tls(tls) => tls.connect(stream).await,
        }
    }
}

/// How a server half knows its peers.
#[derive(Debug)]
pub(crate) enum ServerSeal {
    Keys(Vec<SharedKey>),
    Tls(TlsServer),
}

impl ServerSeal {
    /// Does the handshake of the side that was connected to. With a key the peer has shown that it has it only when it
    /// sends its first message.
    pub(crate) async fn seal(&self, stream: TcpStream) -> Result<Sealed> {
        match self {
            Self::Keys(keys) => noise::respond(stream, keys).await,
            Self::Tls(tls) => tls.accept(stream).await,
        }
    }
}
