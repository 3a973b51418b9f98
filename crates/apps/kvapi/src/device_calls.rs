//! The calls that open, describe and close devices.

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

use nandex::VolumeOptions;
use nandex::device::{Create, Device, MemoryDevice};
use nandex_kvssd::{Config, DRIVE_NAME, Drive, IndexChoice, ResultCode};

use crate::failure::{Failure, Result, number};
use crate::handles::{OpenDevice, device, handles};
use crate::raw::{target, text};
use crate::types::{DeviceDescription, DeviceHandle};

/// The prefix of the URIs of drives in RAM.
const IN_RAM: &str = "/dev/kvemul";

/// The variable with the bytes of a drive in RAM, and its default.
const CAPACITY: &str = "NANDEX_KVEMUL_BYTES";
const CAPACITY_BYTES: u64 = 256 << 20;

/// Opens a device: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or a string and a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_open_device(uri: *const c_char, handle: *mut DeviceHandle) -> u32 {
    // SAFETY: as the caller says.
    let arguments = unsafe {
        text(uri, ResultCode::ParamInvalid, "the URI")
            .and_then(|uri| Ok((uri, target(handle, "the handle's address")?)))
    };
    number(arguments.and_then(|(uri, handle)| open(uri).map(|opened| *handle = opened)))
}

fn open(uri: &str) -> Result<DeviceHandle> {
    if uri.is_empty() {
        let words = "the URI is empty; give a drive's file, or /dev/kvemul";
        return Err(Failure::new(ResultCode::ParamInvalid, words));
    }
    // The lock is held while the drive opens, so that one of two openers fails.
    let mut handles = handles();
    if handles.has_uri(uri) {
        return Err(Failure::new(ResultCode::SysIo, format!("{uri} is open in this process")));
    }
    let drive = if uri.starts_with(IN_RAM) { in_ram()? } else { in_file(Path::new(uri))? };
    Ok(handles.add_device(OpenDevice { uri: uri.to_owned(), drive }))
}

fn in_file(path: &Path) -> Result<Drive> {
    if !path.exists() {
        let words =
            format!("{} does not exist; create it with nandex kvssd create", path.display());
        return Err(Failure::new(ResultCode::DeviceNotExist, words));
    }
    let opened = nandex::options().create(Create::Open).open(path).map_err(Failure::from);
    let drive = opened.and_then(|db| Ok(Drive::open(db.volume(), DRIVE_NAME)?));
    drive.map_err(|failure| failure.at(path))
}

fn in_ram() -> Result<Drive> {
    let config = Config::of_capacity(capacity_bytes()?);
    let index = IndexChoice { kind: "rhik", ram_bytes: None }.predict(config.pairs_max)?;
    let log_bytes = index.config.log_bytes_best();
    let memory: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let volume = VolumeOptions::default().with_growing_log(log_bytes);
    let db = nandex::options().volume(volume).open_on(memory.into())?;
    Ok(Drive::create_with(db.volume(), DRIVE_NAME, config, (&index.config, &index.options))?)
}

fn capacity_bytes() -> Result<u64> {
    let Some(found) = std::env::var_os(CAPACITY) else { return Ok(CAPACITY_BYTES) };
    found.to_str().and_then(|found| found.parse().ok()).ok_or_else(|| {
        let words = format!("{CAPACITY} is {found:?}; expected a number of bytes");
        Failure::new(ResultCode::ParamInvalid, words)
    })
}

/// Closes a device: see `kvs_api.h`.
#[unsafe(no_mangle)]
pub extern "C" fn kvs_close_device(handle: DeviceHandle) -> u32 {
    number(close(handle))
}

fn close(handle: DeviceHandle) -> Result {
    device(handle, ResultCode::DeviceNotOpened)?;
    let Some((device, spaces)) = handles().take_device(handle) else {
        let words = format!("the device {handle:?} is being closed by another thread");
        return Err(Failure::new(ResultCode::DeviceNotOpened, words));
    };
    // A key space that was deleted while it was open fails to close, and need not be closed.
    spaces.iter().for_each(|space| drop(space.close()));
    let volume = device.drive.volume().clone();
    device.drive.close()?;
    Ok(volume.checkpoint()?)
}

/// Writes a property of a device to a place of the caller.
///
/// # Safety
/// The place is null, or of this type.
unsafe fn tell<T>(
    handle: DeviceHandle,
    place: *mut T,
    what: impl FnOnce(&Drive) -> nandex_kvssd::Result<T>,
) -> u32 {
    let told = device(handle, ResultCode::DeviceNotOpened).and_then(|device| {
        // SAFETY: as the caller says.
        let place = unsafe { target(place, "the answer's address") }?;
        *place = what(&device.drive)?;
        Ok(())
    });
    number(told)
}

/// Describes a device: see `kvs_api.h`.
///
/// # Safety
/// The place is null, or for the description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_device_info(
    handle: DeviceHandle,
    description: *mut DeviceDescription,
) -> u32 {
    let describe = |drive: &Drive| {
        let info = drive.info()?;
        Ok(DeviceDescription {
            capacity: info.capacity_bytes,
            unallocated: info.unallocated_bytes,
            value_bytes_max: info.value_bytes_max,
            key_bytes_max: info.key_bytes_max.into(),
            value_bytes_optimal: info.value_bytes_optimal,
            value_bytes_step: info.offset_unit,
            extended: std::ptr::null_mut(),
        })
    };
    // SAFETY: as the caller says.
    unsafe { tell(handle, description, describe) }
}

/// Returns the capacity of a device in bytes: see `kvs_api.h`.
///
/// # Safety
/// The place is null, or for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_device_capacity(handle: DeviceHandle, bytes: *mut u64) -> u32 {
    // SAFETY: as the caller says.
    unsafe { tell(handle, bytes, |drive| Ok(drive.info()?.capacity_bytes)) }
}

/// Returns how full a device is: see `kvs_api.h`.
///
/// # Safety
/// The place is null, or for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_device_utilization(handle: DeviceHandle, used: *mut u32) -> u32 {
    // SAFETY: as the caller says.
    unsafe { tell(handle, used, |drive| Ok(drive.stats()?.utilisation)) }
}

/// Returns the bytes programmed for each byte stored: see `kvs_api.h`.
///
/// # Safety
/// The place is null, or for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_device_waf(handle: DeviceHandle, waf: *mut f32) -> u32 {
    // SAFETY: as the caller says.
    unsafe { tell(handle, waf, |drive| Ok(drive.stats()?.write_amplification as f32)) }
}

/// Returns the length of the shortest key in bytes: see `kvs_api.h`.
///
/// # Safety
/// The place is null, or for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_min_key_length(handle: DeviceHandle, bytes: *mut u32) -> u32 {
    // SAFETY: as the caller says.
    unsafe { tell(handle, bytes, |drive| Ok(drive.info()?.key_bytes_min.into())) }
}

/// Returns the length of the longest key in bytes: see `kvs_api.h`.
///
/// # Safety
/// The place is null, or for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_max_key_length(handle: DeviceHandle, bytes: *mut u32) -> u32 {
    // SAFETY: as the caller says.
    unsafe { tell(handle, bytes, |drive| Ok(drive.info()?.key_bytes_max.into())) }
}

/// Returns the length of the shortest value, 0: see `kvs_api.h`.
///
/// # Safety
/// The place is null, or for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_min_value_length(handle: DeviceHandle, bytes: *mut u32) -> u32 {
    // SAFETY: as the caller says.
    unsafe { tell(handle, bytes, |_| Ok(0)) }
}

/// Returns the length of the longest value in bytes: see `kvs_api.h`.
///
/// # Safety
/// The place is null, or for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_max_value_length(handle: DeviceHandle, bytes: *mut u32) -> u32 {
    // SAFETY: as the caller says.
    unsafe { tell(handle, bytes, |drive| Ok(drive.info()?.value_bytes_max)) }
}

/// Returns the length of the cheapest value in bytes: see `kvs_api.h`.
///
/// # Safety
/// The place is null, or for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_optimal_value_length(
    handle: DeviceHandle,
    bytes: *mut u32,
) -> u32 {
    // SAFETY: as the caller says.
    unsafe { tell(handle, bytes, |drive| Ok(drive.info()?.value_bytes_optimal)) }
}
