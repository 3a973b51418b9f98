//! The states of a slot and of a key: live, removed, or neither.
//!
//! A slot has the state of one entry. A lookup asks one place after the other, the newest first, and goes on while a
//! place says [`KeyState::Unknown`].

use super::Entry;

/// The content of a used slot. The numbers are on flash: they never change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SlotState {
    /// A key and its value.
    Live = 1,
    /// A key that was removed: it hides older versions of itself.
    Tombstone = 2,
}

/// What a buffer, a page, a cache or a whole table knows of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyState<V> {
    /// Its newest value.
    Live(V),
    /// It was removed, or is absent for another reason: no older place needs to be asked.
    Removed,
    /// Nothing. An older place may know the key.
    #[default]
    Unknown,
}

impl<V> KeyState<V> {
    /// Returns whether the key needs to be looked up nowhere else.
    #[inline]
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// The value of a key that is there.
    #[inline]
    #[must_use]
    pub fn value(self) -> Option<V> {
        match self {
            Self::Live(value) => Some(value),
            Self::Removed | Self::Unknown => None,
        }
    }

    /// The same with another form of the value.
    #[inline]
    #[must_use]
    pub fn map<W>(self, form: impl FnOnce(V) -> W) -> KeyState<W> {
        match self {
            Self::Live(value) => KeyState::Live(form(value)),
            Self::Removed => KeyState::Removed,
            Self::Unknown => KeyState::Unknown,
        }
    }

    /// What an older place knows, if this one knows nothing.
    #[inline]
    #[must_use]
    pub fn or_else(self, older: impl FnOnce() -> Self) -> Self {
        if self.is_known() { self } else { older() }
    }
}

/// A known answer: a value, or none because the key is absent.
impl<V> From<Option<V>> for KeyState<V> {
    #[inline]
    fn from(answer: Option<V>) -> Self {
        answer.map_or(Self::Removed, Self::Live)
    }
}

impl<'e> From<Entry<'e>> for KeyState<&'e [u8]> {
    #[inline]
    fn from(entry: Entry<'e>) -> Self {
        match entry.state {
            SlotState::Live => Self::Live(entry.value),
            SlotState::Tombstone => Self::Removed,
        }
    }
}
