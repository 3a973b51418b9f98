//! BufferHash as a subject, made with the advised parameters.

use anyhow::Result;
use nandex::bufferhash::model::Need;
use nandex::bufferhash::{Config, RuntimeOptions};
use nandex::{BufferHash, Volume};

use crate::room::{NAME, Room};
use crate::subject::Spec;
use crate::workload::{KEY_BYTES, VALUE_BYTES};

/// The room of NSDI'10's buffered hash table.
pub enum BufferHashRoom {}

impl Room for BufferHashRoom {
    type Table = BufferHash;
    type Config = Config;

    const ROOM: &'static str = "bufferhash";

    fn config(spec: &Spec) -> Result<Config> {
        let widths = (u32::try_from(KEY_BYTES)?, u32::try_from(VALUE_BYTES)?);
        let need = Need::new(spec.entries, widths.0, widths.1);
        Ok(Config::advised(&Need { ram_bytes: Some(spec.ram_bytes), ..need }.advise()?))
    }

    fn log_bytes(config: &Config) -> u64 {
        config.log_bytes_best()
    }

    fn create(volume: &Volume, config: Config, spec: &Spec) -> Result<BufferHash> {
        Ok(BufferHash::create_with(volume, NAME, config, options(spec))?)
    }

    fn open(volume: &Volume, spec: &Spec) -> Result<BufferHash> {
        let table = BufferHash::open_with(volume, NAME, options(spec))?;
        table.load_filters()?;
        Ok(table)
    }
}

fn options(spec: &Spec) -> RuntimeOptions {
    RuntimeOptions { read_depth: spec.depth, ..RuntimeOptions::default() }
}
