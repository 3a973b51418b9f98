//! The target of a measurement, at the far end of a link: it verifies the bytes received, or sends them back.
//!
//! A connection begins with 8 bytes that select which. A stream ends with its sender's end, and the answer is the
//! BLAKE3 of the bytes received, so a stream that was cut off or changed is never mistaken for a whole one.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::serving::Serving;
use super::trips::send_back;
use crate::config::check_private;
use crate::{Address, Result};

/// The beginning of a connection for round trips.
pub(super) const ECHO: &[u8; 8] = b"nwm echo";

/// The beginning of a connection for a stream.
const STREAM: &[u8; 8] = b"nwm strm";

/// The time for which an end of a stream may be silent: at 100 kbit/s this is the time of 7 MiB that a socket has
/// buffered.
pub(super) const STREAM_TIMEOUT: Duration = Duration::from_secs(600);

/// A target that answers measurements until it is dropped. It stores nothing: a connection takes a thread and 64 KiB,
/// and there are 64 at most.
#[derive(Debug)]
pub struct FarEnd(Serving);

impl FarEnd {
    /// Listens. It has no password, so an address that other machines reach must be requested explicitly.
    ///
    /// # Errors
    /// An address in use, or one that other machines reach without `is_public`.
    pub fn start(listen: SocketAddr, is_public: bool) -> Result<Self> {
        check_private([listen].into_iter(), is_public)?;
        Serving::start(listen, |stream| answer(&stream)).map(Self)
    }

    /// Returns its address.
    #[must_use]
    pub fn address(&self) -> Address {
        Address { role: "target", address: self.0.address() }
    }
}

fn answer(mut stream: &TcpStream) -> io::Result<()> {
    set_timeouts(stream)?;
    let mut hello = [0; 8];
    stream.read_exact(&mut hello)?;
    match &hello {
        ECHO => send_back(stream),
        STREAM => stream.write_all(digest(stream)?.as_bytes()),
        _ => Err(io::Error::other("no measurement begins like this")),
    }
}

fn digest(mut stream: &TcpStream) -> io::Result<blake3::Hash> {
    let (mut hasher, mut part) = (blake3::Hasher::new(), vec![0; 64 << 10]);
    loop {
        match stream.read(&mut part)? {
            0 => return Ok(hasher.finalize()),
            read => hasher.update(&part[..read]),
        };
    }
}

fn set_timeouts(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(STREAM_TIMEOUT))?;
    stream.set_write_timeout(Some(STREAM_TIMEOUT))
}

/// Sends a stream to a far end. Returns the time from the connection's beginning until the far end has verified all of
/// it.
pub(super) fn send(to: SocketAddr, stream: &[u8]) -> io::Result<Duration> {
    let expected = blake3::hash(stream);
    let begun = Instant::now();
    let mut socket = TcpStream::connect(to)?;
    set_timeouts(&socket)?;
    socket.write_all(STREAM)?;
    socket.write_all(stream)?;
    socket.shutdown(Shutdown::Write)?;
    let mut digest = [0; blake3::OUT_LEN];
    socket.read_exact(&mut digest)?;
    let time = begun.elapsed();
    if expected != blake3::Hash::from_bytes(digest) {
        return Err(io::Error::other("the far end did not get the stream that was sent"));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::LOOPBACK;

    #[test]
    fn a_stream_that_did_not_come_whole_is_found_out() {
        let far_end = FarEnd::start(LOOPBACK, false).unwrap();
        assert!(send(far_end.address().address, &[7; 300_000]).is_ok());
        // A far end that drops the last byte of a stream.
        let to = far_end.address().address;
        let cutter = Serving::start(LOOPBACK, move |mut stream| {
            let mut all = Vec::new();
            stream.read_to_end(&mut all)?;
            let mut far = TcpStream::connect(to)?;
            far.write_all(&all[..all.len() - 1])?;
            far.shutdown(Shutdown::Write)?;
            io::copy(&mut far, &mut stream).map(drop)
        });
        let error = send(cutter.unwrap().address(), &[7; 300_000]).unwrap_err();
        assert!(error.to_string().contains("did not get the stream"), "{error}");
    }

    #[test]
    fn what_begins_otherwise_gets_no_answer() {
        let far_end = FarEnd::start(LOOPBACK, false).unwrap();
        let mut stream = TcpStream::connect(far_end.address().address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        // It closes with unread bytes, which is a reset.
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, b"");
        let refused = FarEnd::start("0.0.0.0:0".parse().unwrap(), false).unwrap_err();
        assert!(refused.to_string().contains("can be reached from other machines"), "{refused}");
    }
}
