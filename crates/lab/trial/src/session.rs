//! A structure under trial: the open volume, the oracle, and the last call.

use std::sync::Arc;

use nandex::device::Device;
use nandex::{Durability, Error, Volume};
use nandex_sim::workload::SplitMix64;

use crate::contract::{Contract, NAME, Stop, Trust, fold};
use crate::versions::Oracle;

/// The name of another structure that is made and dropped.
const NEIGHBOUR: &str = "u";

/// A call that returned and is not acknowledged yet.
#[derive(Clone, Debug)]
enum Pending {
    /// Nothing that the oracle would record: a lookup, or an update that was refused because the structure is
    /// full.
    Nothing,
    Made,
    Updated(Vec<u64>),
    /// An update like the last one, and then a sync like the next one.
    Saved(Vec<u64>),
    /// Everything acknowledged before is durable.
    Synced,
}

/// A structure, its oracle, and its calls.
pub struct Session<C: Contract> {
    setup: C,
    /// The oracle.
    pub past: C::Past,
    open: Option<(Volume, C::Handle)>,
    pending: Pending,
    is_made: bool,
    trust: Trust,
    answers: u64,
    refusals: u64,
}

impl<C: Contract> Session<C> {
    /// Creates a session without a structure, on no device.
    #[must_use]
    pub fn new(setup: C) -> Self {
        let past = setup.past();
        Self::with_past(setup, past)
    }

    /// Resumes a session from its state at a power cut.
    pub(crate) fn resumed(setup: C, past: C::Past, is_made: bool) -> Self {
        Self { is_made, ..Self::with_past(setup, past) }
    }

    fn with_past(setup: C, past: C::Past) -> Self {
        Self {
            setup,
            past,
            open: None,
            pending: Pending::Nothing,
            is_made: false,
            trust: Trust::Right,
            answers: 0,
            refusals: 0,
        }
    }

    /// Returns its configuration.
    pub const fn setup(&self) -> &C {
        &self.setup
    }

    /// Returns the open structure.
    ///
    /// # Panics
    /// Panics if it is not open.
    #[must_use]
    pub fn handle(&self) -> &C::Handle {
        &self.open.as_ref().expect("only what is open is asked").1
    }

    /// Returns the open structure, for calls that need exclusive access.
    ///
    /// # Panics
    /// Panics if it is not open.
    pub(crate) fn handle_mut(&mut self) -> &mut C::Handle {
        &mut self.open.as_mut().expect("only what is open is asked").1
    }

    pub(crate) fn volume(&self) -> &Volume {
        &self.open.as_ref().expect("only what is open is asked").0
    }

    fn durability(&self) -> Durability {
        self.setup.volume_options().durability
    }

    /// Creates a volume on an empty device and the structure in it. Success must be followed by `settle`.
    ///
    /// # Errors
    /// Fails with [`Stop::Failed`].
    pub fn create(&mut self, device: Arc<dyn Device>) -> Result<(), Stop> {
        self.pending = Pending::Nothing;
        let volume = Volume::create(device, self.setup.volume_options())?;
        let handle = self.setup.create(&volume, NAME)?;
        self.open = Some((volume, handle));
        self.pending = Pending::Made;
        Ok(())
    }

    /// Opens the content of the device, after whatever happened to it: from now on only durable data are
    /// expected.
    ///
    /// # Errors
    /// Fails with [`Stop::Failed`].
    pub fn open(&mut self, device: Arc<dyn Device>) -> Result<(), Stop> {
        self.past.reopened();
        self.pending = Pending::Nothing;
        let volume = Volume::open(device, self.setup.open_options())?;
        let handle = self.setup.open(&volume, NAME)?;
        // The life may have ended before the neighbour was dropped: its updates would stay in the log.
        match self.setup.open(&volume, NEIGHBOUR) {
            Ok(neighbour) => C::close(neighbour)?,
            Err(Error::Store(nandex::raw::store::Error::NoSuchStructure { .. })) => {}
            Err(error) => return Err(error.into()),
        }
        self.open = Some((volume, handle));
        // The power may have been cut between making it and acknowledging it.
        self.is_made = true;
        Ok(())
    }

    /// Returns whether its creation was acknowledged, so that it must open.
    pub const fn is_made(&self) -> bool {
        self.is_made
    }

    /// Returns whether there is an open structure.
    pub const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether the volume refuses writes because an earlier one failed.
    pub fn is_poisoned(&self) -> bool {
        self.volume().poison().check().is_err()
    }

    /// Makes one random call. Success must be followed by `settle`.
    ///
    /// # Errors
    /// Fails with [`Stop::Wrong`] for a wrong answer, and with [`Stop::Failed`].
    pub fn call(&mut self, rng: &mut SplitMix64) -> Result<(), Stop> {
        self.pending = Pending::Nothing;
        C::call(self, rng)
    }

    /// Records that the last call was acknowledged.
    pub fn settle(&mut self) {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => {}
            Pending::Made => self.is_made = true,
            Pending::Updated(keys) => {
                let is_durable = self.durability() == Durability::Always;
                keys.iter().for_each(|key| self.past.acknowledge(*key, is_durable));
            }
            Pending::Saved(keys) => {
                keys.iter().for_each(|key| self.past.acknowledge(*key, true));
                self.past.synced();
            }
            Pending::Synced => self.past.synced(),
        }
    }

    /// Looks everything up, and takes the answers as the state from now on.
    ///
    /// # Errors
    /// Fails as [`call`](Self::call) does.
    pub fn look(&mut self) -> Result<(), Stop> {
        self.pending = Pending::Nothing;
        C::look(self)
    }

    /// Creates another structure of the same configuration in the same volume, calls it a few times, closes
    /// and drops it.
    ///
    /// # Errors
    /// Fails as [`call`](Self::call) does.
    pub fn meet_neighbour(&mut self, rng: &mut SplitMix64) -> Result<(), Stop> {
        self.pending = Pending::Nothing;
        let volume = self.volume().clone();
        let mut neighbour = Self::new(self.setup.clone());
        neighbour.open = Some((volume.clone(), self.setup.create(&volume, NEIGHBOUR)?));
        for _ in 0..3 {
            neighbour.call(rng)?;
            neighbour.settle();
        }
        neighbour.close()?;
        let names = volume.structures().into_iter().map(|structure| structure.name);
        // Parts are dropped with their structures.
        let is_whole = |name: &String| name.starts_with(NEIGHBOUR) && !name.contains('/');
        for name in names.filter(is_whole) {
            volume.drop_structure(&name)?;
        }
        Ok(())
    }

    /// Takes a checkpoint. Success must be followed by `settle`.
    ///
    /// # Errors
    /// Fails with [`Stop::Failed`].
    pub fn checkpoint(&mut self) -> Result<(), Stop> {
        self.volume().checkpoint()?;
        // Without a log, buffered data are durable only when they are flushed.
        if self.durability() != Durability::Never {
            self.pending = Pending::Synced;
        }
        Ok(())
    }

    /// Tries every kind of update when none may be acknowledged any more.
    ///
    /// # Errors
    /// Fails with [`Stop::Wrong`] when one is acknowledged, or when the error lacks the reason or the remedy.
    pub fn must_refuse(&mut self) -> Result<(), Stop> {
        for (call, result) in C::updates(self) {
            let is_right = result.as_ref().is_err_and(is_poisoned);
            if !is_right {
                let what = format!("after a failed write or sync {call} gave {result:?}");
                return Err(Stop::Wrong(what));
            }
        }
        Ok(())
    }

    /// Closes it. Success must be followed by `settle`.
    ///
    /// # Errors
    /// Fails with [`Stop::Failed`].
    pub fn close(&mut self) -> Result<(), Stop> {
        self.pending = Pending::Nothing;
        if let Some((volume, handle)) = self.open.take() {
            C::close(handle)?;
            drop(volume);
        }
        self.pending = Pending::Synced;
        Ok(())
    }

    /// Closes the structure before its volume, which takes a checkpoint in between. Success must be followed
    /// by `settle`.
    ///
    /// # Errors
    /// Fails with [`Stop::Failed`].
    pub fn close_first(&mut self) -> Result<(), Stop> {
        let volume = self.volume().clone();
        self.close()?;
        Ok(volume.checkpoint()?)
    }

    /// Leaves it as a killed process does: nothing more is written.
    pub fn kill(&mut self) {
        if let Some((volume, handle)) = self.open.take() {
            volume.poison().set(&"killed");
            drop((handle, volume));
        }
    }

    /// Lowers the expectations from now on; they never rise again.
    pub fn lower_trust(&mut self, trust: Trust) {
        self.trust = self.trust.max(trust);
    }

    /// Returns the requirements on its answers.
    pub const fn trust(&self) -> Trust {
        self.trust
    }

    /// Returns another session with the same oracle that is not open.
    #[must_use]
    pub fn fork(&self) -> Self {
        let Self { trust, is_made, .. } = *self;
        Self { trust, is_made, ..Self::with_past(self.setup.clone(), self.past.clone()) }
    }

    /// Returns a hash of all its answers.
    pub const fn answers(&self) -> u64 {
        self.answers
    }

    /// Returns the number of errors that were accepted instead of an answer, since it was made.
    pub const fn refusals(&self) -> u64 {
        self.refusals
    }
}

/// The reports of calls to their session.
impl<C: Contract> Session<C> {
    /// Reports that an update of these keys has returned.
    ///
    /// # Errors
    /// Fails with [`Stop::Failed`] for any error except that a structure that may refuse is full. Each part
    /// of a refused batch may be in or not, so the attempts stay possible.
    pub fn updated(&mut self, keys: &[u64], result: nandex::Result<()>) -> Result<(), Stop> {
        match result {
            Err(Error::Full { .. }) if self.past.may_refuse() => Ok(()),
            result => {
                result?;
                self.pending = Pending::Updated(keys.to_vec());
                Ok(())
            }
        }
    }

    /// Reports that an update of these keys has returned after which it and everything acknowledged before it
    /// is durable.
    ///
    /// # Errors
    /// Fails as [`updated`](Self::updated) does.
    pub fn saved(&mut self, keys: &[u64], result: nandex::Result<()>) -> Result<(), Stop> {
        self.updated(keys, result)?;
        if let Pending::Updated(keys) = &mut self.pending {
            self.pending = Pending::Saved(std::mem::take(keys));
        }
        Ok(())
    }

    /// Reports that a call has returned after which everything acknowledged is durable.
    ///
    /// # Errors
    /// Fails with [`Stop::Failed`].
    pub fn synced(&mut self, result: nandex::Result<()>) -> Result<(), Stop> {
        result?;
        self.pending = Pending::Synced;
        Ok(())
    }

    /// Reports that a lookup has returned; an error is allowed if the device may return wrong data.
    ///
    /// # Errors
    /// Fails with [`Stop::Failed`] if it may not.
    pub fn allowed<T>(&mut self, result: nandex::Result<T>) -> Result<Option<T>, Stop> {
        match result {
            Ok(answer) => Ok(Some(answer)),
            Err(_) if self.trust > Trust::Right => {
                self.refusals += 1;
                self.note_answer(u64::MAX);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Adds an answer to the hash of all of them.
    pub fn note_answer(&mut self, number: u64) {
        self.answers = fold(self.answers, number);
    }

    /// Returns neighbouring keys from a random one on, at most `count_max`, all different.
    pub fn run(&mut self, rng: &mut SplitMix64, count_max: u64) -> Vec<u64> {
        let keys = self.past.keys().len() as u64;
        let (count, start) = (1 + rng.below(count_max.min(keys)), rng.below(keys));
        (start..start + count).map(|key| key % keys).collect()
    }
}

/// Returns whether the error names the earlier failure and the remedy.
fn is_poisoned(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("refuses writes because an earlier one failed") && text.contains("open it again")
}
