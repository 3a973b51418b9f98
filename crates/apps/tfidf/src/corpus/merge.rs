//! One index takes in the documents of another.

use nandex::Table;

use super::Corpus;
use super::counts::TermCounts;
use crate::tokenise::TermKey;
use crate::{Error, Result};

/// Entries that are moved at a time.
const CHUNK: usize = 65_536;

impl Corpus {
    /// Adds all documents of `other`, as if they had been added one by one. The texts of these documents are not
    /// needed. Costs a listing of `other` and an update of each of its terms.
    ///
    /// # Errors
    /// [`Error::OtherAnalysis`]; [`Error::Repeated`] if both have a document of the same id, which it finds before
    /// anything is changed; [`Error::Interrupted`] of either; a table without space, a failed read or write.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_whole()?;
        other.check_whole()?;
        self.check_same_analysis(other)?;
        self.check_no_common_document(other)?;
        // Texts count nothing, so a failure here leaves the index as it was.
        self.merge_texts(other)?;
        self.begin_counting()?;
        add_all(&*self.df, &*other.df)?;
        add_all(&*self.cf, &*other.cf)?;
        self.merge_documents(other)?;
        self.state.documents += other.state.documents;
        self.state.occurrences += other.state.occurrences;
        self.end_counting()
    }

    fn check_same_analysis(&self, other: &Self) -> Result<()> {
        let (expected, found) = (self.analysis(), other.analysis());
        if expected == found {
            return Ok(());
        }
        let text = |it| serde_json::to_string(it).unwrap_or_default();
        Err(Error::OtherAnalysis { expected: text(expected), found: text(found) })
    }

    fn check_no_common_document(&self, other: &Self) -> Result<()> {
        for_chunks(other.documents.iter(), |entries| {
            let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| &key[..]).collect();
            for ((key, text), found) in entries.iter().zip(self.documents.get_many(&keys)?) {
                let Some(found) = found else { continue };
                let same = *found == **text;
                let hash: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                return Err(Error::Repeated {
                    document: format!("whose id has the XXH3 hash {hash}"),
                    difference: if same { "with the same text" } else { "with another text" },
                });
            }
            Ok(())
        })
    }

    fn merge_documents(&self, other: &Self) -> Result<()> {
        for_chunks(other.documents.iter(), |entries| {
            let pairs: Vec<(&[u8], &[u8])> =
                entries.iter().map(|(key, text)| (&key[..], &text[..])).collect();
            Ok(self.documents.insert_many(&pairs)?)
        })
    }

    /// Texts first, so that each count has one.
    fn merge_texts(&mut self, other: &Self) -> Result<()> {
        let texts = &mut self.texts;
        for_chunks(other.df.iter(), |counts| {
            let keys: Vec<TermKey> = counts.iter().map(|(key, _)| *key).collect();
            let found = other.texts_of(&keys)?;
            let pairs: Vec<(TermKey, &[u8])> =
                keys.into_iter().zip(found.iter().map(Vec::as_slice)).collect();
            texts.keep(&pairs)
        })
    }
}

/// Adds all counts of one table to another.
fn add_all(target: &dyn TermCounts, source: &dyn TermCounts) -> Result<()> {
    for_chunks(source.iter(), |counts| {
        let signed = |(key, count): &(TermKey, u64)| {
            let count = i64::try_from(*count).map_err(|_| Error::Contradiction {
                reason: format!("a count of {count}, which is past 2^63 - 1"),
            })?;
            Ok((*key, count))
        };
        target.add_many(&counts.iter().map(signed).collect::<Result<Vec<_>>>()?)
    })
}

/// Calls `act` with the items in chunks.
fn for_chunks<T, E>(
    items: impl Iterator<Item = std::result::Result<T, E>>,
    mut act: impl FnMut(&[T]) -> Result<()>,
) -> Result<()>
where
    Error: From<E>,
{
    // A table's iterator may not be asked again after its end.
    let mut items = items.fuse();
    loop {
        let chunk = items.by_ref().take(CHUNK).collect::<std::result::Result<Vec<T>, E>>()?;
        if chunk.is_empty() {
            return Ok(());
        }
        act(&chunk)?;
    }
}
