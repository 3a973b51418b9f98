//! A power cut that failed, in a file: the history of the bytes that it left, and the state of the oracle.
//!
//! With threads the same seed gives other operations each time, so a failure that was not written down is
//! lost.

use std::fs;
use std::path::{Path, PathBuf};

use nandex::raw::device::output::write_output;
use nandex_sim::{History, Image};

use crate::contract::Contract;
use crate::session::Session;
use crate::sweep::{open, tell_panic, work_on};
use crate::versions::Oracle;

/// The environment variable that names the file to be replayed.
pub const REPLAY: &str = "NANDEX_REPLAY";

/// The first bytes of a file.
const MAGIC: &[u8; 16] = b"nandex replay 1\n";

/// The history of a power cut, from the bytes that the previous one left, and the choice of survivors.
#[derive(Clone, Debug)]
pub(crate) struct CutHistory {
    pub history: History,
    pub survivors: u64,
}

/// A power cut that failed.
#[derive(Debug)]
pub struct Recording {
    /// The configuration, as `Debug` shows it.
    pub setup: String,
    /// The failure.
    pub what: String,
    /// The cut, and the one during the recovery from it, if that failed.
    pub(crate) cuts: Vec<CutHistory>,
    /// The seed of the calls after the recovery, if they failed.
    pub(crate) work: Option<u64>,
    pub(crate) is_made: bool,
    /// The state of the oracle at the cut.
    pub(crate) past: Vec<u64>,
}

impl Recording {
    /// Reads a file.
    ///
    /// # Errors
    /// Fails if it cannot be read, or is no recording.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::decode(&bytes).ok_or_else(|| format!("{}: no recording of a cut", path.display()))
    }

    /// Writes it to a new file in a folder, and returns the file's path.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn write(&self, folder: &Path) -> std::io::Result<PathBuf> {
        let bytes = self.encode();
        let hash = bytes.chunks(8).fold(0, |hash, word| {
            let word = word.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            crate::contract::fold(hash, word)
        });
        let path = folder.join(format!("cut-{hash:016x}.replay"));
        fs::create_dir_all(folder)?;
        write_output(&path, bytes)?;
        Ok(path)
    }

    /// Returns whether it is of this configuration. Addresses in the `Debug` output differ between processes.
    pub fn is_of<C: Contract>(&self, setup: &C) -> bool {
        let without_addresses = |text: &str| {
            let parts =
                text.split("0x").map(|it| it.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
            parts.collect::<Vec<_>>().join("0x")
        };
        without_addresses(&self.setup) == without_addresses(&format!("{setup:?}"))
    }

    /// Returns the bytes that the last cut left.
    pub fn image(&self) -> Image {
        let survive = |image, cut: &CutHistory| cut.history.replay(image).survivors(cut.survivors);
        self.cuts.iter().fold(Image::new(), survive)
    }

    /// Recovers from the same bytes and makes the same requests of the structure, without the threads of the
    /// recorded run.
    ///
    /// # Errors
    /// Returns a wrong answer, and fails for another configuration.
    pub fn replay<C: Contract>(&self, setup: &C) -> Result<(), String> {
        let mut past = setup.past();
        past.restore(&self.past).ok_or("the file is of another oracle")?;
        let mut session = Session::resumed(setup.without_threads(), past, self.is_made);
        tell_panic(|| {
            let device = nandex_sim::SimDevice::instant().with_image(self.image());
            if open(&mut session, &device)?
                && let Some(seed) = self.work
            {
                work_on(&mut session, &device, seed)?;
            }
            session.kill();
            Ok(())
        })
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut put = |bytes: &[u8]| {
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        put(self.setup.as_bytes());
        put(self.what.as_bytes());
        put(&words(&[u64::from(self.is_made)]));
        put(&words(&self.work.into_iter().collect::<Vec<_>>()));
        put(&words(&self.past));
        for cut in &self.cuts {
            put(&words(&[cut.survivors]));
            put(&cut.history.encode());
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut next = || {
            let (length, after) = rest.split_first_chunk()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (part, after) = after.split_at_checked(length)?;
            rest = after;
            Some(part)
        };
        let mut text = || Some(String::from_utf8_lossy(next()?).into_owned());
        let (setup, what) = (text()?, text()?);
        let is_made = numbers(next()?)?.first() == Some(&1);
        let work = numbers(next()?)?.first().copied();
        let past = numbers(next()?)?;
        let mut cuts = Vec::new();
        while let Some(survivors) = next() {
            let survivors = *numbers(survivors)?.first()?;
            cuts.push(CutHistory { survivors, history: History::decode(next()?)? });
        }
        Some(Self { setup, what, cuts, work, is_made, past })
    }
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Option<Vec<u64>> {
    let number = |word: &[u8]| Some(u64::from_le_bytes(word.try_into().ok()?));
    bytes.chunks(8).map(number).collect()
}
