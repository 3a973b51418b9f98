//! The bytes of a device, and the bytes that a power cut would leave.
//!
//! The model, in the words of the laws of [`Device`](nandex_device::Device):
//! 1. A write takes effect when its completion is returned (by `wait`, `write`, or the drop of its queue); a
//!    read sees the content at the time of its push. This exposes a caller that reads before it has waited.
//! 2. `sync` makes durable all changes that have taken effect, and none that is still in flight.
//! 3. `discard` takes effect at once: its pages then hold garbage, durable after the next `sync`.
//! 4. `grow` is durable when it returns, as a file's is; it makes nothing else durable.
//! 5. The power fails in the middle of a counted operation (write, sync, grow, discard): see
//!    [`SimDevice::cut_after`](crate::SimDevice::cut_after). It and everything after it fails, including
//!    reads.
//! 6. A power cut leaves everything that was durable; then each change that had taken effect since the last
//!    sync, in that order; then each change that was in flight, in the order of the pushes, the one that the
//!    cut hit being the last. The seed decides for each change whether it is lost, whole, or mixed; and in a
//!    mixed one for each page whether it is old, new, or torn, sector by sector of 512 bytes. Since an earlier
//!    change may be lost while a later one is kept, this covers every order.
//!
//! The same operations in the same order with the same seed leave the same bytes.

mod change;
mod history;
mod pages;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use nandex_device::{PAGE_BYTES, PageId};

pub(crate) use self::change::Change;
use self::change::{Fate, Fates};
use self::history::Event;
pub use self::history::History;
use self::pages::{Pages, Slot};

/// The maximum number of pages whose bytes can be counted.
pub(crate) const PAGE_COUNT_MAX: u64 = u64::MAX / PAGE_BYTES as u64;

/// The pages of a device, sparse: those never written or discarded cost nothing. The [module](self) describes
/// their states.
///
/// Images share equal parts, so [`survivors`](Image::survivors) and clones cost no copy of the bytes. Each
/// distinct page that reads see, that is durable, or that was written since the last sync takes one page of
/// RAM.
#[derive(Clone, Debug, Default)]
pub struct Image {
    page_count: u64,
    /// The content that reads see: durable, unsynced in order, and dropped changes.
    current: Pages,
    /// The content that the last sync has made durable.
    durable: Pages,
    /// The changes that took effect since the last sync, in that order.
    unsynced: Vec<Change>,
    /// Whether reads see changes that will never be durable.
    has_dropped: bool,
    /// The changes that are pushed and not returned, by number of the push.
    in_flight: BTreeMap<u64, Change>,
    /// The page count of the growth that the cut has hit.
    growing_to: Option<u64>,
    /// The content of pages before their last write, if requested.
    previous: Option<BTreeMap<u64, Slot>>,
    /// The history, if requested.
    events: Option<Vec<Event>>,
}

impl Image {
    /// Creates an image without pages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an image of these bytes, durable, filled up with zeros to a whole page. Pages of zeros cost
    /// nothing.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let page_count = bytes.len().div_ceil(PAGE_BYTES) as u64;
        let mut pages = Pages::default();
        for (number, page) in (0..).zip(bytes.chunks(PAGE_BYTES)) {
            if page.iter().any(|&byte| byte != 0) {
                let mut whole = [0; PAGE_BYTES];
                whole[..page.len()].copy_from_slice(page);
                Change::write(number, &whole).apply(&mut pages);
            }
        }
        Self::of(page_count, pages)
    }

    fn of(page_count: u64, pages: Pages) -> Self {
        Self { page_count, current: pages.clone(), durable: pages, ..Self::default() }
    }

    /// Returns all bytes as reads see them.
    ///
    /// # Panics
    /// Panics if they do not fit in memory: this is for small images.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let pages = usize::try_from(self.page_count).expect("a small image");
        let mut bytes = vec![0; pages.checked_mul(PAGE_BYTES).expect("a small image")];
        self.read(PageId(0), &mut bytes);
        bytes
    }

    /// Returns the number of pages.
    #[must_use]
    pub const fn page_count(&self) -> u64 {
        self.page_count
    }

    /// Returns the number of pages visible to reads that take memory. Costs a walk over them.
    #[must_use]
    pub fn pages_held(&self) -> u64 {
        self.current.held()
    }

    /// Returns a hash of the length and of all bytes as reads see them: different images have different
    /// hashes. Costs a walk over the stored pages.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.current.hash(self.page_count)
    }

    /// Fills `bytes`, a whole number of pages, with the content that reads see from a page on: zeros for
    /// pages never written, including pages past the end.
    pub fn read(&self, page: PageId, bytes: &mut [u8]) {
        for (number, bytes) in (page.0..).zip(bytes.chunks_exact_mut(PAGE_BYTES)) {
            self.current.read(number, bytes);
        }
    }

    /// Returns an image that a power cut now (or the one that has happened) could leave, one of many
    /// possibilities; all of it is durable. Seed 0 loses everything that may be lost, seed 1 keeps everything
    /// that may be kept; every other seed mixes. Costs time and memory for the changes since the last sync,
    /// whatever the size of the image.
    #[must_use]
    pub fn survivors(&self, seed: u64) -> Self {
        let mut fates = Fates::new(seed);
        let mut page_count = self.page_count;
        if let Some(larger) = self.growing_to
            && fates.fate() == Fate::New
        {
            page_count = larger;
        }
        let mut pages = self.durable.clone();
        for change in self.unsynced.iter().chain(self.in_flight.values()) {
            change.survive(&mut pages, &mut fates);
        }
        Self::of(page_count, pages)
    }

    /// Returns a clone without the content of pages before their last write.
    pub(crate) fn without_previous(&self) -> Self {
        Self {
            page_count: self.page_count,
            current: self.current.clone(),
            durable: self.durable.clone(),
            unsynced: self.unsynced.clone(),
            has_dropped: self.has_dropped,
            in_flight: self.in_flight.clone(),
            growing_to: self.growing_to,
            previous: None,
            events: self.events.as_ref().map(|_| Vec::new()),
        }
    }

    /// Starts to record events. Each written page then takes one page of RAM.
    pub(crate) fn keep_events(&mut self) {
        self.events.get_or_insert_default();
    }

    /// Returns the number of recorded events.
    pub(crate) fn event_count(&self) -> usize {
        self.events.as_ref().map_or(0, Vec::len)
    }

    /// Returns the history of its first `count` events, followed by those of another image that was cloned
    /// from it.
    pub(crate) fn history(&self, count: usize, then: &Self) -> History {
        let of = |image: &Self| image.events.clone().unwrap_or_default();
        let mut events = of(self);
        events.truncate(count);
        events.extend(of(then));
        History { events }
    }

    fn note(&mut self, event: impl FnOnce() -> Event) {
        if let Some(events) = &mut self.events {
            events.push(event());
        }
    }

    /// Grows the image to `page_count` pages, durably; it never shrinks.
    pub(crate) fn grow(&mut self, page_count: u64) {
        self.note(|| Event::Grow(page_count));
        self.page_count = self.page_count.max(page_count);
    }

    /// Begins a growth that a power cut hits.
    pub(crate) fn begin_growth(&mut self, page_count: u64) {
        self.note(|| Event::BeginGrowth(page_count));
        self.growing_to = Some(page_count);
    }

    /// Puts a change in flight. Numbers increase from push to push.
    pub(crate) fn launch(&mut self, number: u64, change: Change) {
        self.note(|| Event::Launch(number, change.clone()));
        self.in_flight.insert(number, change);
    }

    /// Makes the change with this number take effect, if there is one.
    pub(crate) fn land(&mut self, number: u64) {
        let Some(change) = self.in_flight.remove(&number) else { return };
        self.note(|| Event::Land(number));
        if let Some(previous) = &mut self.previous {
            for page in change.written() {
                previous.insert(page, self.current.get(page).clone());
            }
        }
        change.apply(&mut self.current);
        self.unsynced.push(change);
    }

    /// Makes all changes that took effect durable. Costs nothing, unless something was dropped before.
    pub(crate) fn sync(&mut self) {
        self.note(|| Event::Sync);
        if self.has_dropped {
            self.unsynced.iter().for_each(|change| change.apply(&mut self.durable));
        } else {
            self.durable = self.current.clone();
        }
        self.unsynced.clear();
    }

    /// Drops the changes that took effect and are not durable; reads still see them.
    pub(crate) fn drop_unsynced(&mut self) {
        self.note(|| Event::Drop);
        self.has_dropped |= !self.unsynced.is_empty();
        self.unsynced.clear();
    }

    /// Starts to keep the content of each page before its last write; a discard is no write. Each page that
    /// was ever written then costs one more page of RAM.
    pub(crate) fn keep_previous(&mut self) {
        self.previous.get_or_insert_default();
    }

    /// Returns whether the page's content before its last write is known.
    pub(crate) fn has_previous(&self, page: u64) -> bool {
        self.previous.as_ref().is_some_and(|previous| previous.contains_key(&page))
    }

    /// Fills `bytes`, one page, with the page's content before its last write, if known.
    pub(crate) fn read_previous(&self, page: u64, bytes: &mut [u8]) {
        if let Some(slot) = self.previous.as_ref().and_then(|previous| previous.get(&page)) {
            slot.read(page, bytes);
        }
    }
}
