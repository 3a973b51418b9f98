//! Sockets of programs and targets: reading available bytes, writing to slow readers, and the time of the last traffic.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::{Instant, timeout};

use crate::{Error, Result};

/// The most bytes read from a socket at a time.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// Appends the available bytes of a socket, and waits if there are none; returns 0 at its end. Allocates no memory
/// while it waits.
pub(crate) async fn read_some(
    from: &mut ReadHalf<'_>,
    out: &mut Vec<u8>,
    most: usize,
) -> Result<usize> {
    loop {
        from.readable().await.map_err(Error::Local)?;
        out.reserve(most.min(READ_BYTES));
        match from.try_read_buf(out) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read.map_err(Error::Local),
        }
    }
}

/// Writes bytes to a socket, however slowly it takes them, unless it takes none for this long. Reports each part that
/// it takes.
pub(crate) async fn write_all(
    to: &mut WriteHalf<'_>,
    mut bytes: &[u8],
    after: Duration,
    note: impl Fn(usize),
) -> Result<()> {
    while !bytes.is_empty() {
        let written = timeout(after, to.write(bytes)).await;
        let late = Error::Timeout { what: "the program at this side read nothing", after };
        let written = written.map_err(|_| late)?.map_err(Error::Local)?;
        if written == 0 {
            return Err(Error::Local(ErrorKind::WriteZero.into()));
        }
        note(written);
        bytes = &bytes[written..];
    }
    Ok(())
}

/// The time of the last traffic in either direction.
pub(crate) struct Moves {
    begun: Instant,
    /// Milliseconds after the beginning.
    last_ms: AtomicU64,
}

impl Moves {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    /// Notes traffic now.
    pub(crate) fn note(&self) {
        self.last_ms.store(self.now_ms(), Relaxed);
    }

    /// Fails if a connection was idle for that long.
    pub(crate) fn check(&self, after: Duration) -> Result<()> {
        let idle_ms = self.now_ms().saturating_sub(self.last_ms.load(Relaxed));
        if u128::from(idle_ms) < after.as_millis() {
            return Ok(());
        }
        Err(Error::Timeout { what: "nothing went either way", after })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
