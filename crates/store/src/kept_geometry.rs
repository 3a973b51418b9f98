//! The channels of a device that does not report them, as stored in a volume.
//!
//! A drive behind a file or a block device does not report its channels. A [probe](nandex_device::probe) finds them in
//! minutes, and the volume stores the result, so that a later opening needs no option for it. What a device reports
//! itself takes precedence: otherwise a volume that was copied to another drive would be read by the plan of the first.

use std::sync::Arc;

use nandex_device::{Described, Device, Geometry, Mapping};

use crate::bytes::Reader;
use crate::{Error, Result};

/// The number of bytes of a geometry in the superblock.
pub(crate) const KEPT_BYTES: usize = 20;

/// Rejects a geometry that a volume cannot store for this device.
///
/// # Errors
/// [`Error::Config`] for a geometry without channels or chunks, an impossible one, and one that the device contradicts.
pub(crate) fn check_kept(device: &dyn Device, kept: &Geometry) -> Result<()> {
    kept.check()?;
    let refuse = |reason: String| Err(Error::config("geometry", reason));
    if kept.channels.is_none() || kept.chunk_bytes.is_none() {
        return refuse("it has no channels or no chunks; give both, or no geometry".into());
    }
    let own = device.geometry();
    let is_other = own.channels.is_some() && channels_of(&own) != channels_of(kept);
    if is_other {
        let reason = format!(
            "{}, and the device itself says {}; leave it out, since what a device says counts for more",
            shown(kept),
            shown(&own)
        );
        return refuse(reason);
    }
    Ok(())
}

/// Returns the device with the channels that the volume stores, unless the device reports its own.
pub(crate) fn described(device: Arc<dyn Device>, kept: Option<Geometry>) -> Arc<dyn Device> {
    match kept.filter(|_| device.geometry().channels.is_none()) {
        Some(kept) => Arc::new(Described::new(device, kept)),
        None => device,
    }
}

/// The parts of a geometry that a volume stores.
type ChannelsOf = (Option<u32>, Option<u32>, Option<u32>, u32, Option<Mapping>);

fn channels_of(geometry: &Geometry) -> ChannelsOf {
    let Geometry { channels, chunk_bytes, buses, phase_bytes, mapping, .. } = *geometry;
    (channels, chunk_bytes, buses, phase_bytes, mapping)
}

fn shown(geometry: &Geometry) -> String {
    let number = |value: Option<u32>| value.map_or("unknown".into(), |value| value.to_string());
    let mapping = geometry.mapping.map_or("unknown".into(), |mapping| mapping.to_string());
    format!(
        "{} channels, chunks of {} bytes, mapping {mapping}",
        number(geometry.channels),
        number(geometry.chunk_bytes)
    )
}

/// Encodes a geometry; zeros for none.
pub(crate) fn encode(kept: Option<&Geometry>) -> [u8; KEPT_BYTES] {
    let mut out = [0; KEPT_BYTES];
    let Some(kept) = kept else { return out };
    let (channels, chunk_bytes, buses, phase_bytes, mapping) = channels_of(kept);
    let mapping = match mapping {
        None => 0,
        Some(Mapping::Lba) => 1,
        Some(Mapping::WriteOrder) => 2,
    };
    let words =
        [channels.unwrap_or(0), chunk_bytes.unwrap_or(0), buses.unwrap_or(0), phase_bytes, mapping];
    for (bytes, word) in out.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    out
}

/// Reads a geometry, or its absence, from bytes that may be anything.
///
/// # Errors
/// [`Error::Corrupt`] for an impossible geometry.
pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Option<Geometry>> {
    let mut word = || reader.u32();
    let (channels, chunk_bytes, buses) = (word()?, word()?, word()?);
    let (phase_bytes, mapping) = (word()?, word()?);
    if [channels, chunk_bytes, buses, phase_bytes, mapping] == [0; 5] {
        return Ok(None);
    }
    let mapping = match mapping {
        0 => None,
        1 => Some(Mapping::Lba),
        2 => Some(Mapping::WriteOrder),
        other => return Err(reader.refuse("a mapping, 0 to 2", other)),
    };
    let known = |value: u32| (value > 0).then_some(value);
    let kept = Geometry {
        channels: known(channels),
        chunk_bytes: known(chunk_bytes),
        buses: known(buses),
        phase_bytes,
        mapping,
        ..Geometry::opaque()
    };
    let is_whole = kept.channels.is_some() && kept.chunk_bytes.is_some() && kept.check().is_ok();
    if !is_whole {
        return Err(reader.refuse("a possible geometry", shown(&kept)));
    }
    Ok(Some(kept))
}

#[cfg(test)]
mod tests {
    use nandex_device::{MemoryDevice, PageId};

    use super::*;

    const KNOWN: Geometry = Geometry {
        channels: Some(32),
        chunk_bytes: Some(8192),
        mapping: Some(Mapping::WriteOrder),
        buses: Some(8),
        phase_bytes: 4096,
        ..Geometry::opaque()
    };

    fn read(bytes: &[u8]) -> Result<Option<Geometry>> {
        decode(&mut Reader::new(bytes, "superblock", PageId(0)))
    }

    #[test]
    fn a_geometry_reads_back_and_has_the_bytes_of_the_format() {
        let expected = [32, 0, 0, 0, 0, 32, 0, 0, 8, 0, 0, 0, 0, 16, 0, 0, 2, 0, 0, 0];
        assert_eq!(encode(Some(&KNOWN)), expected);
        let least = Geometry { mapping: None, buses: None, phase_bytes: 0, ..KNOWN };
        for kept in [None, Some(KNOWN), Some(least)] {
            assert_eq!(read(&encode(kept.as_ref())).unwrap(), kept);
        }
        for (at, byte) in [(0, 0), (1, 255), (4, 1), (8, 5), (12, 1), (16, 3)] {
            let mut bad = expected;
            bad[at] = byte;
            assert!(read(&bad).is_err(), "{at}");
        }
    }

    #[test]
    fn what_a_device_says_of_itself_counts_for_more() {
        let silent = || Arc::new(MemoryDevice::new()) as Arc<dyn Device>;
        check_kept(&*silent(), &KNOWN).unwrap();
        assert_eq!(described(silent(), Some(KNOWN)).geometry().channels, Some(32));
        assert_eq!(described(silent(), None).geometry().channels, None);
        let other = Geometry { channels: Some(4), buses: None, ..KNOWN };
        let telling = Arc::new(Described::new(MemoryDevice::new(), other)) as Arc<dyn Device>;
        check_kept(&*telling, &other).unwrap();
        let refused = check_kept(&*telling, &KNOWN).unwrap_err().to_string();
        assert!(
            refused.contains("32 channels") && refused.contains("says 4 channels"),
            "{refused}"
        );
        assert_eq!(described(telling, Some(KNOWN)).geometry().channels, Some(4));
        let blind = Geometry { channels: None, buses: None, ..KNOWN };
        assert!(check_kept(&*silent(), &blind).is_err());
    }
}
