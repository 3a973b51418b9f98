//! The papers' drives, scaled down with the tables on them.

use nandex::raw::device::Geometry;
use nandex_sim::preset::{Machine, PresetError};
use nandex_sim::{Disk, Fill, Model, Ssd};

use crate::{Error, Result, Scale, vary};

/// The minimum blocks of each plane, so that its few percent of spare blocks are whole ones.
const BLOCKS_MIN: u32 = 64;
/// The minimum cylinders of a disk, so that its seeks keep their lengths.
const CYLINDERS_MIN: u32 = 64;

/// A drive of a paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drive {
    /// Its name in the paper.
    pub name: &'static str,
    /// Its preset.
    pub preset: &'static str,
    /// Whether it cleans blocks while idle, even if its preset does not.
    pub cleans_at_rest: bool,
}

/// The initial content of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filled {
    /// Nothing.
    Never,
    /// Every page, once, in order.
    Once,
    /// Every page, as after endless random writes.
    ForEver,
}

impl Drive {
    /// The Intel X18-M of NSDI 2010, with the times that the paper printed.
    pub const INTEL: Self = Self::named("Intel SSD", "intel-x18m-paper");
    /// The Transcend TS32GSSD25 of NSDI 2010, with the times that the paper printed.
    pub const TRANSCEND: Self = Self::named("Transcend SSD", "transcend-ts32-paper");
    /// The Hitachi Deskstar 7K80 of NSDI 2010, by its specification.
    pub const DISK: Self = Self::named("Disk", "deskstar-7k80");
    /// The flash chip of NSDI 2010, Table 2.
    pub const CHIP: Self = Self::named("Flash chip", "flash-chip-paper");
    /// The Transcend TS32GSSD25 from its parts and assumed rates.
    pub const TRANSCEND_SHEET: Self = Self::named("Transcend SSD by its parts", "transcend-ts32");
    /// The Intel X18-M as its data sheet and reviews have it, with a write buffer and cleaning at rest.
    pub const INTEL_SHEET: Self = Self::named("Intel SSD by its data sheet", "intel-x18m");
    /// The Crucial M4 of ANCS 2014, with the reads a second that the paper measured.
    pub const CRUCIAL: Self = Self::named("Crucial M4", "crucial-m4-paper");
    /// The Crucial M4 by its data sheet, which promises 40 000 reads a second.
    pub const CRUCIAL_SHEET: Self = Self::named("Crucial M4 by its data sheet", "crucial-m4");

    /// The Intel X25-M of the second generation, of HotStorage 2011.
    pub const X25M: Self = Self::named("Intel X25-M", "intel-x25m");

    const fn named(name: &'static str, preset: &'static str) -> Self {
        Self { name, preset, cleans_at_rest: false }
    }

    /// Returns the drive with its capacity divided by the scale, by fewer blocks in each plane or fewer
    /// cylinders; all times stay, including those of seeks over the same part of the disk. It keeps at least
    /// 64 blocks a plane, or 64 cylinders, and the pages that it needs.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`] if no such drive can exist.
    pub fn model(self, scale: Scale, filled: Filled, pages_min: u64) -> Result<Box<dyn Model>> {
        let fill = match filled {
            Filled::Never => Fill::Empty,
            Filled::Once => Fill::Sequential,
            Filled::ForEver => Fill::Steady { seed: scale.seed() },
        };
        self.build(scale, fill, pages_min).map_err(|source| Error::Drive {
            preset: self.preset,
            times: scale.times(),
            source: Box::new(source),
        })
    }

    /// Returns the drive with 64 blocks in each plane at every scale, so that a table can take all of it. It
    /// is empty, has its counts, and can be written to in no time.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`] if it is no SSD, or no such drive can exist.
    pub fn ssd(self) -> Result<Ssd> {
        let build = || match vary::machine(self.preset)? {
            Machine::Ssd(mut spec) => {
                spec.flash.blocks = spec.flash.blocks.min(BLOCKS_MIN);
                Ok(Ssd::new(spec, Fill::Empty)?)
            }
            _ => Err(PresetError::NotSsd { name: self.preset.into() }),
        };
        build().map_err(|source| Error::Drive {
            preset: self.preset,
            times: 1,
            source: Box::new(source),
        })
    }

    /// Returns its geometry.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`] if there is no such drive.
    pub fn geometry(self) -> Result<Geometry> {
        match vary::preset(self.preset) {
            Ok(preset) => Ok(preset.geometry()),
            Err(source) => {
                Err(Error::Drive { preset: self.preset, times: 1, source: Box::new(source) })
            }
        }
    }

    fn build(
        self,
        scale: Scale,
        fill: Fill,
        pages_min: u64,
    ) -> std::result::Result<Box<dyn Model>, PresetError> {
        let part = |count: u32, least: u32| (count / scale.times()).max(least.min(count));
        Ok(match vary::machine(self.preset)? {
            Machine::Ssd(mut spec) => {
                let each = (spec.page_count() / u64::from(spec.flash.blocks)).max(1);
                spec.ftl.background |= self.cleans_at_rest;
                spec.flash.blocks =
                    part(spec.flash.blocks, BLOCKS_MIN).max(pieces(pages_min, each));
                Box::new(Ssd::new(spec, fill)?)
            }
            Machine::Disk(mut spec) => {
                let each = u64::from(spec.surfaces) * u64::from(spec.pages_per_track);
                spec.cylinders = part(spec.cylinders, CYLINDERS_MIN).max(pieces(pages_min, each));
                Box::new(Disk::new(spec)?)
            }
            _ => vary::preset(self.preset)?.build(fill)?,
        })
    }
}

/// Returns the number of pieces of `each` pages for these pages, and an eighth more for the rounding of a
/// translation layer.
fn pieces(pages: u64, each: u64) -> u32 {
    u32::try_from((pages + pages / 8).div_ceil(each)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drive_can_be_made_as_small_as_any_scale_asks_for() {
        let drives = [
            Drive::INTEL,
            Drive::TRANSCEND,
            Drive::DISK,
            Drive::CHIP,
            Drive::INTEL_SHEET,
            Drive::TRANSCEND_SHEET,
            Drive::CRUCIAL,
            Drive::CRUCIAL_SHEET,
            Drive::X25M,
        ];
        for drive in drives {
            for times in [Scale::MOST, Scale::DEFAULT] {
                let scale = Scale::new(times, 1).unwrap();
                let table_pages = scale.of(32 << 30) / 4096 + 1000;
                let model = drive.model(scale, Filled::Once, table_pages).unwrap();
                assert!(model.page_count() >= table_pages, "{drive:?} at {times}");
            }
        }
    }
}
