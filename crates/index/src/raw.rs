//! What is below the public face: devices and the store, the structures' insides, costs and advice, quotient filters,
//! signatures, oracles, and what a structure of another crate is made of. No stability is promised here: it follows
//! what the crates of this repository need, from one version to the next.
//!
//! Some of it is named nowhere else because a program seldom has to write the name down: streams, iterators and
//! statistics that a method returns, what a closure is told.
//!
//! A structure of another crate is made in one of two ways, and [`registry::add`] makes its [`Row`] known:
//!
//! - A table whose pages are in groups implements [`GroupStructure`], [`GroupLookups`] and [`GroupMap`] for what is in
//!   RAM, and [`GroupConfig`] and [`GroupModel`] for its configuration. It gets its handle, opening, iteration, offline
//!   check and row from [`GroupTable`].
//! - Any other implements [`Configuration`] and [`OpenTable`] by itself, on the [`store`], and writes its row.

pub use nandex_device as device;
pub use nandex_store as store;

// These stand here so that their pages in the documentation are below `raw`; `crate::compare` and so on are the same.
#[path = "compare.rs"]
pub mod compare;
#[path = "model/mod.rs"]
pub mod model;
#[path = "oracle.rs"]
pub mod oracle;
#[path = "quotient/mod.rs"]
pub mod quotient;
#[path = "registry.rs"]
pub mod registry;
#[path = "schema/mod.rs"]
pub mod schema;
#[path = "signature/mod.rs"]
pub mod signature;
#[path = "size.rs"]
pub mod size;

pub use crate::any::{
    AnyEntries, AnyEntriesPastDamage, AnyPair, Configuration, Description, OpenFilter,
    OpenNeighbors, OpenTable,
};
pub use crate::api::{CandidateStream, LevelStats, LookupStream};
pub use crate::check::{CheckProgress, OnProgress};
pub use crate::db::Statable;
pub use crate::db::sizing::{ENTRIES_GROWING, Sizing};
pub use crate::db::stated::Stated;
pub use crate::groups::model as group_model;
pub use crate::groups::{
    Group, GroupConfig, GroupLookups, GroupMap, GroupModel, GroupParameters, GroupPlace, GroupRam,
    GroupReader, GroupRewrite, GroupRules, GroupStep, GroupStructure, GroupTable, GroupWriter,
    Incoming, MapCheck, RewrittenMap,
};
#[cfg(feature = "testing")]
pub use crate::groups::{decode_config, decode_map, test_table};
pub use crate::lookup::LookupKey;
pub use crate::model::prediction::Notes;
pub use crate::model::requirements::too_little_ram;
pub use crate::model::text::{bytes, count, line};
pub use crate::options::FLUSH_THREADS;
pub use crate::registry::{Family, Row, TableRow};
pub use crate::scan::{Entries, EntriesPastDamage};
pub use crate::schema::refusal;
pub use crate::structure::Structure;
pub use crate::write::Handle;
pub use crate::write::absorb::{Absorbed, Versions, Watch};
pub use nandex_store::{Completion, StaleSuperblock};

/// The inside of BufferHash: its growing table, filters, formats and cost model.
pub mod bufferhash {
    pub use crate::bufferhash::config::Placement;
    pub use crate::bufferhash::*;
    pub use crate::options::Priority;
    /// Its parameters.
    pub mod config {
        pub use crate::bufferhash::config::*;
    }
    /// Its filters.
    pub mod filter {
        pub use crate::bufferhash::filter::*;
    }
    /// Its bytes on flash.
    pub mod format {
        pub use crate::bufferhash::format::*;
    }
    /// The table that grows.
    pub mod growing {
        pub use crate::bufferhash::growing::*;
    }
    /// What it costs, and how to size one.
    pub mod model {
        pub use crate::bufferhash::model::*;
    }
}

/// The inside of the cascade filter: its cost model.
pub mod cascade {
    pub use crate::cascade::iter::Fingerprints;
    pub use crate::cascade::*;
    pub use nandex_store::run::Entry;
    /// What it costs, and how to size one.
    pub mod model {
        pub use crate::cascade::model::*;
    }
}

/// The inside of maps: their formats.
pub mod large {
    pub use crate::large::change::{Change, Decide, DecideMany, Look, PairUpdate, Present};
    pub use crate::large::group::StoredKey;
    pub use crate::large::part::ValuePart;
    pub use crate::large::*;
    pub use nandex_store::values::ValuesStats;
    /// Its bytes on flash.
    pub mod format {
        pub use crate::large::format::*;
    }
}

/// The inside of RHIK: its parameters.
pub mod rhik {
    pub use crate::rhik::stats::RhikStats;
    pub use crate::rhik::*;
    /// Its parameters.
    pub mod config {
        pub use crate::rhik::config::*;
    }
}

/// The inside of SliceHash: its growing table, formats and cost model.
pub mod slicehash {
    pub use crate::slicehash::*;
    pub use nandex_store::slice;
    /// Its parameters.
    pub mod config {
        pub use crate::slicehash::config::*;
    }
    /// Its bytes on flash.
    pub mod format {
        pub use crate::slicehash::format::*;
    }
    /// The table that grows.
    pub mod growing {
        pub use crate::slicehash::growing::*;
    }
    /// What it costs, and how to size one.
    pub mod model {
        pub use crate::slicehash::model::*;
    }
}

/// The inside of SliceLSH: its formats and placement.
pub mod slicelsh {
    pub use crate::slicelsh::*;
    /// Its parameters.
    pub mod config {
        pub use crate::slicelsh::config::*;
    }
    /// Its bytes on flash.
    pub mod format {
        pub use crate::slicelsh::format::*;
    }
    /// Where the pages of its tables stand.
    pub mod placement {
        pub use crate::slicelsh::placement::*;
    }
}

/// The inside of the counting table: streams, iterators and estimates.
pub mod counting {
    pub use crate::counting::change::Change;
    pub use crate::counting::estimate::{EstimateConfig, EstimatedKey, KeyBounds, TopEstimate};
    pub use crate::counting::iter::Counts;
    pub use crate::counting::read::CountStream;
    pub use crate::counting::*;
}

/// The inside of SliceBloom: streams and costs.
pub mod slicebloom {
    pub use crate::slicebloom::model::SliceBloomCosts;
    pub use crate::slicebloom::stream::ContainsStream;
    pub use crate::slicebloom::*;
}
