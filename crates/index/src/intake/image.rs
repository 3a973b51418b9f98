//! Images: buffers that are saved before they are full.
//!
//! Closing a table, `flush`, and a log that is nearly full must not cost a ring segment for a buffer
//! that is half empty: that would evict entries for nothing. Instead the buffer's pages and stash go to
//! one of two places that the partition owns beside the ring, in turn, and the buffer stays in RAM and
//! goes on filling. The next open loads the image and replays only what the log holds after it.
//!
//! Images are written only while a checkpoint prepares, so the place that the last durable checkpoint
//! refers to is never the one written.

use std::sync::Mutex;

use nandex_device::{PageBuf, PageId};
use nandex_store::Lsn;
use nandex_store::buffer::{Buffer, STASH_LEN_MAX};
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::{PageKind, PageLabel, RawPage, seal};

use super::format::ImageRef;
use super::{Intake, Room, Shape};
use crate::Result;

/// The places for images, and what the next checkpoint is asked to save.
#[derive(Debug)]
pub(crate) struct Images {
    start: PageId,
    pages: u64,
    state: Mutex<ImagesState>,
}

#[derive(Debug)]
struct ImagesState {
    next_generation: u64,
    /// The place of each partition's image in the last durable checkpoint.
    durable: Vec<Option<u8>>,
    captured: Vec<Option<u8>>,
    /// Save buffers with entries that were logged before this place.
    before: Option<Lsn>,
    /// The partitions that a flush still has to save.
    unsaved: Vec<usize>,
}

/// Which buffers the next checkpoint saves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    /// This one, if it has entries that were logged before this place.
    Before(Lsn),
    /// This one, if it has changed since its last image.
    Changed,
}

/// Pages of one image: a buffer's, and those its stash needs at most.
fn image_pages(shape: &Shape) -> u64 {
    let stash_pages = stash_room(shape).div_ceil(shape.layout.slots());
    u64::from(shape.buffer_pages) + stash_pages as u64
}

/// Entries of a stash that an image can take: left-over entries of two buffers, which may all find their
/// pages full, beside the usual limit.
fn stash_room(shape: &Shape) -> usize {
    4 * STASH_LEN_MAX + shape.left_over_max as usize
}

/// Pages for the images of all partitions.
pub(crate) fn pages(shape: &Shape) -> u64 {
    2 * u64::from(shape.partitions) * image_pages(shape)
}

impl Images {
    /// Places behind the room's own pages, from `start` on.
    pub(crate) fn new(shape: &Shape, start: PageId, next: u64) -> Self {
        let none = vec![None; shape.partitions as usize];
        let state = ImagesState {
            next_generation: next,
            durable: none.clone(),
            captured: none,
            before: None,
            unsaved: Vec::new(),
        };
        Self { start, pages: image_pages(shape), state: Mutex::new(state) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ImagesState> {
        self.state.lock().expect("no holder of the images' lock panics")
    }

    /// Pages of one image.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// The first page of one of a partition's two places.
    pub(crate) fn place(&self, table: usize, slot: u8) -> PageId {
        self.start.plus((2 * table as u64 + u64::from(slot)) * self.pages)
    }

    pub(crate) fn next_generation(&self) -> u64 {
        self.lock().next_generation
    }

    /// Takes the wishes, one for a partition: who wishes what has changed saved has all the older saved too.
    fn take_wishes(&self) -> Vec<(usize, Wish)> {
        let mut state = self.lock();
        let mut wishes = vec![state.before.take().map(Wish::Before); state.durable.len()];
        for index in std::mem::take(&mut state.unsaved) {
            wishes[index] = Some(Wish::Changed);
        }
        wishes.into_iter().enumerate().filter_map(|(index, wish)| Some((index, wish?))).collect()
    }

    /// Notes what the checkpoint that is being taken refers to.
    pub(crate) fn capture(&self, images: &[Option<ImageRef>]) {
        self.lock().captured = images.iter().map(|image| image.map(|image| image.slot)).collect();
    }

    /// The checkpoint is durable.
    pub(crate) fn committed(&self) {
        let mut state = self.lock();
        state.durable = state.captured.clone();
    }
}

impl<R: Room> Intake<R> {
    fn image_label(&self, table: usize, image: ImageRef, index: u64) -> PageLabel {
        PageLabel {
            kind: PageKind::Image,
            structure: self.id,
            generation: image.generation,
            page: self.images.place(table, image.slot).plus(index),
        }
    }

    /// Asks the coming checkpoints to save every buffer, until none is left unsaved.
    pub(crate) fn wish_all_images(&self) {
        self.images.lock().unsaved = (0..self.partitions.len()).collect();
    }

    /// Asks the next checkpoint to save buffers with entries that were logged before this place.
    pub(crate) fn wish_images_before(&self, before: Lsn) {
        self.images.lock().before = Some(before);
    }

    /// Are there partitions that no checkpoint could save yet, because a full buffer was on its way?
    pub(crate) fn images_unsaved(&self) -> bool {
        !self.images.lock().unsaved.is_empty()
    }

    /// Saves the buffers that were asked for. Called while a checkpoint prepares, and only then.
    ///
    /// Each at most once: a second image would go to the place of the first, which a move that was logged
    /// in between may name.
    pub(crate) fn save_wished_images(&self) -> Result<()> {
        let mut left = Vec::new();
        for (index, wish) in self.images.take_wishes() {
            if !self.save_image(index, wish)? && wish == Wish::Changed {
                left.push(index);
            }
        }
        self.images.lock().unsaved.append(&mut left);
        Ok(())
    }

    /// Saves one active buffer, if it is wished; tells whether nothing is left to be saved.
    fn save_image(&self, index: usize, wish: Wish) -> Result<bool> {
        let (image, buf, number, puts, next_lsn) = {
            let mut state = self.partitions[index].lock();
            if !state.frozen.is_empty() {
                return Ok(false);
            }
            let wished = match wish {
                Wish::Before(lsn) => state.since.is_some_and(|since| since < lsn),
                Wish::Changed => state.puts > state.saved_puts,
            };
            if !wished {
                return Ok(true);
            }
            if state.active.stash_len() > stash_room(&self.shape) {
                self.try_freeze(index, &mut state, 0)?;
                return Ok(false);
            }
            let (image, buf) = (self.next_image(index), self.encode_image(&state.active));
            let next_lsn = self.log_now();
            (image, buf, state.number, state.puts, next_lsn)
        };
        self.write_image(index, image, buf)?;
        let mut state = self.partitions[index].lock();
        if state.number != number {
            state.replace_image(image);
            return Ok(false);
        }
        state.image = Some(image);
        state.saved_puts = puts;
        // Entries that came meanwhile were logged at or after this place.
        state.since = (state.puts != puts).then_some(next_lsn);
        Ok(true)
    }

    fn next_image(&self, index: usize) -> ImageRef {
        let mut state = self.images.lock();
        let other = |slot| if is_on(Barrier::ImagesAlternate) { 1 - slot } else { slot };
        let slot = state.durable[index].map_or(0, other);
        let generation = state.next_generation;
        state.next_generation += 1;
        ImageRef { slot, generation }
    }

    fn encode_image(&self, buffer: &Buffer) -> PageBuf {
        let mut buf = PageBuf::zeroed(usize::try_from(self.images.pages).expect("fits in memory"));
        let pages = buffer.page_count();
        buf[..buffer.bytes().len()].copy_from_slice(buffer.bytes());
        for (number, entry) in buffer.stash_entries().enumerate() {
            let slots = self.layout.slots();
            let slot = self.layout.slot_number(number % slots);
            self.layout.put(buf.page_mut(pages + number / slots), slot, entry);
        }
        buf
    }

    fn write_image(&self, index: usize, image: ImageRef, mut buf: PageBuf) -> Result<()> {
        for page in 0..buf.pages() {
            seal(buf.page_mut(page), self.image_label(index, image, page as u64));
        }
        self.count_written(buf.len() as u64);
        let written = self.volume.device().write(self.images.place(index, image.slot), buf);
        self.volume.poison().guard(written)?;
        Ok(())
    }

    /// Reads an image into an empty buffer.
    pub(crate) fn load_image(
        &self,
        index: usize,
        image: ImageRef,
        buffer: &mut Buffer,
    ) -> Result<()> {
        let buf = PageBuf::zeroed(usize::try_from(self.images.pages).expect("fits in memory"));
        let mut buf = self.volume.device().read(self.images.place(index, image.slot), buf)?;
        for page in 0..buf.pages() {
            let label = self.image_label(index, image, page as u64);
            RawPage::new(buf.page(page)).check(label)?;
            // In RAM, a page's header is zero until it is sealed.
            buf.page_mut(page)[..nandex_store::page::PAGE_HEADER_BYTES].fill(0);
        }
        let (pages, stash) = buf.split_at(buffer.bytes().len());
        buffer.load(pages);
        for page in stash.chunks_exact(nandex_device::PAGE_BYTES) {
            for (_, entry) in self.layout.entries(page) {
                buffer.put_left_over(&self.hasher, self.hasher.hash(entry.key), entry);
            }
        }
        Ok(())
    }

    /// Notes the images that recovery has loaded as the durable ones.
    pub(crate) fn adopt_images(&self, images: &[Option<ImageRef>]) {
        self.images.capture(images);
        self.images.committed();
    }
}
