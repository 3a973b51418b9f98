//! The channels of a volume's device: found by a probe, or read from the output of one.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use nandex::raw::device::{ArrayOptions, Geometry, Mapping, PAGE_BYTES, Striping};
use nandex::raw::store::schedule::Channels;
use serde::{Deserialize, Serialize};

use crate::cmd::probe;
use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::refuse;
use crate::size::show_bytes;

/// The source of the channels.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum GeometryArg {
    /// None: nothing is known about them.
    #[default]
    None,
    /// A probe of the device, before the volume is created.
    Probe,
    /// A file with the output of `nandex probe --json`.
    File(PathBuf),
}

impl FromStr for GeometryArg {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(match word {
            "none" => Self::None,
            "probe" => Self::Probe,
            path => Self::File(path.into()),
        })
    }
}

impl GeometryArg {
    /// Returns the channels of each device that a new volume will be on, if they are known. Several devices are alike:
    /// a file applies to all of them, and each is probed.
    ///
    /// # Errors
    /// A file that is not the output of a probe, or of one that found nothing; a failed probe.
    pub fn find(&self, volume: &VolumeArgs, console: &Console) -> Result<Option<Geometry>> {
        match self {
            Self::None => Ok(None),
            Self::File(file) => read(file).map(Some),
            Self::Probe => {
                let mut first: Option<Geometry> = None;
                for path in volume.paths() {
                    let findings = probe::next_to(path, volume.devices.engine)?;
                    let (geometry, reason) = (findings.geometry(), findings.channels.reason);
                    if !is_whole(&geometry) {
                        console.note(&format!(
                            "the probe saw no channels ({reason}), so the volume keeps none"
                        ));
                        return Ok(None);
                    }
                    if first.is_some_and(|first| first != geometry) {
                        console.note(&format!(
                            "the probe saw other channels for {} than for {}, so the volume keeps none",
                            path.display(),
                            volume.file.display()
                        ));
                        return Ok(None);
                    }
                    first = Some(geometry);
                }
                Ok(first)
            }
        }
    }
}

/// Returns the channels that a volume stores, given those of each of its devices, if these are known.
///
/// # Errors
/// An array in which the place of a page does not determine its channel.
pub fn of_volume(
    device: Option<Geometry>,
    volume: &VolumeArgs,
    striping: Striping,
) -> Result<Option<Geometry>> {
    let Some(device) = device else { return Ok(None) };
    let more = volume.devices.members.len();
    if more == 0 {
        return Ok(Some(device));
    }
    if let Some(all) = ArrayOptions::new(striping).channels_of(&device, more + 1) {
        return Ok(Some(all));
    }
    let round_bytes = Channels::of(&device).align_pages() * PAGE_BYTES as u64;
    refuse!(
        "--geometry: where a page is on these {} devices does not tell its channel; take runs \
         of a multiple of {}, one round of a device's channels, such as --stripe {round_bytes}, \
         on devices whose first chunk begins with them; or --geometry none",
        more + 1,
        show_bytes(round_bytes)
    )
}

/// Returns whether a volume stores this geometry.
fn is_whole(geometry: &Geometry) -> bool {
    geometry.channels.is_some_and(|count| count > 1) && geometry.chunk_bytes.is_some()
}

/// The required parts of the output of a probe.
#[derive(Deserialize)]
struct Probed {
    chunk_bytes: Answer<u32>,
    channels: Answer<u32>,
    groups: Vec<u32>,
    mapping: Answer<String>,
    phase_bytes: u64,
}

#[derive(Deserialize)]
struct Answer<T> {
    value: Option<T>,
}

fn read(file: &Path) -> Result<Geometry> {
    let place = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {place}"))?;
    let probed: Probed = serde_json::from_str(&text).with_context(|| {
        format!(
            "{place} is not an output of `nandex probe --json`; give one, or the word probe or none"
        )
    })?;
    let (channels, chunk_bytes) = (probed.channels.value, probed.chunk_bytes.value);
    let shared = |buses: &u32| channels.is_some_and(|all| *buses > 1 && all % *buses == 0);
    let mapping = match probed.mapping.value.as_deref() {
        None => None,
        Some("lba") => Some(Mapping::Lba),
        Some("write-order") => Some(Mapping::WriteOrder),
        Some(other) => bail!("{place}: the mapping {other} is neither lba nor write-order"),
    };
    let phase_bytes = chunk_bytes.filter(|chunk| *chunk > 0);
    let geometry = Geometry {
        channels,
        chunk_bytes,
        mapping,
        buses: probed.groups.first().copied().filter(shared),
        phase_bytes: phase_bytes.map_or(0, |chunk| (probed.phase_bytes % u64::from(chunk)) as u32),
        ..Geometry::opaque()
    };
    if !is_whole(&geometry) {
        refuse!("{place}: the probe saw no channels; make the volume with --geometry none");
    }
    geometry.check().with_context(|| format!("{place} cannot be of any device"))?;
    Ok(geometry)
}

/// Channels, for people and programs.
#[derive(Clone, Debug, Serialize)]
pub struct ShownGeometry {
    channels: Option<u32>,
    chunk_bytes: Option<u32>,
    buses: Option<u32>,
    phase_bytes: u32,
    mapping: Option<&'static str>,
    /// Whether the device reports other channels, so that these are not used.
    overruled: bool,
}

impl ShownGeometry {
    /// Returns the channels that a volume stores, on a device with this geometry.
    pub fn of(kept: &Geometry, used: &Geometry) -> Self {
        let &Geometry { channels, chunk_bytes, buses, phase_bytes, mapping, .. } = kept;
        let overruled = (channels, chunk_bytes) != (used.channels, used.chunk_bytes);
        let mapping = mapping.map(|mapping| match mapping {
            Mapping::Lba => "lba",
            Mapping::WriteOrder => "write-order",
        });
        Self { channels, chunk_bytes, buses, phase_bytes, mapping, overruled }
    }

    /// Formats the channels for people.
    pub fn shown(&self) -> String {
        let number = |value: Option<u32>| value.unwrap_or(1);
        let mapping = match self.mapping {
            Some("lba") => ", by address",
            Some(_) => ", by order of writing",
            None => "",
        };
        let overruled = match self.overruled {
            true => "; the device itself says otherwise, and that counts",
            false => "",
        };
        format!(
            "{}, chunks of {}{mapping}{overruled}",
            number(self.channels),
            show_bytes(number(self.chunk_bytes).into())
        )
    }
}
