//! An index of near-duplicates, as `nandex neardup` makes it.

use std::collections::HashSet;
use std::time::Instant;

use anyhow::{Result, ensure};
use nandex::Volume;
use nandex_neardup::{Document, Index, IndexConfig, NearOptions, Repeats};

use crate::documents::{Corpus, Index as Indexes, Indexed, Planted};
use crate::subject::{Row, Work};
use crate::{Workload, wrong};

pub(crate) const ROW: Row = Row {
    name: "neardup",
    items: "documents",
    workload: Workload::Churn,
    create: |arguments, file| {
        let (options, config) = (NearOptions::default(), config(arguments.ram));
        let log_bytes = Index::log_bytes(&options, config)?;
        let create = |volume: &Volume| {
            Ok(NearDuplicates { index: Index::create_in(volume, &options, config)? })
        };
        let asked = (arguments.documents, arguments.ram);
        Indexed::boxed((file, log_bytes), create, open, asked)
    },
};

/// Texts that are looked up in a call.
const LOOKUPS: usize = 256;

/// The minimum share of planted near-duplicates that must be found.
const FOUND_SHARE_MIN: f64 = 0.9;

struct NearDuplicates {
    index: Index,
}

fn config(ram: Option<u64>) -> IndexConfig {
    let usual = IndexConfig::default();
    IndexConfig { ram_bytes: ram.unwrap_or(usual.ram_bytes), ..usual }
}

fn open(volume: &Volume, ram: Option<u64>) -> Result<NearDuplicates> {
    Ok(NearDuplicates { index: Index::open_in(volume, config(ram))? })
}

impl Indexes for NearDuplicates {
    fn add(&mut self, documents: &[Document]) -> Result<()> {
        let documents = documents.iter().cloned().map(Ok);
        self.index.update(documents, Repeats::Refuse, |_, _| Ok(()))?;
        Ok(())
    }

    fn remove(&mut self, documents: &[Document]) -> Result<()> {
        let ids: Vec<&str> = documents.iter().map(|document| &*document.id).collect();
        let removed = self.index.remove(&ids)?;
        ensure!(removed.unknown.is_empty(), "it does not know {:?}", removed.unknown[0]);
        Ok(())
    }

    /// Checks the counts: originals are kept, and few near-duplicates: no removed document makes one of them
    /// a duplicate.
    fn check_counts(&self, live: &[Document], planted: &Planted) -> Result<()> {
        let (documents, kept) = (self.index.documents(), self.index.kept());
        ensure!(documents == live.len() as u64, "it has {documents} documents of {}", live.len());
        let near = planted.near().count() as u64;
        let originals = documents - near;
        let kept_max = originals + ((1.0 - FOUND_SHARE_MIN) * near as f64) as u64;
        ensure!(
            (originals..=kept_max).contains(&kept),
            "it has kept {kept} documents, not {originals} to {kept_max}"
        );
        Ok(())
    }

    fn check(&self, Corpus { live, gone, planted, .. }: &Corpus) -> Result<Work> {
        let ids: HashSet<&str> = live.iter().map(|document| &*document.id).collect();
        let start = Instant::now();
        let (found, found_gone) = (self.matches(live)?, self.matches(gone)?);
        let seconds = start.elapsed().as_secs_f64();
        for (document, matches) in live.iter().zip(&found) {
            let is_known = matches.iter().all(|id| ids.contains(&**id));
            ensure!(is_known, "{} is near a document that has gone: {matches:?}", document.id);
            ensure!(!matches.is_empty(), "{} is not found by its own text", document.id);
        }
        let gone_but_found = gone.iter().zip(&found_gone).find(|(_, matches)| !matches.is_empty());
        if let Some((document, matches)) = gone_but_found {
            return Err(wrong(format!("{} has gone, and is near {matches:?}", document.id)));
        }
        let (mut near, mut missed) = (0, 0);
        for (place, original) in planted.near() {
            near += 1;
            missed += u64::from(!found[place].contains(&live[original].id));
        }
        let missed_max = ((1.0 - FOUND_SHARE_MIN) * f64::from(near)) as u64;
        ensure!(missed <= missed_max, "of {near} originals of near-duplicates {missed} are missed");
        Ok(Work { items: (live.len() + gone.len()) as u64, bytes: 0, seconds })
    }

    /// Returns the entries of the index of neighbours, which has one of each different text in each of its
    /// tables.
    fn entries(&self, planted: &Planted) -> (u64, u64) {
        let neighbors = self.index.stats().neighbors;
        (neighbors.entries, planted.texts * u64::from(neighbors.tables))
    }

    fn ram_bytes(&self) -> u64 {
        self.index.stats().ram_bytes
    }

    fn close(self) -> Result<()> {
        Ok(self.index.close()?)
    }
}

impl NearDuplicates {
    /// Returns, for each of these documents, the ids of the documents that it is near.
    fn matches(&self, documents: &[Document]) -> Result<Vec<Vec<String>>> {
        let mut all = Vec::new();
        for some in documents.chunks(LOOKUPS) {
            let texts: Vec<&str> = some.iter().map(|document| &*document.text).collect();
            let found = self.index.query(&texts)?;
            all.extend(
                found.into_iter().map(|near| near.matches.into_iter().map(|it| it.id).collect()),
            );
        }
        Ok(all)
    }
}
