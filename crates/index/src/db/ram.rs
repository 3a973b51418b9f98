//! Who has how much of the RAM that was stated for all structures.

use nandex_store::Volume;

use crate::model::text::bytes;
use crate::size::Quantity;
use crate::{Error, Result};

/// How often the RAM of a structure is halved to make its buffers fit into the log.
const HALVINGS: u32 = 12;

/// The RAM of a database, and what the open structures have of it.
#[derive(Debug)]
pub(super) struct Shares {
    total: u64,
    taken: Vec<(String, u64)>,
}

impl Shares {
    pub(super) fn new(total: u64) -> Self {
        Self { total, taken: Vec::new() }
    }

    /// What the structures have that are still open.
    pub(super) fn taken(&mut self, volume: &Volume) -> &[(String, u64)] {
        self.taken.retain(|(name, _)| volume.is_open(name));
        &self.taken
    }

    /// Bytes that nobody has.
    pub(super) fn free(&mut self, volume: &Volume) -> u64 {
        let taken: u64 = self.taken(volume).iter().map(|(_, bytes)| bytes).sum();
        self.total.saturating_sub(taken)
    }

    /// What a new structure may take: what was asked for, or half of what is free.
    pub(super) fn limit(
        &mut self,
        volume: &Volume,
        name: &str,
        asked: Option<&Quantity>,
    ) -> Result<u64> {
        let free = self.free(volume);
        let Some(asked) = asked else { return Ok(free / 2) };
        let asked = asked.get("ram")?;
        if asked <= free { Ok(asked) } else { Err(self.refuse(name, asked, free)) }
    }

    /// Notes what an open structure has.
    pub(super) fn take(&mut self, volume: &Volume, name: &str, needed: u64) -> Result<()> {
        let free = self.free(volume);
        if needed > free {
            return Err(self.refuse(name, needed, free));
        }
        self.taken.push((name.to_owned(), needed));
        Ok(())
    }

    /// Adds who has what to a refusal of a structure that had to do with a share.
    pub(super) fn explain(&self, name: &str, limit: u64, error: &Error) -> Error {
        let reason = format!(
            "{name:?} may take {} of {} ({}), and that does not do: {error}; state more with \
             nandex::options().ram(...), or give it more with `ram`",
            bytes(limit),
            bytes(self.total),
            self.whose()
        );
        Error::Config { field: "ram", reason }
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
        Error::Config { field: "ram", reason }
    }

    /// What each structure has, in a line.
    fn whose(&self) -> String {
        if self.taken.is_empty() {
            return "no other structure is open".to_owned();
        }
        let one = |(name, taken): &(String, u64)| format!("{name:?} has {}", bytes(*taken));
        self.taken.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The largest of what `advise` makes of at most `limit` bytes that `fits`. Where none does, the one that was
/// made of the least; creating that says what is wrong.
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
