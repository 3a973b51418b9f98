//! A structure's part in checkpoints, as its test defines it.

use std::sync::{Arc, Weak};

use nandex_store::{Captured, Checkpointed, Lsn, Result, Structure, Volume};

type Act = Box<dyn Fn() + Send + Sync>;

/// Returns the captures that it is given; at the other moments of a checkpoint it does only what it is given.
pub struct Part {
    capture: Box<dyn Fn() -> Captured + Send + Sync>,
    pub prepare: Act,
    pub committed: Act,
    pub flush_before: Act,
}

impl Part {
    pub fn new(capture: impl Fn() -> Captured + Send + Sync + 'static) -> Self {
        Self {
            capture: Box::new(capture),
            prepare: Box::new(|| ()),
            committed: Box::new(|| ()),
            flush_before: Box::new(|| ()),
        }
    }

    /// Takes part in the volume's checkpoints from now on, for as long as the result lives.
    pub fn register(self, volume: &Volume, structure: &Structure) -> Arc<Self> {
        let part = Arc::new(self);
        let weak: Weak<dyn Checkpointed> = Arc::downgrade(&(Arc::clone(&part) as _));
        volume.register(structure.id, weak);
        part
    }
}

impl Checkpointed for Part {
    fn prepare(&self) -> Result<()> {
        (self.prepare)();
        Ok(())
    }

    fn capture(&self) -> Captured {
        (self.capture)()
    }

    fn committed(&self) {
        (self.committed)();
    }

    fn flush_before(&self, _before: Lsn) -> Result<()> {
        (self.flush_before)();
        Ok(())
    }

    fn run_deferred(&self) -> Result<()> {
        Ok(())
    }
}
