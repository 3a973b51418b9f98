//! A cache of recent advice.
//!
//! A program that opens thousands of structures creates most of them alike, and finding the parameters of one takes
//! milliseconds: far longer than opening it.

use std::sync::Mutex;

use crate::{Prediction, Requirements, Result};

/// The number of results kept: as many different structures as a program opens in turn.
const KEPT_MAX: usize = 16;

/// The question that was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// The structure that suits best.
    Best,
    /// The structure that grows and begins small.
    First,
    /// A structure of this kind.
    Kind(String),
}

#[derive(Debug)]
struct Given {
    asked: Requirements,
    question: Question,
    prediction: Prediction,
}

/// The latest advice, the most recent first.
#[derive(Debug, Default)]
pub(super) struct RecentAdvice(Mutex<Vec<Given>>);

impl RecentAdvice {
    /// Returns what was advised for the same requirements, or else what `advise` finds now.
    ///
    /// # Errors
    /// Those of `advise`.
    pub(super) fn get(
        &self,
        asked: &Requirements,
        question: Question,
        advise: impl FnOnce() -> Result<Prediction>,
    ) -> Result<Prediction> {
        let mut given = self.0.lock().expect("no holder of the recent advice's lock panics");
        let is_same = |it: &Given| it.question == question && it.asked == *asked;
        if let Some(at) = given.iter().position(is_same) {
            given[..=at].rotate_right(1);
            return Ok(given[0].prediction.clone());
        }
        let prediction = advise()?;
        given.insert(0, Given { asked: asked.clone(), question, prediction: prediction.clone() });
        given.truncate(KEPT_MAX);
        Ok(prediction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn the_same_is_asked_once_and_the_latest_are_kept() {
        let advice = RecentAdvice::default();
        let mut asked = Vec::new();
        let mut ask = |entries: u64, question: Question| {
            let requirements = Requirements::new(entries, 8, 8);
            let found = advice.get(&requirements, question.clone(), || {
                asked.push((entries, question));
                requirements.advise_one("bufferhash")
            });
            assert_eq!(found.unwrap().requirements.entries, entries);
        };
        ask(1000, Question::Best);
        ask(1000, Question::First);
        ask(1000, Question::Kind("bufferhash".to_owned()));
        for number in 0..KEPT_MAX as u64 {
            ask(1000, Question::Best);
            ask(2000 + number, Question::Best);
        }
        ask(1000, Question::Best);
        ask(1000, Question::First);
        let again = asked.iter().filter(|(entries, _)| *entries == 1000).count();
        assert_eq!((again, asked.len()), (4, KEPT_MAX + 4), "{asked:?}");
    }

    #[test]
    fn a_refusal_is_not_kept() {
        let advice = RecentAdvice::default();
        let asked = Requirements::new(1000, 8, 8);
        let refuse = || Err(Error::Config { field: "entries", reason: "none".to_owned() });
        assert!(advice.get(&asked, Question::Best, refuse).is_err());
        assert!(advice.get(&asked, Question::Best, || asked.advise_one("bufferhash")).is_ok());
    }
}
