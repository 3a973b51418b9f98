//! Several devices (paper, section 5.3): the share of each in the requirements, and their combination.
//!
//! A throughput-oriented table is that of one device, with each slicetable on one of several: they share the load. In a
//! memory-oriented one each device has a part of every slicetable, which takes a part of the entries and is read and
//! rewritten like that of one device. So the share of one device is sized, and the rest follows.

use crate::model::text::{count, line};
use crate::model::{
    ArrayDesign, DeviceArray, Load, PAGE_BYTES, ParameterValue, Prediction, Requirements,
};
use crate::slicehash::Config;
use crate::{Error, Result};

/// Returns the share of one device in the requirements.
///
/// # Errors
/// A number of devices that no array has; filters in a memory-oriented design.
pub(super) fn share(asked: &Requirements, array: DeviceArray) -> Result<Requirements> {
    array.check()?;
    let devices = u64::from(array.devices);
    let one = Requirements { array: None, ..asked.clone() };
    match array.design {
        ArrayDesign::Throughput => {
            let part = |per_s: f64| per_s / devices as f64;
            let load = Load {
                inserts_per_s: part(asked.load.inserts_per_s),
                lookups_per_s: part(asked.load.lookups_per_s),
                ..asked.load
            };
            Ok(Requirements { load, ..one })
        }
        ArrayDesign::Memory if asked.miss_reads_max.is_some_and(|most| most < devices as f64) => {
            let reason = format!(
                "fewer than {devices}; a memory-oriented table reads a page of each device for every key; take the \
                 throughput-oriented design for filters"
            );
            Err(Error::Config { field: "reads per miss", reason })
        }
        ArrayDesign::Memory => Ok(Requirements {
            entries: asked.entries.div_ceil(devices),
            flash_bytes: asked.flash_bytes.map(|bytes| bytes / devices),
            miss_reads_max: Some(1.0),
            ..one
        }),
    }
}

/// Returns the table of all devices, given that of one of them.
///
/// # Errors
/// More flash than is allowed; a configuration that cannot work.
pub(super) fn table(
    one: Prediction,
    asked: &Requirements,
    array: DeviceArray,
) -> Result<Prediction> {
    let of_one = *one.config.of::<Config>()?;
    let (config, about) = match array.design {
        ArrayDesign::Throughput => (
            of_one.throughput_oriented(array.devices),
            "throughput-oriented: each slicetable on one of them (section 5.3)",
        ),
        ArrayDesign::Memory => (
            of_one.memory_oriented(array.devices),
            "memory-oriented: each slice has a page on every one, all read at once (section 5.3); k, slicetables and \
             bytes are each one's",
        ),
    };
    config.validate()?;
    let times = array.read_at_once();
    let mut all = Prediction { config: config.into(), requirements: asked.clone(), ..one };
    all.entries_capacity *= u64::from(times);
    all.costs.reads_per_hit *= f64::from(times);
    all.costs.reads_per_miss *= f64::from(times);
    // All parts of a slicetable are rewritten, with the pages that make them whole runs; the log is written once.
    let rewritten = all.costs.insert_read_bytes;
    let more = rewritten * (f64::from(config.block_pages()) / f64::from(of_one.slices) - 1.0);
    all.costs.insert_read_bytes += more;
    all.costs.insert_write_bytes += more;
    all.flash_bytes = config.slicetable_pages() * PAGE_BYTES;
    asked.check_flash(all.flash_bytes)?;
    for (name, value) in &mut all.parameters {
        if let ("incarnations", ParameterValue::Number(incarnations)) = (*name, value) {
            *incarnations *= f64::from(times);
        }
    }
    all.parameters.push(("slice_parts", ParameterValue::Count(times.into())));
    all.parameters.push(("devices", ParameterValue::Count(array.devices.into())));
    let rate = count(all.inserts_per_s() as u64);
    all.notes.insert =
        format!("of device time, amortised; at most {rate} a second on all devices (section 5.4)");
    all.notes.shape.push(line("devices", array.devices.to_string(), about));
    Ok(all)
}
