//! Targets: the destination of a connection, and the allowed destinations.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The most bytes of a name.
const NAME_BYTES_MAX: usize = 253;

/// A host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Host {
    Ip(IpAddr),
    /// A name, in small letters; the half that connects looks it up.
    Name(String),
}

/// A host and a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    host: Host,
    port: u16,
}

impl Target {
    /// Returns the target of an address.
    #[must_use]
    pub fn of(address: SocketAddr) -> Self {
        Self { host: Host::Ip(address.ip()), port: address.port() }
    }

    /// Returns the target of a name or an address and a port; `None` if it is invalid.
    pub(crate) fn named(host: &str, port: u16) -> Option<Self> {
        if port == 0 {
            return None;
        }
        if let Ok(ip) = host.parse() {
            return Some(Self { host: Host::Ip(ip), port });
        }
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = (1..=NAME_BYTES_MAX).contains(&host.len()) && host.bytes().all(is_of_name);
        is_name.then(|| Self { host: Host::Name(host.to_ascii_lowercase()), port })
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => write!(f, "{}", SocketAddr::new(*ip, self.port)),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once(':');
        let found = parts.and_then(|(host, port)| {
            let ip = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            // An IPv6 address has brackets, so that its end is not taken for a port.
            if ip.is_none() && host.contains(':') {
                return None;
            }
            Self::named(ip.unwrap_or(host), port.parse().ok()?)
        });
        found.ok_or_else(|| format!("`{text}` is not a target; expected HOST:PORT, or [IPV6]:PORT"))
    }
}

/// Targets that a server half connects to: a host and a port, either of which may be `*`; `*.NAME` means everything
/// below a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allowed {
    host: String,
    port: Option<u16>,
}

impl Allowed {
    /// Returns whether the target is one of these.
    #[must_use]
    pub fn allows(&self, target: &Target) -> bool {
        if self.port.is_some_and(|port| port != target.port) {
            return false;
        }
        match (&target.host, &*self.host) {
            (_, "*") => true,
            (Host::Ip(ip), host) => host.parse().is_ok_and(|allowed: IpAddr| allowed == *ip),
            (Host::Name(name), host) => match host.strip_prefix('*') {
                Some(end) => name.len() > end.len() && name.ends_with(end),
                None => name == host,
            },
        }
    }
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!("`{text}` is not a pattern of targets; expected HOST:PORT, *.NAME:PORT or *:*")
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        let port = match port {
            "*" => None,
            port => Some(port.parse().ok().filter(|port| *port != 0).ok_or_else(refuse)?),
        };
        let ip = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = ip.unwrap_or(host).to_ascii_lowercase();
        let plain = host.strip_prefix("*.").unwrap_or(&host);
        let is_host = host == "*" || Target::named(plain, 1).is_some();
        if !is_host || (ip.is_none() && host.contains(':')) {
            return Err(refuse());
        }
        Ok(Self { host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    #[test]
    fn targets_are_read_as_they_are_shown() {
        for text in ["127.0.0.1:80", "[::1]:443", "example.org:1"] {
            assert_eq!(target(text).to_string(), text);
        }
        assert_eq!(target("Example.ORG:22").to_string(), "example.org:22");
        for text in [
            "",
            "host",
            "host:",
            "host:0",
            "host:65536",
            ":80",
            "::1:80",
            "a b:80",
            "a\n:80",
            "[::1]",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        assert!(Target::named(&"x".repeat(254), 1).is_none());
    }

    #[test]
    fn what_is_allowed_is_that_and_no_more() {
        let allows =
            |pattern: &str, text: &str| pattern.parse::<Allowed>().unwrap().allows(&target(text));
        assert!(allows("*:*", "127.0.0.1:1") && allows("*:443", "a.b:443"));
        assert!(allows("*.example.org:*", "www.example.org:80"));
        assert!(allows("example.org:80", "EXAMPLE.org:80") && allows("[::1]:7", "[::1]:7"));
        for (pattern, text) in [
            ("*:443", "a.b:444"),
            ("*.example.org:*", "example.org:80"),
            ("*.example.org:*", "badexample.org:80"),
            ("10.0.0.1:80", "10.0.0.11:80"),
            ("*.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert!(!allows(pattern, text), "{pattern} {text}");
        }
        for pattern in ["", "*", "host", "a*b:1", "*.*:1", "host:0", "::1:80"] {
            assert!(pattern.parse::<Allowed>().is_err(), "{pattern}");
        }
    }
}
