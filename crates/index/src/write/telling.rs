//! A device that tells tests of writes and syncs, so that they may act in the middle of them.

use std::fmt;
use std::sync::{Arc, Mutex};

use nandex_device::{Call, Observer, OpKind, PageId, Watched};
use nandex_sim::SimDevice;

/// What is told of writes before they are done, and of syncs after that.
pub(crate) type Tell = dyn Fn(Asked) + Send + Sync;

/// What the device was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    Write(PageId),
    Sync,
}

/// Tells of writes and syncs, so that a test may act in the middle of them.
#[derive(Default)]
pub(crate) struct Telling(Mutex<Option<Arc<Tell>>>);

impl Telling {
    /// From now on tells this one, or nobody.
    pub(crate) fn set(&self, tell: Option<Arc<Tell>>) {
        *self.0.lock().unwrap() = tell;
    }

    fn tell(&self, asked: Asked) {
        // Let go, since who is told may use the device.
        let tell = self.0.lock().unwrap().clone();
        tell.inspect(|tell| tell(asked));
    }
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Telling")
    }
}

impl Observer for Telling {
    fn before(&self, call: Call<'_>) -> nandex_device::Result<()> {
        if let Call::Start { kind: OpKind::Write, page, .. } = call {
            self.tell(Asked::Write(page));
        }
        Ok(())
    }

    fn after(&self, call: Call<'_>, result: std::result::Result<(), &nandex_device::Error>) {
        if call == Call::Sync && result.is_ok() {
            self.tell(Asked::Sync);
        }
    }
}

/// A simulated device that tells.
pub(crate) fn telling() -> Watched<SimDevice, Telling> {
    Watched::with(SimDevice::instant(), Arc::default())
}
