//! What a structure of another crate is made of. No stability is promised here: it follows what the structures of this
//! crate need, from one version to the next.
//!
//! A structure is made in one of two ways, and [`registry::add`](crate::registry::add) makes its [`Row`] known:
//!
//! - A table whose pages are in groups implements [`GroupStructure`], [`GroupLookups`] and [`GroupMap`] for what is in
//!   RAM, and [`GroupConfig`] and [`GroupModel`] for its configuration. It gets its handle, opening, iteration, offline
//!   check and row from [`GroupTable`].
//! - Any other implements [`Configuration`](crate::Configuration) and [`OpenTable`](crate::OpenTable) by itself, on the
//!   [`store`](crate::store), and writes its row.

pub use crate::groups::model;
pub use crate::groups::{
    Group, GroupConfig, GroupLookups, GroupMap, GroupModel, GroupParameters, GroupPlace, GroupRam,
    GroupReader, GroupRewrite, GroupRules, GroupStep, GroupStructure, GroupTable, GroupWriter,
    Incoming, MapCheck, RewrittenMap,
};
#[cfg(feature = "testing")]
pub use crate::groups::{decode_config, decode_map, test_table};
pub use crate::lookup::LookupKey;
pub use crate::model::prediction::Notes;
pub use crate::model::requirements::too_little;
pub use crate::model::text::{bytes, count, line};
pub use crate::options::FLUSH_THREADS;
pub use crate::registry::{Family, Row, TableRow};
pub use crate::schema::refusal;
