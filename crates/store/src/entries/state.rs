//! The states of a slot and of a key: live, removed, or neither.
//!
//! A slot has the state of one entry. A lookup asks one place after another, the newest first, until a place returns
//! something other than [`KeyState::Unknown`].

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

/// The knowledge of a buffer, a page, a cache or a whole table about a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyState<V> {
    /// Its newest value.
    Live(V),
    /// The key was removed, or is absent for another reason: no older place needs to be asked.
    Removed,
    /// The place does not know the key. An older place may.
    #[default]
    Unknown,
}

impl<V> KeyState<V> {
    /// Returns whether the lookup is over, because this place knows the key.
    #[inline]
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// Returns the value, if the key is present.
    #[inline]
    #[must_use]
    pub fn value(self) -> Option<V> {
        match self {
            Self::Live(value) => Some(value),
            Self::Removed | Self::Unknown => None,
        }
    }

    /// Converts the value with `form`.
    #[inline]
    #[must_use]
    pub fn map<W>(self, form: impl FnOnce(V) -> W) -> KeyState<W> {
        match self {
            Self::Live(value) => KeyState::Live(form(value)),
            Self::Removed => KeyState::Removed,
            Self::Unknown => KeyState::Unknown,
        }
    }

    /// Asks an older place if this one does not know the key.
    #[inline]
    #[must_use]
    pub fn or_else(self, older: impl FnOnce() -> Self) -> Self {
        if self.is_known() { self } else { older() }
    }
}

/// Converts a known answer: a value, or `None` because the key is absent.
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
