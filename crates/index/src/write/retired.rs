//! Pages that a structure's maps no longer refer to: whether they are still being read, and when they are freed.
//!
//! This is for a structure that allocates an extent of the volume for everything it writes, and frees it again. It owns
//! what its last checkpoint names; what a checkpoint leaves out is free once that checkpoint is durable.

use std::sync::{Arc, Mutex};

use nandex_store::Volume;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::space::Extent;

/// An item in its own extent, written once.
pub(crate) trait OnFlash: std::fmt::Debug {
    fn extent(&self) -> Extent;
}

/// The items that left the maps, and the extents that the last capture named.
#[derive(Debug)]
pub(crate) struct Retired<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    things: Vec<Arc<T>>,
    /// The named extents, in their order on the device.
    named: Vec<Extent>,
}

/// Returns whether `ordered`, which is sorted, contains an extent. A structure may have thousands.
fn has(ordered: &[Extent], extent: Extent) -> bool {
    let at = ordered.binary_search_by_key(&extent.start, |it| it.start);
    at.is_ok_and(|at| ordered[at] == extent)
}

impl<T: OnFlash> Retired<T> {
    /// Creates the list for a structure whose checkpoint names these extents.
    pub(crate) fn new(mut named: Vec<Extent>) -> Self {
        named.sort_by_key(|extent| extent.start);
        Self(Mutex::new(State { things: Vec::new(), named }))
    }

    /// Keeps the pages of these items until no reader has them. The caller ensures that no checkpoint comes between
    /// this call and the change of the maps.
    pub(crate) fn retire(&self, things: impl Iterator<Item = Arc<T>>) {
        self.0.lock().expect("no holder of the retired pages panics").things.extend(things);
    }

    /// Returns the extents that a checkpoint names: those in use, and those of items that left the maps and are still
    /// being read. Once an item has no readers its extent is freed: by the checkpoint that leaves it out, or at once if
    /// no checkpoint has named it.
    pub(crate) fn extents(&self, volume: &Volume, mut extents: Vec<Extent>) -> Vec<Extent> {
        let mut state = self.0.lock().expect("no holder of the retired pages panics");
        for thing in std::mem::take(&mut state.things) {
            let extent = thing.extent();
            if Arc::strong_count(&thing) > 1 && is_on(Barrier::RetiredRunsKeepPages) {
                extents.push(extent);
                state.things.push(thing);
            } else if !has(&state.named, extent) {
                volume.give_back(extent);
            }
        }
        // An item that left the maps after they were captured is listed twice.
        extents.sort_by_key(|extent| extent.start);
        extents.dedup();
        state.named.clone_from(&extents);
        extents
    }
}
