//! What tables, filters and other structures differ in under trial: how one is made and opened, its calls, and
//! the oracle that knows what it must answer.

use std::fmt::Debug;
use std::sync::Arc;

use nandex::device::Device;
use nandex::{OpenOptions, Volume, VolumeOptions};
use nandex_sim::workload::SplitMix64;

use crate::session::Session;
use crate::versions::Oracle;

/// The structure under trial.
pub(crate) const NAME: &str = "t";

/// Why a trial stops.
#[derive(Debug)]
pub enum Stop {
    /// The structure broke its law: what was expected, and what was found.
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

/// One configuration of a structure. A new kind of structure joins sweeps and trials by implementing this.
///
/// The calls get the [`Session`], which has the open structure and its oracle. Each is one call of the structure,
/// so that a power cut during it can be judged: it notes in the oracle what is attempted, calls, and says what is
/// to be acknowledged; the session notes the acknowledgement when it is told to settle.
pub trait Contract: Clone + Debug + Send + 'static {
    /// The open structure.
    type Handle;
    /// What it must answer.
    type Past: Oracle;

    /// An oracle of a structure that is empty.
    fn past(&self) -> Self::Past;

    /// What the volume below is created with; it is opened with the same durability and threads.
    fn volume_options(&self) -> VolumeOptions;

    /// Makes the structure in a volume.
    ///
    /// # Errors
    /// What the structure says.
    fn create(&self, volume: &Volume, name: &str) -> nandex::Result<Self::Handle>;

    /// Opens the structure of that name.
    ///
    /// # Errors
    /// What the structure says.
    fn open(&self, volume: &Volume, name: &str) -> nandex::Result<Self::Handle>;

    /// Makes a volume on a device, and the structure in it.
    ///
    /// # Errors
    /// What either says.
    fn create_on(&self, device: Arc<dyn Device>) -> nandex::Result<Self::Handle> {
        self.create(&Volume::create(device, self.volume_options())?, NAME)
    }

    /// Opens both again.
    ///
    /// # Errors
    /// What either says.
    fn open_on(&self, device: Arc<dyn Device>) -> nandex::Result<Self::Handle> {
        self.open(&Volume::open(device, self.open_options())?, NAME)
    }

    /// What the volume is opened with: as it was created.
    fn open_options(&self) -> OpenOptions {
        let VolumeOptions { durability, threads, .. } = self.volume_options();
        OpenOptions { durability, threads, ..OpenOptions::default() }
    }

    /// Closes it.
    ///
    /// # Errors
    /// What the structure says.
    fn close(handle: Self::Handle) -> nandex::Result<()>;

    /// Makes one random call.
    ///
    /// # Errors
    /// [`Stop::Wrong`] for an answer against the law, [`Stop::Failed`].
    fn call(session: &mut Session<Self>, rng: &mut SplitMix64) -> Result<(), Stop>;

    /// Asks for everything, and takes what is found as what was there from now on.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn look(session: &mut Session<Self>) -> Result<(), Stop>;

    /// Tries every sort of update where none may be acknowledged any more, and gives each by its name.
    fn updates(session: &mut Session<Self>) -> Vec<(&'static str, nandex::Result<()>)>;
}

/// One of these.
pub(crate) fn pick<T: Copy>(rng: &mut SplitMix64, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

/// A hash goes on with one more number.
pub(crate) const fn fold(hash: u64, number: u64) -> u64 {
    (hash.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
