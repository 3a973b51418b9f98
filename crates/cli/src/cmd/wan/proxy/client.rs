//! `nandex wan proxy client`: the half next to programs.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, bail};
use nandex_wanproxy::{ClientConfig, Entrance, Peer, Proxy, Target};

use super::options::{RunArgs, SecurityArgs};
use super::run::run_until_told;
use crate::cmd::wan::cache::CacheArgs;
use crate::console::Console;
use crate::interrupt::Interrupt;

/// Where programs come in, the other half, and the cache.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Forward TCP connections that come in here; a port 0 is any free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where forwarded connections lead; without it, to the server half's own target
    #[arg(long, value_name = "HOST:PORT", requires = "listen")]
    target: Option<Target>,
    /// Speak SOCKS5 here
    #[arg(long, value_name = "ADDRESS")]
    socks5: Option<SocketAddr>,
    /// Speak HTTP CONNECT here
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// The server half
    #[arg(long, value_name = "HOST:PORT")]
    peer: Target,
    /// The name in the server half's certificate; without it, the host of --peer
    #[arg(long, value_name = "NAME", requires = "certificates")]
    tls_name: Option<String>,
    /// While the server half cannot be reached, connect to targets from here, neither shortened nor protected
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
/// Options that cannot work, a key or certificate that is of no use, an address that is taken, a cache that cannot be
/// opened.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    if args.bypass && args.listen.is_some() && args.target.is_none() {
        bail!("--bypass needs --target: this half does not know the server half's own");
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
            bail!("where do programs come in? Give --listen, --socks5 or --http");
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
