//! Memory for programs in C, from C's own allocator.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

unsafe extern "C" {
    fn posix_memalign(place: *mut *mut c_void, alignment: usize, size: usize) -> c_int;
    fn free(address: *mut c_void);
}

/// Allocates memory of this size; returns null if there is none, or if the alignment is not a power of two.
///
/// # Safety
/// As `malloc`; `file` is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _kvs_malloc(
    size: usize,
    alignment: usize,
    _file: *const c_char,
) -> *mut c_void {
    let mut place = ptr::null_mut();
    let alignment = alignment.max(size_of::<usize>());
    // SAFETY: `place` is a variable of ours; the call checks the alignment.
    let error = unsafe { posix_memalign(&raw mut place, alignment, size) };
    if error == 0 { place } else { ptr::null_mut() }
}

/// Like `kvs_malloc`, filled with zeros.
///
/// # Safety
/// As `calloc`; `file` is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _kvs_zalloc(
    size: usize,
    alignment: usize,
    file: *const c_char,
) -> *mut c_void {
    // SAFETY: as the caller says.
    let address = unsafe { _kvs_malloc(size, alignment, file) };
    if !address.is_null() {
        // SAFETY: the memory is new and of that size.
        unsafe { ptr::write_bytes(address.cast::<u8>(), 0, size) };
    }
    address
}

/// Frees memory of the two functions above; does nothing for null.
///
/// # Safety
/// As `free`; `file` is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _kvs_free(address: *mut c_void, _file: *const c_char) {
    // SAFETY: as the caller says.
    unsafe { free(address) }
}
