//! Fields of presets that were fitted, by name.

use nandex_sim::preset::{Machine, Preset, PresetError};
use nandex_sim::{DiskSpec, Spec};

use crate::{Error, Result};

/// A field of a preset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    /// The time of the link for a byte.
    Link,
    /// The controller's time of a request.
    Controller,
    /// Further latency of a read.
    ReadLatency,
    /// Further latency of a write.
    WriteLatency,
    /// Array to register.
    Read,
    /// Register to array.
    Program,
    /// A block.
    Erase,
    /// The time of a bus for a byte.
    Transfer,
    /// Blocks that the host does not see.
    Spare,
}

impl Field {
    /// Returns its name in the preset's file.
    #[cfg(test)]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Link => "link_ps_per_byte",
            Self::Controller => "controller_ns",
            Self::ReadLatency => "read_latency_ns",
            Self::WriteLatency => "write_latency_ns",
            Self::Read => "read_ns",
            Self::Program => "program_ns",
            Self::Erase => "erase_ns",
            Self::Transfer => "transfer_ps_per_byte",
            Self::Spare => "spare_permille",
        }
    }

    /// Returns its unit.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Link | Self::Transfer => "ps/B",
            Self::Spare => "thousandths",
            _ => "ns",
        }
    }

    /// Returns its value in a preset.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`] if there is no such preset.
    pub(crate) fn value(self, preset: &'static str) -> Result<f64> {
        let value = || -> std::result::Result<u64, PresetError> {
            let mut value = 0;
            let note = |found| {
                value = found;
                found
            };
            match Preset::named(preset)?.machine() {
                Machine::Ssd(spec) => self.change(&mut spec.clone(), note),
                Machine::Disk(spec) => self.change_disk(&mut spec.clone(), note),
                _ => {}
            }
            Ok(value)
        };
        let found = value();
        found.map(|value| value as f64).map_err(|source| Error::Drive {
            preset,
            times: 1,
            source: Box::new(source),
        })
    }

    /// Replaces its value.
    pub(crate) fn change(self, spec: &mut Spec, change: impl FnOnce(u64) -> u64) {
        let place = match self {
            Self::Link => &mut spec.host.link_ps_per_byte,
            Self::Controller => &mut spec.host.controller_ns,
            Self::ReadLatency => &mut spec.host.read_latency_ns,
            Self::WriteLatency => &mut spec.host.write_latency_ns,
            Self::Read => &mut spec.timing.read_ns,
            Self::Program => &mut spec.timing.program_ns,
            Self::Erase => &mut spec.timing.erase_ns,
            Self::Transfer => &mut spec.timing.transfer_ps_per_byte,
            Self::Spare => {
                let changed = change(spec.ftl.spare_permille.into());
                spec.ftl.spare_permille = u32::try_from(changed).unwrap_or(u32::MAX);
                return;
            }
        };
        *place = change(*place);
    }

    /// Replaces its value in a disk, which has only a controller.
    pub(crate) fn change_disk(self, spec: &mut DiskSpec, change: impl FnOnce(u64) -> u64) {
        if self == Self::Controller {
            spec.controller_ns = change(spec.controller_ns);
        }
    }
}
