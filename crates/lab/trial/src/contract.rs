//! The differences between tables, filters and other structures under trial: how one is made and opened, its
//! calls, and its oracle.

use std::fmt::Debug;
use std::sync::Arc;

use nandex::device::Device;
use nandex::{Volume, VolumeOpenOptions, VolumeOptions};
use nandex_sim::workload::SplitMix64;

use crate::session::Session;
use crate::versions::Oracle;

/// The structure under trial.
pub(crate) const NAME: &str = "t";

/// The reason why a trial stops.
#[derive(Debug)]
pub enum Stop {
    /// The structure broke its law: the expected and the found result.
    Wrong(String),
    /// The structure returned an error. The faults of its device decide whether it may.
    Failed(nandex::Error),
}

impl<E: Into<nandex::Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The requirements on answers, from the strictest on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Trust {
    /// The right answer.
    Right,
    /// The right answer or an error, as the device returns or stores wrong data.
    RightOrError,
    /// Any version that was ever put there, nothing, or an error, as the device lost acknowledged data. Never
    /// another key's value or a version that never was.
    EverOrError,
}

/// A configuration of a structure. A new kind of structure joins sweeps and trials by implementing this.
///
/// The calls get the [`Session`], which has the open structure and its oracle. Each is one call of the
/// structure, so that a power cut during it can be judged. It records the attempt in the oracle, calls the
/// structure, and returns the updates to be acknowledged; the session records the acknowledgement in
/// `settle`.
pub trait Contract: Clone + Debug + Send + 'static {
    /// The open structure.
    type Handle;
    /// Its oracle.
    type Past: Oracle;

    /// Returns the oracle of an empty structure.
    fn past(&self) -> Self::Past;

    /// Returns the options for creating the volume below; it is opened with the same durability and threads.
    fn volume_options(&self) -> VolumeOptions;

    /// Creates the structure in a volume.
    ///
    /// # Errors
    /// Returns the structure's errors.
    fn create(&self, volume: &Volume, name: &str) -> nandex::Result<Self::Handle>;

    /// Opens the structure of a name.
    ///
    /// # Errors
    /// Returns the structure's errors.
    fn open(&self, volume: &Volume, name: &str) -> nandex::Result<Self::Handle>;

    /// Creates a volume on a device, and the structure in it.
    ///
    /// # Errors
    /// Returns the errors of either.
    fn create_on(&self, device: Arc<dyn Device>) -> nandex::Result<Self::Handle> {
        self.create(&Volume::create(device, self.volume_options())?, NAME)
    }

    /// Opens both again.
    ///
    /// # Errors
    /// Returns the errors of either.
    fn open_on(&self, device: Arc<dyn Device>) -> nandex::Result<Self::Handle> {
        self.open(&Volume::open(device, self.open_options())?, NAME)
    }

    /// Returns the options for opening the volume, equal to those of its creation.
    fn open_options(&self) -> VolumeOpenOptions {
        let VolumeOptions { durability, threads, .. } = self.volume_options();
        VolumeOpenOptions { durability, threads, ..VolumeOpenOptions::default() }
    }

    /// Returns whether it continues with less when the device has no space for a request.
    fn asks_for_less(&self) -> bool {
        false
    }

    /// Returns the configuration without background threads.
    #[must_use]
    fn without_threads(&self) -> Self;

    /// Closes it.
    ///
    /// # Errors
    /// Returns the structure's errors.
    fn close(handle: Self::Handle) -> nandex::Result<()>;

    /// Makes one random call.
    ///
    /// # Errors
    /// Fails with [`Stop::Wrong`] for a wrong answer, and with [`Stop::Failed`].
    fn call(session: &mut Session<Self>, rng: &mut SplitMix64) -> Result<(), Stop>;

    /// Looks everything up, and takes the answers as the state from now on.
    ///
    /// # Errors
    /// Fails as [`call`](Self::call) does.
    fn look(session: &mut Session<Self>) -> Result<(), Stop>;

    /// Tries every kind of update when none may be acknowledged any more, and returns each result with its
    /// name.
    fn updates(session: &mut Session<Self>) -> Vec<(&'static str, nandex::Result<()>)>;
}

/// Returns one of these.
pub(crate) fn pick<T: Copy>(rng: &mut SplitMix64, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

/// Adds one more number to a hash.
pub(crate) const fn fold(hash: u64, number: u64) -> u64 {
    (hash.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
