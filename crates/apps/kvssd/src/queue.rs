//! Asynchronous commands: a queue takes commands with a context each, and gives completions.
//!
//! There are no threads in it. Commands wait until somebody polls; then all of them are done, in their order, those of
//! one sort that follow one another together, so that their reads overlap on the device. So the depth of a queue is the
//! device's parallelism that it uses.

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
        /// How.
        options: StoreOptions,
    },
    /// [`KeySpace::retrieve`].
    Retrieve {
        /// The key.
        key: Vec<u8>,
        /// What of it.
        options: RetrieveOptions,
    },
    /// [`KeySpace::delete`].
    Delete {
        /// The key.
        key: Vec<u8>,
        /// What is said of a key that is not there.
        missing: DeleteMissing,
    },
    /// [`KeySpace::exist`].
    Exist {
        /// The keys.
        keys: Vec<Vec<u8>>,
    },
    /// [`KeySpace::delete_group`].
    DeleteGroup {
        /// Which group.
        filter: GroupFilter,
    },
    /// [`KeySpace::iterate`].
    Iterate {
        /// The iterator.
        number: IteratorNumber,
        /// Bytes of the list that is returned.
        buffer_bytes: u64,
    },
}

/// The answer to a command that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It was stored.
    Stored,
    /// The value, or the part of it that was asked for.
    Retrieved(Retrieved),
    /// It was deleted, or was not there.
    Deleted,
    /// Which keys are there.
    Exist(Vec<bool>),
    /// That many pairs were deleted.
    GroupDeleted(u64),
    /// The next keys of an iterator.
    Iterated(Iterated),
}

/// A command that is done.
#[derive(Debug)]
pub struct Completion<C> {
    /// What the caller gave with it.
    pub context: C,
    /// What came of it.
    pub result: Result<Outcome>,
    /// From its submission to its end, as the drive's timing tells it, in nanoseconds.
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

/// Commands that are done together.
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
    /// A queue that holds up to `depth` commands that were submitted and not polled.
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

    /// Commands that were submitted and whose completions were not polled.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.submitted.len() + self.completed.len()
    }

    /// Takes a command; `context` comes back with its completion.
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

    /// Up to `max` completions, in the order of their submission; none if no command is pending. A command's own
    /// failure is in its completion.
    pub fn poll(&mut self, max: usize) -> Vec<Completion<C>> {
        while self.completed.len() < max && !self.submitted.is_empty() {
            self.run_batch();
        }
        let count = self.completed.len().min(max);
        self.completed.drain(..count).collect()
    }

    /// Does the commands of one sort at the front.
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

    /// A failure of a whole batch of reads is the first command's; each of the others is tried alone and has its own.
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

/// A failure after the updates of a batch: the first has it, the others say that they were in the batch.
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
