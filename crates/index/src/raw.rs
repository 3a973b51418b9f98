//! Everything below the main interface: devices and the store, the structures' internals, costs and advice, quotient
//! filters, signatures, oracles, and the building blocks of structures in other crates. There is no promise of
//! stability here: it follows the needs of this repository's crates, from one version to the next.
//!
//! Some of it is exported nowhere else because programs seldom have to write the name down: streams, iterators and
//! statistics that a method returns, and arguments of closures.
//!
//! There are two ways to build a structure in another crate, and [`registry::add`] registers its [`Row`]:
//!
//! - A table whose pages are in groups implements [`GroupStructure`], [`GroupLookups`] and [`GroupMap`] for its part in
//!   RAM, and [`GroupConfig`] and [`GroupModel`] for its configuration. It gets its handle, opening, iteration, offline
//!   check and row from [`GroupTable`].
//! - Any other implements [`Configuration`] and [`OpenTable`] directly on the [`store`], and defines its row.

pub use nandex_device as device;
pub use nandex_store as store;

// These modules are here so that their documentation is below `raw`; `crate::compare` and so on are the same.
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
pub use crate::error::words;
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

/// The internals of BufferHash: its growing table, filters, formats and cost model.
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
    /// Its on-flash format.
    pub mod format {
        pub use crate::bufferhash::format::*;
    }
    /// The growing table.
    pub mod growing {
        pub use crate::bufferhash::growing::*;
    }
    /// Its costs, and how to size a table.
    pub mod model {
        pub use crate::bufferhash::model::*;
    }
}

/// The internals of the cascade filter: its cost model.
pub mod cascade {
    pub use crate::cascade::iter::Fingerprints;
    pub use crate::cascade::*;
    pub use nandex_store::run::Entry;
    /// Its costs, and how to size a filter.
    pub mod model {
        pub use crate::cascade::model::*;
    }
}

/// The internals of maps: their formats.
pub mod large {
    pub use crate::large::change::{Change, Decide, DecideMany, Look, PairUpdate, Present};
    pub use crate::large::group::StoredKey;
    pub use crate::large::part::ValuePart;
    pub use crate::large::*;
    pub use nandex_store::values::ValuesStats;
    /// Their on-flash format.
    pub mod format {
        pub use crate::large::format::*;
    }
}

/// The internals of RHIK: its parameters.
pub mod rhik {
    pub use crate::rhik::stats::RhikStats;
    pub use crate::rhik::*;
    /// Its parameters.
    pub mod config {
        pub use crate::rhik::config::*;
    }
}

/// The internals of SliceHash: its growing table, formats and cost model.
pub mod slicehash {
    pub use crate::slicehash::*;
    pub use nandex_store::slice;
    /// Its parameters.
    pub mod config {
        pub use crate::slicehash::config::*;
    }
    /// Its on-flash format.
    pub mod format {
        pub use crate::slicehash::format::*;
    }
    /// The growing table.
    pub mod growing {
        pub use crate::slicehash::growing::*;
    }
    /// Its costs, and how to size a table.
    pub mod model {
        pub use crate::slicehash::model::*;
    }
}

/// The internals of SliceLSH: its formats and placement.
pub mod slicelsh {
    pub use crate::slicelsh::*;
    /// Its parameters.
    pub mod config {
        pub use crate::slicelsh::config::*;
    }
    /// Its on-flash format.
    pub mod format {
        pub use crate::slicelsh::format::*;
    }
    /// The placement of its tables' pages.
    pub mod placement {
        pub use crate::slicelsh::placement::*;
    }
}

/// The internals of the counting table: streams, iterators and estimates.
pub mod counting {
    pub use crate::counting::change::Change;
    pub use crate::counting::estimate::{EstimateConfig, EstimatedKey, KeyBounds, TopEstimate};
    pub use crate::counting::iter::Counts;
    pub use crate::counting::read::CountStream;
    pub use crate::counting::*;
}

/// The internals of SliceBloom: streams and costs.
pub mod slicebloom {
    pub use crate::slicebloom::model::SliceBloomCosts;
    pub use crate::slicebloom::stream::ContainsStream;
    pub use crate::slicebloom::*;
}
