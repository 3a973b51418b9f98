//! A drive on a simulated device, on the calling thread alone.

use std::sync::Arc;

use nandex::device::{Device, MemoryDevice};
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES};
use nandex::raw::slicehash;
use nandex::{AnyConfig, Durability, Threads, Volume, VolumeOpenOptions, VolumeOptions, rhik};
use nandex_baseline::multilevel;
use nandex_kvssd::{Config, Drive, IndexChoice, KeyOrder, KeySpace, Result, without_threads};

/// Every index that drives are tested with.
pub const INDEXES: [&str; 3] = ["rhik", "multilevel", "growing-slicehash"];

/// Returns an index of this kind whose buffers are so small that drives of tests fill them again and again.
pub fn index(kind: &str) -> AnyConfig {
    let (key_bytes, value_bytes) = (TABLE_KEY_BYTES, TABLE_VALUE_BYTES);
    match kind {
        "rhik" => rhik::Config { key_bytes, value_bytes, ..rhik::Config::tiny() }.into(),
        "multilevel" => {
            multilevel::Config { key_bytes, value_bytes, ..multilevel::Config::tiny() }.into()
        }
        "growing-slicehash" => {
            let tiny = slicehash::growing::Config::tiny();
            let entries_max = 12 * 100;
            let first = slicehash::Config { key_bytes, value_bytes, entries_max, ..tiny.first };
            slicehash::growing::Config { first, ..tiny }.into()
        }
        _ => panic!("{kind} has no configuration for tests"),
    }
}

/// An index of the first kind, sized by its model for a budget of RAM.
pub const CHOICE: IndexChoice<'_> = IndexChoice { kind: INDEXES[0], ram_bytes: Some(2 << 20) };

/// The drive's name in its volume.
pub const NAME: &str = "drive";

/// Returns the options of a volume that does everything on the calling thread.
pub fn volume_options(durability: Durability) -> VolumeOptions {
    let (threads, volume_id) = (Threads::Inline, Some(7));
    VolumeOptions { durability, threads, volume_id, log_bytes: 2 << 20, ..VolumeOptions::tiny() }
}

/// Creates a drive on a device.
pub fn create_on(
    device: Arc<dyn Device>,
    config: Config,
    index: &str,
    durability: Durability,
) -> Result<Drive> {
    nandex_baseline::register();
    let volume = Volume::create(device, volume_options(durability))?;
    Drive::create_with(&volume, NAME, config, (&self::index(index), &without_threads()))
}

/// Opens the drive again.
pub fn open_on(device: Arc<dyn Device>, durability: Durability) -> Result<Drive> {
    nandex_baseline::register();
    let options =
        VolumeOpenOptions { durability, threads: Threads::Inline, ..VolumeOpenOptions::default() };
    Drive::open_with(&Volume::open(device, options)?, NAME, &without_threads())
}

/// Creates a drive in memory with one open key space.
pub fn drive(config: Config) -> (Drive, KeySpace) {
    let device = Arc::new(MemoryDevice::new());
    let drive = create_on(device, config, INDEXES[0], Durability::Never).unwrap();
    let space = add_space(&drive, "main");
    (drive, space)
}

/// Creates and opens a key space without a limit.
pub fn add_space(drive: &Drive, name: &str) -> KeySpace {
    drive.create_key_space(name, 0, KeyOrder::None).unwrap();
    drive.open_key_space(name).unwrap()
}

/// Returns a key of this number, of 4 to 40 bytes, in one of 16 groups.
pub fn key(number: u64) -> Vec<u8> {
    let mut key = format!("g{:02}-{number:04}", number % 16).into_bytes();
    key.resize(4 + (number * 7 % 37) as usize, b'x');
    key.splice(..4, format!("g{:02}{}", number % 16, number % 10).into_bytes());
    key.extend_from_slice(&number.to_le_bytes());
    key
}

/// Returns a value of `bytes` bytes that differs for each seed.
pub fn value(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    let byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(byte).collect()
}
