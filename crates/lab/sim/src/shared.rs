//! A model that is observed from outside while a device owns it.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::{Done, Model, Request};

fn lock<M>(model: &Mutex<M>) -> MutexGuard<'_, M> {
    model.lock().expect("no holder of this lock panics")
}

/// Implements a model for a pointer to a model: keep one, give its clone to a
/// [`SimDevice`](crate::SimDevice::with_model), and read the counters of the model later. A caller that holds
/// the lock blocks the device.
impl<M: Model> Model for Arc<Mutex<M>> {
    fn now_ns(&self) -> u64 {
        lock(self).now_ns()
    }

    fn page_count(&self) -> u64 {
        lock(self).page_count()
    }

    fn refuses(&self, request: &Request) -> Option<String> {
        lock(self).refuses(request)
    }

    fn submit_at(&mut self, at_ns: u64, request: Request) {
        lock(self).submit_at(at_ns, request);
    }

    fn submit(&mut self, request: Request) {
        lock(self).submit(request);
    }

    fn step(&mut self, done: &mut Vec<Done>) -> bool {
        lock(self).step(done)
    }

    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>) {
        lock(self).advance(to_ns, done);
    }
}
