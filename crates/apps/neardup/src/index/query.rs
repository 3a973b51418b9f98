//! Finds the documents of the index that are near others, which need not be in it.

use super::numbers::Hash;
use super::update::Match;
use super::{Index, text_hash};
use crate::Result;

/// The documents of the index that are near a document.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Near {
    /// The near documents, the nearest first, and the earliest first among equally near ones.
    pub matches: Vec<Match>,
    /// The number of documents that shared a bucket with it, near or not.
    pub candidates: u64,
}

impl Index {
    /// Returns the documents of the index that are near each of these. Changes nothing, and needs no ids.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn query(&self, texts: &[&str]) -> Result<Vec<Near>> {
        let hashes: Vec<Hash> = texts.iter().map(|text| text_hash(text)).collect();
        let numbers = self.numbers_of(&hashes)?;
        let records = self.records_by_number(numbers.iter().flatten().copied().collect())?;
        let mut sketches = self.sketches();
        let mut found = vec![Near::default(); texts.len()];
        let (mut places, mut rows, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (place, text) in texts.iter().enumerate() {
            let equal = numbers[place].and_then(|number| records.get(&number));
            let equal = equal.filter(|record| record.text == hashes[place]);
            let named = equal.map(|record| {
                let id = record.name.clone();
                Match { id, estimate: self.measure().of_equal(), is_exact: true }
            });
            found[place].matches.extend(named);
            if let Some(sketch) = sketches.of(text)? {
                places.push(place);
                keys.extend_from_slice(&sketch.keys);
                rows.push(sketch);
            }
        }
        let mut candidates = self.alike.candidates_many(&keys)?;
        self.probe(&rows.iter().collect::<Vec<_>>(), &mut candidates)?;
        let rows: Vec<_> = rows.iter().zip(candidates.iter().map(|it| &it[..])).collect();
        for ((place, mut near), candidates) in
            places.into_iter().zip(self.verified(&rows)?).zip(&candidates)
        {
            near.sort_unstable_by_key(|it| (std::cmp::Reverse(it.nearness), it.number));
            found[place].candidates = candidates.len() as u64;
            let exact = found[place].matches.first().map(|it| it.id.clone());
            let others = near.into_iter().filter(|it| Some(&it.name) != exact.as_ref());
            let others = others.map(|it| {
                let (id, estimate) = (it.name, self.estimate(it.nearness));
                Match { id, estimate, is_exact: false }
            });
            found[place].matches.extend(others);
        }
        Ok(found)
    }
}
