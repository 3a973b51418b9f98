//! What an engine is, and what differs between reports by it.

/// The kind of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// From keys to values. It may evict keys, and never returns a wrong value.
    Table,
    /// Of keys alone. It loses none, and may report an absent key as present.
    Filter,
    /// Of documents by bucket keys, which returns the ids that share a bucket. It may drop ids of full buckets, and
    /// returns no others.
    Neighbors,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Table, Self::Filter, Self::Neighbors];

    /// One such engine, in a sentence.
    pub(crate) const fn one(self) -> &'static str {
        match self {
            Self::Table => "a table",
            Self::Filter => "a filter",
            Self::Neighbors => "an index of neighbours",
        }
    }

    /// Several such engines, in a sentence.
    pub(crate) const fn several(self) -> &'static str {
        match self {
            Self::Table => "tables",
            Self::Filter => "filters",
            Self::Neighbors => "indexes of neighbours",
        }
    }

    /// Name and version of a report's JSON object.
    pub(crate) const fn schema(self) -> &'static str {
        match self {
            Self::Table => "nandex-bench/1",
            Self::Filter => "nandex-bench-filter/1",
            Self::Neighbors => "nandex-bench-neighbors/1",
        }
    }

    /// The key of the latencies of calls that change something.
    pub(crate) const fn change_key(self) -> &'static str {
        match self {
            Self::Table => "insert_ns",
            Self::Filter | Self::Neighbors => "change_ns",
        }
    }

    /// Does a report show inserts over time?
    pub(crate) const fn has_curves(self) -> bool {
        !matches!(self, Self::Table)
    }
}
