//! The calls that store, retrieve, delete and test pairs.

use nandex_kvssd::{
    Afterwards, Association, DeleteMissing, Error, KeySpace, ResultCode, RetrieveOptions,
    Retrieved, StoreKind, StoreOptions, pack_bits,
};

use crate::failure::{Failure, Result, number};
use crate::handles::space;
use crate::raw;
use crate::types::{
    DeleteOption, ExistList, Filter, Key, PairInfo, RetrieveOption, SpaceHandle, StoreOption, Value,
};

/// Stores a pair: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_store_kvp(
    handle: SpaceHandle,
    key: *const Key,
    value: *const Value,
    option: *const StoreOption,
) -> u32 {
    number(space(handle).and_then(|open| {
        // SAFETY: as the caller says.
        let (key, value, options) =
            unsafe { (raw::key(key)?, raw::value(value)?, store_options(option)?) };
        Ok(open.space.store(key, value, options)?)
    }))
}

/// Returns the options of a store; null means the defaults.
///
/// # Safety
/// The option is null, or its association is null or valid.
pub(crate) unsafe fn store_options(option: *const StoreOption) -> Result<StoreOptions> {
    // SAFETY: as the caller says.
    let Some(option) = (unsafe { option.as_ref() }) else { return Ok(StoreOptions::default()) };
    let kind = StoreKind::from_number(option.kind)?;
    // SAFETY: as the caller says.
    let association = match unsafe { option.association.as_ref() } {
        None => Association::None,
        Some(association) => match association.kind {
            0 => Association::None,
            1 => Association::Stream(association.hint),
            other => {
                let words = format!("association {other}; choose 0 none or 1 stream");
                return Err(Failure::new(ResultCode::OptionInvalid, words));
            }
        },
    };
    Ok(StoreOptions { kind, association })
}

/// Retrieves a value: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_retrieve_kvp(
    handle: SpaceHandle,
    key: *const Key,
    option: *const RetrieveOption,
    value: *mut Value,
) -> u32 {
    number(space(handle).and_then(|open| {
        // SAFETY: as the caller says.
        unsafe {
            let afterwards = afterwards(option);
            retrieve_into(&open.space, raw::key(key)?, afterwards, raw::target(value, "the value")?)
        }
    }))
}

/// Returns whether a retrieved pair is deleted; null means that it is kept.
///
/// # Safety
/// The option is null or valid.
pub(crate) unsafe fn afterwards(option: *const RetrieveOption) -> Afterwards {
    // SAFETY: as the caller says.
    match unsafe { option.as_ref() } {
        Some(option) if option.delete != 0 => Afterwards::Delete,
        _ => Afterwards::Keep,
    }
}

/// Returns the options in a value's fields.
pub(crate) fn retrieve_options(value: &Value, afterwards: Afterwards) -> RetrieveOptions {
    let length = Some(value.length.into());
    RetrieveOptions { offset: value.offset.into(), length, afterwards }
}

/// Retrieves into the caller's buffer. A pair that does not fit is not deleted.
///
/// # Safety
/// The value's buffer is as [`raw::buffer`] requires.
pub(crate) unsafe fn retrieve_into(
    space: &KeySpace,
    key: &[u8],
    afterwards: Afterwards,
    value: &mut Value,
) -> Result {
    let options = retrieve_options(value, afterwards);
    let deletes = afterwards == Afterwards::Delete;
    let fits = !deletes || space.value_bytes(key)? <= options.offset + u64::from(value.length);
    let afterwards = if fits { afterwards } else { Afterwards::Keep };
    let retrieved = space.retrieve(key, RetrieveOptions { afterwards, ..options })?;
    // SAFETY: as the caller says.
    unsafe { fill_value(value, &retrieved) }
}

/// Writes a retrieved value to the caller's buffer, and fails if that is too short for the rest of the value.
///
/// # Safety
/// The value's buffer is as [`raw::buffer`] requires.
pub(crate) unsafe fn fill_value(value: &mut Value, retrieved: &Retrieved) -> Result {
    let Retrieved { bytes, value_bytes } = retrieved;
    let found = value.length;
    // SAFETY: as the caller says, and only its length is written.
    unsafe { raw::buffer(value.bytes, bytes.len().min(found as usize), "the value's address") }?
        .copy_from_slice(bytes);
    value.length = bytes.len() as u32;
    value.actual_bytes = u32::try_from(*value_bytes).unwrap_or(u32::MAX);
    let needed = value_bytes.saturating_sub(value.offset.into());
    let fits = needed <= found.into();
    if fits { Ok(()) } else { Err(Error::Buffer { needed, found: found.into() }.into()) }
}

/// Deletes a pair: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_delete_kvp(
    handle: SpaceHandle,
    key: *const Key,
    option: *const DeleteOption,
) -> u32 {
    number(space(handle).and_then(|open| {
        // SAFETY: as the caller says.
        let (key, missing) = unsafe { (raw::key(key)?, missing(option)) };
        Ok(open.space.delete(key, missing)?)
    }))
}

/// Returns the handling of an absent key; null means that it is ignored.
///
/// # Safety
/// The option is null or valid.
pub(crate) unsafe fn missing(option: *const DeleteOption) -> DeleteMissing {
    // SAFETY: as the caller says.
    match unsafe { option.as_ref() } {
        Some(option) if option.delete_error != 0 => DeleteMissing::Refuse,
        _ => DeleteMissing::Ignore,
    }
}

/// Deletes the pairs of a group: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_delete_key_group(handle: SpaceHandle, filter: *const Filter) -> u32 {
    number(space(handle).and_then(|open| {
        // SAFETY: as the caller says.
        let filter = unsafe { raw::reference(filter, "the filter") }?.group();
        open.space.delete_group(filter)?;
        Ok(())
    }))
}

/// Reports which keys are present: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_exist_kv_pairs(
    handle: SpaceHandle,
    count: u32,
    keys: *mut Key,
    list: *mut ExistList,
) -> u32 {
    number(space(handle).and_then(|open| {
        // SAFETY: as the caller says.
        unsafe {
            let list = raw::target(list, "the list")?;
            let asked = asked(count, keys, list)?;
            fill_exist(list, &open.space.exist(&asked)?)
        }
    }))
}

/// Returns the keys to test, which the list records.
///
/// # Safety
/// The keys' address is null, or that of `count` keys.
pub(crate) unsafe fn asked<'a>(
    count: u32,
    keys: *mut Key,
    list: &mut ExistList,
) -> Result<Vec<&'a [u8]>> {
    (list.key_count, list.keys) = (count, keys);
    let (needed, found) = (u64::from(count.div_ceil(8)), list.length.into());
    if needed > found {
        return Err(Error::Buffer { needed, found }.into());
    }
    // SAFETY: as the caller says.
    let keys = unsafe { raw::array(keys, count as usize, "the keys") }?;
    // SAFETY: they are keys, and nothing writes to them.
    keys.iter().map(|key| unsafe { raw::key(key) }).collect()
}

/// Writes which keys are present to the caller's buffer, a bit for each.
///
/// # Safety
/// The list's buffer is as [`raw::buffer`] requires.
pub(crate) unsafe fn fill_exist(list: &mut ExistList, there: &[bool]) -> Result {
    let needed = there.len().div_ceil(8);
    // SAFETY: as the caller says, and the buffer was found to be long enough.
    let bits = unsafe { raw::buffer(list.bits.cast(), needed, "the list's buffer") }?;
    pack_bits(there, bits);
    list.length = needed as u32;
    Ok(())
}

/// Describes a pair: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_get_kvp_info(
    handle: SpaceHandle,
    key: *const Key,
    info: *mut PairInfo,
) -> u32 {
    number(space(handle).and_then(|open| {
        // SAFETY: as the caller says; the buffer is as long as the key.
        unsafe {
            let (key, info) = (raw::key(key)?, raw::target(info, "the answer's address")?);
            let value_bytes = open.space.value_bytes(key)?;
            raw::buffer(info.key.cast(), key.len(), "the key's buffer")?.copy_from_slice(key);
            info.key_bytes = key.len() as u16;
            info.value_bytes = u32::try_from(value_bytes).unwrap_or(u32::MAX);
        }
        Ok(())
    }))
}
