//! What lies below a structure: devices of every sort, and when updates are durable there.

use std::sync::Arc;
use std::time::Duration;

use nandex::Durability;
use nandex::device::{Create, Device, EngineChoice, FileDevice, FileOptions, MemoryDevice};
use nandex_sim::preset::{Machine, Preset};
use nandex_sim::spec::FtlKind;
use nandex_sim::{Fill, SimDevice};

/// All durabilities; a period so long that only explicit syncs make anything durable.
pub const DURABILITIES: [Durability; 3] =
    [Durability::Always, Durability::Every(Duration::from_secs(3600)), Durability::Never];

/// Where a structure lies, kept from one opening to the next.
pub enum Ground {
    Memory(MemoryDevice),
    File(tempfile::TempDir, EngineChoice),
    Simulated(SimDevice),
}

impl Ground {
    pub fn memory() -> Self {
        Self::Memory(MemoryDevice::new())
    }

    /// A file of its own; nothing where the engine cannot run here.
    pub fn file(engine: EngineChoice) -> Option<Self> {
        let ground = Self::File(tempfile::tempdir().unwrap(), engine);
        match ground.try_device() {
            Ok(_) => Some(ground),
            Err(error) => {
                println!("left out: {error}");
                None
            }
        }
    }

    /// A simulated drive; nothing where it cannot be written over, as a raw chip.
    pub fn preset(name: &str) -> Option<Self> {
        let preset = Preset::named(name).unwrap();
        let overwrites = match preset.machine() {
            Machine::Ssd(spec) => spec.ftl.kind != FtlKind::Raw,
            _ => true,
        };
        let device = SimDevice::with_model(preset.build(Fill::Empty).unwrap());
        overwrites.then(|| Self::Simulated(device.with_geometry(preset.geometry())))
    }

    pub fn device(&self) -> Arc<dyn Device> {
        self.try_device().unwrap()
    }

    fn try_device(&self) -> nandex::device::Result<Arc<dyn Device>> {
        Ok(match self {
            Self::Memory(device) => Arc::new(device.clone()),
            Self::Simulated(device) => Arc::new(device.clone()),
            Self::File(dir, engine) => {
                let create = Create::OpenOrCreate;
                let options = FileOptions { engine: *engine, create, ..FileOptions::default() };
                Arc::new(FileDevice::open(dir.path().join("volume"), &options)?)
            }
        })
    }
}
