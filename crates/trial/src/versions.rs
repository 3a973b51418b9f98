//! The versions that a key has had, and which of them were acknowledged, and which durably.

/// The versions of a key, the oldest first.
#[derive(Clone, Debug)]
pub struct Versions<V> {
    all: Vec<V>,
    durable: usize,
    /// Versions after this one were not acknowledged.
    acknowledged: usize,
}

impl<V> Versions<V> {
    /// A key with one certain version.
    #[must_use]
    pub fn only(version: V) -> Self {
        Self { all: vec![version], durable: 0, acknowledged: 0 }
    }

    /// Notes what an update makes of the key, before it is called.
    pub fn attempt(&mut self, version: V) {
        self.all.push(version);
    }

    /// Notes that the newest acknowledged version may be gone, and that no later sync makes it durable.
    pub const fn doubt(&mut self) {
        self.acknowledged = self.durable;
    }

    /// The version of the last attempt.
    ///
    /// # Panics
    /// Never: there is always a first version.
    #[must_use]
    pub fn newest(&self) -> &V {
        self.all.last().expect("there is always a first version")
    }

    /// The versions that may be found now: the newest acknowledged one and later ones.
    #[must_use]
    pub fn allowed(&self) -> &[V] {
        &self.all[self.acknowledged..]
    }

    /// The newest version that must be durable.
    #[must_use]
    pub fn durable(&self) -> &V {
        &self.all[self.durable]
    }
}

/// What was done to a structure, and which of it must hold.
pub trait Oracle: Clone + Send {
    /// The state of a key.
    type Version;

    /// The versions of all keys, by their numbers.
    fn keys(&mut self) -> &mut [Versions<Self::Version>];

    /// May an update be refused because the structure is full?
    fn may_refuse(&self) -> bool {
        true
    }

    /// Notes that all updates of that key were acknowledged, and perhaps are durable by that.
    fn acknowledge(&mut self, key: u64, is_durable: bool) {
        let versions = &mut self.keys()[key as usize];
        versions.acknowledged = versions.all.len() - 1;
        if is_durable {
            versions.durable = versions.acknowledged;
        }
    }

    /// Notes that everything acknowledged is durable.
    fn synced(&mut self) {
        self.keys().iter_mut().for_each(|versions| versions.durable = versions.acknowledged);
    }

    /// Notes that the structure was opened: only what is durable must hold.
    fn reopened(&mut self) {
        self.keys().iter_mut().for_each(|versions| versions.acknowledged = versions.durable);
    }
}
