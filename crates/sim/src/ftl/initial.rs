//! What lies on a device before the first request, as arithmetic instead of a table.
//!
//! A table would cost eight bytes per page before anything has happened; a device of a TiB is to open
//! at once.

use super::Layout;

/// What lies on a device before the first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Initial {
    /// Nothing.
    Empty,
    /// Every host page, as if written once from the first to the last.
    Full,
}

impl Initial {
    /// The physical place of a host page.
    pub fn place(self, layout: &Layout, unit: u32) -> Option<u32> {
        if self == Self::Empty {
            return None;
        }
        let (chunk, offset) = (unit / layout.chunk_units, unit % layout.chunk_units);
        let (domain, in_domain) = (chunk % layout.domains(), chunk / layout.domains());
        let index = in_domain * layout.chunk_units + offset;
        let planes = layout.planes_of(domain);
        let (page, in_page) = (index / layout.page_units, index % layout.page_units);
        let count = planes.len() as u32;
        let plane = planes[(page % count) as usize];
        let slot = page / count * layout.page_units + in_page;
        Some(plane * layout.plane_units() + slot)
    }

    /// The host page at a physical place.
    pub fn owner(self, layout: &Layout, place: u32) -> Option<u32> {
        if self == Self::Empty {
            return None;
        }
        let (plane, slot) = (place / layout.plane_units(), place % layout.plane_units());
        if slot >= Self::slots(layout) {
            return None;
        }
        let (domain, which) = layout.domain_of(plane);
        let count = layout.planes_of(domain).len() as u32;
        let page = slot / layout.page_units * count + which;
        let index = page * layout.page_units + slot % layout.page_units;
        let chunk = index / layout.chunk_units * layout.domains() + domain;
        Some(chunk * layout.chunk_units + index % layout.chunk_units)
    }

    /// Places of each plane that hold a host page, from the plane's first on.
    pub fn slots(layout: &Layout) -> u32 {
        (layout.units / u64::from(layout.planes())) as u32
    }
}
