//! Choices that both halves have.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use nandex_wan::live::LiveOptions;
use nandex_wanproxy::{Limits, Security, TlsFiles};

use crate::cmd::wan::encoding::EncodeArgs;
use crate::size;

/// How the halves know each other.
#[derive(Debug, clap::Args)]
pub struct SecurityArgs {
    /// The file of a shared key; a server half may have several, one for each peer
    #[arg(long = "key", value_name = "FILE", conflicts_with = "certificates")]
    keys: Vec<PathBuf>,
    /// This half's own certificate and what leads to its authority, in PEM
    #[arg(long = "tls-cert", value_name = "FILE", requires_all = ["tls_key", "authorities"])]
    certificates: Option<PathBuf>,
    /// The secret key of the certificate, in PEM
    #[arg(long = "tls-key", value_name = "FILE", requires = "certificates")]
    tls_key: Option<PathBuf>,
    /// Authorities whose certificates the other half may show, in PEM
    #[arg(long = "tls-ca", value_name = "FILE", requires = "certificates")]
    authorities: Option<PathBuf>,
}

impl SecurityArgs {
    /// The choice.
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
                bail!(
                    "how do the halves know each other? Give --key, or --tls-cert, --tls-key and --tls-ca"
                )
            }
            _ => Ok(Security::Keys(self.keys.clone())),
        }
    }
}

/// Streams, limits and figures.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Show figures here: a page at /, and for Prometheus at /metrics
    #[arg(long, value_name = "ADDRESS")]
    pub status: Option<SocketAddr>,
    /// Listen on addresses that other machines reach, too
    #[arg(long)]
    pub public: bool,
    #[command(flatten)]
    encoding: EncodeArgs,
    /// Bytes of a segment, at most, up to 1MiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    segment: Option<u64>,
    /// Bytes of each direction of a connection that may be on their way, up to 8MiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    window: Option<u64>,
    /// Bytes in a row that do not shrink, after which a stream goes as it is for a while; 0 for never
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pass_after: Option<u64>,
    /// A segment ends when its socket was silent for this long and others are on their way
    #[arg(long, value_name = "MS")]
    flush_ms: Option<u64>,
    /// Bytes that all connections together may have on their way, from 1MiB; each may always send a segment. The other
    /// half holds as many until programs read them
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "16MiB")]
    buffers: u64,
    /// Connections at a time
    #[arg(long, value_name = "COUNT")]
    connections: Option<usize>,
    /// Connections at a time whose handshake or request is not done
    #[arg(long, value_name = "COUNT")]
    pending: Option<usize>,
    /// Threads for chunks, cache and compression
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// How long a connection may be idle
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
}

impl RunArgs {
    /// How streams are sent.
    ///
    /// # Errors
    /// Sizes beyond any memory.
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

    /// What may be taken.
    ///
    /// # Errors
    /// Sizes beyond any memory.
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
