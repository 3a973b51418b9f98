//! A table on two files at once, and its cost: devices are made of devices.
//!
//! `cargo run --release -p nandex --example own_device`
//!
//! Any `Device` serves: here an array of two files, striped by megabytes, inside a wrapper that counts.

use std::sync::Arc;

use nandex::device::{Create, Device, FileDevice, FileOptions};
use nandex::raw::bufferhash::model::Budget;
use nandex::raw::device::{ArrayDevice, Counted, Striping};
use nandex::{BufferHash, Table, Volume, VolumeOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let new = FileOptions { create: Create::New, ..FileOptions::default() };
    let member = |name: &str| -> nandex::raw::device::Result<Arc<dyn Device>> {
        Ok(Arc::new(FileDevice::open(folder.path().join(name), &new)?))
    };
    let members = vec![member("first")?, member("second")?];
    let array = ArrayDevice::new(members, Striping::Extent { pages: 256 })?;
    let device = Arc::new(Counted::new(array));

    let volume = Volume::create(Arc::clone(&device) as Arc<dyn Device>, VolumeOptions::default())?;
    let budget = Budget { entries: 1_000_000, ram_bytes: 16 << 20 };
    let table = BufferHash::with_budget(&volume, "t", budget)?;
    for key in 0..500_000u64 {
        table.insert_u64(key, key)?;
    }
    table.flush()?;
    let before = device.snapshot();
    for key in 0..10_000u64 {
        assert_eq!(table.get_u64(key * 50)?, Some(key * 50));
    }
    let spent = device.snapshot() - before;
    println!("{} pages read for 10000 lookups", spent.pages_read);
    println!("engine: {}", device.engine().name);
    Ok(())
}
