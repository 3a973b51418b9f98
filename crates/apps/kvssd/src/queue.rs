//! Asynchronous commands: a queue accepts commands with a context each, and returns completions.
//!
//! It has no threads. Commands wait until the caller polls; then all of them are executed, in order. Consecutive
//! commands of one kind are executed together, so that their reads overlap on the device. So the depth of a queue is
//! the device's parallelism that it uses.

use std::collections::VecDeque;

use crate::iterate::{GroupFilter, Iterated, IteratorNumber};
use crate::options::{Afterwards, DeleteMissing, RetrieveOptions, Retrieved, StoreOptions};
use crate::space::KeySpace;
use crate::update::Act;
use crate::{Error, Result};

/// The most commands that a queue may hold.
pub const DEPTH_MAX: usize = 1 << 16;

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Command {
    /// [`KeySpace::store`].
    Store {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// The options of the store.
        options: StoreOptions,
    },
    /// [`KeySpace::retrieve`].
    Retrieve {
        /// The key.
        key: Vec<u8>,
        /// The part to retrieve, and what follows.
        options: RetrieveOptions,
    },
    /// [`KeySpace::delete`].
    Delete {
        /// The key.
        key: Vec<u8>,
        /// The handling of an absent key.
        missing: DeleteMissing,
    },
    /// [`KeySpace::exist`].
    Exist {
        /// The keys.
        keys: Vec<Vec<u8>>,
    },
    /// [`KeySpace::delete_group`].
    DeleteGroup {
        /// The group.
        filter: GroupFilter,
    },
    /// [`KeySpace::iterate`].
    Iterate {
        /// The iterator.
        number: IteratorNumber,
        /// The bytes of the list that is returned.
        buffer_bytes: u64,
    },
}

/// The answer to a command that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The pair was stored.
    Stored,
    /// The value, or the requested part of it.
    Retrieved(Retrieved),
    /// The pair was deleted, or was absent.
    Deleted,
    /// Whether each key is present.
    Exist(Vec<bool>),
    /// The number of pairs that were deleted.
    GroupDeleted(u64),
    /// The next keys of an iterator.
    Iterated(Iterated),
}

/// A completed command.
#[derive(Debug)]
pub struct Completion<C> {
    /// The caller's context.
    pub context: C,
    /// The result.
    pub result: Result<Outcome>,
    /// The time from its submission to its end, by the drive's timing, in nanoseconds.
    pub latency_ns: u64,
}

/// A queue of commands for one key space.
#[derive(Debug)]
pub struct CommandQueue<C> {
    space: KeySpace,
    depth: usize,
    submitted: VecDeque<(Command, C, u64)>,
    completed: VecDeque<Completion<C>>,
}

/// The kinds of commands that are executed together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Batched {
    Updates,
    Retrievals,
    Alone,
}

impl Command {
    fn batched(&self) -> Batched {
        match self {
            Self::Store { options, .. } if options.check().is_err() => Batched::Alone,
            Self::Store { .. } | Self::Delete { .. } => Batched::Updates,
            Self::Retrieve { options, .. } if options.afterwards == Afterwards::Delete => {
                Batched::Updates
            }
            Self::Retrieve { .. } => Batched::Retrievals,
            Self::Exist { .. } | Self::DeleteGroup { .. } | Self::Iterate { .. } => Batched::Alone,
        }
    }

    fn update(&self) -> Option<(&[u8], Act<'_>)> {
        match self {
            Self::Store { key, value, options } => Some((key, Act::Store(value, options.kind))),
            Self::Delete { key, missing } => Some((key, Act::Delete(*missing))),
            Self::Retrieve { key, options } => Some((key, Act::Take(*options))),
            _ => None,
        }
    }
}

impl<C> CommandQueue<C> {
    /// Creates a queue for up to `depth` commands that were submitted and not polled.
    ///
    /// # Errors
    /// A depth of 0 or more than 65,536.
    pub fn new(space: &KeySpace, depth: usize) -> Result<Self> {
        if !(1..=DEPTH_MAX).contains(&depth) {
            return Err(Error::Param { what: "depth", reason: "it must be from 1 to 65,536" });
        }
        let (submitted, completed) = Default::default();
        Ok(Self { space: space.clone(), depth, submitted, completed })
    }

    /// The number of commands that were submitted and whose completions were not polled.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.submitted.len() + self.completed.len()
    }

    /// Submits a command; `context` is returned with its completion.
    ///
    /// # Errors
    /// A full queue.
    pub fn submit(&mut self, command: Command, context: C) -> Result<()> {
        if self.pending() >= self.depth {
            return Err(Error::QueueFull { depth: self.depth });
        }
        let now_ns = self.space.inner().clock.now_ns();
        self.submitted.push_back((command, context, now_ns));
        Ok(())
    }

    /// Returns up to `max` completions, in the order of their submission; none if no command is pending. A command's
    /// own failure is in its completion.
    pub fn poll(&mut self, max: usize) -> Vec<Completion<C>> {
        while self.completed.len() < max && !self.submitted.is_empty() {
            self.run_batch();
        }
        let count = self.completed.len().min(max);
        self.completed.drain(..count).collect()
    }

    /// Executes the commands of one kind at the front.
    fn run_batch(&mut self) {
        let Some((first, ..)) = self.submitted.front() else { return };
        let sort = first.batched();
        let same = self.submitted.iter().take_while(|(it, ..)| it.batched() == sort).count();
        let count = if sort == Batched::Alone { 1 } else { same };
        let batch: Vec<_> = self.submitted.drain(..count).collect();
        let commands = batch.iter().map(|(command, ..)| command);
        let results = match sort {
            Batched::Updates => self.run_updates(&commands.collect::<Vec<_>>()),
            Batched::Retrievals => self.run_retrievals(&commands.collect::<Vec<_>>()),
            Batched::Alone => commands.map(|command| run_alone(&self.space, command)).collect(),
        };
        let end_ns = self.space.inner().clock.now_ns();
        for ((_, context, start_ns), result) in batch.into_iter().zip(results) {
            let latency_ns = end_ns.saturating_sub(start_ns);
            self.completed.push_back(Completion { context, result, latency_ns });
        }
    }

    fn run_updates(&self, commands: &[&Command]) -> Vec<Result<Outcome>> {
        let acts: Vec<_> = commands.iter().filter_map(|command| command.update()).collect();
        let results = match self.space.update_many(&acts) {
            Ok(results) => results,
            Err(error) => return unacknowledged(commands.len(), error),
        };
        let outcome = |(command, result): (&&Command, Result<crate::update::Updated>)| {
            result.map(|updated| match command {
                Command::Store { .. } => Outcome::Stored,
                Command::Retrieve { .. } => Outcome::Retrieved(updated.retrieved),
                _ => Outcome::Deleted,
            })
        };
        commands.iter().zip(results).map(outcome).collect()
    }

    fn run_retrievals(&self, commands: &[&Command]) -> Vec<Result<Outcome>> {
        let wanted: Vec<_> = commands
            .iter()
            .filter_map(|command| match command {
                Command::Retrieve { key, options } => Some((&key[..], *options)),
                _ => None,
            })
            .collect();
        match self.space.retrieve_many(&wanted) {
            Ok(results) => results.into_iter().map(|it| it.map(Outcome::Retrieved)).collect(),
            Err(error) => self.fail_all(commands, error),
        }
    }

    /// Assigns the failure of a whole batch of reads to the first command; each of the others is tried alone and has
    /// its own result.
    fn fail_all(&self, commands: &[&Command], error: Error) -> Vec<Result<Outcome>> {
        let mut first = Some(error);
        commands
            .iter()
            .map(|command| match first.take() {
                Some(error) => Err(error),
                None => run_alone(&self.space, command),
            })
            .collect()
    }
}

/// Returns the results after a failure that follows the updates of a batch: the first has it, the others say that they
/// were in the batch.
fn unacknowledged(count: usize, error: Error) -> Vec<Result<Outcome>> {
    let reason = error.to_string();
    let others = || Err(Error::Unacknowledged { reason: reason.clone() });
    let others = std::iter::repeat_with(others).take(count.saturating_sub(1)).collect::<Vec<_>>();
    std::iter::once(Err(error)).chain(others).collect()
}

fn run_alone(space: &KeySpace, command: &Command) -> Result<Outcome> {
    match command {
        Command::Store { key, value, options } => {
            space.store(key, value, *options).map(|()| Outcome::Stored)
        }
        Command::Retrieve { key, options } => space.retrieve(key, *options).map(Outcome::Retrieved),
        Command::Delete { key, missing } => space.delete(key, *missing).map(|()| Outcome::Deleted),
        Command::Exist { keys } => {
            let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            space.exist(&keys).map(Outcome::Exist)
        }
        Command::DeleteGroup { filter } => space.delete_group(*filter).map(Outcome::GroupDeleted),
        Command::Iterate { number, buffer_bytes } => {
            space.iterate(*number, *buffer_bytes).map(Outcome::Iterated)
        }
    }
}
