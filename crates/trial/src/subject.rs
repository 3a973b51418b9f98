//! What a structure brings to a trial: how to make and open it, one act at a time, and its own oracle.

use std::sync::Arc;

use nandex::device::Device;
use nandex_sim::workload::SplitMix64;

/// Why a trial of a subject stops.
#[derive(Debug)]
pub enum Stop {
    /// It broke its law: what was expected, and what was found.
    Wrong(String),
    /// It returned an error. Whether it may depends on what was done to its device.
    Failed(nandex::Error),
}

impl<E: Into<nandex::Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// What is asked of answers, from most to least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Trust {
    /// The right answer.
    Right,
    /// The right answer or an error: the device lies.
    RightOrError,
    /// Anything that was ever put there, nothing, or an error: the device lost what it had acknowledged.
    /// Still never another key's value or one that never was.
    EverOrError,
}

/// A structure under trial and what it must answer. A new structure joins the trials by implementing this.
///
/// Each act is one call, so that a cut in its midst can be judged: `act` notes what is attempted, calls, and
/// returns; only `settle` notes that the call was acknowledged.
pub trait Subject: Send {
    /// Its kind and configuration, for the story of a failure.
    fn describe(&self) -> String;

    /// Makes it on an empty device. To be settled.
    ///
    /// # Errors
    /// [`Stop::Failed`].
    fn make(&mut self, device: Arc<dyn Device>) -> Result<(), Stop>;

    /// Opens what is on the device, after whatever happened to it: from now on only what was vouched for as
    /// durable is expected.
    ///
    /// # Errors
    /// [`Stop::Failed`].
    fn open(&mut self, device: Arc<dyn Device>) -> Result<(), Stop>;

    /// Was it once acknowledged as made, so that it must open?
    fn is_made(&self) -> bool;

    /// Does something by chance: one call. To be settled when it returns well.
    ///
    /// # Errors
    /// [`Stop::Wrong`] for an answer against the law, [`Stop::Failed`].
    fn act(&mut self, dice: &mut SplitMix64) -> Result<(), Stop>;

    /// Notes that what was called last was acknowledged.
    fn settle(&mut self);

    /// Asks for everything, and takes what is found as what was there from now on.
    ///
    /// # Errors
    /// As [`act`](Self::act).
    fn check(&mut self) -> Result<(), Stop>;

    /// Tries an update where none may be acknowledged any more.
    ///
    /// # Errors
    /// [`Stop::Wrong`] when it is.
    fn must_refuse(&mut self) -> Result<(), Stop>;

    /// Closes it. To be settled when it returns well.
    ///
    /// # Errors
    /// [`Stop::Failed`].
    fn close(&mut self) -> Result<(), Stop>;

    /// Leaves it as a killed process does: nothing more is written.
    fn kill(&mut self);

    /// Asks less of it from now on; it never becomes more again.
    fn trust(&mut self, trust: Trust);

    /// Another one with the same past that is not open.
    fn fork(&self) -> Box<dyn Subject>;

    /// A hash of all that it has answered.
    fn answers(&self) -> u64;

    /// Errors that were taken instead of an answer, since it was made.
    fn refusals(&self) -> u64;
}

/// One of these.
pub(crate) fn pick<T: Copy>(dice: &mut SplitMix64, all: &[T]) -> T {
    all[dice.below(all.len() as u64) as usize]
}

/// A hash goes on with one more number.
pub(crate) const fn fold(hash: u64, number: u64) -> u64 {
    (hash.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
