//! RAM of a simulated drive: it depends on the written pages, not on the size of the drive.

use nandex_sim::spec::{FtlKind, Spec};
use nandex_sim::{Fill, Machine, Preset};

use crate::support::{overwrite, ssd};

/// The number of pages that are written: 16 MiB.
const PAGES: u64 = 4096;
/// The bytes of the tables' smallest parts.
const CHUNK: usize = 16 << 10;

/// Returns drives by name, without chips that the host must erase.
fn drives() -> impl Iterator<Item = Spec> {
    let presets = Preset::names().map(|name| Preset::named(name).expect("it is built in"));
    presets.filter_map(|preset| match preset.machine() {
        Machine::Ssd(spec) if spec.ftl.kind != FtlKind::Raw => Some(spec.clone()),
        _ => None,
    })
}

/// Writes a few pages on a large drive: a table for all pages of a drive and one for all places were made at
/// once, 4 GB of addresses for 16 MiB of pairs on a key-value drive.
#[test]
fn the_ram_of_a_drive_grows_with_what_is_written() {
    for spec in drives() {
        let blocks = (spec.flash.plane_count() * spec.flash.blocks) as usize;
        // A steady drive takes a while to make.
        let steady = (spec.name == "pm983").then_some(Fill::Steady { seed: 1 });
        for fill in [Fill::Empty, Fill::Sequential].into_iter().chain(steady) {
            let mut drive = ssd(spec.clone(), fill);
            let of_new = drive.ram_bytes();
            let name = format!("{} {fill:?}", spec.name);
            assert!(of_new > 4 * blocks && of_new < 100 * blocks, "{name}: {of_new} bytes");
            overwrite(&mut drive, PAGES, 8, 1);
            let grown = drive.ram_bytes() - of_new;
            // A page that the host writes or cleaning moves may be the first near its address, and near its place.
            let done = drive.counters().ftl;
            let limit = 3 * CHUNK * (done.host_writes + done.moved) as usize;
            assert!(grown > 0 && grown < limit, "{name}: {grown} of {limit} bytes");
        }
    }
}
