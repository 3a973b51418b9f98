//! Clusters: documents that pairs connect, whatever their number.
//!
//! The usual union-find accesses an array of all documents at random. Here pairs pass by in order, in queues that may
//! be on disk:
//!
//! ```text
//!   pairs (later, earlier)  --latest first-->  of document 9 with 2, 5, 7: its parent is 2; new pairs (5, 2), (7, 2)
//!   parents                 --earliest first-> each document sends its cluster to those whose parent it is
//!   (cluster, document)     --sorted-------->  clusters, by their earliest document
//! ```
//!
//! A document is done when all its pairs with later ones are done. Its parent is then the earliest document known to be
//! connected to it, and its other partners are paired with that parent instead. Each pair passes once for each document
//! that hands it on, and the number of pairs never grows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::heap::ExternalHeap;
use crate::{Index, Result};

/// The number of documents whose names are read at a time.
const NAMES: usize = 4096;

/// Documents that pairs connect: at least two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// The number of its earliest document, which no other cluster has.
    pub number: u64,
    /// The ids of some of its documents, in the order of their arrival.
    pub ids: Vec<String>,
    /// Whether more of its ids follow. A cluster of very many documents comes in parts.
    pub goes_on: bool,
}

/// The number of clusters of each size.
pub type ClusterSizes = BTreeMap<u64, u64>;

/// The totals of all clusters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Clustered {
    /// The number of clusters.
    pub clusters: u64,
    /// The number of documents in them.
    pub documents: u64,
    /// The numbers of clusters by size.
    pub sizes: ClusterSizes,
}

impl Index {
    /// Calls `take` with each cluster of documents that [`pairs`](Self::pairs) connect, ordered by their earliest
    /// documents. A document that is in no pair is in no cluster.
    ///
    /// Takes a quarter of the index's RAM, whatever the number of documents; the rest is in unnamed files in `folder`,
    /// or in the system's folder for temporary files. Reads each record twice.
    ///
    /// # Errors
    /// Those of `take`; a failed read, damage, no space for temporary files.
    pub fn clusters(
        &self,
        folder: Option<&Path>,
        mut take: impl FnMut(&Cluster) -> Result<()>,
    ) -> Result<Clustered> {
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let ram_bytes = usize::try_from(self.config().ram_bytes / 12).unwrap_or(usize::MAX);
        let queues = Queues { folder, ram_bytes };
        let mut edges = queues.queue();
        self.for_each_edge(|edge| edges.push([!edge.number, edge.earlier]))?;
        let mut members = queues.members(queues.parents(edges)?)?;
        let mut clustered = Clustered::default();
        while let Some([cluster, _]) = members.peek() {
            let mut size = 0;
            loop {
                let mut numbers = Vec::new();
                while numbers.len() < NAMES && members.peek().is_some_and(|it| it[0] == cluster) {
                    numbers.extend(members.pop()?.map(|item| item[1]));
                }
                size += numbers.len() as u64;
                let goes_on = members.peek().is_some_and(|it| it[0] == cluster);
                let ids = self.names_of(&numbers)?.into_iter().flatten().collect();
                take(&Cluster { number: cluster, ids, goes_on })?;
                if !goes_on {
                    break;
                }
            }
            clustered.clusters += 1;
            clustered.documents += size;
            *clustered.sizes.entry(size).or_default() += 1;
        }
        Ok(clustered)
    }
}

/// The settings of the queues.
struct Queues {
    folder: PathBuf,
    ram_bytes: usize,
}

impl Queues {
    fn queue(&self) -> ExternalHeap {
        ExternalHeap::new(&self.folder, self.ram_bytes)
    }

    /// Computes from pairs (not the later, the earlier) the parent of each document that is not the first of its
    /// cluster: (parent, document).
    fn parents(&self, mut edges: ExternalHeap) -> Result<ExternalHeap> {
        let mut parents = self.queue();
        while let Some([latest, parent]) = edges.pop()? {
            parents.push([parent, !latest])?;
            let mut last = parent;
            while let Some([_, other]) = edges.peek().filter(|item| item[0] == latest) {
                edges.pop()?;
                if other != last {
                    edges.push([!other, parent])?;
                    last = other;
                }
            }
        }
        Ok(parents)
    }

    /// Computes from parents the cluster of each document: (cluster, document).
    fn members(&self, mut parents: ExternalHeap) -> Result<ExternalHeap> {
        let (mut members, mut told) = (self.queue(), self.queue());
        while let Some([parent, child]) = parents.pop()? {
            // Messages to earlier documents are no longer needed: those have no more children.
            while told.peek().is_some_and(|item| item[0] < parent) {
                told.pop()?;
            }
            let cluster = match told.peek() {
                Some([document, cluster]) if document == parent => cluster,
                _ => {
                    members.push([parent, parent])?;
                    told.push([parent, parent])?;
                    parent
                }
            };
            members.push([cluster, child])?;
            told.push([child, cluster])?;
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn clusters(edges: &[(u64, u64)], ram_bytes: usize) -> BTreeMap<u64, BTreeSet<u64>> {
        let folder = tempfile::tempdir().unwrap();
        let queues = Queues { folder: folder.path().to_path_buf(), ram_bytes };
        let mut queued = queues.queue();
        edges.iter().for_each(|(later, earlier)| queued.push([!later, *earlier]).unwrap());
        let mut members = queues.members(queues.parents(queued).unwrap()).unwrap();
        let mut found: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        while let Some([cluster, document]) = members.pop().unwrap() {
            assert!(found.entry(cluster).or_default().insert(document), "{document} comes twice");
        }
        found
    }

    /// The slow way: the smallest reachable number, repeated until nothing changes.
    fn slow(edges: &[(u64, u64)]) -> BTreeMap<u64, BTreeSet<u64>> {
        let mut of: BTreeMap<u64, u64> = BTreeMap::new();
        of.extend(edges.iter().flat_map(|(a, b)| [(*a, *a), (*b, *b)]));
        for _ in 0..of.len() {
            for (a, b) in edges {
                let smallest = of[a].min(of[b]);
                of.insert(*a, smallest);
                of.insert(*b, smallest);
            }
        }
        let mut found: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (document, cluster) in of {
            found.entry(cluster).or_default().insert(document);
        }
        found
    }

    #[test]
    fn chains_stars_and_rings_are_one_cluster_each() {
        let edges = [(9, 8), (8, 7), (7, 1), (20, 15), (20, 16), (20, 17), (5, 4), (4, 3), (5, 3)];
        let found = clusters(&edges, 1 << 20);
        let sizes: Vec<(u64, usize)> = found.iter().map(|(it, all)| (*it, all.len())).collect();
        assert_eq!(sizes, [(1, 4), (3, 3), (15, 4)]);
        assert!(clusters(&[], 1 << 20).is_empty());
    }

    proptest! {
        #[test]
        fn clusters_are_those_of_the_slow_way_with_little_ram_and_much(
            pairs in prop::collection::vec((0..60_u64, 0..60_u64), 0..90)
        ) {
            let edges: Vec<(u64, u64)> = pairs
                .into_iter()
                .filter(|(a, b)| a != b)
                .map(|(a, b)| (a.max(b), a.min(b)))
                .collect();
            let expected = slow(&edges);
            prop_assert_eq!(&clusters(&edges, 1), &expected);
            prop_assert_eq!(&clusters(&edges, 1 << 20), &expected);
        }
    }
}
