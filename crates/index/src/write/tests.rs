//! A test for every layout with a lock of its maps: a capture holds it from its first partition to its last.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use nandex_store::Checkpointed;

use super::{Checkpoints, Core};

/// Returns whether a capture holds `maps` while it reads the partitions.
pub(crate) fn capture_holds<L: Checkpoints>(core: &Core<L>, maps: &Mutex<()>) -> bool {
    let last = core.partitions.last().unwrap().write();
    std::thread::scope(|scope| {
        // The capture gets as far as the last partition.
        let capture = scope.spawn(|| Checkpointed::capture(core));
        let deadline = Instant::now() + Duration::from_secs(10);
        while maps.try_lock().is_ok() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let is_held = maps.try_lock().is_err();
        drop(last);
        capture.join().unwrap();
        is_held
    })
}
