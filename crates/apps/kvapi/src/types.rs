//! The structures of the C header, with the layout of C. Numbers of enumerations are plain integers, because C may pass
//! any number.

use std::ffi::{c_char, c_void};

/// The number of bytes of a group's filter.
pub const GROUP_BYTES: usize = 4;

/// `kvs_device_handle`: a number that [`kvs_open_device`](crate::kvs_open_device) has returned.
pub type DeviceHandle = *mut c_void;

/// `kvs_key_space_handle`: a number that [`kvs_open_key_space`](crate::kvs_open_key_space) has returned.
pub type SpaceHandle = *mut c_void;

/// `kvs_option_key_space`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SpaceOption {
    /// `kvs_key_order`.
    pub ordering: u32,
}

/// `kvs_option_delete`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeleteOption {
    /// Whether an absent key is an error; true unless 0.
    pub delete_error: u8,
}

/// `kvs_option_iterator`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IteratorOption {
    /// `kvs_iterator_type`.
    pub kind: u32,
}

/// `kvs_option_retrieve`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RetrieveOption {
    /// Whether the pair is deleted afterwards; true unless 0.
    pub delete: u8,
}

/// `kvs_association`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AssociationOption {
    /// `kvs_association_type`.
    pub kind: u32,
    /// The stream.
    pub hint: u16,
}

/// `kvs_option_store`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StoreOption {
    /// `kvs_store_type`.
    pub kind: u32,
    /// A pointer that may be null.
    pub association: *const AssociationOption,
}

/// `kvs_key`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its bytes.
    pub bytes: *const c_void,
    /// The number of bytes.
    pub length: u16,
}

/// `kvs_value`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Its bytes, or a buffer for them.
    pub bytes: *mut c_void,
    /// The number of bytes of the buffer; after a retrieval, of the bytes that were filled.
    pub length: u32,
    /// After a retrieval, the number of bytes of the whole value.
    pub actual_bytes: u32,
    /// The place in the value where a retrieval begins.
    pub offset: u32,
}

/// `kvs_key_space_name`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SpaceName {
    /// The number of bytes of the name, or of the buffer for it.
    pub length: u32,
    /// The name.
    pub name: *mut c_char,
}

/// `kvs_key_space`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SpaceDescription {
    /// Whether the key space is open.
    pub is_open: bool,
    /// The most bytes in it; 0 means no limit but the device's.
    pub capacity: u64,
    /// The number of bytes that are left.
    pub free_bytes: u64,
    /// The number of pairs in it.
    pub pairs: u64,
    /// A pointer that may be null.
    pub name: *mut SpaceName,
}

/// `kvs_device`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceDescription {
    /// The number of bytes for pairs.
    pub capacity: u64,
    /// The number of bytes that no key space has reserved.
    pub unallocated: u64,
    /// The number of bytes of the longest value.
    pub value_bytes_max: u32,
    /// The number of bytes of the longest key.
    pub key_bytes_max: u32,
    /// The number of bytes of the cheapest value.
    pub value_bytes_optimal: u32,
    /// The number of bytes by which values grow best.
    pub value_bytes_step: u32,
    /// Always null.
    pub extended: *mut c_void,
}

/// `kvs_exist_list`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExistList {
    /// The number of keys to test.
    pub key_count: u32,
    /// The keys.
    pub keys: *const Key,
    /// The number of bytes of the buffer; afterwards, of the bytes that were filled.
    pub length: u32,
    /// A bit for each key.
    pub bits: *mut u8,
}

/// `kvs_key_group_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// The bits that are compared.
    pub mask: [u8; GROUP_BYTES],
    /// The required values of these bits.
    pub pattern: [u8; GROUP_BYTES],
}

/// `kvs_iterator_list`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IteratorList {
    /// The number of entries in the buffer.
    pub count: u32,
    /// Whether these were the last.
    pub is_end: bool,
    /// The number of bytes of the buffer; afterwards, of the bytes that were filled.
    pub length: u32,
    /// The buffer.
    pub bytes: *mut u8,
}

/// The union in `kvs_postprocess_context`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ResultBuffer {
    /// The buffer of `KVS_CMD_ITER_NEXT`.
    pub iterated: *mut IteratorList,
    /// The buffer of `KVS_CMD_EXIST`.
    pub exist: *mut ExistList,
}

/// `kvs_postprocess_context`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PostprocessContext {
    /// `kvs_context`.
    pub command: u32,
    /// The key space.
    pub space: SpaceHandle,
    /// The argument of the call.
    pub key: *const Key,
    /// The argument of the call.
    pub value: *mut Value,
    /// The argument of the call.
    pub option: *const c_void,
    /// The argument of the call.
    pub private1: *mut c_void,
    /// The argument of the call.
    pub private2: *mut c_void,
    /// `kvs_result`.
    pub result: u32,
    /// The iterator of `KVS_CMD_ITER_NEXT`.
    pub iterator: u8,
    /// The argument of the call.
    pub buffer: ResultBuffer,
}

/// `kvs_postprocess_function`; may be null.
pub type PostprocessFunction = Option<unsafe extern "C" fn(*mut PostprocessContext)>;

/// `kvs_kvp_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PairInfo {
    /// The number of bytes of the key.
    pub key_bytes: u16,
    /// A buffer as long as the key.
    pub key: *mut u8,
    /// The number of bytes of the value.
    pub value_bytes: u32,
}
