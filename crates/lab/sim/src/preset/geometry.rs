//! The geometry of a device that a preset describes.

use nandex_device::{Geometry, Mapping};

use super::{Machine, Preset};
use crate::Spec;
use crate::disk::DiskSpec;
use crate::spec::{self, FtlKind, HOST_PAGE_BYTES, Level};

impl Preset {
    /// Returns the geometry of this device: as many channels as the mapping has domains, and the buses that
    /// they share.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        match &self.machine {
            Machine::Ssd(spec) if spec.ftl.kind == FtlKind::Raw => of_chip(spec),
            Machine::Ssd(spec) => of_ssd(spec),
            Machine::Disk(spec) => of_disk(spec),
        }
    }
}

fn of_ssd(spec: &Spec) -> Geometry {
    let (domains, buses) = (spec.flash.count(spec.ftl.domain), spec.flash.channels);
    // Reads overlap only on different planes, so a domain must be one.
    let overlaps = spec.parallel.pipelined && spec.ftl.domain == Level::Plane;
    Geometry {
        channels: Some(domains),
        chunk_bytes: Some(spec.ftl.chunk_bytes),
        mapping: Some(match spec.ftl.mapping {
            spec::Mapping::Lba => Mapping::Lba,
            spec::Mapping::WriteOrder => Mapping::WriteOrder,
        }),
        // Neighbouring domains are on neighbouring buses. With one bus for all there is no choice.
        buses: (1 < buses && buses < domains).then_some(buses),
        serial_buses: overlaps && spec.parallel.unit == Level::Channel,
        depth: spec.host.depth as usize,
        ..Geometry::opaque()
    }
}

/// Returns the geometry of a raw chip, whose units are one after another.
fn of_chip(spec: &Spec) -> Geometry {
    let units = spec.flash.count(spec.parallel.unit);
    Geometry {
        channels: Some(units),
        chunk_bytes: u32::try_from(spec.page_count() / u64::from(units) * HOST_PAGE_BYTES).ok(),
        mapping: Some(Mapping::Lba),
        depth: spec.host.depth as usize,
        ..Geometry::opaque()
    }
}

fn of_disk(spec: &DiskSpec) -> Geometry {
    Geometry { channels: Some(1), depth: spec.depth as usize, ..Geometry::opaque() }
}
