//! Cases that may hang.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The time after which a case hangs; no case takes a hundredth of it.
const HANG: Duration = Duration::from_secs(60);

/// Runs a case on a thread of its own, and fails when it does not end.
pub fn guarded<T: Send + 'static>(story: &str, case: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        let result = case();
        // After a time-out the receiver is gone.
        let _ = done.send(());
        result
    });
    match ended.recv_timeout(HANG) {
        Err(RecvTimeoutError::Timeout) => panic!("{story}: hangs"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            thread.join().unwrap_or_else(|_| panic!("{story}: panicked"))
        }
    }
}
