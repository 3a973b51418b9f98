//! The list of engines, and the common part of their makers.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use nandex_bench::subject::{Maker, Spec, Subject};
use nandex_bench::workload::Workload;

/// The engines that are built in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Engine {
    /// RocksDB: an LSM tree with filters in memory.
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    /// LMDB: a memory-mapped B+ tree.
    #[cfg(feature = "lmdb")]
    Lmdb,
    /// redb: a copy-on-write B+ tree in Rust.
    #[cfg(feature = "redb")]
    Redb,
    /// fjall: an LSM tree in Rust.
    #[cfg(feature = "fjall")]
    Fjall,
    /// SQLite: a B-tree with a write-ahead log.
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// Berkeley DB's hash table: the baseline of the BufferHash paper.
    #[cfg(feature = "bdb")]
    Bdb,
}

impl Engine {
    /// Returns all engines.
    pub fn every() -> Vec<Self> {
        Self::value_variants().to_vec()
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Maker for Engine {
    fn name(&self) -> &str {
        // By value, which may have no variant at all: without features there is no engine.
        match *self {
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => "rocksdb",
            #[cfg(feature = "lmdb")]
            Self::Lmdb => "lmdb",
            #[cfg(feature = "redb")]
            Self::Redb => "redb",
            #[cfg(feature = "fjall")]
            Self::Fjall => "fjall",
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "sqlite",
            #[cfg(feature = "bdb")]
            Self::Bdb => "bdb",
        }
    }

    fn has_one_writer(&self) -> bool {
        matches!(self.name(), "lmdb" | "redb" | "sqlite" | "bdb")
    }

    /// Returns whether it supports a workload. Berkeley DB is here for the BufferHash paper's workloads,
    /// which remove nothing.
    fn supports(&self, workload: Workload) -> bool {
        workload != Workload::Churn || self.name() != "bdb"
    }

    fn path(&self, spec: &Spec) -> Option<PathBuf> {
        Some(self.place(spec))
    }

    fn create(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
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

    #[allow(unreachable_code, unused_variables, reason = "without features there is no engine")]
    fn open(&self, spec: &Spec) -> Result<Box<dyn Subject>> {
        let place = self.place(spec);
        let subject: Box<dyn Subject> = match *self {
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => Box::new(crate::rocksdb::Rocks::open(&place, spec)?),
            #[cfg(feature = "lmdb")]
            Self::Lmdb => Box::new(crate::lmdb::Lmdb::open(&place, spec)?),
            #[cfg(feature = "redb")]
            Self::Redb => crate::redb::open(&place, spec)?,
            #[cfg(feature = "fjall")]
            Self::Fjall => Box::new(crate::fjall::Fjall::open(&place, spec)?),
            #[cfg(feature = "sqlite")]
            Self::Sqlite => Box::new(crate::sqlite::Sqlite::open(&place, spec)?),
            #[cfg(feature = "bdb")]
            Self::Bdb => Box::new(crate::bdb::Bdb::open(&place, spec)?),
        };
        Ok(subject)
    }
}

impl Engine {
    /// Returns the directory of this engine's own files.
    fn place(self, spec: &Spec) -> PathBuf {
        spec.dir.join("data")
    }
}
