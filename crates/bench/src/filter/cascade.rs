//! The cascade filter as a subject: a volume in a file of the directory, with one filter in it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use nandex::cascade::{Cascade, Config, RuntimeOptions, WhenFull};
use nandex::device::{Create, Device, FileDevice, FileOptions, PAGE_BYTES};
use nandex::{OpenOptions, Volume, VolumeOptions};

use super::subject::{Counts, FilterSpec, FilterSubject, RoomSubject};
use crate::room::{NAME, durability};

/// Strokes of a merge that are in RAM: of each run read, and of the one written.
const STROKES_PER_RUN: u64 = 4;
/// Part of the budget that strokes may take: a sixteenth.
const STROKES_PART: u64 = 16;
/// Levels to leave strokes for beside the one written, at most.
const RUNS_MAX: u64 = 8;
/// What the volume's log and the lanes of lookups take.
const BESIDE_BYTES: u64 = 2 << 20;

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
    Ok(subject(Cascade::create_with(&volume, NAME, config, options_of(spec))?))
}

/// The filter that [`create`] made.
///
/// # Errors
/// None there, damage, a failed read.
pub fn open(spec: &FilterSpec) -> Result<Box<dyn FilterSubject>> {
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(path(spec), &FileOptions::default())?);
    let durability = durability(spec.durability);
    let volume = Volume::open(device, OpenOptions { durability, ..OpenOptions::default() })?;
    Ok(subject(Cascade::open_with(&volume, NAME, options_of(spec))?))
}

fn subject(cascade: Cascade) -> Box<dyn FilterSubject> {
    Box::new(RoomSubject { filter: cascade, counter: Some(|cascade| cascade) })
}

fn path(spec: &FilterSpec) -> PathBuf {
    spec.dir.join("cascade.nandex")
}

/// The largest buffers that the budget holds: there are two, one that fills and one that is merged.
fn config(spec: &FilterSpec) -> Result<Config> {
    let with = |buffer_entries| Config {
        keys: spec.keys,
        rate: spec.rate,
        buffer_entries,
        fan_out: spec.fan_out,
        counts: spec.counts == Counts::Kept,
        when_full: WhenFull::Grow,
    };
    let strokes = u64::from(stroke_pages(spec)) * PAGE_BYTES as u64 * STROKES_PER_RUN;
    let left = spec.ram_bytes.saturating_sub(BESIDE_BYTES + strokes * (1 + runs(spec)));
    let fits = |buffer_entries| {
        with(buffer_entries).buffer_shape().is_ok_and(|shape| {
            // Rank and select take 17 bytes per 64 slots.
            let bits = shape.slots() * (8 * u64::from(shape.slot_bits()) + 17) / 8;
            2 * bits / 8 <= left
        })
    };
    let most = spec.keys.min(with(1).universe()?.size() / 4);
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = high - (high - low) / 2;
        // Buffers that are too small for long fingerprints do not fit either, so look above those first.
        let too_small = with(middle).buffer_shape().is_err();
        if too_small || fits(middle) { low = middle } else { high = middle - 1 }
    }
    ensure!(low > 0 && fits(low), "--ram {}: too little for two buffers", spec.ram_bytes);
    Ok(with(low))
}

/// Runs that a merge may take: a single level and the buffer, or all levels.
fn runs(spec: &FilterSpec) -> u64 {
    if spec.fan_out.is_some() { RUNS_MAX } else { 1 }
}

/// Strokes of 16 KiB to 1 MiB, a small part of the budget together.
fn stroke_pages(spec: &FilterSpec) -> u32 {
    let all = spec.ram_bytes / STROKES_PART;
    let one = all / (STROKES_PER_RUN * (1 + runs(spec))) / PAGE_BYTES as u64;
    u32::try_from(one.clamp(4, 256)).unwrap_or(256)
}

fn options_of(spec: &FilterSpec) -> RuntimeOptions {
    RuntimeOptions {
        read_depth: spec.depth,
        stroke_pages: stroke_pages(spec),
        ..RuntimeOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Durability;

    #[test]
    fn the_buffers_take_nearly_the_budget_and_never_more() {
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
            let bits = 8.0 * ram_bytes as f64 / 2.0 / config.buffer_entries as f64;
            assert!((14.0..32.0).contains(&bits), "{config:?} {bits}");
            assert!(super::config(&FilterSpec { ram_bytes: 1 << 20, ..spec }).is_err());
        }
    }
}
