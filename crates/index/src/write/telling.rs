//! A device that reports writes and syncs to tests, so that they can act in the middle of them.

use std::fmt;
use std::sync::{Arc, Mutex};

use nandex_device::{Call, Observer, OpKind, PageId, Watched};
use nandex_sim::SimDevice;

/// A callback that is called before each write and after each sync.
pub(crate) type Tell = dyn Fn(Asked) + Send + Sync;

/// The request to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    Write(PageId),
    Sync,
}

/// Reports writes and syncs, so that a test can act in the middle of them.
#[derive(Default)]
pub(crate) struct Telling(Mutex<Option<Arc<Tell>>>);

impl Telling {
    /// Reports to this callback from now on, or to none.
    pub(crate) fn set(&self, tell: Option<Arc<Tell>>) {
        *self.0.lock().unwrap() = tell;
    }

    fn tell(&self, asked: Asked) {
        // The lock is released first, since the callback may use the device.
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

/// Returns a simulated device that reports its requests.
pub(crate) fn telling() -> Watched<SimDevice, Telling> {
    Watched::with(SimDevice::instant(), Arc::default())
}
