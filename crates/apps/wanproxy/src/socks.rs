//! SOCKS5 (RFC 1928) without a password: CONNECT to an IPv4 or IPv6 address or a name.

use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{Error, Refusal, Result, Target};

const VERSION: u8 = 5;
const NO_PASSWORD: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// The first byte of an answer after the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum SocksReply {
    Done = 0,
    Failed = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    TargetRefused = 5,
    NoSuchCommand = 7,
    NoSuchAddress = 8,
}

impl From<&Error> for SocksReply {
    fn from(error: &Error) -> Self {
        match error {
            Error::Refused { why: Refusal::NotAllowed, .. } => Self::NotAllowed,
            Error::Refused { why: Refusal::TargetRefused, .. } => Self::TargetRefused,
            Error::Refused { why: Refusal::UnknownHost | Refusal::Unreachable, .. } => {
                Self::HostUnreachable
            }
            _ => Self::Failed,
        }
    }
}

/// Reads the target of a program. It reads at most 262 bytes, and tells the program about an invalid request.
///
/// # Errors
/// A request of another version, with a password, for another command, or without an address.
pub(crate) async fn request<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> Result<Target> {
    choose_method(stream).await?;
    let [version, command, _, kind] = array(stream).await?;
    if version != VERSION {
        return Err(Error::request(format!("expected version 5 of SOCKS, found {version}")));
    }
    let host = match kind {
        1 => Ipv4Addr::from(array::<4, _>(stream).await?).to_string(),
        4 => Ipv6Addr::from(array::<16, _>(stream).await?).to_string(),
        3 => {
            let [bytes] = array(stream).await?;
            let mut name = vec![0; usize::from(bytes)];
            stream.read_exact(&mut name).await.map_err(Error::Local)?;
            String::from_utf8(name).unwrap_or_default()
        }
        found => {
            answer(stream, SocksReply::NoSuchAddress).await?;
            return Err(Error::request(format!(
                "expected an address of kind 1, 3 or 4, found {found}"
            )));
        }
    };
    let port = u16::from_be_bytes(array(stream).await?);
    if command != CONNECT {
        answer(stream, SocksReply::NoSuchCommand).await?;
        return Err(Error::request(format!("expected CONNECT, found the command {command}")));
    }
    let Some(target) = Target::named(&host, port) else {
        answer(stream, SocksReply::Failed).await?;
        return Err(Error::request("expected a host and a port, found none"));
    };
    Ok(target)
}

async fn choose_method<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> Result<()> {
    let [version, count] = array(stream).await?;
    if version != VERSION {
        return Err(Error::request(format!("expected version 5 of SOCKS, found {version}")));
    }
    let mut methods = vec![0; usize::from(count)];
    stream.read_exact(&mut methods).await.map_err(Error::Local)?;
    let has_none = methods.contains(&NO_PASSWORD);
    let chosen = if has_none { NO_PASSWORD } else { NO_METHOD };
    stream.write_all(&[VERSION, chosen]).await.map_err(Error::Local)?;
    if has_none {
        return Ok(());
    }
    Err(Error::request("expected that it goes without a password, found that it does not"))
}

/// Sends the result of the request.
pub(crate) async fn answer<S: AsyncWrite + Unpin>(stream: &mut S, reply: SocksReply) -> Result<()> {
    // The address at the other side is not disclosed: zeros.
    let bytes = [VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0];
    stream.write_all(&bytes).await.map_err(Error::Local)
}

async fn array<const N: usize, S: AsyncRead + Unpin>(stream: &mut S) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await.map_err(Error::Local)?;
    Ok(bytes)
}
