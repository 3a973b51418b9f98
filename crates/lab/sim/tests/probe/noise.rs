//! A device whose every latency is stretched or shortened at random.

use std::sync::{Arc, Mutex};

use nandex_device::{Call, Device, Error, Observer, Watched};
use nandex_sim::SimDevice;
use nandex_sim::workload::SplitMix64;

/// The standard deviation of a latency, in thousandths.
const DEVIATION_PERMILLE: i64 = 100;

/// Every wait takes the time of the device below, times a factor that is normal about 1 with a standard
/// deviation of a tenth.
pub type NoisyClock = Watched<SimDevice, Noise>;

/// Creates a device with noise of this seed in its clock.
pub fn noisy(device: SimDevice, seed: u64) -> NoisyClock {
    let clock = Clock { rng: SplitMix64::new(seed), seen_ns: 0, shown_ns: 0 };
    let noise = Noise { device: device.clone(), clock: Mutex::new(clock) };
    Watched::with(device, Arc::new(noise))
}

#[derive(Debug)]
pub struct Noise {
    device: SimDevice,
    clock: Mutex<Clock>,
}

impl Observer for Noise {
    fn after(&self, call: Call<'_>, _result: Result<(), &Error>) {
        if matches!(call, Call::Wait { .. }) {
            self.now(self.device.now());
        }
    }

    fn now(&self, device_ns: u64) -> u64 {
        self.clock.lock().unwrap().pass(device_ns)
    }
}

#[derive(Debug)]
struct Clock {
    rng: SplitMix64,
    seen_ns: u64,
    shown_ns: u64,
}

impl Clock {
    /// Advances the time by that of the device below, stretched.
    fn pass(&mut self, now_ns: u64) -> u64 {
        let passed = (now_ns - self.seen_ns) as i64;
        if passed > 0 {
            // Twelve uniform numbers make a normal one of variance 1.
            let sum: i64 = (0..12).map(|_| self.rng.below(1001) as i64 - 500).sum();
            let factor = (1000 * 1000 + sum * DEVIATION_PERMILLE).max(100_000);
            self.shown_ns += (passed * factor / 1_000_000) as u64;
            self.seen_ns = now_ns;
        }
        self.shown_ns
    }
}
