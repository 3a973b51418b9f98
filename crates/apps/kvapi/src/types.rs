//! The structures of the C header, laid out as C lays them out. Numbers of enumerations are plain integers: C may put
//! anything there.

use std::ffi::{c_char, c_void};

/// Bytes of a group's filter.
pub const GROUP_BYTES: usize = 4;

/// `kvs_device_handle`: a number that [`kvs_open_device`](crate::kvs_open_device) has given.
pub type DeviceHandle = *mut c_void;

/// `kvs_key_space_handle`: a number that [`kvs_open_key_space`](crate::kvs_open_key_space) has given.
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
    /// Is a key that is not there an error? Not 0 is yes.
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
    /// Is the pair deleted afterwards? Not 0 is yes.
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
    /// May be null.
    pub association: *const AssociationOption,
}

/// `kvs_key`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its bytes.
    pub bytes: *const c_void,
    /// How many.
    pub length: u16,
}

/// `kvs_value`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Its bytes, or a buffer for them.
    pub bytes: *mut c_void,
    /// Bytes of the buffer; after a retrieval, those that were filled.
    pub length: u32,
    /// After a retrieval, bytes of the whole value.
    pub actual_bytes: u32,
    /// Where in the value a retrieval begins.
    pub offset: u32,
}

/// `kvs_key_space_name`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SpaceName {
    /// Bytes of the name, or of the buffer for it.
    pub length: u32,
    /// The name.
    pub name: *mut c_char,
}

/// `kvs_key_space`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SpaceDescription {
    /// Is it open?
    pub is_open: bool,
    /// Bytes it may hold; 0 is no limit but the device's.
    pub capacity: u64,
    /// Bytes that are left.
    pub free_bytes: u64,
    /// Pairs in it.
    pub pairs: u64,
    /// May be null.
    pub name: *mut SpaceName,
}

/// `kvs_device`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceDescription {
    /// Bytes for pairs.
    pub capacity: u64,
    /// Bytes that no key space has reserved.
    pub unallocated: u64,
    /// Bytes of the longest value.
    pub value_bytes_max: u32,
    /// Bytes of the longest key.
    pub key_bytes_max: u32,
    /// Bytes of the value that costs least.
    pub value_bytes_optimal: u32,
    /// Bytes by which values grow best.
    pub value_bytes_step: u32,
    /// Null.
    pub extended: *mut c_void,
}

/// `kvs_exist_list`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExistList {
    /// Keys that were asked for.
    pub key_count: u32,
    /// They.
    pub keys: *const Key,
    /// Bytes of the buffer; then those that were filled.
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
    /// What they must be.
    pub pattern: [u8; GROUP_BYTES],
}

/// `kvs_iterator_list`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IteratorList {
    /// Entries in the buffer.
    pub count: u32,
    /// Were these the last?
    pub is_end: bool,
    /// Bytes of the buffer; then those that were filled.
    pub length: u32,
    /// The buffer.
    pub bytes: *mut u8,
}

/// The union in `kvs_postprocess_context`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ResultBuffer {
    /// Of `KVS_CMD_ITER_NEXT`.
    pub iterated: *mut IteratorList,
    /// Of `KVS_CMD_EXIST`.
    pub exist: *mut ExistList,
}

/// `kvs_postprocess_context`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PostprocessContext {
    /// `kvs_context`.
    pub command: u32,
    /// Where.
    pub space: SpaceHandle,
    /// As it was given.
    pub key: *const Key,
    /// As it was given.
    pub value: *mut Value,
    /// As it was given.
    pub option: *const c_void,
    /// As it was given.
    pub private1: *mut c_void,
    /// As it was given.
    pub private2: *mut c_void,
    /// `kvs_result`.
    pub result: u32,
    /// Of `KVS_CMD_ITER_NEXT`.
    pub iterator: u8,
    /// As it was given.
    pub buffer: ResultBuffer,
}

/// `kvs_postprocess_function`; null is none.
pub type PostprocessFunction = Option<unsafe extern "C" fn(*mut PostprocessContext)>;

/// `kvs_kvp_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PairInfo {
    /// Bytes of the key.
    pub key_bytes: u16,
    /// A buffer as long as the key.
    pub key: *mut u8,
    /// Bytes of the value.
    pub value_bytes: u32,
}
