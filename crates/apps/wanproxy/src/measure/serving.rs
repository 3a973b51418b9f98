//! A socket that is served by a thread for each connection: the target of a measurement.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::{Error, Result};

/// Concurrent connections. More are closed immediately.
const CONNECTIONS_MAX: usize = 64;

/// The waiting time after a connection that cannot be accepted, for lack of files or memory.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Accepts connections until it is dropped. Open connections continue then.
#[derive(Debug)]
pub(super) struct Serving {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Serving {
    /// Listens, and answers each connection on a separate thread. An answer that fails closes its connection, so the
    /// other end sees it.
    pub(super) fn start<F>(address: SocketAddr, answer: F) -> Result<Self>
    where
        F: Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static,
    {
        let refuse = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::spawn(move || accept(&listener, &stopped, &Arc::new(answer)));
        Ok(Self { address, stop })
    }

    /// Returns its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn accept<F>(listener: &TcpListener, stopped: &AtomicBool, answer: &Arc<F>)
where
    F: Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static,
{
    loop {
        let accepted = listener.accept();
        if stopped.load(Relaxed) {
            return;
        }
        match accepted {
            // Each open connection holds the answer once.
            Ok(_) if Arc::strong_count(answer) > CONNECTIONS_MAX => {}
            Ok((stream, _)) => {
                let answer = Arc::clone(answer);
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true).and_then(|()| answer(stream));
                });
            }
            Err(_) => thread::sleep(AFTER_FAILURE),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // One more connection ends the wait for the next.
        let _ = TcpStream::connect(self.address);
    }
}
