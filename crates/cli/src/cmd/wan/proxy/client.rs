//! `nandex wan proxy client`: runs the half next to programs.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use nandex_wanproxy::{ClientConfig, Entrance, Peer, Proxy, Target};

use super::options::{RunArgs, SecurityArgs};
use super::run::run_until_told;
use crate::cmd::wan::cache::CacheArgs;
use crate::console::Console;
use crate::interrupt::Interrupt;
use crate::refuse;

/// The entrances for programs, the other half, and the cache.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address for TCP connections to forward; port 0 is any free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Target of forwarded connections; default: the server half's own target
    #[arg(long, value_name = "HOST:PORT", requires = "listen")]
    target: Option<Target>,
    /// Address for SOCKS5
    #[arg(long, value_name = "ADDRESS")]
    socks5: Option<SocketAddr>,
    /// Address for HTTP CONNECT
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Address of the server half
    #[arg(long, value_name = "HOST:PORT")]
    peer: Target,
    /// Name in the server half's certificate; default: the host of --peer
    #[arg(long, value_name = "NAME", requires = "certificates")]
    tls_name: Option<String>,
    /// While the server half is unreachable, connect to targets directly, neither compressed nor protected
    #[arg(long)]
    bypass: bool,
    #[command(flatten)]
    security: SecurityArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Runs the half.
///
/// # Errors
/// Invalid options, an unusable key or certificate, an address in use, a cache that cannot be opened.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    if args.bypass && args.listen.is_some() && args.target.is_none() {
        refuse!("--bypass needs --target: this half does not know the server half's own");
    }
    let config = args.config()?;
    config.check()?;
    let interrupt = Interrupt::listen()?;
    let cache = Arc::new(args.cache.open_or_make(console)?);
    run_until_told(Proxy::client(cache, config)?, &interrupt, console)
}

impl Args {
    fn config(&self) -> Result<ClientConfig> {
        let forward = self.listen.map(|it| (it, Entrance::Forward(self.target.clone())));
        let socks5 = self.socks5.map(|it| (it, Entrance::Socks5));
        let http = self.http.map(|it| (it, Entrance::Http));
        let entrances: Vec<_> = [forward, socks5, http].into_iter().flatten().collect();
        if entrances.is_empty() {
            refuse!("there is no entrance for programs: give --listen, --socks5 or --http");
        }
        Ok(ClientConfig {
            entrances,
            peer: Peer { address: self.peer.clone(), tls_name: self.tls_name.clone() },
            security: self.security.security()?,
            status: self.run.status,
            is_public: self.run.public,
            bypasses: self.bypass,
            live: self.run.live()?,
            limits: self.run.limits()?,
        })
    }
}
