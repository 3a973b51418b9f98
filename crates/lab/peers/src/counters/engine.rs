//! The list of counters, and their constructors.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use nandex_bench::structures::Structure;
use nandex_bench::subject::{Discipline, Maker, Spec, Subject};
use nandex_bench::workload::{Kind, Workload};

/// The structure of nandex that counts.
const COUNTING: Structure = Structure::Registered("counting");

/// The counters that are built in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Engine {
    /// nandex's counting table: a full buffer is merged at once.
    CountingMb,
    /// nandex's counting table: full buffers are staged, with a share of the change segment for each partition.
    CountingMdb,
    /// nandex's counting table: full buffers are staged in one log for all.
    CountingMdbL,
    /// RocksDB with a merge operator that adds.
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    /// LMDB: each addition reads and writes the count.
    #[cfg(feature = "lmdb")]
    Lmdb,
}

impl Engine {
    /// Returns all counters.
    pub fn every() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// Returns the discipline of nandex's own counters.
    fn discipline(self) -> Option<Discipline> {
        match self {
            Self::CountingMb => Some(Discipline::Mb),
            Self::CountingMdb => Some(Discipline::Mdb),
            Self::CountingMdbL => Some(Discipline::MdbL),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => None,
            #[cfg(feature = "lmdb")]
            Self::Lmdb => None,
        }
    }

    /// Returns the spec as nandex's own counter of this discipline needs it.
    fn own_spec(self, spec: &Spec) -> Option<Spec> {
        let discipline = Some(self.discipline()?);
        Some(Spec { discipline, ..spec.clone() })
    }

    /// Returns the directory of another engine's own files.
    fn place(self, spec: &Spec) -> PathBuf {
        spec.dir.join("data")
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Maker for Engine {
    fn name(&self) -> &str {
        match self {
            Self::CountingMb => "counting-mb",
            Self::CountingMdb => "counting-mdb",
            Self::CountingMdbL => "counting-mdb-l",
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => "rocksdb",
            #[cfg(feature = "lmdb")]
            Self::Lmdb => "lmdb",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Filter
    }

    fn supports(&self, workload: Workload) -> bool {
        workload.counts() || matches!(workload, Workload::Load | Workload::Insert)
    }

    fn describe(&self, spec: &Spec) -> Result<Option<String>> {
        match self {
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => Ok(Some(crate::rocksdb::describe(spec))),
            #[cfg(feature = "lmdb")]
            Self::Lmdb => Ok(Some(crate::lmdb::describe(spec))),
            own => own.own_spec(spec).map_or(Ok(None), |spec| COUNTING.describe(&spec)),
        }
    }

    fn has_one_writer(&self) -> bool {
        self.name() == "lmdb"
    }

    fn create(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
        if let Some(spec) = self.own_spec(spec) {
            return COUNTING.create(&spec);
        }
        let place = self.place(spec);
        match fs::remove_dir_all(&place) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", place.display()));
            }
            _ => fs::create_dir_all(&place)
                .with_context(|| format!("cannot create {}", place.display()))?,
        }
        self.open(spec)
    }

    fn open(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
        if let Some(spec) = self.own_spec(spec) {
            return COUNTING.open(&spec);
        }
        let _place = self.place(spec);
        match self {
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => Ok(Box::new(crate::rocksdb::RocksCounter::open(&_place, spec)?)),
            #[cfg(feature = "lmdb")]
            Self::Lmdb => Ok(Box::new(crate::lmdb::LmdbCounter::open(&_place, spec)?)),
            own => unreachable!("{own} is nandex's own"),
        }
    }
}
