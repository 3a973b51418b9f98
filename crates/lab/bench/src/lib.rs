//! Named workloads, the device's own limits in the same run, and one report for all engines.
//!
//! `nandex-bench` runs the workloads on nandex; `nandex-peers` runs the same keys, memory limit, disk limits
//! and report on other engines. Everything that both share is here: a figure that only one of them could
//! compute would be no comparison.
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod cold;
pub mod counted;
pub mod documents;
pub mod drive;
pub mod engines;
pub mod figures;
pub mod filters;
mod fio;
pub mod keys;
mod kind;
pub mod limit;
pub mod loaded;
mod maps;
pub mod merging;
pub mod neighbors;
mod on_flash;
pub mod order;
pub mod percentiles;
pub mod plan;
pub mod process;
pub mod quantity;
pub mod quotient;
pub mod reads;
pub mod replay;
pub mod report;
pub mod session;
pub mod sorted;
pub mod space;
pub mod structures;
pub mod subject;
pub mod text;
pub mod texts;
pub mod values;
pub mod worker;
pub mod workload;
pub mod zipf;
