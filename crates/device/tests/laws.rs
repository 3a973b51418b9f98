//! The laws on the devices that need no file, and on the wrappers around them, from outside the crate.

use std::sync::Arc;

use nandex_device::{Counted, Device, MemoryDevice, Overlay, PageBuf, PageId, laws};

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

#[test]
fn an_overlay_keeps_the_laws_and_what_is_below_as_it_is() {
    let below = MemoryDevice::new();
    below.grow(20).unwrap();
    let mut page = PageBuf::zeroed(1);
    page.fill(9);
    below.write(PageId(19), page).unwrap();
    let (image, shared) = (below.image(), Arc::new(below.clone()));
    let overlay = Overlay::new(shared);
    let read = overlay.read(PageId(18), PageBuf::zeroed(2)).unwrap();
    assert!(
        read.page(0).iter().all(|byte| *byte == 0) && read.page(1).iter().all(|byte| *byte == 9)
    );
    overlay.grow(30).unwrap();
    let across = overlay.read(PageId(19), PageBuf::zeroed(2)).unwrap();
    assert!(
        across.page(0).iter().all(|byte| *byte == 9)
            && across.page(1).iter().all(|byte| *byte == 0)
    );
    laws::check(&Overlay::new(Arc::new(MemoryDevice::new())));
    laws::check(&overlay);
    assert!(below.image() == image && below.page_count() == 20);
}
