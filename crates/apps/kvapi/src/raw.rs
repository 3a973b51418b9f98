//! Conversion of addresses from C to references, slices and strings. All code that follows an address is here.

use std::ffi::{CStr, c_char, c_void};
use std::slice;

use nandex_kvssd::ResultCode;

use crate::failure::{Failure, Result};
use crate::types::{Key, Value};

/// Returns the target of an address.
///
/// # Safety
/// It is null, or points to a `T` that nothing writes to meanwhile.
pub(crate) unsafe fn reference<'a, T>(address: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: as the caller says.
    unsafe { address.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// Returns the target of an address, for writing.
///
/// # Safety
/// It is null, or points to a `T` that nothing else uses meanwhile.
pub(crate) unsafe fn target<'a, T>(address: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: as the caller says.
    unsafe { address.as_mut() }.ok_or_else(|| Failure::null(what))
}

/// Returns bytes at an address; for zero bytes the address may be null.
///
/// # Safety
/// It is null, or points to `count` bytes that nothing writes to meanwhile.
pub(crate) unsafe fn bytes<'a>(
    address: *const c_void,
    count: usize,
    what: &str,
) -> Result<&'a [u8]> {
    if count == 0 {
        return Ok(&[]);
    }
    if address.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: it is not null, and the rest is as the caller says.
    Ok(unsafe { slice::from_raw_parts(address.cast(), count) })
}

/// Returns bytes at an address, for writing.
///
/// # Safety
/// It is null, or points to `count` bytes that nothing else uses meanwhile.
pub(crate) unsafe fn buffer<'a>(
    address: *mut c_void,
    count: usize,
    what: &str,
) -> Result<&'a mut [u8]> {
    if count == 0 {
        return Ok(&mut []);
    }
    if address.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: it is not null, and the rest is as the caller says.
    Ok(unsafe { slice::from_raw_parts_mut(address.cast(), count) })
}

/// Returns structures one after another.
///
/// # Safety
/// The address is null, or points to `count` of them that nothing else uses meanwhile.
pub(crate) unsafe fn array<'a, T>(
    address: *mut T,
    count: usize,
    what: &str,
) -> Result<&'a mut [T]> {
    if address.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: it is not null, and the rest is as the caller says.
    Ok(unsafe { slice::from_raw_parts_mut(address, count) })
}

/// Returns a string that ends with a zero.
///
/// # Safety
/// The address is null, or points to bytes, one of which is 0, that nothing writes to meanwhile.
pub(crate) unsafe fn text<'a>(
    address: *const c_char,
    code: ResultCode,
    what: &str,
) -> Result<&'a str> {
    if address.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: it is not null, and the rest is as the caller says.
    let found = unsafe { CStr::from_ptr(address) };
    found.to_str().map_err(|_| Failure::new(code, format!("{what} is not UTF-8: {found:?}")))
}

/// Returns the bytes of a key.
///
/// # Safety
/// The address is null, or points to a key whose own address is as [`bytes`] requires.
pub(crate) unsafe fn key<'a>(address: *const Key) -> Result<&'a [u8]> {
    // SAFETY: as the caller says.
    unsafe {
        let key = reference(address, "the key")?;
        bytes(key.bytes, key.length.into(), "the key's address")
    }
}

/// Returns the bytes of a value.
///
/// # Safety
/// The address is null, or points to a value whose own address is as [`bytes`] requires.
pub(crate) unsafe fn value<'a>(address: *const Value) -> Result<&'a [u8]> {
    // SAFETY: as the caller says.
    unsafe {
        let value = reference(address, "the value")?;
        bytes(value.bytes, value.length as usize, "the value's address")
    }
}
