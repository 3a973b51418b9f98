//! The filters of nandex, as makers.

use anyhow::{Result, bail};
use nandex::oracle::Multiset;

use super::subject::{Ability, FilterMaker, FilterSpec, FilterSubject, RoomSubject};

/// The filters of nandex itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum FilterIndex {
    /// An exact multiset in a `HashMap` behind a lock: what the harness itself is tried on.
    Multiset,
}

impl FilterMaker for FilterIndex {
    fn name(&self) -> &str {
        match self {
            Self::Multiset => "multiset",
        }
    }

    fn on_flash(&self) -> bool {
        match self {
            Self::Multiset => false,
        }
    }

    fn can(&self, _ability: Ability) -> bool {
        match self {
            Self::Multiset => true,
        }
    }

    fn create(&self, _spec: &FilterSpec) -> Result<Box<dyn FilterSubject>> {
        match self {
            Self::Multiset => Ok(Box::new(multiset())),
        }
    }

    fn open(&self, _spec: &FilterSpec) -> Result<Box<dyn FilterSubject>> {
        match self {
            Self::Multiset => bail!("a multiset keeps nothing; load it anew"),
        }
    }
}

/// An empty exact multiset.
#[must_use]
pub fn multiset() -> RoomSubject<Multiset> {
    RoomSubject { filter: Multiset::new(), counter: Some(|multiset| multiset) }
}
