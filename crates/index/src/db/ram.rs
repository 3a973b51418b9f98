//! The shares of structures in the RAM stated for all of them.

use nandex_store::Volume;

use crate::model::text::bytes;
use crate::size::Quantity;
use crate::{Error, Result};

/// How often the RAM of a structure is halved to make its buffers fit the log.
const HALVINGS: u32 = 12;

/// The RAM of a database, and the shares of its open structures.
#[derive(Debug)]
pub(super) struct Shares {
    total: u64,
    taken: Vec<(String, u64)>,
}

impl Shares {
    pub(super) fn new(total: u64) -> Self {
        Self { total, taken: Vec::new() }
    }

    /// The shares of the structures that are still open.
    pub(super) fn taken(&mut self, volume: &Volume) -> &[(String, u64)] {
        self.taken.retain(|(name, _)| volume.is_open(name));
        &self.taken
    }

    /// Free bytes.
    pub(super) fn free(&mut self, volume: &Volume) -> u64 {
        let taken: u64 = self.taken(volume).iter().map(|(_, bytes)| bytes).sum();
        self.total.saturating_sub(taken)
    }

    /// What a new structure may take: what was required, or half of what is free.
    pub(super) fn limit(
        &mut self,
        volume: &Volume,
        name: &str,
        asked: Option<&Quantity>,
    ) -> Result<u64> {
        let free = self.free(volume);
        let Some(asked) = asked else { return Ok(free / 2) };
        let asked = asked.bytes("ram")?;
        if asked <= free { Ok(asked) } else { Err(self.refuse(name, asked, free)) }
    }

    /// Notes the share of an open structure.
    pub(super) fn take(&mut self, volume: &Volume, name: &str, needed: u64) -> Result<()> {
        let free = self.free(volume);
        if needed > free {
            return Err(self.refuse(name, needed, free));
        }
        self.taken.push((name.to_owned(), needed));
        Ok(())
    }

    /// Adds the shares to the refusal of a structure for its RAM, and the name to any other.
    pub(super) fn explain(&self, name: &str, limit: u64, error: Error) -> Error {
        let error = match error {
            Error::Config { field, reason }
            | Error::Store(nandex_store::Error::Config { field, reason }) => {
                return Error::Config { field, reason: format!("{name:?}: {reason}") };
            }
            Error::TooLittleRam { .. } => error,
            other => return other,
        };
        let reason = format!(
            "{name:?} may take {} of {} ({}), which is too little: {error}; state more with \
             nandex::options().ram(...), or give it more with `ram`",
            bytes(limit),
            bytes(self.total),
            self.whose()
        );
        Error::TooLittleRam { field: "ram", reason }
    }

    fn refuse(&self, name: &str, needed: u64, free: u64) -> Error {
        let reason = format!(
            "{name:?} takes {}, and {} of {} are free ({}); state more with nandex::options().ram(...), ask for \
             less with `ram`, or drop a structure first",
            bytes(needed),
            bytes(free),
            bytes(self.total),
            self.whose()
        );
        Error::TooLittleRam { field: "ram", reason }
    }

    /// The share of each structure, in a line.
    fn whose(&self) -> String {
        if self.taken.is_empty() {
            return "no other structure is open".to_owned();
        }
        let one = |(name, taken): &(String, u64)| format!("{name:?} has {}", bytes(*taken));
        self.taken.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The largest result of `advise` for at most `limit` bytes that `fits`. If none does, the result for the
/// least; creating that reports what is wrong.
pub(super) fn fitting<C>(
    limit: u64,
    advise: impl Fn(u64) -> Result<C>,
    fits: impl Fn(&C) -> bool,
) -> Result<C> {
    let mut best = advise(limit)?;
    for halving in 1..=HALVINGS {
        if fits(&best) {
            break;
        }
        let Ok(smaller) = advise(limit >> halving) else { break };
        best = smaller;
    }
    Ok(best)
}
