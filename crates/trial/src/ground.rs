//! What a trial's structure lies on: simulated devices, with and without a model of time.

use nandex_sim::spec::{Flash, Ftl, FtlKind, Host, Level, Mapping, Parallel, Spec, Timing, Victim};
use nandex_sim::{Fill, Image, SimDevice, Ssd};

/// A sort of device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ground {
    /// Each operation ends when it is pushed.
    Instant,
    /// An SSD of 32 MiB in virtual time: completions overtake one another.
    Ssd,
}

impl Ground {
    /// A device of that sort with these bytes on it, its counters at zero.
    #[must_use]
    pub fn device(self, image: Image) -> SimDevice {
        let device = match self {
            Self::Instant => SimDevice::instant(),
            Self::Ssd => SimDevice::with_model(Box::new(
                Ssd::new(small(), Fill::Empty).expect("the description is a possible one"),
            )),
        };
        device.with_image(image)
    }
}

/// Two channels of two dies, with times as of SLC flash and a small write buffer.
#[must_use]
pub fn small() -> Spec {
    Spec {
        name: "trial".into(),
        about: "made up: as small as volumes of trials allow".into(),
        host: Host {
            depth: 8,
            link_ps_per_byte: 2_000,
            duplex: false,
            controller_ns: 2_000,
            read_latency_ns: 0,
            write_latency_ns: 0,
            buffer_bytes: 64 << 10,
            buffer_is_safe: false,
        },
        flash: Flash {
            channels: 2,
            packages: 1,
            dies: 2,
            planes: 1,
            blocks: 80,
            pages: 32,
            page_bytes: 4096,
        },
        timing: Timing {
            read_ns: 50_000,
            program_ns: 200_000,
            erase_ns: 1_500_000,
            command_ns: 200,
            transfer_ps_per_byte: 10_000,
            spare_bytes_per_sector: 0,
            whole_page_transfer: false,
        },
        parallel: Parallel { unit: Level::Die, pipelined: false, two_plane: false },
        ftl: Ftl {
            kind: FtlKind::Page,
            mapping: Mapping::WriteOrder,
            domain: Level::Plane,
            chunk_bytes: 4096,
            spare_permille: 200,
            clean_at_permille: 50,
            victim: Victim::Greedy,
            copy_back: true,
            background: false,
        },
        erases_max: 100_000,
    }
}
