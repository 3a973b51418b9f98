//! Options that both halves have.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use nandex_wan::live::LiveOptions;
use nandex_wanproxy::{Limits, Security, TlsFiles};

use crate::cmd::wan::encoding::EncodeArgs;
use crate::refuse;
use crate::size;

/// The authentication of the halves.
#[derive(Debug, clap::Args)]
pub struct SecurityArgs {
    /// File of a shared key; a server half may have several, one for each peer
    #[arg(long = "key", value_name = "FILE", conflicts_with = "certificates")]
    keys: Vec<PathBuf>,
    /// Certificate of this half and its chain to the authority, in PEM
    #[arg(long = "tls-cert", value_name = "FILE", requires_all = ["tls_key", "authorities"])]
    certificates: Option<PathBuf>,
    /// Secret key of the certificate, in PEM
    #[arg(long = "tls-key", value_name = "FILE", requires = "certificates")]
    tls_key: Option<PathBuf>,
    /// Authorities of the other half's certificates, in PEM
    #[arg(long = "tls-ca", value_name = "FILE", requires = "certificates")]
    authorities: Option<PathBuf>,
}

impl SecurityArgs {
    /// Returns the choice.
    ///
    /// # Errors
    /// Neither a key nor certificates.
    pub fn security(&self) -> Result<Security> {
        match (&self.certificates, &self.tls_key, &self.authorities) {
            (Some(certificates), Some(key), Some(authorities)) => Ok(Security::Tls(TlsFiles {
                certificates: certificates.clone(),
                key: key.clone(),
                authorities: authorities.clone(),
            })),
            _ if self.keys.is_empty() => {
                refuse!(
                    "the halves cannot authenticate each other: give --key, or --tls-cert, --tls-key and --tls-ca"
                )
            }
            _ => Ok(Security::Keys(self.keys.clone())),
        }
    }
}

/// The streams, limits and figures of a half.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Address for figures: a page at /, and /metrics for Prometheus
    #[arg(long, value_name = "ADDRESS")]
    pub status: Option<SocketAddr>,
    /// Listen on addresses that other machines can reach, too
    #[arg(long)]
    pub public: bool,
    #[command(flatten)]
    encoding: EncodeArgs,
    /// Most bytes of a segment, up to 1MiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    segment: Option<u64>,
    /// Most bytes in flight in each direction of a connection, up to 8MiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    window: Option<u64>,
    /// Number of bytes that do not shrink after which a stream is sent unchanged for a while; 0 for never
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pass_after: Option<u64>,
    /// Silence of a socket after which its segment ends while others are in flight
    #[arg(long, value_name = "MS")]
    flush_ms: Option<u64>,
    /// Most bytes in flight of all connections together, from 1MiB; each may always send a segment. The other half
    /// buffers as many until programs read them
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "16MiB")]
    buffers: u64,
    /// Most connections at a time
    #[arg(long, value_name = "COUNT")]
    connections: Option<usize>,
    /// Most connections at a time whose handshake or request is incomplete
    #[arg(long, value_name = "COUNT")]
    pending: Option<usize>,
    /// Number of threads for chunks, cache and compression
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// Time that a connection may be idle
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
}

impl RunArgs {
    /// Returns how streams are sent.
    ///
    /// # Errors
    /// Sizes that exceed the address space.
    pub fn live(&self) -> Result<LiveOptions> {
        let usual = LiveOptions::default();
        let mut encode = self.encoding.options()?;
        let segment = self.segment.map(usize::try_from).transpose()?;
        encode.segment_bytes = segment.unwrap_or(usual.encode.segment_bytes);
        let window = self.window.map(usize::try_from).transpose()?;
        Ok(LiveOptions {
            encode,
            window_bytes: window.unwrap_or(usual.window_bytes),
            plain_after_bytes: self.pass_after.unwrap_or(usual.plain_after_bytes),
        })
    }

    /// Returns the limits.
    ///
    /// # Errors
    /// Sizes that exceed the address space.
    pub fn limits(&self) -> Result<Limits> {
        let usual = Limits::default();
        let flush_idle = self.flush_ms.map_or(usual.flush_idle, Duration::from_millis);
        Ok(Limits {
            buffer_bytes: usize::try_from(self.buffers)?,
            connections_max: self.connections.unwrap_or(usual.connections_max),
            pending_max: self.pending.unwrap_or(usual.pending_max),
            engine_threads: self.threads.unwrap_or(usual.engine_threads),
            idle_timeout: self.idle.map_or(usual.idle_timeout, Duration::from_secs),
            flush_idle,
            flush_after: usual.flush_after.max(flush_idle),
            ..usual
        })
    }
}
