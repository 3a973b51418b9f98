//! `nandex wan proxy server`: runs the half next to targets.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use nandex_wanproxy::{Allowed, Proxy, ServerConfig, Target};

use super::options::{RunArgs, SecurityArgs};
use super::run::run_until_told;
use crate::cmd::wan::cache::CacheArgs;
use crate::console::Console;
use crate::interrupt::Interrupt;

/// The entrance for client halves, their permitted targets, and the cache.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("targets").required(true).multiple(true)))]
pub struct Args {
    /// Address for client halves; port 0 is any free one
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Target of clients that name none
    #[arg(long, value_name = "HOST:PORT", group = "targets")]
    target: Option<Target>,
    /// Targets that clients may name: HOST:PORT, *.NAME:PORT, *:PORT or *:*; including those that only this machine
    /// reaches
    #[arg(long = "allow", value_name = "PATTERN", group = "targets")]
    allowed: Vec<Allowed>,
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
    let config = ServerConfig {
        listen: args.listen,
        target: args.target.clone(),
        allowed: args.allowed.clone(),
        security: args.security.security()?,
        status: args.run.status,
        is_public: args.run.public,
        live: args.run.live()?,
        limits: args.run.limits()?,
    };
    config.check()?;
    let interrupt = Interrupt::listen()?;
    let cache = Arc::new(args.cache.open_or_make(console)?);
    run_until_told(Proxy::server(cache, config)?, &interrupt, console)
}
