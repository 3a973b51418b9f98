//! Pages of things that left a structure's maps: who may still read them, and when they are free.
//!
//! For a structure that takes an extent from the volume for everything it writes, and gives it back. It owns what its
//! last checkpoint names; what the checkpoint leaves out is free once that is durable.

use std::sync::{Arc, Mutex};

use nandex_store::Volume;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::space::Extent;

/// Something on an extent of its own, written once.
pub(crate) trait OnFlash: std::fmt::Debug {
    fn extent(&self) -> Extent;
}

/// What left the maps, and the extents that the last capture named.
#[derive(Debug)]
pub(crate) struct Retired<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    things: Vec<Arc<T>>,
    /// In their order on the device.
    named: Vec<Extent>,
}

/// Is this extent one of those, which are in order? A structure may have thousands.
fn has(ordered: &[Extent], extent: Extent) -> bool {
    let at = ordered.binary_search_by_key(&extent.start, |it| it.start);
    at.is_ok_and(|at| ordered[at] == extent)
}

impl<T: OnFlash> Retired<T> {
    /// For a structure whose checkpoint names these extents.
    pub(crate) fn new(mut named: Vec<Extent>) -> Self {
        named.sort_by_key(|extent| extent.start);
        Self(Mutex::new(State { things: Vec::new(), named }))
    }

    /// Keeps the pages of these until nobody reads them. The caller sees to it that no checkpoint comes between this
    /// and the change of the maps.
    pub(crate) fn retire(&self, things: impl Iterator<Item = Arc<T>>) {
        self.0.lock().expect("no holder of the retired pages panics").things.extend(things);
    }

    /// The extents that a checkpoint names: those in use, and those of what left the maps and is still read. Once
    /// nobody reads a thing its extent is given back: by the checkpoint that leaves it out, or at once if no
    /// checkpoint has named it.
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
        // A thing that left the maps after they were captured is listed twice.
        extents.sort_by_key(|extent| extent.start);
        extents.dedup();
        state.named.clone_from(&extents);
        extents
    }
}
