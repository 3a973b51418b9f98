//! A cache of pages in RAM, loaded when they are touched, like a memory map: one after another.
//!
//! The evicted page is random. Pages are touched at random too, so no policy does better.

use std::collections::HashMap;

use nandex::device::Device;
use nandex::raw::device::{PageBuf, PageId};
use nandex_sim::SimDevice;
use nandex_sim::workload::SplitMix64;

use crate::Result;

/// The purpose of a touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// To read it.
    Look,
    /// To change it.
    Change,
}

/// A page in RAM.
struct Frame {
    page: u64,
    bytes: PageBuf,
    is_changed: bool,
}

/// A number of pages in RAM.
pub(super) struct Cache {
    frames: Vec<Frame>,
    frames_max: usize,
    places: HashMap<u64, usize>,
    rng: SplitMix64,
}

impl Cache {
    pub(super) fn new(frames_max: usize, seed: u64) -> Self {
        let rng = SplitMix64::stream(seed, 500);
        Self { frames: Vec::new(), frames_max, places: HashMap::new(), rng }
    }

    /// Returns the bytes of a page, and whether it had to be read.
    pub(super) fn page(
        &mut self,
        drive: &SimDevice,
        page: u64,
        used: Use,
    ) -> Result<(&mut [u8], bool)> {
        let (place, was_read) = match self.places.get(&page) {
            Some(place) => (*place, false),
            None => (self.bring_in(drive, page)?, true),
        };
        let frame = &mut self.frames[place];
        frame.is_changed |= used == Use::Change;
        Ok((frame.bytes.page_mut(0), was_read))
    }

    fn bring_in(&mut self, drive: &SimDevice, page: u64) -> Result<usize> {
        if self.frames.len() < self.frames_max {
            let bytes = drive.read(PageId(page), PageBuf::zeroed(1))?;
            self.frames.push(Frame { page, bytes, is_changed: false });
            self.places.insert(page, self.frames.len() - 1);
            return Ok(self.frames.len() - 1);
        }
        let place = self.rng.below(self.frames.len() as u64) as usize;
        let frame = &mut self.frames[place];
        let mut bytes = std::mem::replace(&mut frame.bytes, PageBuf::zeroed(1));
        if std::mem::take(&mut frame.is_changed) {
            bytes = drive.write(PageId(frame.page), bytes)?;
        }
        frame.bytes = drive.read(PageId(page), bytes)?;
        self.places.remove(&frame.page);
        frame.page = page;
        self.places.insert(page, place);
        Ok(place)
    }
}
