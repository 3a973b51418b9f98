//! The right answers of an index of neighbours: the present documents, the acknowledged updates, and the
//! durable ones.
//!
//! The law, for each document: it is in all of its buckets or in none, according to the acknowledged updates,
//! or later ones that were attempted; after a reopening, the durable updates or later ones. No bucket has
//! more documents than its limit.

use crate::contract::Trust;
use crate::versions::{Numbers, Oracle, Versions};

/// Whether a document is present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Presence(bool);

/// The updates of an index, and those of them that must hold.
#[derive(Clone, Debug)]
pub struct DocumentsPast {
    documents: Vec<Versions<Presence>>,
    /// 1 for each document that may ever have been there.
    ever: Vec<u64>,
}

impl Numbers for Presence {
    fn numbers(&self) -> [u64; 2] {
        [u64::from(self.0), 0]
    }

    fn of_numbers([is_there, _]: [u64; 2]) -> Self {
        Self(is_there == 1)
    }
}

impl Oracle for DocumentsPast {
    type Version = Presence;

    fn others(&mut self) -> Vec<&mut u64> {
        self.ever.iter_mut().collect()
    }

    fn keys(&mut self) -> &mut [Versions<Presence>] {
        &mut self.documents
    }

    fn may_refuse(&self) -> bool {
        false
    }
}

impl DocumentsPast {
    /// Creates an oracle of `documents` documents, none of which is present.
    #[must_use]
    pub fn new(documents: u64) -> Self {
        let never = || Versions::only(Presence(false));
        let ever = vec![0; documents as usize];
        Self { documents: (0..documents).map(|_| never()).collect(), ever }
    }

    /// Returns the number of documents.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.documents.len() as u64
    }

    /// Records an insert or a removal before it is called.
    pub fn attempt(&mut self, document: u64, is_there: bool) {
        self.documents[document as usize].attempt(Presence(is_there));
        self.ever[document as usize] |= u64::from(is_there);
    }

    /// Judges whether a document is present.
    ///
    /// # Errors
    /// Returns the reason why the answer is wrong.
    pub fn judge(&self, document: u64, is_there: bool, trust: Trust) -> Result<(), String> {
        let versions = &self.documents[document as usize];
        let fits = match trust {
            Trust::EverOrError => !is_there || self.ever[document as usize] == 1,
            _ => versions.allowed().contains(&Presence(is_there)),
        };
        if fits {
            return Ok(());
        }
        let allowed = versions.allowed();
        Err(format!("document {document}: there is {is_there}, and one of {allowed:?} is possible"))
    }

    /// Returns whether a document was present last, whatever is durable.
    #[must_use]
    pub fn is_there(&self, document: u64) -> bool {
        *self.documents[document as usize].newest() == Presence(true)
    }

    /// Takes an answer after an opening as the document's whole history.
    pub fn settle(&mut self, document: u64, is_there: bool) {
        self.documents[document as usize] = Versions::only(Presence(is_there));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_acknowledged_is_there_and_what_is_durable_survives() {
        let mut past = DocumentsPast::new(1);
        let fits = |past: &DocumentsPast, is_there| past.judge(0, is_there, Trust::Right).is_ok();
        past.attempt(0, true);
        past.acknowledge(0, true);
        assert!(fits(&past, true) && !fits(&past, false));
        past.attempt(0, false);
        assert!(fits(&past, true) && fits(&past, false));
        past.acknowledge(0, false);
        assert!(!fits(&past, true) && fits(&past, false));
        past.reopened();
        assert!(fits(&past, true) && fits(&past, false));
        past.settle(0, true);
        assert!(fits(&past, true) && !fits(&past, false));
        assert!(DocumentsPast::new(1).judge(0, true, Trust::EverOrError).is_err());
        assert!(past.judge(0, false, Trust::EverOrError).is_ok());
    }
}
