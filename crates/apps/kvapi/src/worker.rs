//! The thread of a key space's asynchronous commands. Waiting commands are executed together, so that their reads
//! overlap on the device; then each command's function is called.

use std::iter;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};

use nandex_kvssd::{Afterwards, Command, CommandQueue, KeySpace, Outcome, ResultCode};

use crate::failure::{Failure, Result, number};
use crate::pair_calls::{fill_exist, fill_value, retrieve_into};
use crate::raw::target;
use crate::space_calls::fill_iterated;
use crate::types::PostprocessContext;

/// The most commands that wait, and that are executed together.
const DEPTH: usize = 256;

/// The callback of a command, and its context.
pub(crate) struct Reply {
    pub(crate) context: PostprocessContext,
    pub(crate) post: unsafe extern "C" fn(*mut PostprocessContext),
}

// SAFETY: the targets of its addresses belong to the library until `post` is called, as the header says, and one thread
// of the library at a time has a reply.
unsafe impl Send for Reply {}

/// A command that waits.
struct Job {
    command: Command,
    reply: Reply,
}

/// A handle of the thread, to submit commands. Clones share it.
#[derive(Clone)]
pub(crate) struct Worker {
    jobs: SyncSender<Job>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    id: ThreadId,
}

impl Worker {
    /// Starts the thread.
    pub(crate) fn start(space: KeySpace) -> Result<Self> {
        let (jobs, waiting) = sync_channel(DEPTH);
        let builder = thread::Builder::new().name("kvapi".into());
        let thread = builder.spawn(move || run(&space, &waiting)).map_err(|error| {
            let words = format!("the thread of asynchronous commands does not start: {error}");
            Failure::new(ResultCode::SysIo, words)
        })?;
        let id = thread.thread().id();
        Ok(Self { jobs, thread: Arc::new(Mutex::new(Some(thread))), id })
    }

    /// Submits a command, after a wait if the queue is full. The thread itself, in a callback, does not wait.
    pub(crate) fn submit(&self, command: Command, reply: Reply) -> Result {
        let job = Job { command, reply };
        let is_sent = if thread::current().id() == self.id {
            self.jobs.try_send(job).map_err(|error| matches!(error, TrySendError::Full(_)))
        } else {
            self.jobs.send(job).map_err(|_| false)
        };
        is_sent.map_err(|is_full| match is_full {
            true => {
                let words =
                    format!("{DEPTH} commands wait; submit fewer from a function called back");
                Failure::new(ResultCode::SysIo, words)
            }
            false => Failure::new(ResultCode::SpaceNotOpen, "the key space was closed"),
        })
    }

    /// Waits for all commands, except on its own thread, which ends after them.
    pub(crate) fn finish(self) {
        let Self { jobs, thread, id } = self;
        drop(jobs);
        let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|_| thread::current().id() != id) {
            // A callback that has panicked through C is not ours to report.
            let _ = thread.join();
        }
    }
}

fn run(space: &KeySpace, waiting: &Receiver<Job>) {
    while let Ok(first) = waiting.recv() {
        let mut queue = CommandQueue::new(space, DEPTH).expect("the depth is one that may be");
        for Job { command, reply } in iter::once(first).chain(waiting.try_iter().take(DEPTH - 1)) {
            match command {
                Command::Retrieve { key, options } if options.afterwards == Afterwards::Delete => {
                    answer_all(&mut queue);
                    answer_deleting(space, &key, reply);
                }
                command => {
                    queue.submit(command, reply).expect("no more were taken than the queue holds");
                }
            }
        }
        answer_all(&mut queue);
    }
}

/// Executes the commands in the queue, and calls their functions.
fn answer_all(queue: &mut CommandQueue<Reply>) {
    for done in queue.poll(DEPTH) {
        let result = done.result.map_err(Failure::from);
        // SAFETY: a reply owns its addresses until its function is called.
        let result = result.and_then(|outcome| unsafe { deliver(&done.context, &outcome) });
        end(done.context, result);
    }
}

/// Executes a retrieval that deletes, which first checks whether the caller's buffer is long enough.
fn answer_deleting(space: &KeySpace, key: &[u8], reply: Reply) {
    // SAFETY: a reply owns its addresses until its function is called.
    let result = unsafe {
        target(reply.context.value, "the value")
            .and_then(|value| retrieve_into(space, key, Afterwards::Delete, value))
    };
    end(reply, result);
}

/// Writes an outcome to the caller's place.
///
/// # Safety
/// The addresses of the reply are those of the command, and nothing else uses them.
unsafe fn deliver(reply: &Reply, outcome: &Outcome) -> Result {
    let context = &reply.context;
    // SAFETY: as the caller says; the union has the field of its command.
    unsafe {
        match outcome {
            Outcome::Retrieved(retrieved) => {
                fill_value(target(context.value, "the value")?, retrieved)
            }
            Outcome::Exist(there) => fill_exist(target(context.buffer.exist, "the list")?, there),
            Outcome::Iterated(part) => {
                fill_iterated(target(context.buffer.iterated, "the list")?, part)
            }
            _ => Ok(()),
        }
    }
}

fn end(reply: Reply, result: Result) {
    let Reply { mut context, post } = reply;
    context.result = number(result);
    // SAFETY: the caller has passed the function for this.
    unsafe { post(&raw mut context) };
}
