//! An index's figures, and a page that displays them.

mod difference;
mod page;

use nandex::raw::signature::Family;
use serde::Serialize;

use crate::measure::described;
use crate::{ClusterSizes, Index, IndexStats, Measure, Result, Shingling};

pub use page::html;

/// The number of points of the curve of candidates.
const CURVE_POINTS: u32 = 50;

/// The figures of an index.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct IndexSummary {
    /// The number of documents, including duplicates.
    pub documents: u64,
    /// The number of documents that were new.
    pub kept: u64,
    /// The number of documents with a text equal to another one's.
    pub exact: u64,
    /// The number of documents near another one.
    pub near: u64,
    /// The division of text into shingles.
    pub shingling: Shingling,
    /// The measure of how near two documents are.
    pub measure: Measure,
    /// The threshold of near-duplicates, in this measure.
    pub threshold: f64,
    /// The family of hashes, in words.
    pub family: String,
    /// The number of tables: buckets of a document.
    pub tables: u32,
    /// The number of neighbouring cells that a lookup of a vector tries in each table.
    pub probes: u32,
    /// The probability that two documents are candidates, by the measure. It is predicted by the family's parameters;
    /// probes find more.
    pub curve: Vec<(f64, f64)>,
    /// About how many documents with different texts the index can take.
    pub documents_capacity: u64,
    /// The number of clusters.
    pub clusters: u64,
    /// The number of documents in clusters.
    pub clustered: u64,
    /// The numbers of clusters by size.
    pub cluster_sizes: ClusterSizes,
    /// Pairs to examine.
    pub examples: Vec<Example>,
    /// Bytes of RAM of all tables.
    pub ram_bytes: u64,
    /// The part of the index of neighbours.
    pub neighbors_ram_bytes: u64,
    /// Bytes of flash of all tables.
    pub flash_bytes: u64,
    /// The number of channels of the device over which its tables are spread; 1 if none are known.
    pub channels: u32,
    /// The number of lookups of candidates since the index was opened.
    pub lookups: u64,
    /// The number of pages that these read.
    pub lookup_reads: u64,
    /// The number of records read since then.
    pub records_read: u64,
    /// The number of ids that full buckets have dropped, in all openings.
    pub dropped: u64,
}

/// Two near-duplicates.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Example {
    /// The later one.
    pub id: String,
    /// The earlier one.
    pub earlier: String,
    /// The similarity or distance, in the index's measure.
    pub estimate: f64,
    /// Their texts, if known: the later one's first.
    pub texts: Option<(String, String)>,
}

impl Index {
    /// Returns its figures, with at most `examples_max` examples: the least near pairs, which are the ones to examine.
    /// Their texts are not in the index. Costs a reading of all records, as [`clusters`](Self::clusters) and
    /// [`pairs`](Self::pairs).
    ///
    /// # Errors
    /// A failed read, damage, no space for temporary files.
    pub fn summary(
        &self,
        folder: Option<&std::path::Path>,
        examples_max: usize,
    ) -> Result<IndexSummary> {
        let clustered = self.clusters(folder, |_| Ok(()))?;
        let examples = self.examples(examples_max)?;
        let IndexStats { ram_bytes, flash_bytes, records_read, neighbors, .. } = self.stats();
        Ok(IndexSummary {
            documents: self.documents(),
            kept: self.kept(),
            exact: self.exact(),
            near: self.near(),
            shingling: self.shingling(),
            measure: self.measure(),
            threshold: self.threshold(),
            family: described(self.family()),
            tables: self.family().tables(),
            probes: self.probes(),
            curve: self.curve(),
            documents_capacity: self.documents_capacity(),
            clusters: clustered.clusters,
            clustered: clustered.documents,
            cluster_sizes: clustered.sizes,
            examples,
            ram_bytes,
            neighbors_ram_bytes: neighbors.ram_bytes,
            flash_bytes,
            channels: neighbors.channels,
            lookups: neighbors.hits + neighbors.misses,
            lookup_reads: neighbors.lookup_reads,
            records_read,
            dropped: neighbors.dropped_life,
        })
    }

    /// Returns the probability that two documents are candidates, for all similarities, or for distances up to some
    /// multiple of the threshold.
    fn curve(&self) -> Vec<(f64, f64)> {
        let family = self.family();
        let points: Vec<f64> = match family {
            Family::SimHash { bits, distance } => {
                (0..=bits.count().min(8 * (distance + 1))).map(f64::from).collect()
            }
            _ => {
                let end = match self.measure() {
                    Measure::Jaccard => 1.0,
                    Measure::Hamming | Measure::Euclidean => 4.0 * self.threshold(),
                };
                (0..=CURVE_POINTS).map(|it| end * f64::from(it) / f64::from(CURVE_POINTS)).collect()
            }
        };
        points.into_iter().map(|at| (at, family.candidate_probability(at))).collect()
    }

    fn examples(&self, examples_max: usize) -> Result<Vec<Example>> {
        let mut examples: Vec<Example> = Vec::new();
        let measure = self.measure();
        let near = |estimate: f64| measure.rising(estimate);
        self.pairs(|pair| {
            if pair.is_exact || examples_max == 0 {
                return Ok(());
            }
            let place = examples.partition_point(|it| near(it.estimate) <= near(pair.estimate));
            if place < examples_max {
                let (id, earlier) = (pair.id.clone(), pair.earlier.clone());
                let example = Example { id, earlier, estimate: pair.estimate, texts: None };
                examples.insert(place, example);
                examples.truncate(examples_max);
            }
            Ok(())
        })?;
        Ok(examples)
    }
}
