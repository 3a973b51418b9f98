//! Connections that bypass the other half while it cannot be reached: unencoded bytes, counted, with the same limits of
//! time.

use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::sleep;

use crate::dial::{end, reset};
use crate::socket::{Moves, READ_BYTES, read_some, write_all};
use crate::stats::OpenConnection;
use crate::{Error, Limits, Result};

/// Moves bytes both ways until both directions have ended, or an error occurs.
///
/// # Errors
/// The failure. Both sockets are then reset.
pub(crate) async fn bypass(
    limits: &Limits,
    open: &OpenConnection,
    (local, target): (&mut TcpStream, &mut TcpStream),
    early: &[u8],
) -> Result<()> {
    reset(local);
    reset(target);
    let bypass = Bypass { limits, open, moves: Moves::new() };
    bypass.run((&mut *local, &mut *target), early).await?;
    end(local);
    end(target);
    Ok(())
}

struct Bypass<'b> {
    limits: &'b Limits,
    open: &'b OpenConnection,
    moves: Moves,
}

impl Bypass<'_> {
    async fn run(
        &self,
        (local, target): (&mut TcpStream, &mut TcpStream),
        early: &[u8],
    ) -> Result<()> {
        let ((from_local, to_local), (from_target, to_target)) = (local.split(), target.split());
        let there = self.copy(early, from_local, to_target);
        let back = self.copy(&[], from_target, to_local);
        tokio::select! {
            done = async { tokio::try_join!(there, back) } => done.map(drop),
            error = self.until_idle() => Err(error),
        }
    }

    /// Sends some bytes, and then all that follow, to a socket.
    async fn copy(
        &self,
        early: &[u8],
        mut from: ReadHalf<'_>,
        mut to: WriteHalf<'_>,
    ) -> Result<()> {
        let note = |bytes: usize| {
            self.moves.note();
            self.open.each(|traffic| traffic.bypassed.add(bytes as u64));
        };
        let after = self.limits.stall_timeout;
        write_all(&mut to, early, after, note).await?;
        loop {
            let mut part = Vec::new();
            if read_some(&mut from, &mut part, READ_BYTES).await? == 0 {
                return tokio::io::AsyncWriteExt::shutdown(&mut to).await.map_err(Error::Local);
            }
            write_all(&mut to, &part, after, note).await?;
        }
    }

    async fn until_idle(&self) -> Error {
        let after = self.limits.idle_timeout;
        loop {
            sleep(self.limits.ping_every.min(after)).await;
            if let Err(error) = self.moves.check(after) {
                return error;
            }
        }
    }
}
