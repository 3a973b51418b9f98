//! The background threads of a volume, which all of its structures share.
//!
//! A structure that has work asks for a thread, and a thread does one job of it. There are as many threads as the
//! machine has cores, or as a structure may use at once if that is more. They start when there is work, and all but one
//! end when there is none for a while.
//!
//! Work on which durability depends runs once in a period, before all other jobs, and on an additional thread while all
//! others are busy.
//!
//! A job may wait for another one of its structure, which it does itself if it can: see [`is_background_thread`]. Or it
//! waits for a job of another structure: for example for space in the log, which the other's flush frees. So a waiting
//! caller calls [`Workers::help_starving`] from time to time, and if no job has begun for a while, one more thread
//! starts.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::{Error, Poison, Result, Timer};

/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(1);

/// The number of checks by waiting callers after which one more thread starts, if no job has begun meanwhile. It
/// doubles with each further thread, up to a limit, because each of these may only wait, too. A caller checks about
/// once in 2 ms.
const LOOKS: u64 = 32;
const LOOKS_DOUBLED_MAX: usize = 4;

/// The most threads for periodic work while all others are busy.
const THREADS_FOR_DUE_MAX: usize = 8;

/// The jobs that a thread takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Takes {
    /// Periodic work that is due, and jobs of structures that ask.
    All,
    /// Only periodic work that is due.
    Due,
}

/// A structure whose work runs in the background.
pub trait BackgroundWork: Send + Sync {
    /// Runs one job, if there is one. Returns whether there is another one.
    fn work(&self) -> bool;

    /// Returns whether it keeps memory from one job to the next.
    fn keeps_memory(&self) -> bool {
        false
    }

    /// Frees that memory.
    fn rest(&self) {}
}

/// The background threads of a volume.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    /// Starts the periodic work.
    timer: Mutex<Option<Timer>>,
}

/// A structure's way to ask for a thread, until it [ends](Self::end).
pub struct Asker {
    shared: Arc<Shared>,
    source: Source,
}

/// A structure that is served.
#[derive(Clone)]
struct Source {
    work: Weak<dyn BackgroundWork>,
    keeps_memory: bool,
    asks: Arc<Asks>,
}

#[derive(Default)]
struct Asks {
    /// Whether it is in the queue of structures that ask.
    is_asking: AtomicBool,
    /// Whether it is in the queue of periodic work that is due, or a thread does that work.
    is_due: AtomicBool,
    /// Whether it is no longer served. Changed under the lock of the state.
    has_ended: AtomicBool,
}

/// A job that a thread takes.
struct Job {
    source: Source,
    /// Whether it is periodic work.
    was_due: bool,
}

impl Source {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.asks, &other.asks)
    }
}

struct Shared {
    state: Mutex<State>,
    /// A structure asks, or all threads must end.
    asked: Condvar,
    /// Periodic work is due, or all threads must end.
    made_due: Condvar,
    /// A job has ended.
    ended: Condvar,
    poison: Arc<Poison>,
}

struct State {
    /// The structures that ask, in order.
    asking: VecDeque<Source>,
    /// The structures that a thread works for.
    busy: Vec<Source>,
    /// The structures that keep memory from their last job, the longest idle first.
    keeping: VecDeque<Source>,
    /// The structures that work once in a period, and those of them that are due.
    periodic: Vec<Source>,
    due: VecDeque<Source>,
    handles: Vec<JoinHandle<()>>,
    threads: usize,
    idle: usize,
    /// The number of threads that take only what is due.
    threads_for_due: usize,
    idle_for_due: usize,
    /// The number of threads that may exist without special need.
    threads_max: usize,
    /// The number of checks by waiting callers since the last job began.
    looks: u64,
    is_stopping: bool,
}

impl State {
    /// Adds a structure that asks, unless it is no longer served.
    fn enqueue(&mut self, source: &Source) {
        if !source.asks.has_ended.load(SeqCst) {
            self.asking.push_back(source.clone());
        }
    }

    /// Takes periodic work. It is not due again before it has ended: while it waits, further threads would wait in it
    /// too and never come to the job that it waits for.
    fn take_due(&mut self) -> Option<Job> {
        Some(Job { source: self.due.pop_front()?, was_due: true })
    }

    fn take_asking(&mut self, takes: Takes) -> Option<Job> {
        if takes == Takes::Due {
            return None;
        }
        let first = self.asking.pop_front()?;
        first.asks.is_asking.store(false, SeqCst);
        self.looks = 0;
        Some(Job { source: first, was_due: false })
    }

    fn threads_of(&mut self, takes: Takes) -> &mut usize {
        match takes {
            Takes::All => &mut self.threads,
            Takes::Due => &mut self.threads_for_due,
        }
    }

    fn idle_of(&mut self, takes: Takes) -> &mut usize {
        match takes {
            Takes::All => &mut self.idle,
            Takes::Due => &mut self.idle_for_due,
        }
    }

    fn keep_handle(&mut self, handle: JoinHandle<()>) {
        self.handles.retain(|it| !it.is_finished());
        self.handles.push(handle);
    }

    fn stop_keeping(&mut self, source: &Source) {
        self.keeping.retain(|it| !it.is(source));
    }

    /// Returns a structure that must free its memory, and marks it as busy: at most as many structures keep memory as
    /// there may be threads.
    fn take_surplus(&mut self) -> Option<Source> {
        let is_idle = |it: &Source| !self.busy.iter().any(|busy| busy.is(it));
        let idle = self.keeping.iter().filter(|it| is_idle(it)).count();
        let busy = self.busy.iter().filter(|it| it.keeps_memory).count();
        let has_surplus = idle + busy > self.threads_max;
        let oldest = has_surplus.then(|| self.keeping.iter().position(is_idle)).flatten()?;
        let surplus = self.keeping.remove(oldest)?;
        self.busy.push(surplus.clone());
        Some(surplus)
    }
}

impl Workers {
    /// Creates the workers without a thread; a panic of a thread poisons the volume with `poison`.
    pub(crate) fn new(poison: Arc<Poison>) -> Self {
        let state = State {
            asking: VecDeque::new(),
            busy: Vec::new(),
            keeping: VecDeque::new(),
            periodic: Vec::new(),
            due: VecDeque::new(),
            handles: Vec::new(),
            threads: 0,
            idle: 0,
            threads_for_due: 0,
            idle_for_due: 0,
            threads_max: nandex_device::cores(),
            looks: 0,
            is_stopping: false,
        };
        let (asked, made_due, ended) = (Condvar::new(), Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { state: Mutex::new(state), asked, made_due, ended, poison });
        Self { shared, timer: Mutex::default() }
    }

    /// Serves a structure that may use `threads` threads at the same time.
    pub(crate) fn serve(
        &self,
        work: &Arc<impl BackgroundWork + 'static>,
        threads: usize,
    ) -> Result<Asker> {
        let mut state = self.shared.lock();
        state.threads_max = state.threads_max.max(threads);
        if state.threads == 0 {
            self.shared.start_thread(&mut state).map_err(|error| {
                Error::config("flush_threads", format!("a thread cannot start: {error}"))
            })?;
        }
        let keeps_memory = work.keeps_memory();
        let work: Arc<dyn BackgroundWork> = Arc::clone(work) as Arc<dyn BackgroundWork>;
        let work = Arc::downgrade(&work);
        let source = Source { work, keeps_memory, asks: Arc::default() };
        Ok(Asker { shared: Arc::clone(&self.shared), source })
    }

    /// Makes a structure work once in each period, which is the same for all, until it ends.
    pub(crate) fn repeat(&self, asker: &Asker, period: Duration) -> Result<()> {
        let mut timer = self.timer.lock().expect(LOCKED);
        if timer.is_none() {
            let (shared, poison) = (Arc::clone(&self.shared), Arc::clone(&self.shared.poison));
            let ask = move || {
                shared.ask_for_periodic();
                true
            };
            *timer = Some(Timer::start("nandex-period", period, poison, ask)?);
        }
        self.shared.lock().periodic.push(asker.source.clone());
        Ok(())
    }

    /// Starts one more thread if a structure has waited long for one.
    pub(crate) fn help_starving(&self) {
        self.shared.help_starving();
    }

    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        let state = self.shared.lock();
        state.threads + state.threads_for_due
    }

    /// Ends all threads. No structure may be open any more.
    pub(crate) fn stop(&self) {
        drop(self.timer.lock().expect(LOCKED).take());
        let handles = {
            let mut state = self.shared.lock();
            state.is_stopping = true;
            std::mem::take(&mut state.handles)
        };
        self.shared.asked.notify_all();
        self.shared.made_due.notify_all();
        // The last handle of the volume may be dropped in one of them, which cannot wait for itself.
        let current = std::thread::current().id();
        for handle in handles.into_iter().filter(|it| it.thread().id() != current) {
            // Panics of jobs were caught, and have poisoned the volume.
            let _ = handle.join();
        }
    }
}

impl Asker {
    /// Makes a thread call [`BackgroundWork::work`] once, soon.
    pub fn ask(&self) {
        if self.source.asks.is_asking.swap(true, SeqCst) {
            return;
        }
        let mut state = self.shared.lock();
        state.enqueue(&self.source);
        if state.idle < state.asking.len() && state.threads < state.threads_max {
            // With fewer threads it takes longer.
            let _ = self.shared.start_thread(&mut state);
        }
        drop(state);
        self.shared.asked.notify_one();
    }

    /// Starts one more thread if a structure has waited long for one. Callers that wait for background work call this
    /// from time to time.
    pub fn help_starving(&self) {
        self.shared.help_starving();
    }

    /// Waits for the jobs that have begun, and stops serving the structure. No thread refers to it afterwards.
    pub fn end(&self) {
        let mut state = self.shared.lock();
        self.source.asks.has_ended.store(true, SeqCst);
        state.asking.retain(|it| !it.is(&self.source));
        state.periodic.retain(|it| !it.is(&self.source));
        state.due.retain(|it| !it.is(&self.source));
        state.stop_keeping(&self.source);
        while state.busy.iter().any(|it| it.is(&self.source)) {
            state = self.shared.ended.wait(state).expect(LOCKED);
        }
        state.stop_keeping(&self.source);
    }
}

thread_local! {
    static IS_BACKGROUND_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the caller is a background thread of a volume. If such a thread needs a job of the structure that it
/// works for, it must do the job itself, because all other threads may be waiting in the same way.
#[must_use]
pub fn is_background_thread() -> bool {
    IS_BACKGROUND_THREAD.get()
}

fn spawn(run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    Builder::new().name("nandex-work".into()).spawn(run)
}

const LOCKED: &str = "no holder of the workers' lock panics";

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(LOCKED)
    }

    fn start_thread(self: &Arc<Self>, state: &mut State) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        let handle = spawn(move || shared.run(Takes::All))?;
        state.keep_handle(handle);
        state.threads += 1;
        Ok(())
    }

    /// Queues all structures that work once in a period. Durability depends on them, so they get a thread at once,
    /// however long the jobs of others are.
    fn ask_for_periodic(self: &Arc<Self>) {
        let mut state = self.lock();
        let periodic = state.periodic.clone();
        // A structure that has asked may wait for long.
        let due = periodic.into_iter().filter(|it| !it.asks.is_due.swap(true, SeqCst));
        state.due.extend(due);
        if state.due.is_empty() {
            return;
        }
        let is_served = state.idle + state.idle_for_due > 0;
        if !is_served && state.threads_for_due < THREADS_FOR_DUE_MAX {
            let shared = Arc::clone(self);
            // If it cannot start, the others do the work when they can.
            if let Ok(handle) = spawn(move || shared.run(Takes::Due)) {
                state.keep_handle(handle);
                state.threads_for_due += 1;
            }
        }
        drop(state);
        self.asked.notify_all();
        self.made_due.notify_all();
    }

    fn help_starving(self: &Arc<Self>) {
        let mut state = self.lock();
        state.looks += 1;
        let more = state.threads.saturating_sub(state.threads_max);
        let enough = LOOKS << more.min(LOOKS_DOUBLED_MAX);
        if state.looks >= enough && state.idle == 0 && !state.asking.is_empty() {
            state.looks = 0;
            // If it cannot start, the next call tries again.
            let _ = self.start_thread(&mut state);
        }
    }

    /// Runs a thread: does one job after another.
    fn run(&self, takes: Takes) {
        IS_BACKGROUND_THREAD.set(true);
        while let Some(Job { source, was_due }) = self.next(takes) {
            self.free_surplus();
            let work = source.work.upgrade();
            let has_more = work.is_some_and(|work| self.guard(|| work.work()).unwrap_or(false));
            let mut state = self.lock();
            if was_due {
                source.asks.is_due.store(false, SeqCst);
            }
            if source.keeps_memory {
                state.stop_keeping(&source);
                state.keeping.push_back(source.clone());
            }
            self.end_job(&mut state, &source);
            // This thread is free for it, if no other structure has asked before.
            if has_more && !source.asks.is_asking.swap(true, SeqCst) {
                state.enqueue(&source);
            }
        }
    }

    /// Frees the memory of idle structures, if it is too much together with the job that is about to run.
    fn free_surplus(&self) {
        loop {
            let Some(source) = self.lock().take_surplus() else { return };
            source.work.upgrade().into_iter().for_each(|work| {
                self.guard(|| work.rest());
            });
            self.end_job(&mut self.lock(), &source);
        }
    }

    /// Returns the result of a structure's own code; `None` if it has panicked.
    fn guard<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let done = catch_unwind(AssertUnwindSafe(act));
        if done.is_err() {
            self.poison.set(&"a background thread of a structure has panicked");
        }
        done.ok()
    }

    /// Returns the structure that is due or has asked first; `None` when the thread must end.
    fn next(&self, takes: Takes) -> Option<Job> {
        let mut state = self.lock();
        let mut has_waited = false;
        loop {
            if let Some(job) = state.take_due().or_else(|| state.take_asking(takes)) {
                state.busy.push(job.source.clone());
                return Some(job);
            }
            let is_last = takes == Takes::All && state.threads == 1;
            if state.is_stopping || has_waited && !is_last {
                *state.threads_of(takes) -= 1;
                return None;
            }
            *state.idle_of(takes) += 1;
            let changed = if takes == Takes::All { &self.asked } else { &self.made_due };
            if is_last {
                state = changed.wait(state).expect(LOCKED);
            } else {
                let waited = changed.wait_timeout(state, IDLE).expect(LOCKED);
                (state, has_waited) = (waited.0, waited.1.timed_out());
            }
            *state.idle_of(takes) -= 1;
        }
    }

    fn end_job(&self, state: &mut State, source: &Source) {
        let place = state.busy.iter().position(|it| it.is(source)).expect("it is busy");
        state.busy.swap_remove(place);
        self.ended.notify_all();
    }
}

impl Debug for Asker {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Asker")
    }
}

impl Debug for Shared {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let mut out = f.debug_struct("Workers");
        out.field("threads", &state.threads).field("idle", &state.idle).finish_non_exhaustive()
    }
}
