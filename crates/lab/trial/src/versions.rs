//! The versions that a key has had, the acknowledged ones, and the durable ones.

/// The versions of a key, the oldest first.
#[derive(Clone, Debug)]
pub struct Versions<V> {
    all: Vec<V>,
    durable: usize,
    /// The index of the last acknowledged version.
    acknowledged: usize,
}

impl<V> Versions<V> {
    /// Creates a key with one certain version.
    #[must_use]
    pub fn only(version: V) -> Self {
        Self { all: vec![version], durable: 0, acknowledged: 0 }
    }

    /// Records the version that an update makes, before it is called.
    pub fn attempt(&mut self, version: V) {
        self.all.push(version);
    }

    /// Takes back the last attempt, which turned out to change nothing.
    ///
    /// # Panics
    /// Panics if it was acknowledged.
    pub fn retract(&mut self) {
        assert!(self.all.len() - 1 > self.acknowledged.max(self.durable), "nothing was attempted");
        self.all.pop();
    }

    /// Records that the newest acknowledged version may be gone, and that no later sync makes it durable.
    pub const fn doubt(&mut self) {
        self.acknowledged = self.durable;
    }

    /// Returns the version of the last attempt.
    ///
    /// # Panics
    /// Never panics: there is always a first version.
    #[must_use]
    pub fn newest(&self) -> &V {
        self.all.last().expect("there is always a first version")
    }

    /// Returns the versions that may be found now: the newest acknowledged one and later ones.
    #[must_use]
    pub fn allowed(&self) -> &[V] {
        &self.all[self.acknowledged..]
    }

    /// Returns the newest version that must be durable.
    #[must_use]
    pub fn durable(&self) -> &V {
        &self.all[self.durable]
    }
}

impl<V: Numbers> Versions<V> {
    fn save(&self, out: &mut Vec<u64>) {
        out.extend([self.all.len(), self.durable, self.acknowledged].map(|it| it as u64));
        out.extend(self.all.iter().flat_map(Numbers::numbers));
    }

    fn load(numbers: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let mut next = || numbers.next();
        let [count, durable, acknowledged] = [next()?, next()?, next()?];
        if count == 0 || durable.max(acknowledged) >= count {
            return None;
        }
        let version = |_| Some(V::of_numbers([next()?, next()?]));
        let all = (0..count).map(version).collect::<Option<_>>()?;
        Some(Self { all, durable: durable as usize, acknowledged: acknowledged as usize })
    }
}

/// A version as two numbers, for a file.
pub trait Numbers: Sized {
    /// Returns the numbers.
    fn numbers(&self) -> [u64; 2];

    /// Returns the version of these numbers.
    fn of_numbers(numbers: [u64; 2]) -> Self;
}

/// The updates of a structure, and those of them that must hold.
pub trait Oracle: Clone + Send {
    /// The state of a key.
    type Version: Numbers;

    /// Returns the state in addition to the versions of keys.
    fn others(&mut self) -> Vec<&mut u64>;

    /// Returns the whole state, for a file.
    fn save(&self) -> Vec<u64> {
        let mut copy = self.clone();
        let mut out = Vec::new();
        copy.keys().iter().for_each(|versions| versions.save(&mut out));
        out.extend(copy.others().into_iter().map(|number| *number));
        out
    }

    /// Takes the state of another oracle of the same configuration; returns `None` if the numbers do not fit.
    fn restore(&mut self, numbers: &[u64]) -> Option<()> {
        let mut numbers = numbers.iter().copied();
        for versions in self.keys() {
            *versions = Versions::load(&mut numbers)?;
        }
        for number in self.others() {
            *number = numbers.next()?;
        }
        numbers.next().is_none().then_some(())
    }

    /// Returns the versions of all keys, by their numbers.
    fn keys(&mut self) -> &mut [Versions<Self::Version>];

    /// Returns whether an update may be refused because the structure is full.
    fn may_refuse(&self) -> bool {
        true
    }

    /// Records that all updates of this key were acknowledged, and whether they are durable.
    fn acknowledge(&mut self, key: u64, is_durable: bool) {
        let versions = &mut self.keys()[key as usize];
        versions.acknowledged = versions.all.len() - 1;
        if is_durable {
            versions.durable = versions.acknowledged;
        }
    }

    /// Records that everything acknowledged is durable.
    fn synced(&mut self) {
        self.keys().iter_mut().for_each(|versions| versions.durable = versions.acknowledged);
    }

    /// Records that the structure was opened: only durable versions must hold.
    fn reopened(&mut self) {
        self.keys().iter_mut().for_each(|versions| versions.acknowledged = versions.durable);
    }
}
