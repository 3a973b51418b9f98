//! The fill of a buffer when it is flushed: the larger the buffer, the lower.
//!
//! Its pages fill unevenly, and it is full when the overflow of some of them fills the stash. So buffers of many pages
//! are flushed earlier, according to [`buffer_entries`].

use crate::model::buffer_entries;

/// The largest share of its slots at which a buffer counts as full.
const KEYS_MAX: f64 = 0.94;
/// The deviation by which chance may make a buffer fuller than the mean.
const SPREAD: f64 = 0.01;

/// Shares of a buffer's slots.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BufferFill {
    /// The share that filters are made for. A buffer at this fill counts as full.
    pub keys: f64,
    /// The share that is in use when it is flushed, on average and at least.
    pub kept: f64,
}

impl BufferFill {
    /// Returns the fill of a buffer of `pages` pages with `page_slots` slots each.
    #[must_use]
    pub fn new(pages: u32, page_slots: u64) -> Self {
        let slots = f64::from(pages) * page_slots as f64;
        let mean = buffer_entries(pages.into(), page_slots) / slots;
        let keys = (mean + SPREAD).min(KEYS_MAX);
        Self { keys, kept: keys - SPREAD }
    }

    /// Returns how many of `slots` slots a filter is made for.
    #[must_use]
    pub fn keys_of(&self, slots: u64) -> f64 {
        slots as f64 * self.keys
    }

    /// Returns how many of `slots` slots are in use.
    #[must_use]
    pub fn kept_of(&self, slots: u64) -> f64 {
        slots as f64 * self.kept
    }
}

#[cfg(test)]
mod tests {
    use nandex_store::buffer::Buffer;
    use nandex_store::entries::{Entry, EntryLayout, SlotState};
    use nandex_store::hash::{HashKind, KeyHasher};

    use super::*;

    /// Returns the mean share of its slots with which a buffer is full.
    fn measured(layout: EntryLayout, pages: u32) -> f64 {
        const BUFFERS: u64 = 8;
        let fill = |seed: u64| {
            let hasher = KeyHasher::new(HashKind::Xxh3, seed.into());
            let mut buffer = Buffer::new(layout, hasher, pages as usize);
            let (mut key, value) = (vec![0; layout.key_bytes()], vec![0; layout.value_bytes()]);
            let is_put = |number: &u64| {
                key[..8].copy_from_slice(&number.to_le_bytes());
                let entry = Entry { state: SlotState::Live, key: &key, value: &value };
                buffer.put(hasher.hash(&key), entry).is_ok()
            };
            assert!((0..).take_while(is_put).count() > 0);
            (buffer.len() - buffer.stash_len()) as f64 / buffer.slots() as f64
        };
        (0..BUFFERS).map(fill).sum::<f64>() / BUFFERS as f64
    }

    #[test]
    fn buffers_are_as_full_as_is_said() {
        for (key_bytes, value_bytes) in [(8, 0), (8, 8), (16, 16), (32, 32)] {
            let layout = EntryLayout::new(key_bytes, value_bytes).unwrap();
            for pages in [8, 16, 46, 64, 89, 128, 256] {
                let found = measured(layout, pages);
                let BufferFill { keys, kept } = BufferFill::new(pages, layout.slots() as u64);
                let said = format!("{} slots, {pages} pages: {found}", layout.slots());
                assert!(found > kept - 0.004, "{said}, not {kept}");
                assert!(keys == KEYS_MAX || found < keys + 0.005, "{said}, more than {keys}");
            }
        }
    }
}
