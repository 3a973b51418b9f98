//! Indexes of documents: the documents, the planned near-duplicates, and the rounds over them.
//!
//! Each round removes all documents, and adds as many. A generation of documents has texts of its own, and a
//! near-duplicate is near an original of the same generation.

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use nandex::device::Create;
use nandex::{Database, Volume};
use nandex_bench::keys::KeySpace;
use nandex_bench::process::DiskBytes;
use nandex_bench::texts::Texts;
use nandex_neardup::Document;

use crate::Workload;
use crate::subject::{Subject, Usage, Work};

/// The share of near-duplicates, and their similarity to their originals.
const NEAR_SHARE: f64 = 0.1;
const SIMILARITY: f64 = 0.95;

/// The maximum number of documents that are removed and added again one in each call.
const SINGLY: usize = 100;

const PAGE_BYTES: u64 = 4096;

/// An index that documents are added to.
pub(crate) trait Index: Sized {
    /// Adds documents.
    fn add(&mut self, documents: &[Document]) -> Result<()>;

    /// Removes documents that are present.
    fn remove(&mut self, documents: &[Document]) -> Result<()>;

    /// Fails if its number of documents, or of those it has kept, is wrong for these documents.
    fn check_counts(&self, live: &[Document], planted: &Planted) -> Result<()>;

    /// Looks up live documents and removed ones, and fails if an answer is wrong.
    fn check(&self, corpus: &Corpus) -> Result<Work>;

    /// Returns its count of entries, and the right number.
    fn entries(&self, planted: &Planted) -> (u64, u64);

    /// Returns the bytes of RAM of its tables.
    fn ram_bytes(&self) -> u64;

    /// Closes it.
    fn close(self) -> Result<()>;
}

/// An index with its documents.
pub(crate) struct Indexed<I> {
    index: I,
    corpus: Corpus,
    db: Database,
    open: fn(&Volume, Option<u64>) -> Result<I>,
    ram: Option<u64>,
}

/// The documents of an index.
pub(crate) struct Corpus {
    count: u64,
    generation: u64,
    /// The documents in the index.
    pub live: Vec<Document>,
    /// The documents that the last round removed and did not add again.
    pub gone: Vec<Document>,
    pub planted: Planted,
}

/// The near-duplicates among the live documents.
#[derive(Default)]
pub(crate) struct Planted {
    /// The original of each document, as a position: its own for an original.
    pub originals: Vec<usize>,
    /// The number of different texts.
    pub texts: u64,
}

impl Planted {
    /// Returns the near-duplicates.
    pub fn near(&self) -> impl Iterator<Item = (usize, usize)> {
        self.originals.iter().copied().enumerate().filter(|(place, original)| place != original)
    }
}

impl Corpus {
    fn new(count: u64) -> Self {
        let (live, gone, planted) = (Vec::new(), Vec::new(), Planted::default());
        Self { count, generation: 0, live, gone, planted }
    }

    /// Replaces the live documents by those of the next generation.
    fn renew(&mut self) {
        // Consecutive seeds have texts in common.
        let texts = Texts::new(KeySpace::new(0).key(self.generation), NEAR_SHARE, SIMILARITY);
        let document = |number: u64| {
            let mut text = String::new();
            texts.write(number, &mut text);
            Document::new(format!("{}-{number}", self.generation), text)
        };
        let live: Vec<Document> = (0..self.count).map(document).collect();
        let different: HashSet<&str> = live.iter().map(|document| &*document.text).collect();
        let originals = (0..self.count).map(|number| texts.original(number) as usize).collect();
        self.planted = Planted { originals, texts: different.len() as u64 };
        self.gone = std::mem::replace(&mut self.live, live);
        self.generation += 1;
    }

    fn live_bytes(&self) -> u64 {
        self.live.iter().map(|document| document.text.len() as u64).sum()
    }
}

impl<I: Index + 'static> Indexed<I> {
    /// Creates an index in a new file.
    pub fn boxed(
        (file, log_bytes): (&Path, u64),
        create: impl FnOnce(&Volume) -> Result<I>,
        open: fn(&Volume, Option<u64>) -> Result<I>,
        (documents, ram): (u64, Option<u64>),
    ) -> Result<Box<dyn Subject>> {
        let db = nandex::options().create(Create::New).sparse().log(log_bytes).open(file)?;
        let index = create(db.volume())?;
        Ok(Box::new(Self { index, corpus: Corpus::new(documents), db, open, ram }))
    }
}

impl<I: Index + 'static> Subject for Indexed<I> {
    fn round(&mut self, workload: Option<Workload>) -> Result<Work> {
        let removed = if workload == Some(Workload::Update) {
            self.corpus.live.clone()
        } else {
            self.corpus.renew();
            self.corpus.gone.clone()
        };
        let start = Instant::now();
        self.index.remove(&removed)?;
        let mut seconds = start.elapsed().as_secs_f64();
        if workload.is_some() {
            self.index.check_counts(&[], &Planted::default()).context("all were removed")?;
        }
        let start = Instant::now();
        self.index.add(&self.corpus.live)?;
        seconds += start.elapsed().as_secs_f64();
        self.index.check_counts(&self.corpus.live, &self.corpus.planted)?;
        Ok(Work { items: self.corpus.count, bytes: self.corpus.live_bytes(), seconds })
    }

    fn usage(&self) -> Usage {
        let volume = self.db.volume().stats();
        let taken = (volume.pages - volume.free_pages) * PAGE_BYTES;
        Usage {
            written_bytes: DiskBytes::now().map(|disk| disk.written),
            entries: self.index.entries(&self.corpus.planted).0,
            flash_bytes: taken.saturating_sub(volume.log_capacity_bytes),
            ram_bytes: self.index.ram_bytes(),
        }
    }

    fn entries(&self) -> u64 {
        self.index.entries(&self.corpus.planted).1
    }

    fn check(&self) -> Result<Work> {
        self.index.check_counts(&self.corpus.live, &self.corpus.planted)?;
        self.index.check(&self.corpus)
    }

    fn put_singly(&mut self) -> Result<Work> {
        let start = Instant::now();
        let some: Vec<_> = self.corpus.live.iter().rev().take(SINGLY).cloned().collect();
        for document in &some {
            let document = std::slice::from_ref(document);
            self.index.remove(document)?;
            self.index.add(document)?;
        }
        let (items, seconds) = (some.len() as u64, start.elapsed().as_secs_f64());
        Ok(Work { items, bytes: 0, seconds })
    }

    fn reopened(self: Box<Self>) -> Result<Box<dyn Subject>> {
        let Self { index, corpus, db, open, ram } = *self;
        index.close()?;
        let index = open(db.volume(), ram)?;
        Ok(Box::new(Self { index, corpus, db, open, ram }))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.index.close()
    }
}
