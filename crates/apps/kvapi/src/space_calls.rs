//! The calls that create, list, open and describe key spaces, and iterate over their keys.

use std::ffi::c_char;

use nandex_kvssd::{
    Error, GroupFilter, Iterated, IteratorKind, IteratorNumber, KeyOrder, ResultCode,
};

use crate::failure::{Failure, Result, number};
use crate::handles::{device, handles, space};
use crate::raw;
use crate::types::{
    DeviceHandle, Filter, GROUP_BYTES, IteratorList, IteratorOption, SpaceDescription, SpaceHandle,
    SpaceName, SpaceOption,
};

/// Creates a key space: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_create_key_space(
    handle: DeviceHandle,
    name: *const SpaceName,
    limit_bytes: u64,
    option: SpaceOption,
) -> u32 {
    number(device(handle, ResultCode::DeviceNotExist).and_then(|device| {
        let orders = [KeyOrder::None, KeyOrder::Ascend, KeyOrder::Descend];
        let order = orders.into_iter().find(|order| *order as u32 == option.ordering);
        let order = order.ok_or_else(|| {
            let words = format!("key order {}; choose 0, no order", option.ordering);
            Failure::new(ResultCode::OptionInvalid, words)
        })?;
        // SAFETY: as the caller says.
        let name = unsafe { name_of(name) }?;
        Ok(device.drive.create_key_space(name, limit_bytes, order)?)
    }))
}

/// Returns the name that a caller passes, which must end with a zero and have the given length.
///
/// # Safety
/// The address is null, or that of a name.
unsafe fn name_of<'a>(name: *const SpaceName) -> Result<&'a str> {
    // SAFETY: as the caller says.
    let (length, name) = unsafe {
        let name = raw::reference(name, "the name")?;
        (name.length, raw::text(name.name, ResultCode::SpaceName, "the name's address")?)
    };
    if name.len() == length as usize {
        return Ok(name);
    }
    let words = format!("the name {name:?} has {} bytes, and name_len says {length}", name.len());
    Err(Failure::new(ResultCode::SpaceName, words))
}

/// Deletes a key space: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_delete_key_space(handle: DeviceHandle, name: *const SpaceName) -> u32 {
    number(device(handle, ResultCode::DeviceNotExist).and_then(|device| {
        // SAFETY: as the caller says.
        let name = unsafe { name_of(name) }?;
        Ok(device.drive.delete_key_space(name)?)
    }))
}

/// Lists key spaces: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_list_key_spaces(
    handle: DeviceHandle,
    index: u32,
    buffer_bytes: u32,
    names: *mut SpaceName,
    count: *mut u32,
) -> u32 {
    number(device(handle, ResultCode::DeviceNotExist).and_then(|device| {
        let places = buffer_bytes as usize / size_of::<SpaceName>();
        // SAFETY: as the caller says.
        let (places, count) = unsafe {
            let count = raw::target(count, "the count's address")?;
            (raw::array(names, places, "the names' address")?, count)
        };
        *count = 0;
        let from = (index as usize).checked_sub(1).ok_or_else(|| {
            Failure::new(ResultCode::SpaceIndex, "key spaces count from 1, and the index is 0")
        })?;
        // A device without key spaces has an empty list, whatever the index.
        let is_empty = device.drive.list_key_spaces(0)?.is_empty();
        let found = if is_empty { vec![] } else { device.drive.list_key_spaces(from)? };
        if places.is_empty() && !found.is_empty() {
            let needed = size_of::<SpaceName>() as u64;
            return Err(Error::Buffer { needed, found: buffer_bytes.into() }.into());
        }
        for (place, name) in places.iter_mut().zip(&found) {
            // SAFETY: as the caller says.
            unsafe { fill_name(place, name) }?;
            *count += 1;
        }
        Ok(())
    }))
}

/// Writes a name with a zero at its end to the caller's buffer.
///
/// # Safety
/// The place has the address and the length of a buffer.
unsafe fn fill_name(place: &mut SpaceName, name: &str) -> Result {
    let (needed, found) = (name.len() + 1, place.length as usize);
    if needed > found {
        return Err(Error::Buffer { needed: needed as u64, found: found as u64 }.into());
    }
    // SAFETY: as the caller says.
    let buffer = unsafe { raw::buffer(place.name.cast(), needed, "the name's address") }?;
    buffer[..name.len()].copy_from_slice(name.as_bytes());
    buffer[name.len()] = 0;
    place.length = name.len() as u32;
    Ok(())
}

/// Opens a key space: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_open_key_space(
    handle: DeviceHandle,
    name: *const c_char,
    opened: *mut SpaceHandle,
) -> u32 {
    number(device(handle, ResultCode::DeviceNotExist).and_then(|device| {
        // SAFETY: as the caller says.
        let (name, opened) = unsafe {
            let name = raw::text(name, ResultCode::SpaceName, "the name")?;
            (name, raw::target(opened, "the handle's address")?)
        };
        let space = device.drive.open_key_space(name)?;
        *opened = handles().add_space(handle, space);
        Ok(())
    }))
}

/// Closes a key space: see `kvs_api.h`.
#[unsafe(no_mangle)]
pub extern "C" fn kvs_close_key_space(handle: SpaceHandle) -> u32 {
    // The lock of all handles is not held while the last commands end.
    let taken = handles().take_space(handle);
    number(taken.and_then(|space| space.close()))
}

/// Describes a key space: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_key_space_info(
    handle: SpaceHandle,
    description: *mut SpaceDescription,
) -> u32 {
    number(space(handle).and_then(|open| {
        // SAFETY: as the caller says.
        let description = unsafe { raw::target(description, "the answer's address") }?;
        let info = open.space.info()?;
        description.is_open = info.is_open;
        description.capacity = info.limit_bytes;
        description.free_bytes = info.free_bytes;
        description.pairs = info.pairs;
        // SAFETY: as the caller says.
        match unsafe { description.name.as_mut() } {
            // SAFETY: as the caller says.
            Some(place) => unsafe { fill_name(place, &info.name) },
            None => Ok(()),
        }
    }))
}

impl Filter {
    /// Returns the drive's filter for it. Bits of the pattern outside of the mask are ignored.
    pub(crate) fn group(&self) -> GroupFilter {
        let mut pattern = [0; GROUP_BYTES];
        for (index, (bits, mask)) in self.pattern.iter().zip(self.mask).enumerate() {
            pattern[index] = bits & mask;
        }
        GroupFilter { mask: self.mask, pattern }
    }
}

/// Opens an iterator: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_create_iterator(
    handle: SpaceHandle,
    option: *const IteratorOption,
    filter: *const Filter,
    iterator: *mut u8,
) -> u32 {
    number(space(handle).and_then(|open| {
        // SAFETY: as the caller says.
        let (kind, filter, iterator) = unsafe {
            let kind = option.as_ref().map_or(0, |option| option.kind);
            let filter = raw::reference(filter, "the filter")?.group();
            (kind, filter, raw::target(iterator, "the iterator's address")?)
        };
        let kind = match kind {
            0 => IteratorKind::Keys,
            1 => IteratorKind::Pairs,
            other => {
                let words = format!("iterator type {other}; choose 0 keys or 1 keys and values");
                return Err(Failure::new(ResultCode::OptionInvalid, words));
            }
        };
        *iterator = open.space.open_iterator(filter, kind)?.0;
        Ok(())
    }))
}

/// Closes an iterator: see `kvs_api.h`.
#[unsafe(no_mangle)]
pub extern "C" fn kvs_delete_iterator(handle: SpaceHandle, iterator: u8) -> u32 {
    number(space(handle).and_then(|open| Ok(open.space.close_iterator(IteratorNumber(iterator))?)))
}

/// Returns the next keys of an iterator: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_iterate_next(
    handle: SpaceHandle,
    iterator: u8,
    list: *mut IteratorList,
) -> u32 {
    number(space(handle).and_then(|open| {
        // SAFETY: as the caller says.
        unsafe {
            let list = raw::target(list, "the list")?;
            let part = open.space.iterate(IteratorNumber(iterator), list.length.into())?;
            fill_iterated(list, &part)
        }
    }))
}

/// Writes a part of an iterator's result to the caller's buffer.
///
/// # Safety
/// The list has the address and the length of a buffer.
pub(crate) unsafe fn fill_iterated(list: &mut IteratorList, part: &Iterated) -> Result {
    let mut bytes = Vec::with_capacity(list.length as usize);
    for pair in &part.pairs {
        for field in std::iter::once(&pair.key).chain(&pair.value) {
            bytes.extend_from_slice(&(field.len() as u32).to_le_bytes());
            bytes.extend_from_slice(field);
        }
    }
    let (needed, found) = (bytes.len() as u64, list.length.into());
    if needed > found {
        return Err(Error::Buffer { needed, found }.into());
    }
    // SAFETY: as the caller says.
    unsafe { raw::buffer(list.bytes.cast(), bytes.len(), "the list's buffer") }?
        .copy_from_slice(&bytes);
    list.count = part.pairs.len() as u32;
    list.is_end = part.is_end;
    list.length = bytes.len() as u32;
    Ok(())
}
