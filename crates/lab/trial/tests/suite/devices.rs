//! The devices of every kind on which structures are tested, and the durabilities.

use std::sync::Arc;
use std::time::Duration;

use nandex::Durability;
use nandex::device::{Create, Device, FileDevice, FileOptions};
use nandex::raw::device::EngineChoice;
use nandex_sim::preset::{Machine, Preset};
use nandex_sim::spec::FtlKind;
use nandex_sim::{Fill, SimDevice};

/// All durabilities; the period is so long that only explicit syncs make anything durable.
pub const DURABILITIES: [Durability; 3] =
    [Durability::Always, Durability::Every(Duration::from_secs(3600)), Durability::Never];

/// Returns a file in a folder of its own, opened by each call; nothing if the engine cannot run here.
pub fn file(engine: EngineChoice) -> Option<impl Fn() -> Arc<dyn Device>> {
    let folder = tempfile::tempdir().unwrap();
    let create = Create::OpenOrCreate;
    let options = FileOptions { engine, create, ..FileOptions::default() };
    let open = move || FileDevice::open(folder.path().join("volume"), &options);
    if let Err(error) = open() {
        println!("left out: {error}");
        return None;
    }
    Some(move || Arc::new(open().unwrap()) as Arc<dyn Device>)
}

/// Returns a simulated drive; nothing if it cannot be overwritten, as a raw chip.
pub fn drive(name: &str) -> Option<SimDevice> {
    let preset = Preset::named(name).unwrap();
    let overwrites = match preset.machine() {
        Machine::Ssd(spec) => spec.ftl.kind != FtlKind::Raw,
        _ => true,
    };
    let device = SimDevice::with_model(preset.build(Fill::Empty).unwrap());
    overwrites.then(|| device.with_geometry(preset.geometry()))
}
