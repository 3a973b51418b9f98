//! The versions that a key has had, and which of them were acknowledged, and which durably.

/// What a key has been, the oldest version first.
#[derive(Clone, Debug)]
pub struct Versions<V> {
    all: Vec<V>,
    durable: usize,
    /// Versions after this one were not acknowledged.
    acknowledged: usize,
}

impl<V> Versions<V> {
    /// A key that has been nothing else, for sure.
    #[must_use]
    pub fn only(version: V) -> Self {
        Self { all: vec![version], durable: 0, acknowledged: 0 }
    }

    /// Notes what an update that is about to be called makes of the key.
    pub fn attempt(&mut self, version: V) {
        self.all.push(version);
    }

    /// Notes that the newest acknowledged version may be gone, and that no later sync vouches for it.
    pub const fn doubt(&mut self) {
        self.acknowledged = self.durable;
    }

    /// What the last attempt made of it.
    ///
    /// # Panics
    /// Never: there is always a first version.
    #[must_use]
    pub fn newest(&self) -> &V {
        self.all.last().expect("there is always a first version")
    }

    /// What may be found now: the newest acknowledged version or a later one.
    #[must_use]
    pub fn allowed(&self) -> &[V] {
        &self.all[self.acknowledged..]
    }

    /// The newest version that is vouched for as durable.
    #[must_use]
    pub fn durable(&self) -> &V {
        &self.all[self.durable]
    }
}

/// What was done to a structure, and what of it is vouched for.
pub trait Oracle: Clone + Send {
    /// What a key may have been.
    type Version;

    /// The versions of all keys, by their numbers.
    fn keys(&mut self) -> &mut [Versions<Self::Version>];

    /// Whether an update may be refused because the structure is full.
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

    /// Notes that all that was acknowledged is durable.
    fn synced(&mut self) {
        self.keys().iter_mut().for_each(|versions| versions.durable = versions.acknowledged);
    }

    /// Notes that the structure was opened: only what is durable is vouched for.
    fn reopened(&mut self) {
        self.keys().iter_mut().for_each(|versions| versions.acknowledged = versions.durable);
    }
}
