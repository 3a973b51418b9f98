//! A device that does not report its channels, with channels that were found by other means.

use std::ops::Range;

use crate::{Device, EngineReport, Geometry, PageBuf, PageId, Queue, Result};

/// A device with the channels of a different geometry. Everything else is the device's.
///
/// ```
/// use nandex_device::{Described, Device, Geometry, MemoryDevice};
///
/// let found = Geometry { channels: Some(4), chunk_bytes: Some(8192), ..Geometry::opaque() };
/// let device = Described::new(MemoryDevice::new(), found);
/// assert_eq!(device.geometry().channels, Some(4));
/// ```
#[derive(Debug)]
pub struct Described<D> {
    device: D,
    geometry: Geometry,
}

impl<D: Device> Described<D> {
    /// Creates a device with the channels, chunks, mapping, buses and phase of `channels`.
    #[must_use]
    pub fn new(device: D, channels: Geometry) -> Self {
        let Geometry { page_bytes, depth, members, stripe_pages, .. } = device.geometry();
        let geometry = Geometry { page_bytes, depth, members, stripe_pages, ..channels };
        Self { device, geometry }
    }
}

impl<D: Device> Device for Described<D> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn page_count(&self) -> u64 {
        self.device.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        self.device.grow(page_count)
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        self.device.queue(depth)
    }

    fn sync(&self) -> Result<()> {
        self.device.sync()
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        self.device.discard(pages)
    }

    fn now(&self) -> u64 {
        self.device.now()
    }

    fn engine(&self) -> EngineReport {
        self.device.engine()
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.device.read(page, buf)
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.device.write(page, buf)
    }
}
