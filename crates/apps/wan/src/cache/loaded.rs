//! Recently read or added containers, in RAM.
//!
//! Neighbouring chunks recur together, so the next chunk is usually in a container that is here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use nandex::raw::store::values::ValueRef;

use crate::container::Container;

/// Some containers by their places; the oldest is evicted first, or later if it was used.
#[derive(Debug)]
pub(super) struct Loaded {
    bytes_max: usize,
    containers: HashMap<ValueRef, Held>,
    order: VecDeque<ValueRef>,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    container: Arc<Container>,
    was_asked: bool,
}

impl Loaded {
    /// Creates it for containers of at most this many bytes of RAM.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, containers: HashMap::new(), order: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn get(&mut self, reference: &ValueRef) -> Option<Arc<Container>> {
        let held = self.containers.get_mut(reference)?;
        held.was_asked = true;
        Some(Arc::clone(&held.container))
    }

    pub(super) fn insert(&mut self, reference: ValueRef, container: &Arc<Container>) {
        let held = Held { container: Arc::clone(container), was_asked: false };
        self.bytes += container.ram_bytes();
        match self.containers.insert(reference, held) {
            Some(before) => self.bytes -= before.container.ram_bytes(),
            None => self.order.push_back(reference),
        }
        while self.bytes > self.bytes_max {
            let Some(first) = self.order.pop_front() else { return };
            self.drop_or_keep(first);
        }
    }

    fn drop_or_keep(&mut self, reference: ValueRef) {
        let Some(held) = self.containers.get_mut(&reference) else { return };
        if std::mem::take(&mut held.was_asked) {
            self.order.push_back(reference);
        } else if let Some(gone) = self.containers.remove(&reference) {
            self.bytes -= gone.container.ram_bytes();
        }
    }

    pub(super) fn ram_bytes(&self) -> usize {
        self.bytes
    }
}
