//! The simulated drive, and commands that keep its queue full.

use nandex_sim::preset::{Machine, PresetError};
use nandex_sim::{Fill, Ssd};

use crate::play::{Played, Player};
use crate::tape::Tape;
use crate::{Error, Result, vary};

/// Commands in flight: the queue depth that the emulator's own benchmark has.
const DEPTH: usize = 64;
/// The drive behind Samsung's key-value SSD.
const PRESET: &str = "pm983";
/// Blocks of each plane: as few as have spare ones.
const BLOCKS: u32 = 64;
/// The write buffer, which shrinks with the drive so that what is measured is flash.
const BUFFER_BYTES: u64 = 1 << 20;

/// The drive, written once from the first page to the last.
///
/// # Errors
/// [`Error::Drive`] if there is no such drive.
pub fn drive() -> Result<Ssd> {
    let build = || -> std::result::Result<Ssd, PresetError> {
        let Machine::Ssd(mut spec) = vary::machine(PRESET)? else {
            unreachable!("the preset is an SSD")
        };
        (spec.flash.blocks, spec.host.buffer_bytes) = (BLOCKS, BUFFER_BYTES);
        Ok(Ssd::new(spec, Fill::Sequential)?)
    };
    build().map_err(|source| Error::Drive { preset: PRESET, times: 1, source: Box::new(source) })
}

/// Plays commands with the queue full. The firmware's processor takes no time.
#[must_use]
pub fn play(tape: &Tape, drive: &mut Ssd) -> Played {
    Player { threads: DEPTH, ..Player::single(0) }.play(tape, drive)
}
