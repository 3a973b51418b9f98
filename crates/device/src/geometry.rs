//! Sizes and addresses: pages, their numbers, and the units that work in parallel.

use std::fmt;

use crate::{Error, Result};

/// The number of bytes in a page, the unit of every read and of every checksum.
pub const PAGE_BYTES: usize = 4096;

/// The number of a page on a device, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PageId(pub u64);

impl PageId {
    /// Returns the page that is `pages` further on.
    #[must_use]
    pub const fn plus(self, pages: u64) -> Self {
        Self(self.0 + pages)
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}", self.0)
    }
}

/// The way in which a device chooses the channel of a chunk (ANCS'14, section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mapping {
    /// The i-th chunk of the address space is on channel i mod N.
    Lba,
    /// The i-th chunk that was written is on channel i mod N.
    WriteOrder,
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lba => "by address",
            Self::WriteOrder => "by order of writing",
        })
    }
}

/// Sizes of a device that never change while it is open.
///
/// Unknown fields stay open, which costs only speed: a wrong value makes reads slower, never wrong. A preset, a
/// [probe](crate::probe), or the user ([`FileOptions`](crate::FileOptions)) provides them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// The number of bytes in a page; [`PAGE_BYTES`] on every current device.
    pub page_bytes: usize,
    /// The number of channels that can work at once, if the device reports it or a probe has found it.
    pub channels: Option<u32>,
    /// The number of bytes that are on one channel before the next begins, if known.
    pub chunk_bytes: Option<u32>,
    /// The mapping of chunks to channels, if known.
    pub mapping: Option<Mapping>,
    /// The number of buses that the channels share, if they do: channel c is on bus c mod buses, and reads on one bus
    /// wait for each other too, but less than on one channel unless [it serves one at a time](Self::serial_buses).
    pub buses: Option<u32>,
    /// Whether a bus serves one read at a time. Reads of one channel in a row then overlap, as a page is sent while the
    /// next one is read, and reads of several channels on one bus do not. Only presets set it: a probe does not detect
    /// it, and a volume does not store it.
    pub serial_buses: bool,
    /// The number of bytes before the first whole chunk of the device, if a partition or file begins in the middle of a
    /// chunk. Less than a chunk.
    pub phase_bytes: u32,
    /// The deepest queue that is worth filling.
    pub depth: usize,
    /// The number of devices in parallel; 1 unless it is an array.
    pub members: u32,
    /// The number of pages that are on one member before the next member's begin; 1 if there is one member. In an array
    /// of extents, page 0 is the first of a run on member 0, so a block that begins at a multiple of `members *
    /// stripe_pages` is spread evenly, `stripe_pages` on each member in turn. In an array of partitions it is the size
    /// of the partition.
    pub stripe_pages: u64,
}

/// The most channels of a geometry: far more than any current array has.
pub const CHANNELS_MAX: u32 = 1 << 15;

impl Geometry {
    /// Returns the geometry of a device about which nothing is known.
    #[must_use]
    pub const fn opaque() -> Self {
        Self {
            page_bytes: PAGE_BYTES,
            channels: None,
            chunk_bytes: None,
            mapping: None,
            buses: None,
            serial_buses: false,
            phase_bytes: 0,
            depth: 32,
            members: 1,
            stripe_pages: 1,
        }
    }

    /// Checks that a device with this geometry can exist.
    ///
    /// # Errors
    /// [`Error::Geometry`] with the first impossible field, and the expected value.
    pub fn check(&self) -> Result<()> {
        let wrong =
            |field, expected: String, found: u64| Err(Error::Geometry { field, expected, found });
        if self.page_bytes != PAGE_BYTES {
            return wrong("page_bytes", PAGE_BYTES.to_string(), self.page_bytes as u64);
        }
        if self.depth == 0 {
            return wrong("depth", "at least 1".into(), 0);
        }
        if let Some(channels) = self.channels.filter(|count| !(1..=CHANNELS_MAX).contains(count)) {
            return wrong("channels", format!("1 to {CHANNELS_MAX}"), channels.into());
        }
        let is_whole = |bytes: u32| bytes > 0 && (bytes as usize).is_multiple_of(PAGE_BYTES);
        if let Some(chunk) = self.chunk_bytes.filter(|bytes| !is_whole(*bytes)) {
            return wrong("chunk_bytes", format!("a multiple of {PAGE_BYTES}"), chunk.into());
        }
        let chunk = self.chunk_bytes.unwrap_or(1);
        if self.phase_bytes >= chunk || !(self.phase_bytes as usize).is_multiple_of(PAGE_BYTES) {
            let expected = format!("a multiple of {PAGE_BYTES}, less than a chunk");
            return wrong("phase_bytes", expected, self.phase_bytes.into());
        }
        let channels = self.channels.unwrap_or(0);
        let divides = |buses: u32| buses > 0 && channels > 0 && channels.is_multiple_of(buses);
        if let Some(buses) = self.buses.filter(|buses| !divides(*buses)) {
            return wrong("buses", format!("a divisor of the {channels} channels"), buses.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometry_that_cannot_be_is_refused_by_its_field() {
        let known = Geometry {
            channels: Some(32),
            chunk_bytes: Some(8192),
            mapping: Some(Mapping::WriteOrder),
            buses: Some(8),
            phase_bytes: 4096,
            ..Geometry::opaque()
        };
        known.check().unwrap();
        Geometry::opaque().check().unwrap();
        let wrong = [
            ("page_bytes", Geometry { page_bytes: 8192, ..known }),
            ("depth", Geometry { depth: 0, ..known }),
            ("channels", Geometry { channels: Some(0), ..known }),
            ("channels", Geometry { channels: Some(CHANNELS_MAX + 1), ..known }),
            ("chunk_bytes", Geometry { chunk_bytes: Some(0), ..known }),
            ("chunk_bytes", Geometry { chunk_bytes: Some(5000), ..known }),
            ("phase_bytes", Geometry { phase_bytes: 8192, ..known }),
            ("phase_bytes", Geometry { phase_bytes: 100, ..known }),
            ("phase_bytes", Geometry { phase_bytes: 4096, ..Geometry::opaque() }),
            ("buses", Geometry { buses: Some(0), ..known }),
            ("buses", Geometry { buses: Some(5), ..known }),
            ("buses", Geometry { channels: None, ..known }),
        ];
        for (name, geometry) in wrong {
            let error = geometry.check().unwrap_err();
            assert!(matches!(error, Error::Geometry { field, .. } if field == name), "{error}");
        }
        let error = Geometry { buses: Some(5), ..known }.check().unwrap_err().to_string();
        assert_eq!(
            error,
            "a geometry with buses of 5: expected a divisor of the 32 channels; correct it, or leave it out"
        );
    }
}
