//! SliceHash as a subject, made with the advised parameters.

use anyhow::Result;
use nandex::slicehash::model::Need;
use nandex::slicehash::{Config, RuntimeOptions};
use nandex::{SliceHash, Volume};

use crate::room::{NAME, Room};
use crate::subject::Spec;
use crate::workload::{KEY_BYTES, VALUE_BYTES};

/// The room of ANCS'14's sliced hash table.
pub enum SliceHashRoom {}

impl Room for SliceHashRoom {
    type Table = SliceHash;
    type Config = Config;

    const ROOM: &'static str = "slicehash";

    fn config(spec: &Spec) -> Result<Config> {
        let widths = (u32::try_from(KEY_BYTES)?, u32::try_from(VALUE_BYTES)?);
        let need = Need::new(spec.entries, widths.0, widths.1);
        Ok(Config::advised(&Need { ram_bytes: Some(spec.ram_bytes), ..need }.advise()?))
    }

    fn log_bytes(config: &Config) -> u64 {
        config.log_bytes_best()
    }

    fn create(volume: &Volume, config: Config, spec: &Spec) -> Result<SliceHash> {
        Ok(SliceHash::create_with(volume, NAME, config, options(spec))?)
    }

    fn open(volume: &Volume, spec: &Spec) -> Result<SliceHash> {
        Ok(SliceHash::open_with(volume, NAME, options(spec))?)
    }
}

fn options(spec: &Spec) -> RuntimeOptions {
    RuntimeOptions { read_depth: spec.depth, ..RuntimeOptions::default() }
}
