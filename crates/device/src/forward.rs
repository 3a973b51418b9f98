//! A pointer to a device is a device, so that wrappers and arrays accept shared devices.

use std::ops::Range;
use std::sync::Arc;

use crate::{Device, EngineReport, Geometry, PageBuf, PageId, Queue, Result};

macro_rules! forward {
    ($pointer:ident) => {
        impl<T: Device + ?Sized> Device for $pointer<T> {
            fn geometry(&self) -> Geometry {
                (**self).geometry()
            }

            fn page_count(&self) -> u64 {
                (**self).page_count()
            }

            fn grow(&self, page_count: u64) -> Result<()> {
                (**self).grow(page_count)
            }

            fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
                (**self).queue(depth)
            }

            fn sync(&self) -> Result<()> {
                (**self).sync()
            }

            fn discard(&self, pages: Range<PageId>) -> Result<()> {
                (**self).discard(pages)
            }

            fn now(&self) -> u64 {
                (**self).now()
            }

            fn engine(&self) -> EngineReport {
                (**self).engine()
            }

            fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
                (**self).read(page, buf)
            }

            fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
                (**self).write(page, buf)
            }
        }
    };
}

forward!(Arc);
forward!(Box);
