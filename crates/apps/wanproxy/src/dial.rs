//! Connections from this side.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::resolver::Resolver;
use crate::target::{Host, Target};

/// The time for which a program that was told why it is not served may continue, and the bytes that it may send.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);
const LEFT_BYTES_MAX: u64 = 64 << 10;

/// Probes a silent socket's other end after this time, and at this interval.
const KEEP_ALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15));

/// Connects to a target, to the first of its addresses that answers. Each has an equal share of the remaining time, so
/// a silent one does not block the others.
///
/// # Errors
/// That of the last address; for an unknown name it is [`ErrorKind::NotFound`].
pub(crate) async fn dial(
    resolver: &Resolver,
    target: &Target,
    after: Duration,
) -> io::Result<TcpStream> {
    let until = Instant::now() + after;
    let late = || io::Error::new(ErrorKind::TimedOut, "it did not answer in time");
    let looking = timeout_at(until, addresses(resolver, target)).await;
    let addresses = looking.map_err(|_| late())??;
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for (address, left) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let share = until.saturating_duration_since(Instant::now()) / left;
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                set_up(&stream);
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = late(),
        }
    }
    Err(last)
}

async fn addresses(resolver: &Resolver, target: &Target) -> io::Result<Vec<SocketAddr>> {
    match target.host() {
        Host::Ip(ip) => Ok(vec![SocketAddr::new(*ip, target.port())]),
        Host::Name(name) => {
            let found = resolver.look_up(name, target.port()).await;
            found.map_err(|error| {
                io::Error::new(ErrorKind::NotFound, format!("the name is not known: {error}"))
            })
        }
    }
}

/// Sets the options of a socket: no delay before a short segment, since the writer decides which bytes are sent
/// together; and probes of the other end when it is silent, so that a vanished one is detected.
pub(crate) fn set_up(stream: &TcpStream) {
    // The socket works, whatever the results of these.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&KEEP_ALIVE);
}

/// Makes the other end of a socket see a reset, and not an end, when it is closed for any reason.
pub(crate) fn reset(stream: &TcpStream) {
    // The socket works, whatever the result of this.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Makes the other end see an end again when it is closed.
pub(crate) fn end(stream: &TcpStream) {
    // As above.
    let _ = SockRef::from(stream).set_linger(None);
}

/// Ends a socket whose program was told the reason, so that the bytes that it still sends do not turn the end into a
/// reset.
pub(crate) async fn take_leave(stream: &mut TcpStream) {
    // It may already be closed.
    let _ = stream.shutdown().await;
    let rest =
        async { tokio::io::copy(&mut stream.take(LEFT_BYTES_MAX), &mut tokio::io::sink()).await };
    let _ = timeout(LEAVE_TIMEOUT, rest).await;
}

/// Raises this process's limit of open files to its maximum. Otherwise more connections fail.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // On a failure the limit is unchanged; a connection without a file is rejected and counted.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
