//! The answers of a structure, and the judgement of the answers of a damaged copy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use nandex::Error;
use nandex::raw::device::PageId;
use nandex::raw::store;

/// Keys and values by their numbers.
pub type Pairs = BTreeMap<u64, u64>;

/// The answers of one structure, in the order of the calls.
#[derive(Debug, Default)]
pub struct Answers {
    said: Vec<Said>,
    stage: &'static str,
}

#[derive(Debug)]
struct Said {
    stage: &'static str,
    call: String,
    /// The keys that the call concerns; none if it concerns all.
    keys: Vec<u64>,
    is_update: bool,
    answer: Result<Answer, Error>,
}

/// An answer that can be compared.
#[derive(Debug)]
enum Answer {
    /// An answer that never varies.
    Exact(String),
    /// All pairs that damage has left, and the reported pages.
    Left(Pairs, BTreeSet<u64>),
    /// A number of entries, and the pages whose entries it lacks.
    Entries(u64, Vec<u64>),
}

/// The result for a copy with one damaged page.
#[derive(Clone, Copy, Default, Debug)]
pub struct Verdict {
    /// The number of calls that failed with the damage.
    pub refused: u64,
    /// The number of calls that named the page together with an answer.
    pub told: u64,
}

impl Answers {
    /// Begins another part of the interview.
    pub fn begin(&mut self, stage: &'static str) {
        self.stage = stage;
    }

    /// Records the answer of a call about everything.
    pub fn ask<T: Debug>(&mut self, call: &str, answer: nandex::Result<T>) {
        self.push(call, &[], false, answer.map(|answer| Answer::Exact(format!("{answer:?}"))));
    }

    /// Records the answer of a call about one key.
    pub fn ask_of<T: Debug>(&mut self, call: &str, key: u64, answer: nandex::Result<T>) {
        self.push(call, &[key], false, answer.map(|answer| Answer::Exact(format!("{answer:?}"))));
    }

    /// Records a change of keys. A key whose update fails may have either state afterwards.
    pub fn update<T: Debug>(&mut self, call: &str, keys: &[u64], answer: nandex::Result<T>) {
        self.push(call, keys, true, answer.map(|answer| Answer::Exact(format!("{answer:?}"))));
    }

    /// Records the items of an iteration past damage.
    pub fn left(&mut self, items: impl Iterator<Item = Result<(u64, u64), u64>>) {
        let (mut pairs, mut damaged) = (Pairs::new(), BTreeSet::new());
        for item in items {
            match item {
                Ok((key, value)) => assert!(pairs.insert(key, value).is_none(), "{key} twice"),
                Err(page) => drop(damaged.insert(page)),
            }
        }
        self.push("iter_past_damage", &[], false, Ok(Answer::Left(pairs, damaged)));
    }

    /// Records a number of entries with the pages that it lacks.
    pub fn entries(&mut self, entries: u64, lost: &[PageId]) {
        let lost = lost.iter().map(|page| page.0).collect();
        self.push("entries", &[], false, Ok(Answer::Entries(entries, lost)));
    }

    fn push(&mut self, call: &str, keys: &[u64], is_update: bool, answer: Result<Answer, Error>) {
        let (stage, call, keys) = (self.stage, call.to_owned(), keys.to_vec());
        self.said.push(Said { stage, call, keys, is_update, answer });
    }

    /// Panics if a call has failed.
    pub fn assert_whole(&self) {
        for Said { stage, call, keys, answer, .. } in &self.said {
            assert!(answer.is_ok(), "{stage}, {call} {keys:?}: {answer:?}");
        }
    }

    /// Compares the answers of a copy with a damaged page with those of the whole one, which are these.
    ///
    /// # Errors
    /// Returns an answer that is wrong, or an error that does not concern the page.
    pub fn judge(&self, damaged: &Self, page: u64) -> Result<Verdict, String> {
        let mut verdict = Verdict::default();
        let mut doubted = BTreeSet::new();
        // A stage whose opening fails has no further calls.
        let mut whole = self.said.iter();
        for said in &damaged.said {
            let is_same =
                |it: &&Said| (it.stage, &it.call, &it.keys) == (said.stage, &said.call, &said.keys);
            let right = whole.by_ref().find(is_same).ok_or_else(|| said.story("not asked"))?;
            let right = right.answer.as_ref().expect("the whole one has answered");
            match &said.answer {
                Err(error) if !is_about(error, page) => {
                    return Err(said.story(&format!("an error of something else: {error}")));
                }
                Err(_) => {
                    verdict.refused += 1;
                    doubted.extend(said.keys.iter().filter(|_| said.is_update));
                }
                Ok(answer) => {
                    let before = || self.before(said);
                    let judged = answer.judge(right, page, (said, &doubted), before);
                    verdict.told += u64::from(judged.map_err(|what| said.story(&what))?);
                }
            }
        }
        Ok(verdict)
    }

    /// Returns the answer of the whole one to the same call before its first update.
    fn before(&self, said: &Said) -> Option<&Answer> {
        let is_same = |it: &&Said| it.call == said.call && it.keys == said.keys;
        self.said.iter().find(is_same).and_then(|it| it.answer.as_ref().ok())
    }
}

impl Said {
    fn story(&self, what: &str) -> String {
        let Self { stage, call, keys, .. } = self;
        format!("{stage}, {call} {keys:?}: {what}")
    }
}

impl Answer {
    /// Returns whether the answer names the page.
    fn judge<'w>(
        &self,
        right: &Self,
        page: u64,
        (said, doubted): (&Said, &BTreeSet<u64>),
        before: impl Fn() -> Option<&'w Self>,
    ) -> Result<bool, String> {
        let is_doubted = if said.keys.is_empty() {
            !doubted.is_empty()
        } else {
            said.keys.iter().any(|key| doubted.contains(key))
        };
        match (self, right) {
            (Self::Exact(found), Self::Exact(expected)) => {
                let is_before = || matches!(before(), Some(Self::Exact(it)) if it == found);
                let is_free = is_doubted && said.keys.is_empty();
                if found == expected || is_free || is_doubted && is_before() {
                    return Ok(false);
                }
                Err(differs(found, expected))
            }
            (Self::Left(found, damaged), Self::Left(expected, _)) => {
                if damaged.iter().any(|it| *it != page) {
                    return Err(format!("reported {damaged:?}"));
                }
                left(found, expected, !damaged.is_empty(), is_doubted)?;
                Ok(!damaged.is_empty())
            }
            (Self::Entries(found, lost), Self::Entries(expected, _)) => match &lost[..] {
                [] if found != expected && !is_doubted => {
                    Err(format!("{found} entries of {expected}, and nothing is reported"))
                }
                [] => Ok(false),
                pages if pages.iter().all(|it| *it == page) => Ok(true),
                pages => Err(format!("reported {pages:?}")),
            },
            _ => Err("another sort of answer".into()),
        }
    }
}

/// Judges the remaining pairs: an older version may replace one on the damaged page.
fn left(found: &Pairs, expected: &Pairs, is_told: bool, is_doubted: bool) -> Result<(), String> {
    if is_doubted || !is_told && found == expected {
        return Ok(());
    }
    if !is_told {
        return Err(format!(
            "{} pairs of {}, and nothing is reported",
            found.len(),
            expected.len()
        ));
    }
    let is_wrong = |(key, value): &(&u64, &u64)| expected.get(key).is_some_and(|it| it < value);
    match found.iter().find(is_wrong) {
        Some(pair) => Err(format!("{pair:?} was never there")),
        None => Ok(()),
    }
}

/// Returns the first place where two texts differ.
fn differs(found: &str, expected: &str) -> String {
    let at = found.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
    let around =
        |text: &str| -> String { text.chars().skip(at.saturating_sub(20)).take(80).collect() };
    format!("wrong: ..{}.. where ..{}.. is right", around(found), around(expected))
}

/// Returns whether the error concerns this page.
pub fn is_about(error: &Error, page: u64) -> bool {
    if let Error::Store(store::Error::Corrupt { page: found, .. }) = error {
        return found.0 == page;
    }
    let text = error.to_string();
    let name = format!("page {page}");
    text.match_indices(&name)
        .any(|(at, _)| !text[at + name.len()..].starts_with(|next: char| next.is_ascii_digit()))
}
