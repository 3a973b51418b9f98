//! The open devices and key spaces. A handle is a number without an address behind it, so that one that was closed, or
//! never existed, is an error and nothing worse.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nandex_kvssd::{Drive, KeySpace, ResultCode};

use crate::failure::{Failure, Result};
use crate::worker::Worker;

/// An open device.
pub(crate) struct OpenDevice {
    pub(crate) uri: String,
    pub(crate) drive: Drive,
}

/// An open key space, and the thread of its asynchronous commands once there were some.
pub(crate) struct OpenSpace {
    device: usize,
    pub(crate) space: KeySpace,
    worker: Mutex<Option<Worker>>,
}

/// All open devices and key spaces of this process.
#[derive(Default)]
pub(crate) struct Handles {
    last: usize,
    devices: BTreeMap<usize, Arc<OpenDevice>>,
    spaces: BTreeMap<usize, Arc<OpenSpace>>,
}

static HANDLES: Mutex<Handles> =
    Mutex::new(Handles { last: 0, devices: BTreeMap::new(), spaces: BTreeMap::new() });

/// Locks and returns all handles.
pub(crate) fn handles() -> MutexGuard<'static, Handles> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the open device of a handle; an invalid handle fails with `code`.
pub(crate) fn device(handle: *mut c_void, code: ResultCode) -> Result<Arc<OpenDevice>> {
    if handle.is_null() {
        return Err(Failure::null("the device's handle"));
    }
    let found = handles().devices.get(&handle.addr()).cloned();
    found.ok_or_else(|| Failure::new(code, format!("no open device has the handle {handle:?}")))
}

/// Returns the open key space of a handle.
pub(crate) fn space(handle: *mut c_void) -> Result<Arc<OpenSpace>> {
    if handle.is_null() {
        return Err(Failure::null("the key space's handle"));
    }
    handles().spaces.get(&handle.addr()).cloned().ok_or_else(|| no_space(handle))
}

fn no_space(handle: *mut c_void) -> Failure {
    let words = format!("no open key space has the handle {handle:?}");
    Failure::new(ResultCode::SpaceNotOpen, words)
}

impl Handles {
    fn next(&mut self) -> usize {
        self.last += 1;
        self.last
    }

    /// Returns whether there is an open device of this URI.
    pub(crate) fn has_uri(&self, uri: &str) -> bool {
        self.devices.values().any(|device| device.uri == uri)
    }

    /// Adds a device.
    pub(crate) fn add_device(&mut self, device: OpenDevice) -> *mut c_void {
        let number = self.next();
        self.devices.insert(number, Arc::new(device));
        ptr::without_provenance_mut(number)
    }

    /// Adds a key space of a device.
    pub(crate) fn add_space(&mut self, device: *mut c_void, space: KeySpace) -> *mut c_void {
        let number = self.next();
        let open = OpenSpace { device: device.addr(), space, worker: Mutex::default() };
        self.spaces.insert(number, Arc::new(open));
        ptr::without_provenance_mut(number)
    }

    /// Removes and returns a key space.
    pub(crate) fn take_space(&mut self, handle: *mut c_void) -> Result<Arc<OpenSpace>> {
        if handle.is_null() {
            return Err(Failure::null("the key space's handle"));
        }
        self.spaces.remove(&handle.addr()).ok_or_else(|| no_space(handle))
    }

    /// Removes and returns a device with its key spaces.
    pub(crate) fn take_device(
        &mut self,
        handle: *mut c_void,
    ) -> Option<(Arc<OpenDevice>, Vec<Arc<OpenSpace>>)> {
        let device = self.devices.remove(&handle.addr())?;
        let of_it = |_: &usize, space: &mut Arc<OpenSpace>| space.device == handle.addr();
        let spaces = self.spaces.extract_if(.., of_it).map(|(_, space)| space).collect();
        Some((device, spaces))
    }
}

impl OpenSpace {
    /// Returns the thread of its asynchronous commands, which is started if there is none.
    pub(crate) fn worker(&self) -> Result<Worker> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        match &*worker {
            Some(running) => Ok(running.clone()),
            None => Ok(worker.insert(Worker::start(self.space.clone())?).clone()),
        }
    }

    /// Waits for all of its commands, and closes it.
    pub(crate) fn close(&self) -> Result {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        worker.into_iter().for_each(Worker::finish);
        Ok(self.space.close()?)
    }
}
