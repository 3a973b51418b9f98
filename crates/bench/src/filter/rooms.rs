//! The filters of nandex, as makers.

use anyhow::{Result, bail};
use nandex::oracle::Multiset;

use super::cascade;
use super::quotient::QuotientSubject;
use super::subject::{Ability, FilterMaker, FilterSpec, FilterSubject, RoomSubject};

/// The filters of nandex itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum FilterIndex {
    /// An exact multiset in a `HashMap` behind a lock: what the harness itself is tried on.
    Multiset,
    /// The quotient filter, in RAM.
    Quotient,
    /// The cascade filter: a quotient filter in RAM over sorted runs on flash.
    Cascade,
}

impl FilterMaker for FilterIndex {
    fn name(&self) -> &str {
        match self {
            Self::Multiset => "multiset",
            Self::Quotient => "quotient",
            Self::Cascade => "cascade",
        }
    }

    fn on_flash(&self) -> bool {
        *self == Self::Cascade
    }

    fn can(&self, _ability: Ability) -> bool {
        true
    }

    fn create(&self, spec: &FilterSpec) -> Result<Box<dyn FilterSubject>> {
        match self {
            Self::Multiset => Ok(Box::new(multiset())),
            Self::Quotient => Ok(Box::new(QuotientSubject::create(spec)?)),
            Self::Cascade => cascade::create(spec),
        }
    }

    fn open(&self, spec: &FilterSpec) -> Result<Box<dyn FilterSubject>> {
        match self {
            Self::Multiset | Self::Quotient => {
                bail!("a {} keeps nothing; load it anew", self.name())
            }
            Self::Cascade => cascade::open(spec),
        }
    }
}

/// An empty exact multiset.
#[must_use]
pub fn multiset() -> RoomSubject<Multiset> {
    RoomSubject { filter: Multiset::new(), counter: Some(|multiset| multiset) }
}
