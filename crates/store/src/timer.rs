//! Work that a thread repeats once in a period, such as syncing appended entries.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::{Error, Poison, Result};

/// The shortest period.
pub(crate) const PERIOD_MIN: Duration = Duration::from_millis(1);

/// The time that a stop waits for work that has begun. A device that takes longer than that has failed.
const STOP_MAX: Duration = Duration::from_secs(300);

/// A thread that works once in a period until it is stopped or dropped.
#[derive(Debug)]
pub struct Timer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    poison: Arc<Poison>,
}

#[derive(Default, Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct State {
    is_stopping: bool,
    has_ended: bool,
}

impl Timer {
    /// Starts a thread of this name, which first works after one period; a period is at least a millisecond. The thread
    /// ends when `work` returns false. A panic of `work` poisons the volume with `poison`.
    ///
    /// # Errors
    /// [`Error::Config`] if the system refuses another thread.
    pub fn start(
        name: &'static str,
        period: Duration,
        poison: Arc<Poison>,
        mut work: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Self> {
        let (shared, period) = (Arc::<Shared>::default(), period.max(PERIOD_MIN));
        let ended = Ended(Arc::clone(&shared));
        let run = move || {
            while ended.0.wait(period, |state| state.is_stopping).is_none() && work() {}
        };
        let thread = Builder::new().name(name.into()).spawn(run);
        let thread = thread.map_err(|error| {
            Error::config("threads", format!("the thread {name} cannot start: {error}"))
        })?;
        Ok(Self { shared, thread: Some(thread), poison })
    }

    /// Ends the thread, without waiting for the period. Waits for work that has begun, but at most five minutes: then
    /// the volume is poisoned, as it is by a panic of the work.
    pub fn stop(&mut self) {
        self.stop_within(STOP_MAX);
    }

    fn stop_within(&mut self, longest: Duration) {
        let Some(thread) = self.thread.take() else { return };
        let name = thread.thread().name().unwrap_or_default().to_owned();
        self.shared.lock().is_stopping = true;
        self.shared.changed.notify_all();
        if self.shared.wait(longest, |state| state.has_ended).is_none() {
            self.poison.set(&format!("the thread {name} did not end in {longest:?}"));
        } else if thread.join().is_err() {
            self.poison.set(&format!("the thread {name} panicked"));
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a condition is true; returns `None` if it is not after the longest time.
    fn wait(&self, longest: Duration, is_so: impl Fn(&State) -> bool) -> Option<()> {
        let waited = self.changed.wait_timeout_while(self.lock(), longest, |state| !is_so(state));
        is_so(&waited.unwrap_or_else(PoisonError::into_inner).0).then_some(())
    }
}

/// Notes at the end of the thread, or at its panic, that it has ended.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(3600);

    /// Returns a timer that reports when work begins, and works until it receives.
    fn timer() -> (Timer, Receiver<()>, Sender<bool>, Arc<Poison>) {
        let (poison, (began, begins)) = (Arc::<Poison>::default(), channel());
        let (goes_on, received) = channel();
        let timer = Timer::start("test-timer", Duration::ZERO, Arc::clone(&poison), move || {
            // The test's end may be gone when the thread ends.
            let _ = began.send(());
            received.recv().unwrap_or(false)
        });
        (timer.unwrap(), begins, goes_on, poison)
    }

    #[test]
    fn work_is_repeated_until_a_stop_which_waits_for_no_period() {
        let (mut timer, begins, goes_on, poison) = timer();
        for _ in 0..3 {
            begins.recv_timeout(DEADLINE).unwrap();
            goes_on.send(true).unwrap();
        }
        drop(goes_on);
        timer.stop_within(DEADLINE);
        timer.stop();
        assert!(!poison.is_set());
        let work = || panic!("the first hour is not over");
        let mut idle = Timer::start("test-idle", HOUR, Arc::clone(&poison), work).unwrap();
        idle.stop_within(DEADLINE);
        assert!(!poison.is_set());
    }

    #[test]
    fn work_that_is_done_ends_the_thread_and_the_stop_finds_it_ended() {
        let (mut timer, begins, goes_on, poison) = timer();
        begins.recv_timeout(DEADLINE).unwrap();
        goes_on.send(false).unwrap();
        timer.stop_within(DEADLINE);
        assert!(goes_on.send(true).is_err(), "the work is gone with its thread");
        assert!(!poison.is_set());
    }

    #[test]
    fn work_that_does_not_end_is_waited_for_until_the_deadline_and_poisons() {
        let (mut timer, begins, goes_on, poison) = timer();
        begins.recv_timeout(DEADLINE).unwrap();
        timer.stop_within(Duration::ZERO);
        let error = poison.check().unwrap_err().to_string();
        assert!(error.contains("the thread test-timer did not end in"), "{error}");
        drop(goes_on);
    }

    #[test]
    fn a_panic_of_the_work_poisons() {
        let poison = Arc::<Poison>::default();
        let work = || panic!("this is the test's own");
        let mut timer = Timer::start("test-panic", PERIOD_MIN, Arc::clone(&poison), work).unwrap();
        timer.shared.wait(DEADLINE, |state| state.has_ended).unwrap();
        timer.stop_within(DEADLINE);
        let error = poison.check().unwrap_err().to_string();
        assert!(error.contains("the thread test-panic panicked"), "{error}");
    }
}
