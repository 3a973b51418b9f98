//! The laws on the devices that need no file, and on the wrappers around them, from outside the crate.

use std::sync::Arc;

use nandex_device::{Counted, Device, MemoryDevice, laws};

#[test]
fn memory_keeps_the_laws() {
    laws::check(&MemoryDevice::new());
}

#[test]
fn wrappers_keep_the_laws() {
    laws::check(&Counted::new(MemoryDevice::new()));
    laws::check(&Counted::new(Counted::new(MemoryDevice::new())));
}

#[test]
fn pointers_to_devices_are_devices() {
    let shared: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    laws::check(&Counted::new(Arc::clone(&shared)));
    laws::check(&(Box::new(shared) as Box<dyn Device>));
}
