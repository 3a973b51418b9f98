//! The cascade filter as a subject: a volume in a file of the directory, with one filter in it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use nandex::cascade::model::{FanOut, Need};
use nandex::cascade::{Cascade, Config, RuntimeOptions};
use nandex::device::{Create, Device, FileDevice, FileOptions};
use nandex::{OpenOptions, Volume, VolumeOptions};

use super::subject::{Counts, FilterSpec, FilterSubject, RoomSubject};
use crate::room::{NAME, durability};

/// An empty filter; an earlier one in the directory is removed.
///
/// # Errors
/// A budget too small, no space, a failed write.
pub fn create(spec: &FilterSpec) -> Result<Box<dyn FilterSubject>> {
    let path = path(spec);
    if path.exists() {
        fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    let config = config(spec)?;
    let file = FileOptions { create: Create::New, ..FileOptions::default() };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(&path, &file)?);
    let options = VolumeOptions {
        log_bytes: config.log_bytes_best(),
        durability: durability(spec.durability),
        ..VolumeOptions::default()
    };
    let volume = Volume::create(device, options)?;
    Ok(subject(Cascade::create_with(&volume, NAME, config, options_of(spec)?)?))
}

/// The filter that [`create`] made.
///
/// # Errors
/// None there, damage, a failed read.
pub fn open(spec: &FilterSpec) -> Result<Box<dyn FilterSubject>> {
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(path(spec), &FileOptions::default())?);
    let durability = durability(spec.durability);
    let volume = Volume::open(device, OpenOptions { durability, ..OpenOptions::default() })?;
    Ok(subject(Cascade::open_with(&volume, NAME, options_of(spec)?)?))
}

fn subject(cascade: Cascade) -> Box<dyn FilterSubject> {
    Box::new(RoomSubject { filter: cascade, counter: Some(|cascade| cascade) })
}

fn path(spec: &FilterSpec) -> PathBuf {
    spec.dir.join("cascade.nandex")
}

/// What the advisor makes of the budget.
fn config(spec: &FilterSpec) -> Result<Config> {
    let fan_out = spec.fan_out.map_or(FanOut::OneLevel, FanOut::Times);
    let counts = spec.counts == Counts::Kept;
    let need = Need { fan_out, counts, ..Need::new(spec.keys, spec.rate, spec.ram_bytes) };
    need.config().with_context(|| format!("--ram {}", spec.ram_bytes))
}

fn options_of(spec: &FilterSpec) -> Result<RuntimeOptions> {
    Ok(RuntimeOptions { read_depth: spec.depth, ..RuntimeOptions::suited(&config(spec)?)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Durability;

    #[test]
    fn a_budget_becomes_a_filter_that_keeps_it_or_is_refused() {
        for (ram_bytes, fan_out, counts) in [
            (64 << 20, None, Counts::Membership),
            (32 << 20, Some(8), Counts::Membership),
            (32 << 20, None, Counts::Kept),
        ] {
            let spec = FilterSpec {
                dir: PathBuf::new(),
                keys: 200_000_000,
                rate: 0.0039,
                ram_bytes,
                fan_out,
                depth: 32,
                threads: 1,
                durability: Durability::Every,
                counts,
            };
            let config = config(&spec).unwrap();
            assert_eq!((config.fan_out, config.counts), (fan_out, counts == Counts::Kept));
            assert!(config.costs().unwrap().ram_bytes <= ram_bytes);
            assert!(super::config(&FilterSpec { ram_bytes: 64 << 10, ..spec }).is_err());
        }
    }
}
