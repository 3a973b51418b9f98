//! The kinds of engines, and the differences between their reports.

/// The kind of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A map from keys to values. It may evict keys, and never returns a wrong value.
    Table,
    /// A set of keys. It loses none, and may report an absent key as present.
    Filter,
    /// An index of documents by bucket keys, which returns the ids that share a bucket. It may drop ids of
    /// full buckets, and returns no others.
    Neighbors,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Table, Self::Filter, Self::Neighbors];

    /// Returns one such engine in words.
    pub(crate) const fn one(self) -> &'static str {
        match self {
            Self::Table => "a table",
            Self::Filter => "a filter",
            Self::Neighbors => "an index of neighbours",
        }
    }

    /// Returns several such engines in words.
    pub(crate) const fn several(self) -> &'static str {
        match self {
            Self::Table => "tables",
            Self::Filter => "filters",
            Self::Neighbors => "indexes of neighbours",
        }
    }

    /// Returns the name and version of a report's JSON object.
    pub(crate) const fn schema(self) -> &'static str {
        match self {
            Self::Table => "nandex-bench/1",
            Self::Filter => "nandex-bench-filter/1",
            Self::Neighbors => "nandex-bench-neighbors/1",
        }
    }

    /// Returns the key of the latencies of calls that change something.
    pub(crate) const fn change_key(self) -> &'static str {
        match self {
            Self::Table => "insert_ns",
            Self::Filter | Self::Neighbors => "change_ns",
        }
    }

    /// Returns whether a report shows inserts over time.
    pub(crate) const fn has_curves(self) -> bool {
        !matches!(self, Self::Table)
    }
}
