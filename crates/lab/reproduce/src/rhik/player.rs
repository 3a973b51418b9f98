//! The simulated drive, and commands that keep its queue full.

use nandex_sim::preset::{Machine, PresetError};
use nandex_sim::{Fill, Ssd};

use crate::play::{Played, Player};
use crate::tape::Tape;
use crate::{Error, Result, vary};

/// The commands in flight: the queue depth of the emulator's own benchmark.
const DEPTH: usize = 64;
/// The drive behind Samsung's key-value SSD.
const PRESET: &str = "pm983";
/// The blocks of each plane: the minimum with spare ones.
const BLOCKS: u32 = 64;
/// The write buffer, which shrinks with the drive so that flash is measured.
const BUFFER_BYTES: u64 = 1 << 20;

/// Returns the drive, written once from the first page to the last.
///
/// # Errors
/// Fails with [`Error::Drive`] if there is no such drive.
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
