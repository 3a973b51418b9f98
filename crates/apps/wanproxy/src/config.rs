//! The configuration of a half.

use std::net::SocketAddr;
use std::path::PathBuf;

use nandex_wan::live::LiveOptions;

use crate::sealed::{ClientSeal, ServerSeal, TlsClient, TlsServer};
use crate::{Allowed, Error, Limits, Result, SharedKey, Target, TlsFiles};

/// The mutual authentication of the halves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Security {
    /// By shared keys in files. A client half has one, a server half one for each peer.
    Keys(Vec<PathBuf>),
    /// The same with a key that the program already has.
    Key(SharedKey),
    /// By certificates, each side with its own.
    Tls(TlsFiles),
}

/// The server half, from its client's point of view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its host and port.
    pub address: Target,
    /// The name in its certificate; without one, the host of the address. Keys need none.
    pub tls_name: Option<String>,
}

/// An entrance for programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entrance {
    /// Every connection is forwarded to this target, or to the server half's own.
    Forward(Option<Target>),
    /// SOCKS5 without a password: the program names the target.
    Socks5,
    /// HTTP CONNECT: the program names the target.
    Http,
}

/// The configuration of a client half.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientConfig {
    /// The addresses and the kinds of the entrances for programs.
    pub entrances: Vec<(SocketAddr, Entrance)>,
    /// The other half.
    pub peer: Peer,
    /// The mutual authentication.
    pub security: Security,
    /// The address of the status page, if any.
    pub status: Option<SocketAddr>,
    /// Whether it may listen on addresses that other machines reach.
    pub is_public: bool,
    /// Whether it connects directly while the other half cannot be reached. Such traffic is neither compressed nor
    /// protected.
    pub bypasses: bool,
    /// The options of streams.
    pub live: LiveOptions,
    /// The limits.
    pub limits: Limits,
}

/// The configuration of a server half.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerConfig {
    /// The address for client halves.
    pub listen: SocketAddr,
    /// The target of clients that name none.
    pub target: Option<Target>,
    /// Targets that clients may name; the one above is always allowed.
    pub allowed: Vec<Allowed>,
    /// The mutual authentication.
    pub security: Security,
    /// The address of the status page, if any.
    pub status: Option<SocketAddr>,
    /// Whether it may listen on addresses that other machines reach.
    pub is_public: bool,
    /// The options of streams.
    pub live: LiveOptions,
    /// The limits.
    pub limits: Limits,
}

impl ClientConfig {
    /// Checks the configuration before anything is created for it. Reads the files of keys and certificates.
    ///
    /// # Errors
    /// Invalid options, unusable files.
    pub fn check(&self) -> Result<()> {
        self.validate()?;
        self.seal().map(drop)
    }

    pub(crate) fn validate(&self) -> Result<()> {
        self.limits.validate()?;
        self.live.validate()?;
        if self.entrances.is_empty() {
            let reason = "no way in; expected an address for a forward, SOCKS5 or HTTP".into();
            return Err(Error::Options { field: "listen", reason });
        }
        let addresses = self.entrances.iter().map(|(address, _)| *address).chain(self.status);
        check_private(addresses, self.is_public)
    }

    pub(crate) fn seal(&self) -> Result<ClientSeal> {
        match &self.security {
            Security::Keys(files) => match &files[..] {
                [file] => Ok(ClientSeal::Key(SharedKey::read(file)?)),
                files => {
                    let reason = format!("{} keys; expected one", files.len());
                    Err(Error::Options { field: "key", reason })
                }
            },
            Security::Key(key) => Ok(ClientSeal::Key(key.clone())),
            Security::Tls(files) => {
                let address = self.peer.address.to_string();
                let host = address.rsplit_once(':').map_or("", |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let name = self.peer.tls_name.as_deref().unwrap_or(host);
                Ok(ClientSeal::Tls(TlsClient::new(files, name)?))
            }
        }
    }
}

impl ServerConfig {
    /// Checks the configuration, as [`ClientConfig::check`] does.
    ///
    /// # Errors
    /// As there.
    pub fn check(&self) -> Result<()> {
        self.validate()?;
        self.seal().map(drop)
    }

    pub(crate) fn validate(&self) -> Result<()> {
        self.limits.validate()?;
        self.live.validate()?;
        if self.target.is_none() && self.allowed.is_empty() {
            let reason = "no client could go anywhere; name a target, or allow some".into();
            return Err(Error::Options { field: "target", reason });
        }
        check_private([self.listen].into_iter().chain(self.status), self.is_public)
    }

    pub(crate) fn seal(&self) -> Result<ServerSeal> {
        match &self.security {
            Security::Keys(files) if files.is_empty() => {
                let reason = "none; expected at least one".into();
                Err(Error::Options { field: "key", reason })
            }
            Security::Keys(files) => {
                let keys: Result<Vec<SharedKey>> =
                    files.iter().map(|file| SharedKey::read(file)).collect();
                Ok(ServerSeal::Keys(keys?))
            }
            Security::Key(key) => Ok(ServerSeal::Keys(vec![key.clone()])),
            Security::Tls(files) => Ok(ServerSeal::Tls(TlsServer::new(files)?)),
        }
    }
}

/// Rejects addresses that other machines reach, unless they were requested.
pub(crate) fn check_private(
    addresses: impl Iterator<Item = SocketAddr>,
    is_public: bool,
) -> Result<()> {
    for address in addresses {
        if !is_public && !address.ip().is_loopback() {
            let reason = format!(
                "{address} can be reached from other machines; ask for that, or take 127.0.0.1"
            );
            return Err(Error::Options { field: "listen", reason });
        }
    }
    Ok(())
}
