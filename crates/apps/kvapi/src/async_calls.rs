//! The asynchronous calls: a command for the key space's thread, and a callback once it has ended.

use std::ffi::c_void;
use std::ptr;

use nandex_kvssd::{Command, IteratorNumber};

use crate::failure::{Failure, Result, number};
use crate::handles::space;
use crate::pair_calls::{afterwards, asked, missing, retrieve_options, store_options};
use crate::raw;
use crate::types::{
    DeleteOption, ExistList, Filter, IteratorList, Key, PostprocessContext, PostprocessFunction,
    ResultBuffer, RetrieveOption, SpaceHandle, StoreOption, Value,
};
use crate::worker::Reply;

/// The numbers of `kvs_context`.
const DELETE: u32 = 1;
const DELETE_GROUP: u32 = 2;
const EXIST: u32 = 3;
const ITERATE: u32 = 6;
const RETRIEVE: u32 = 7;
const STORE: u32 = 8;

/// Creates a context with the common fields of every command.
fn context(
    command: u32,
    space: SpaceHandle,
    private1: *mut c_void,
    private2: *mut c_void,
) -> PostprocessContext {
    PostprocessContext {
        command,
        space,
        key: ptr::null(),
        value: ptr::null_mut(),
        option: ptr::null(),
        private1,
        private2,
        result: 0,
        iterator: 0,
        buffer: ResultBuffer { exist: ptr::null_mut() },
    }
}

/// Passes a command to its key space's thread.
fn submit(
    context: PostprocessContext,
    post: PostprocessFunction,
    command: impl FnOnce() -> Result<Command>,
) -> u32 {
    let submitted = space(context.space).and_then(|open| {
        let post = post.ok_or_else(|| Failure::null("the function to call back"))?;
        open.worker()?.submit(command()?, Reply { context, post })
    });
    number(submitted)
}

/// Like `kvs_store_kvp`, asynchronously: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_store_kvp_async(
    handle: SpaceHandle,
    key: *const Key,
    value: *mut Value,
    option: *const StoreOption,
    private1: *mut c_void,
    private2: *mut c_void,
    post: PostprocessFunction,
) -> u32 {
    let context = context(STORE, handle, private1, private2);
    let context = PostprocessContext { key, value, option: option.cast(), ..context };
    submit(context, post, || {
        // SAFETY: as the caller says.
        let (key, value, options) =
            unsafe { (raw::key(key)?, raw::value(value)?, store_options(option)?) };
        Ok(Command::Store { key: key.to_vec(), value: value.to_vec(), options })
    })
}

/// Like `kvs_retrieve_kvp`, asynchronously: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_retrieve_kvp_async(
    handle: SpaceHandle,
    key: *const Key,
    option: *const RetrieveOption,
    private1: *mut c_void,
    private2: *mut c_void,
    value: *mut Value,
    post: PostprocessFunction,
) -> u32 {
    let context = context(RETRIEVE, handle, private1, private2);
    let context = PostprocessContext { key, value, option: option.cast(), ..context };
    submit(context, post, || {
        // SAFETY: as the caller says.
        let (key, value, afterwards) = unsafe {
            (raw::key(key)?, raw::reference(value.cast_const(), "the value")?, afterwards(option))
        };
        let options = retrieve_options(value, afterwards);
        Ok(Command::Retrieve { key: key.to_vec(), options })
    })
}

/// Like `kvs_delete_kvp`, asynchronously: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_delete_kvp_async(
    handle: SpaceHandle,
    key: *const Key,
    option: *const DeleteOption,
    private1: *mut c_void,
    private2: *mut c_void,
    post: PostprocessFunction,
) -> u32 {
    let context = context(DELETE, handle, private1, private2);
    let context = PostprocessContext { key, option: option.cast(), ..context };
    submit(context, post, || {
        // SAFETY: as the caller says.
        let (key, missing) = unsafe { (raw::key(key)?, missing(option)) };
        Ok(Command::Delete { key: key.to_vec(), missing })
    })
}

/// Like `kvs_delete_key_group`, asynchronously: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_delete_key_group_async(
    handle: SpaceHandle,
    filter: *const Filter,
    private1: *mut c_void,
    private2: *mut c_void,
    post: PostprocessFunction,
) -> u32 {
    submit(context(DELETE_GROUP, handle, private1, private2), post, || {
        // SAFETY: as the caller says.
        let filter = unsafe { raw::reference(filter, "the filter") }?.group();
        Ok(Command::DeleteGroup { filter })
    })
}

/// Like `kvs_exist_kv_pairs`, asynchronously: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_exist_kv_pairs_async(
    handle: SpaceHandle,
    count: u32,
    keys: *mut Key,
    list: *mut ExistList,
    private1: *mut c_void,
    private2: *mut c_void,
    post: PostprocessFunction,
) -> u32 {
    let context = context(EXIST, handle, private1, private2);
    let context = PostprocessContext { key: keys, buffer: ResultBuffer { exist: list }, ..context };
    submit(context, post, || {
        // SAFETY: as the caller says.
        let keys = unsafe { asked(count, keys, raw::target(list, "the list")?) }?;
        Ok(Command::Exist { keys: keys.iter().map(|key| key.to_vec()).collect() })
    })
}

/// Like `kvs_iterate_next`, asynchronously: see `kvs_api.h`.
///
/// # Safety
/// The arguments are null, or as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kvs_iterate_next_async(
    handle: SpaceHandle,
    iterator: u8,
    list: *mut IteratorList,
    private1: *mut c_void,
    private2: *mut c_void,
    post: PostprocessFunction,
) -> u32 {
    let context = context(ITERATE, handle, private1, private2);
    let buffer = ResultBuffer { iterated: list };
    let context = PostprocessContext { iterator, buffer, ..context };
    submit(context, post, || {
        // SAFETY: as the caller says.
        let list = unsafe { raw::reference(list.cast_const(), "the list") }?;
        let buffer_bytes = list.length.into();
        Ok(Command::Iterate { number: IteratorNumber(iterator), buffer_bytes })
    })
}
