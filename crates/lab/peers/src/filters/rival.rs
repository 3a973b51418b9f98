//! The list of filters, and their constructors.

use std::fmt;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use nandex_bench::structures::Structure;
use nandex_bench::subject::{Maker, Spec, StoredKeys, Subject};
use nandex_bench::workload::{Kind as Engine, Workload};

use crate::buffered::{Buffered, Kind};
use crate::mapped::{Mapped, ReadAhead};
use crate::memory::{FastBloom, Fuse, Locked, Qfilter};

/// The filters that are built in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rival {
    /// A filter of nandex.
    Own(Structure),
    /// A plain Bloom filter in a mapped file.
    Mapped(ReadAhead),
    /// A Bloom filter on flash with a buffer of updates.
    Buffered(Kind),
    /// The crate `qfilter`, in RAM.
    Qfilter,
    /// The crate `fastbloom`, in RAM.
    Fastbloom,
    /// The crate `xorf`: a static binary fuse filter in RAM.
    Xorf,
}

impl Rival {
    /// Returns all third-party filters, and those of nandex except the one that tests the harness.
    pub fn every() -> Vec<Self> {
        let harness = Self::Own(Structure::Multiset);
        Self::value_variants().iter().copied().filter(|&rival| rival != harness).collect()
    }
}

static VARIANTS: [Rival; 10] = [
    Rival::Own(Structure::Multiset),
    Rival::Own(Structure::Registered("cascade")),
    Rival::Own(Structure::Quotient),
    Rival::Buffered(Kind::Paged),
    Rival::Buffered(Kind::Elevator),
    Rival::Mapped(ReadAhead::Off),
    Rival::Mapped(ReadAhead::Usual),
    Rival::Qfilter,
    Rival::Fastbloom,
    Rival::Xorf,
];

impl ValueEnum for Rival {
    fn value_variants<'a>() -> &'a [Self] {
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Own(structure) => return structure.to_possible_value(),
            Self::Buffered(Kind::Paged) => "All bits of a key in one page, updates buffered in RAM",
            Self::Buffered(Kind::Elevator) => "Bits anywhere, buffered in RAM, written in order",
            Self::Mapped(ReadAhead::Off) => "A plain Bloom filter in a mapped file, MADV_RANDOM",
            Self::Mapped(ReadAhead::Usual) => "The same with the kernel's read-ahead",
            Self::Qfilter => "The crate qfilter, in RAM",
            Self::Fastbloom => "The crate fastbloom, in RAM",
            Self::Xorf => "The crate xorf in RAM: static, inserts are collected and then built",
        };
        // The name borrows from self; each variant stands in the list of variants for ever.
        let listed = VARIANTS.iter().find(|variant| *variant == self)?;
        Some(PossibleValue::new(listed.name()).help(help))
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Maker for Rival {
    fn name(&self) -> &str {
        match self {
            Self::Own(structure) => structure.name(),
            Self::Buffered(Kind::Paged) => "bloom-paged",
            Self::Buffered(Kind::Elevator) => "bloom-elevator",
            Self::Mapped(ReadAhead::Off) => "bloom-mmap",
            Self::Mapped(ReadAhead::Usual) => "bloom-mmap-readahead",
            Self::Qfilter => "qfilter",
            Self::Fastbloom => "fastbloom",
            Self::Xorf => "xorf-fuse8",
        }
    }

    fn kind(&self) -> Engine {
        Engine::Filter
    }

    fn lasting(&self) -> bool {
        match self {
            Self::Own(structure) => structure.lasting(),
            Self::Buffered(_) | Self::Mapped(_) => true,
            Self::Qfilter | Self::Fastbloom | Self::Xorf => false,
        }
    }

    fn supports(&self, workload: Workload) -> bool {
        match workload {
            workload if workload.counts() => matches!(self, Self::Own(_)),
            Workload::Delete => matches!(self, Self::Own(_) | Self::Qfilter),
            Workload::Mixed => *self != Self::Xorf,
            _ => true,
        }
    }

    fn create(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
        let is_whole = spec.stored_keys != StoredKeys::Fingerprints;
        ensure!(
            !is_whole || matches!(self, Self::Own(_)),
            "--stored-keys whole: {self} keeps no keys; leave it out"
        );
        Ok(match *self {
            Self::Own(structure) => structure.create(spec)?,
            Self::Buffered(kind) => Box::new(Buffered::create(spec, kind)?),
            Self::Mapped(advice) => Box::new(Mapped::create(spec, advice)?),
            Self::Qfilter => Box::new(Locked::new(Qfilter::create(spec)?)),
            Self::Fastbloom => Box::new(Locked::new(FastBloom::create(spec)?)),
            Self::Xorf => Box::new(Locked::new(Fuse::create(spec)?)),
        })
    }

    fn open(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
        Ok(match *self {
            Self::Own(structure) => structure.open(spec)?,
            Self::Buffered(kind) => Box::new(Buffered::open(spec, kind)?),
            Self::Mapped(advice) => Box::new(Mapped::open(spec, advice)?),
            Self::Qfilter | Self::Fastbloom | Self::Xorf => {
                bail!("{self} is in RAM; load it again")
            }
        })
    }
}
