//! The table's side: looks chunks up in batches, inserts the new ones and sums everything up.
//!
//! Pieces arrive in the order of the walk, and their sizes alone determine batches. So a tree gives the same totals,
//! the same lookups and the same order of inserts every time, however many workers read it.

use std::collections::HashSet;

use nandex::{Table, TableStats};

use crate::compare::{Comparer, Comparison};
use crate::forgotten::Forgotten;
use crate::options::Options;
use crate::read::{Chunk, End, Piece};
use crate::summary::SkippedList;
use crate::tops::{Sizes, Tops};
use crate::{ChunkValue, Done, Error, Fingerprint, Listed, Progress, Result, VALUE_BYTES};

/// The most chunks in a batch of lookups. Keeps a deep queue busy; costs about 200 KiB.
const BATCH_CHUNKS_MAX: usize = 4096;

/// The approximate bytes of chunks in a batch: with chunks of 1 MiB there is still progress twice a second.
const BATCH_BYTES_MAX: u64 = 64 << 20;

/// Some earlier file; only a comparison needs to know which one.
const SOME_FILE: u32 = u32::MAX;

/// Sums over all chunks and files so far.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) done: Done,
    pub(crate) total_chunks: u64,
    pub(crate) unique_chunks: u64,
    pub(crate) tops: Tops,
    pub(crate) skipped: SkippedList,
    /// The comparison of the trees, once the run has ended, if there is one.
    pub(crate) comparison: Option<Comparison>,
}

/// Collects pieces, batches them and sums up the totals.
pub(crate) struct Indexer<'a, 'f> {
    table: &'a dyn Table,
    progress: &'a dyn Progress,
    forgotten: &'a mut Forgotten<'f>,
    comparer: Option<Comparer>,
    totals: Totals,
    chunks: Vec<Chunk>,
    chunks_bytes: u64,
    /// Each end with the number of waiting chunks before it.
    ends: Vec<(usize, End)>,
    /// The number of the file whose chunks come next, and its bytes so far.
    file: u64,
    file_sizes: Sizes,
}

impl<'a, 'f> Indexer<'a, 'f> {
    pub(crate) fn new(
        table: &'a dyn Table,
        progress: &'a dyn Progress,
        forgotten: &'a mut Forgotten<'f>,
    ) -> Self {
        Self {
            table,
            progress,
            forgotten,
            comparer: None,
            totals: Totals::default(),
            chunks: Vec::with_capacity(BATCH_CHUNKS_MAX),
            chunks_bytes: 0,
            ends: Vec::new(),
            file: 0,
            file_sizes: Sizes::default(),
        }
    }

    /// Also compares the trees, if the options say so.
    pub(crate) fn comparing(mut self, options: &Options) -> Self {
        self.comparer = options.compare.then(|| Comparer::new(&options.paths));
        self
    }

    /// Returns whether `piece` must wait until the batch is done.
    pub(crate) fn is_full_for(&self, piece: &Piece) -> bool {
        self.chunks.len() + piece.chunks.len() > BATCH_CHUNKS_MAX
            || self.ends.len() + piece.ends.len() > BATCH_CHUNKS_MAX
            || self.chunks_bytes >= BATCH_BYTES_MAX
    }

    /// Adds a piece to the batch.
    pub(crate) fn take(&mut self, piece: Piece) {
        let before = self.chunks.len();
        self.ends.extend(piece.ends.into_iter().map(|(at, end)| (before + at, end)));
        let bytes = piece.chunks.iter().map(Chunk::bytes);
        self.chunks_bytes = bytes.fold(self.chunks_bytes, u64::saturating_add);
        self.chunks.extend(piece.chunks);
    }

    /// Processes the batch: one `get_or_insert_many`, then the sums.
    pub(crate) fn do_batch(&mut self) -> Result<()> {
        let chunks = std::mem::take(&mut self.chunks);
        let ends = std::mem::take(&mut self.ends);
        self.chunks_bytes = 0;
        let files = self.file_of_each(chunks.len(), &ends);
        let found = match &mut self.comparer {
            Some(comparer) => comparer.find_and_insert(self.table, &chunks, &files)?,
            None => find_and_insert(self.table, &chunks, &files)?,
        };
        self.forgotten.note()?;
        self.add_up(&chunks, &found, ends);
        self.progress.update(self.totals.done);
        self.chunks = chunks;
        self.chunks.clear();
        Ok(())
    }

    pub(crate) fn into_totals(self) -> Totals {
        Totals { comparison: self.comparer.map(Comparer::finish), ..self.totals }
    }

    /// Returns the file number of every waiting chunk.
    fn file_of_each(&self, chunks: usize, ends: &[(usize, End)]) -> Vec<u32> {
        let mut files = Vec::with_capacity(chunks);
        let mut file = self.file;
        for (at, end) in ends {
            files.resize(*at, number(file));
            file += u64::from(matches!(end, End::File(..)));
        }
        files.resize(chunks, number(file));
        files
    }

    fn add_up(&mut self, chunks: &[Chunk], found: &[Option<u32>], ends: Vec<(usize, End)>) {
        let mut from = 0;
        for (to, end) in ends {
            self.add_chunks(&chunks[from..to], &found[from..to]);
            self.add_end(end);
            from = to;
        }
        self.add_chunks(&chunks[from..], &found[from..]);
    }

    fn add_chunks(&mut self, chunks: &[Chunk], found: &[Option<u32>]) {
        for (chunk, &found) in chunks.iter().zip(found) {
            let is_duplicate = found.is_some();
            let bytes = chunk.bytes();
            let new_bytes = if is_duplicate { 0 } else { u64::from(chunk.length) };
            let duplicate_bytes = bytes - new_bytes;
            if let (Some(comparer), Some(source)) = (&mut self.comparer, found) {
                comparer.add_source(source, bytes);
            }
            self.progress.list(Listed::Chunk {
                file: self.file,
                offset: self.file_sizes.total,
                bytes: chunk.length,
                times: chunk.times,
                fingerprint: &chunk.fingerprint,
                is_duplicate,
            });
            self.totals.total_chunks += chunk.times;
            self.totals.unique_chunks += u64::from(!is_duplicate);
            self.totals.done.bytes += bytes;
            self.totals.done.duplicate_bytes += duplicate_bytes;
            self.file_sizes.total += bytes;
            self.file_sizes.duplicate += duplicate_bytes;
        }
    }

    fn add_end(&mut self, end: End) {
        match end {
            End::Skipped(skipped) => self.totals.skipped.add(skipped),
            End::File(entry, remark) => {
                let sizes = std::mem::take(&mut self.file_sizes);
                self.progress.list(Listed::File {
                    number: self.file,
                    bytes: sizes.total,
                    path: &entry.path,
                });
                self.totals.tops.add(&entry, sizes);
                if let Some(comparer) = &mut self.comparer {
                    comparer.end_file(&entry, sizes.total);
                }
                self.file += 1;
                let was_read = sizes.total > 0 || remark.is_none();
                self.totals.done.files += u64::from(was_read);
                if let Some(remark) = remark {
                    self.totals.skipped.add(remark);
                }
            }
        }
    }
}

/// Returns a file's number as the table stores it.
fn number(file: u64) -> u32 {
    u32::try_from(file).unwrap_or(u32::MAX)
}

/// Returns [`SOME_FILE`] for every chunk that was present before, in the table or earlier in the batch. The others are
/// inserted, in order.
fn find_and_insert(table: &dyn Table, chunks: &[Chunk], files: &[u32]) -> Result<Vec<Option<u32>>> {
    let (firsts, duplicate) = first_of_each(chunks);
    let mut sources: Vec<_> = duplicate.iter().map(|&again| again.then_some(SOME_FILE)).collect();
    let value = |&at: &usize| ChunkValue { length: chunks[at].length, file: files[at] }.encode();
    let values: Vec<[u8; VALUE_BYTES]> = firsts.iter().map(value).collect();
    let keys = firsts.iter().map(|&at| chunks[at].fingerprint.as_bytes());
    let pairs: Vec<(&[u8], &[u8])> = keys.zip(values.iter().map(|value| &value[..])).collect();
    for (&at, found) in firsts.iter().zip(table.get_or_insert_many(&pairs)?) {
        if let Some(value) = found {
            check_length(&chunks[at], &value)?;
            sources[at] = Some(SOME_FILE);
        }
    }
    Ok(sources)
}

/// Returns the first place of each fingerprint in a batch, and a mark on all its other places.
fn first_of_each(chunks: &[Chunk]) -> (Vec<usize>, Vec<bool>) {
    let mut seen: HashSet<&Fingerprint> = HashSet::with_capacity(chunks.len());
    let is_again: Vec<bool> = chunks.iter().map(|chunk| !seen.insert(&chunk.fingerprint)).collect();
    let firsts = (0..chunks.len()).filter(|&at| !is_again[at]).collect();
    (firsts, is_again)
}

pub(crate) fn check_length(chunk: &Chunk, value: &[u8]) -> Result<()> {
    let found = ChunkValue::decode(value).map_or(0, |value| value.length);
    if found == chunk.length {
        return Ok(());
    }
    let fingerprint = chunk.fingerprint.to_string();
    Err(Error::Foreign { fingerprint, expected: chunk.length, found })
}

/// Returns the pages read per lookup between two readings of the table's figures.
pub(crate) fn reads_per_lookup(before: &TableStats, after: &TableStats) -> f64 {
    let since = |figure: fn(&TableStats) -> u64| figure(after).saturating_sub(figure(before));
    let reads = since(|stats| stats.hit_reads + stats.miss_reads);
    let lookups = since(|stats| stats.hits + stats.misses);
    crate::units::ratio(reads, lookups).unwrap_or(0.0)
}
