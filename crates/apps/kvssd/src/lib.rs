//! A key-value SSD, emulated: a drive that is addressed by key.
//!
//! It has the calls and the result codes of the SNIA Key Value Storage API 1.1, and it is a real store: pairs are on
//! flash, simulated in virtual time or a file, they survive a power cut, and the index that finds them is on flash too.
//! So it shows the costs of the index of such a drive: flash pages per access, bytes programmed per byte stored, and
//! the behaviour of a full drive.
//!
//! ```text
//!   key space, key  ->  fingerprint: number, first 4 key bytes, hash    16 bytes
//!                            |
//!                        the index: any table of nandex, in a budget of RAM
//!                            |
//!                        the record in a value log: whole key, value    cleaned by what is live
//! ```
//!
//! - [`Drive`] is created in a volume; it has [`KeySpace`]s, whose pairs are stored and retrieved.
//! - [`CommandQueue`] accepts commands without waiting for them.
//! - [`Error::code`] is the specification's code of a failure.
//! - [`Cluster`] generates requests like those of IBM's object stores, for use when the traces are unavailable.
//! - [`Timing`] reports the device's time, or that of the model of OpenMPDK's emulator.
#![forbid(unsafe_code)]

mod bench;
mod catalog;
mod cluster;
mod config;
mod drive;
mod error;
mod info;
mod iops;
mod iterate;
mod measure;
mod options;
mod queue;
mod replay;
mod result_code;
mod space;
mod timing;
mod trace;
mod update;

pub use bench::{BenchPlan, Watch};
pub use catalog::Usage;
pub use cluster::{Cluster, ClusterRequest, ClusterWorkload};
pub use config::{
    Config, ITERATORS_MAX, IndexChoice, KEY_BYTES_MAX, VALUE_BYTES_MAX, without_threads,
};
pub use drive::{DRIVE_NAME, Drive};
pub use error::{Error, Result};
pub use info::{DriveInfo, DriveStats, SpaceInfo};
pub use iops::{IopsModel, IopsParameters, MODEL_VALUE_BYTES_MAX, ModelledOperation, OperationMix};
pub use iterate::{GroupFilter, Iterated, IteratedPair, IteratorKind, IteratorNumber};
pub use measure::{LatencyReport, RunReport};
pub use options::{
    Afterwards, Association, DeleteMissing, KeyOrder, RetrieveOptions, Retrieved, StoreKind,
    StoreOptions,
};
pub use queue::{Command, CommandQueue, Completion, DEPTH_MAX, Outcome};
pub use replay::{ReplayPlan, ReplayReport};
pub use result_code::ResultCode;
pub use space::{KeySpace, pack_bits};
pub use timing::Timing;
pub use trace::{Columns, TraceFormat, TraceOperation, TraceReader, TraceRequest, parse_line};
