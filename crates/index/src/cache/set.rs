//! A set of the cache: places for seven entries, read without a lock.
//!
//! The first word is the version, which is odd while the set changes, with the ghosts in its lower half. A reader notes
//! it, reads, and uses the result only if the version is still the same (a seqlock). All words are atomic, so a torn
//! read is possible and harmless.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use nandex_store::entries::KeyState;
use nandex_store::hash::mix;

use super::ways::{Ghosts, States, WAYS};
use super::{KeyWords, ValueWords};
use crate::api::Value;

/// Words of a line.
pub(super) const LINE_WORDS: usize = 8;

/// One step of the version.
const STEP: u64 = 1 << 32;

/// A line of the processor's cache.
#[repr(align(64))]
#[derive(Default, Debug)]
pub(super) struct Line([AtomicU64; LINE_WORDS]);

/// The positions of the words of a set: the version and each key's first word, the states, then the rest of the keys,
/// then the values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SetLayout {
    key_bytes: usize,
    value_bytes: usize,
}

/// The place of the states.
const STATES: usize = 1 + WAYS;

impl SetLayout {
    pub fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Self { key_bytes, value_bytes }
    }

    #[inline]
    fn key_words(self) -> usize {
        self.key_bytes.div_ceil(8)
    }

    #[inline]
    fn value_words(self) -> usize {
        self.value_bytes.div_ceil(8)
    }

    /// Lines of a set.
    #[inline]
    pub fn lines(self) -> usize {
        (2 + WAYS * (self.key_words() + self.value_words())).div_ceil(LINE_WORDS)
    }

    pub fn bytes(self) -> usize {
        self.lines() * size_of::<Line>()
    }

    /// The place of a word of a key.
    #[inline]
    fn key(self, way: usize, word: usize) -> usize {
        match word {
            0 => 1 + way,
            _ => STATES + 1 + way * (self.key_words() - 1) + word - 1,
        }
    }

    /// The place of a word of a value.
    #[inline]
    fn value(self, way: usize, word: usize) -> usize {
        STATES + 1 + WAYS * (self.key_words() - 1) + way * self.value_words() + word
    }
}

/// A set of a cache.
#[derive(Clone, Copy)]
pub(super) struct Set<'l> {
    layout: SetLayout,
    lines: &'l [Line],
}

/// A set that only its holder changes. Dropping it ends the change and advances the version.
pub(super) struct Locked<'l> {
    set: Set<'l>,
    version: u64,
    ghosts: Ghosts,
}

impl<'l> Set<'l> {
    #[inline]
    pub fn new(layout: SetLayout, lines: &'l [Line]) -> Self {
        Self { layout, lines }
    }

    /// The line with the version and the keys' first words, and the line with the states, which completes a set of 8 +
    /// 8 bytes.
    #[inline]
    pub fn first_lines(&self) -> &'l [Line] {
        &self.lines[..self.lines.len().min(2)]
    }

    #[inline]
    fn word(&self, at: usize) -> &'l AtomicU64 {
        &self.lines[at / LINE_WORDS].0[at % LINE_WORDS]
    }

    #[inline]
    fn load(&self, at: usize) -> u64 {
        self.word(at).load(Relaxed)
    }

    #[inline]
    fn version(&self) -> u64 {
        self.word(0).load(Acquire)
    }

    #[inline]
    fn states(&self) -> States {
        States(self.load(STATES))
    }

    /// Returns what it knows of a key. A set that changes meanwhile does not know any key.
    #[inline]
    pub fn find(&self, key: &KeyWords) -> KeyState<Value> {
        let version = self.version();
        let Some(way) = self.way_of(key) else { return KeyState::Unknown };
        let states = self.states();
        let answer = states.held(way).map(|()| self.value(way));
        fence(Acquire);
        if version & STEP != 0 || self.load(0) != version || !answer.is_known() {
            return KeyState::Unknown;
        }
        if let Some(used) = states.used(way) {
            // Another reader's use, or a writer, may be faster. Then this use is not counted.
            let _ = self.word(STATES).compare_exchange(states.0, used.0, Relaxed, Relaxed);
        }
        answer
    }

    /// Returns the way with a key, if it is occupied.
    #[inline]
    fn way_of(&self, key: &KeyWords) -> Option<usize> {
        let is_rest =
            |way| (1..self.layout.key_words()).all(|word| self.key(way, word) == key.0[word]);
        let mut found = (0..WAYS).filter(|way| self.load(1 + way) == key.0[0]);
        found.find(|way| is_rest(*way) && self.states().held(*way).is_known())
    }

    fn key(&self, way: usize, word: usize) -> u64 {
        self.load(self.layout.key(way, word))
    }

    fn key_at(&self, way: usize) -> KeyWords {
        let mut words = KeyWords::of(&[]);
        for word in 0..self.layout.key_words() {
            words.0[word] = self.key(way, word);
        }
        words
    }

    fn value(&self, way: usize) -> Value {
        let mut words = ValueWords::of(&[]);
        for word in 0..self.layout.value_words() {
            words.0[word] = self.load(self.layout.value(way, word));
        }
        Value::new(&words.bytes()[..self.layout.value_bytes])
    }

    /// Locks the set, if no other thread has it locked.
    pub fn try_lock(self) -> Option<Locked<'l>> {
        let version = self.version();
        if version & STEP != 0 {
            return None;
        }
        let odd = version.wrapping_add(STEP);
        self.word(0).compare_exchange(version, odd, AcqRel, Relaxed).ok()?;
        // No reader sees a change before it sees the odd version.
        fence(Release);
        Some(Locked { set: self, version, ghosts: Ghosts(version as u32) })
    }

    /// Locks the set. A thread that has it locked is about to release it.
    pub fn lock(self) -> Locked<'l> {
        loop {
            if let Some(locked) = self.try_lock() {
                return locked;
            }
            std::thread::yield_now();
        }
    }
}

impl Locked<'_> {
    /// Inserts a key, unless another lookup has.
    pub fn insert(&mut self, key: &KeyWords, value: Option<&[u8]>) {
        let set = self.set;
        if set.way_of(key).is_some() {
            return;
        }
        let mut states = set.states();
        let ghost_of = |way| ghost((0..set.layout.key_words()).map(|word| set.key(way, word)));
        let own = ghost(key.0[..set.layout.key_words()].iter().copied());
        let way = states.take(&mut self.ghosts, own, ghost_of);
        for (word, bits) in key.0.iter().enumerate().take(set.layout.key_words()) {
            set.word(set.layout.key(way, word)).store(*bits, Relaxed);
        }
        self.put(states, way, value);
    }

    /// Takes entries of other sets as far as it has space, used ones first.
    pub fn take_from<'s>(&mut self, others: impl Iterator<Item = Set<'s>> + Clone) {
        for used_first in [true, false] {
            let ways = others.clone().flat_map(|set| (0..WAYS).map(move |way| (set, way)));
            for (set, way) in ways {
                let states = set.states();
                let held = states.held(way).map(|()| set.value(way));
                if states.was_used(way) == used_first
                    && held.is_known()
                    && self.set.states().has_free()
                {
                    self.insert(&set.key_at(way), held.value().as_deref());
                }
            }
        }
    }

    /// Replaces the answer about a key: by a value, by its absence, or by nothing. A value of an unknown key takes a
    /// place only if one is free.
    pub fn replace(&mut self, key: &KeyWords, now: KeyState<&[u8]>) {
        match (self.set.way_of(key), now) {
            (Some(way), KeyState::Unknown) => self.free(way),
            (Some(way), known) => self.put(self.set.states(), way, known.value()),
            (None, KeyState::Live(value)) if self.set.states().has_free() => {
                self.insert(key, Some(value));
            }
            (None, _) => {}
        }
    }

    /// Drops all keys except those for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        for way in (0..WAYS).filter(|way| self.set.states().held(*way).is_known()) {
            let words = self.set.key_at(way);
            if !keep(&words.bytes()[..self.set.layout.key_bytes]) {
                self.free(way);
            }
        }
    }

    fn put(&self, mut states: States, way: usize, value: Option<&[u8]>) {
        states.hold(way, value.map(drop).into());
        let words = ValueWords::of(value.unwrap_or_default());
        for word in 0..self.set.layout.value_words() {
            self.set.word(self.set.layout.value(way, word)).store(words.0[word], Relaxed);
        }
        self.set.word(STATES).store(states.0, Relaxed);
    }

    fn free(&self, way: usize) {
        let mut states = self.set.states();
        states.hold(way, KeyState::Unknown);
        self.set.word(STATES).store(states.0, Relaxed);
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let next = (self.version & !u64::from(u32::MAX)).wrapping_add(2 * STEP);
        self.set.word(0).store(next | u64::from(self.ghosts.0), Release);
    }
}

/// A byte that remembers a key, never 0.
fn ghost(words: impl Iterator<Item = u64>) -> u8 {
    let hash = words.fold(0, |hash, word| mix(hash ^ word));
    ((hash >> 56) as u8).max(1)
}
