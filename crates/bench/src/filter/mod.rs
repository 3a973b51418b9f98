//! Filters under the same keys, memory limit and disk as the tables.
//!
//! `subject` is the seam: what a workload needs of a filter, and who offers it. `plan` holds the settings
//! that only filters have, `drive` runs operations and checks every answer, `session` measures one filter
//! from start to end beside the device's own limits, and `report` says what came of it. `rooms` are the
//! filters of nandex; `nandex-peers-filters` adds the filters of others and changes nothing else.

pub mod cascade;
pub mod drive;
pub mod figures;
pub mod limits;
pub mod plan;
pub mod quotient;
pub mod report;
pub mod rooms;
pub mod session;
pub mod subject;
