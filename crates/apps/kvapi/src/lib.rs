//! `libkvapi`: the SNIA Key Value Storage API 1.1 for programs in C and C++, over the drives of `nandex-kvssd`.
//!
//! Names, numbers and layouts are those of OpenMPDK's `libkvapi` 1.6, so that a program written for it compiles and
//! runs with this one. `include/kvs_api.h` documents each call; the code here only carries arguments over.
//!
//! ```text
//!   kvs_...(handle, pointers)
//!        |   raw: pointers are proved not to be null, and become references
//!        |   handles: a number becomes an open device or key space, or an error code
//!        v
//!   the drive's call, here or, for kvs_..._async, on the key space's thread  ->  number of the result code
//! ```
//!
//! This is one of the few crates with `unsafe` code, because C passes it addresses. They are followed in `raw` alone.

mod async_calls;
mod device_calls;
mod failure;
mod handles;
mod memory;
mod pair_calls;
mod raw;
mod space_calls;
mod types;
mod worker;

pub use async_calls::*;
pub use device_calls::*;
pub use failure::kvs_last_error;
pub use memory::*;
pub use pair_calls::*;
pub use space_calls::*;
pub use types::*;
