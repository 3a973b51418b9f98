//! Tables on arrays and chips, the offline check, and the format on flash.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod array;
mod backup;
mod check;
mod chip;
mod chip_costs;
mod compact;
mod crashed;
mod damage;
mod entries;
mod format;
mod growing;
mod registry;

use nandex_sim::spec::{Flash, Ftl, FtlKind, Host, Level, Mapping, Parallel, Spec, Timing};
use nandex_sim::{Fill, SimDevice, Ssd};

/// The times of a raw chip's operations; `BUS_NS` is a page's transfer.
const COMMAND_NS: u64 = 5_000;
const READ_NS: u64 = 25_000;
const PROGRAM_NS: u64 = 200_000;
const ERASE_NS: u64 = 1_500_000;
const BUS_NS: u64 = 409_600;

/// Returns a plane of a raw flash chip, with `pages` pages of 4 KiB in each of `blocks` blocks.
fn raw_chip(blocks: u32, pages: u32, fill: Fill) -> SimDevice {
    let plain = Spec::plain();
    let (page_bytes, chunk_bytes) = (4096, 4096);
    let flash = Flash { channels: 1, dies: 1, planes: 1, blocks, pages, page_bytes, ..plain.flash };
    let spec = Spec {
        name: "chip".into(),
        about: "large-block SLC (assumed, as the preset of the cost model)".into(),
        host: Host { depth: 1, controller_ns: COMMAND_NS, buffer_is_safe: true, ..plain.host },
        flash,
        timing: Timing {
            read_ns: READ_NS,
            program_ns: PROGRAM_NS,
            erase_ns: ERASE_NS,
            transfer_ps_per_byte: 100_000,
            ..plain.timing
        },
        parallel: Parallel { unit: Level::Plane, ..plain.parallel },
        ftl: Ftl {
            kind: FtlKind::Raw,
            mapping: Mapping::Lba,
            chunk_bytes,
            spare_permille: 0,
            clean_at_permille: 0,
            copy_back: false,
            ..plain.ftl
        },
        ..plain
    };
    let ssd = Ssd::new(spec, fill).expect("the description is sound");
    SimDevice::with_model(Box::new(ssd))
}
