//! Drafts of a shadow: beginning one, and publishing it.

use std::time::Duration;

use nandex_store::shadow::{Draft, Journal, Shadow};

use super::{Core, Layout};
use crate::Result;

/// The longest wait for a free block before the caller checks again.
const SPACE_WAIT: Duration = Duration::from_millis(20);

impl<L: Layout> Core<L> {
    /// Takes a free block of a shadow for the next version of a logical block; waits until there is one.
    pub(crate) fn begin_draft(&self, shadow: &Shadow, logical: u32) -> Result<Draft> {
        loop {
            self.volume.poison().check()?;
            if let Some(draft) = shadow.begin(logical, self.volume.log().synced()) {
                return Ok(draft);
            }
            if !shadow.make_space(self.volume.log())? {
                self.ask_for_checkpoint()?;
                shadow.wait_for_space(SPACE_WAIT);
            }
        }
    }

    /// Returns what publishing drafts needs, with these bytes before their map updates in the log.
    pub(crate) fn journal<'j>(&'j self, prefix: &'j [u8]) -> Journal<'j> {
        Journal {
            device: &**self.volume.device(),
            log: self.volume.log(),
            poison: self.volume.poison(),
            prefix,
        }
    }
}
