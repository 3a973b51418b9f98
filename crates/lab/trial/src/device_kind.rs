//! The devices of trials: simulated ones, with and without a model of time.

use nandex_sim::preset::Preset;
use nandex_sim::spec::{Flash, Ftl, Host, Spec, Timing};
use nandex_sim::{Fill, Image, SimDevice, Ssd};

/// A kind of simulated device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// Each operation ends when it is pushed.
    Instant,
    /// An SSD of 32 MiB in virtual time: completions overtake one another.
    Ssd,
    /// The preset of a name.
    Preset(&'static str),
}

impl DeviceKind {
    /// Creates a device of this kind with these bytes on it, its counters at zero.
    ///
    /// # Panics
    /// Panics if there is no preset of the name.
    #[must_use]
    pub fn with_image(self, image: Image) -> SimDevice {
        let device = match self {
            Self::Instant => SimDevice::instant(),
            Self::Ssd => SimDevice::with_model(Box::new(
                Ssd::new(small(), Fill::Empty).expect("the description is a possible one"),
            )),
            Self::Preset(name) => {
                let preset = Preset::named(name).expect("a preset has this name");
                let model = preset.build(Fill::Empty).expect("presets are possible");
                SimDevice::with_model(model).with_geometry(preset.geometry())
            }
        };
        device.with_image(image)
    }
}

/// Returns an SSD of two channels of two dies, with times as of SLC flash and a small write buffer.
#[must_use]
pub fn small() -> Spec {
    let plain = Spec::plain();
    Spec {
        name: "trial".into(),
        about: "made up: as small as volumes of trials allow".into(),
        host: Host {
            depth: 8,
            link_ps_per_byte: 2_000,
            controller_ns: 2_000,
            buffer_bytes: 64 << 10,
            ..plain.host
        },
        flash: Flash { planes: 1, blocks: 80, ..plain.flash },
        timing: Timing { command_ns: 200, ..plain.timing },
        ftl: Ftl { clean_at_permille: 50, ..plain.ftl },
        erases_max: 100_000,
        ..plain
    }
}
