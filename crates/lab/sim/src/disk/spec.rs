//! The description of a simulated disk, as plain numbers.

use serde::{Deserialize, Serialize};

use crate::spec::HOST_PAGE_BYTES;
use crate::{Error, Result};

/// A description of a whole disk. All tracks are alike: there are no zones.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Its name in presets and reports.
    pub name: String,
    /// The modelled disk and the sources of the numbers.
    pub about: String,
    /// The requests that the disk takes at once (NCQ); more wait in the host.
    pub depth: u32,
    /// Whether it serves the request that the head reaches first; otherwise it serves the oldest.
    pub reorders: bool,
    /// The time of the controller for each request, during which the media work for others.
    pub controller_ns: u64,
    /// The time of the link for each byte, in picoseconds.
    pub link_ps_per_byte: u64,
    /// The bytes of the read-ahead buffer; 0 for none.
    pub buffer_bytes: u64,
    /// Turns of the spindle in a minute.
    pub turns_per_minute: u32,
    /// Positions of the arm.
    pub cylinders: u32,
    /// Tracks in a cylinder: surfaces with a head of their own.
    pub surfaces: u32,
    /// Pages of 4 KiB on a track.
    pub pages_per_track: u32,
    /// The time from a track to its neighbour: the shortest seek, and the time of changing the head.
    pub seek_track_ns: u64,
    /// The time over a third of all cylinders, which data sheets call the average seek.
    pub seek_average_ns: u64,
    /// The time from the first cylinder to the last.
    pub seek_full_ns: u64,
}

impl DiskSpec {
    /// Returns the pages that the disk offers.
    #[must_use]
    pub const fn page_count(&self) -> u64 {
        self.cylinders as u64 * self.surfaces as u64 * self.pages_per_track as u64
    }

    /// Returns the time of a turn, in nanoseconds.
    #[must_use]
    pub const fn turn_ns(&self) -> u64 {
        60_000_000_000 / self.turns_per_minute as u64
    }

    /// Returns the time of the arm over `cylinders` cylinders: a square root up to a third of the way, while
    /// it only accelerates and brakes, and a line from there on.
    #[must_use]
    pub const fn seek_ns(&self, cylinders: u32) -> u64 {
        let third = if self.cylinders < 6 { 2 } else { self.cylinders as u64 / 3 };
        let last = if self.cylinders < 6 { 5 } else { self.cylinders as u64 - 1 };
        let way = cylinders as u64;
        if way == 0 {
            return 0;
        }
        if way <= third {
            // The root of a fraction, in units of 2^-20.
            let root = (((way - 1) << 40) / (third - 1)).isqrt();
            return self.seek_track_ns
                + (((self.seek_average_ns - self.seek_track_ns) * root) >> 20);
        }
        let rest = self.seek_full_ns - self.seek_average_ns;
        self.seek_average_ns + rest * (way - third) / (last - third)
    }

    /// Checks that this disk is possible.
    ///
    /// # Errors
    /// Fails with [`Error::Spec`], with the first impossible field and its expected values.
    pub fn check(&self) -> Result<()> {
        let counts = [
            ("depth", self.depth, 1 << 16),
            ("turns_per_minute", self.turns_per_minute, 100_000),
            ("cylinders", self.cylinders, 1 << 22),
            ("surfaces", self.surfaces, 64),
            ("pages_per_track", self.pages_per_track, 1 << 12),
        ];
        for (field, found, max) in counts {
            if found == 0 || found > max {
                return Err(self.wrong(field, format!("1 to {max}"), found));
            }
        }
        let second = 1_000_000_000;
        let seeks = [
            ("seek_track_ns", self.seek_track_ns, 0, self.turn_ns() - 1),
            ("seek_average_ns", self.seek_average_ns, self.seek_track_ns, second),
            ("seek_full_ns", self.seek_full_ns, self.seek_average_ns, second),
            ("controller_ns", self.controller_ns, 0, second),
        ];
        for (field, found, min, max) in seeks {
            if found < min || found > max {
                return Err(self.wrong(field, format!("{min} to {max}"), found));
            }
        }
        if self.link_ps_per_byte > 1_000_000 {
            let expected = "at most 1000000, which is 1 MB/s";
            return Err(self.wrong("link_ps_per_byte", expected, self.link_ps_per_byte));
        }
        if !self.buffer_bytes.is_multiple_of(HOST_PAGE_BYTES) || self.buffer_bytes > 1 << 40 {
            let expected = "a multiple of 4096 up to 2^40";
            return Err(self.wrong("buffer_bytes", expected, self.buffer_bytes));
        }
        Ok(())
    }

    fn wrong(
        &self,
        field: &'static str,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Error {
        Error::spec(&self.name, field, expected, found)
    }
}
